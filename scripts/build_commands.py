"""Write docs/reference/commands.md from the options that the commands declare."""

from __future__ import annotations

from typing import Any

import typer.main

from study import ROOT, inserted, line
from topoplace.cli.app import app
from topoplace.snapshot.files import write_text

PAGE = ROOT / "docs" / "reference" / "commands.md"

BEGIN = "<!-- commands: written by scripts/build_commands.py -->"

UNTOLD = ("--help", "--json", "--verbose", "--quiet")
"""Options of every command."""


def page_text() -> str:
    """Return the page with a section per command, in the order of `topoplace --help`."""
    # Any: typer is typed by the click it brings along, which differs between its versions.
    group: Any = typer.main.get_command(app)
    sections = [_section(name, command) for name, command in group.commands.items()]
    return inserted(PAGE.read_text(encoding="utf-8"), BEGIN, "\n".join(sections))


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
    return line(cells)


def _default(param: Any) -> str:
    if param.required:
        return "required"
    return "" if str(param.default) in ("None", "False", "") else f"`{param.default}`"


def main() -> None:
    """Write the page."""
    write_text(PAGE, page_text())


if __name__ == "__main__":
    main()
