"""Write docs/reference/commands.md from the options that the commands declare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from topoplace.cli.app import app
from topoplace.snapshot.files import write_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"

INTRODUCTION = """# Commands

Written by `scripts/build_commands.py`; `topoplace COMMAND -h` says the same, and lists methods and
shipped machines below. `topoplace --debug COMMAND ...` shows the traceback of a failure, `topoplace
--version` the version; `topoplace --install-completion` lets the shell complete
([install.md](../guide/install.md#shell-completion)).

Every command takes `--json`: one JSON document on stdout, all talk on stderr; `-v, --verbose`: say
on stderr what is done, as it is done; and `-q, --quiet`: say nothing but errors, and JSON if asked
for. The last two may stand before the command as well.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | internal error |
| 2 | bad input: a line for each fault that names file and field, what was expected and what found |
| 2 | a file could not be written: the answer is printed, and kept in a temporary folder |
| 3 | proven infeasible |
| 4 | time limit with no solution |
| 5 | a check failed, or a bound rests on a search that `check` does not repeat |
| 5 | `audit`: a decision breaks a rule |
| 6 | `audit`: a request waits that fits, or the regret is above `--tolerate` |
| 130, 143 | interrupted by Ctrl-C, by SIGTERM, before an answer; no file is left half-written |
| 141 | who read stdout left early, as `head` does |
"""

UNTOLD = ("--help", "--json", "--verbose", "--quiet")
"""Options of every command."""


def page_text() -> str:
    """Return the page: a section per command, in the order of `topoplace --help`."""
    # Any: typer is typed by the click it brings along, which differs between its versions.
    group: Any = typer.main.get_command(app)
    sections = [_section(name, command) for name, command in group.commands.items()]
    return "\n".join([INTRODUCTION, *sections])


def _section(name: str, command: Any) -> str:
    arguments = [_argument(param) for param in command.params if not _is_option(param)]
    usage = " ".join(["topoplace", name, *arguments, "[OPTIONS]"])
    rows = [
        _row(param)
        for param in command.params
        if _is_option(param) and not set(param.opts) & set(UNTOLD)
    ]
    table = ["| option | meaning | default |", "|---|---|---|", *rows] if rows else []
    lines = [f"## {name}", "", command.help, "", "```text", usage, "```", ""]
    return "\n".join(lines + table) + ("\n" if rows else "")


def _is_option(param: Any) -> bool:
    return bool(param.param_type_name == "option")


def _argument(param: Any) -> str:
    name = str(param.metavar).strip("{}")
    return name if param.required else f"[{name}]"


def _row(param: Any) -> str:
    names = ", ".join(sorted(param.opts, key=len))
    names += "".join(f" / {name}" for name in param.secondary_opts)
    if not param.is_flag:
        names += f" {param.metavar}"
    cells = (f"`{names}`", param.help or "", _default(param))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(param: Any) -> str:
    if param.required:
        return "required"
    return "" if str(param.default) in ("None", "False", "") else f"`{param.default}`"


def main() -> None:
    """Write the page."""
    write_text(PAGE, page_text())


if __name__ == "__main__":
    main()
