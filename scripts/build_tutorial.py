"""Run README.md, the front page, the tutorial and docs/guide/schedulers/; write their outputs.

Each page is run from top to bottom, in a folder of its own.

A fenced block whose first line names a file after the language is saved under that name; ``sh``
and ``python`` blocks are run; a ``text`` block without a name, behind one of these, is what they
print. Blocks that install the project are not run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from topoplace.snapshot.files import write_text

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guide" / "tutorial.md"
FRONT = (ROOT / "README.md", ROOT / "docs" / "index.md")
SCHEDULERS = sorted((ROOT / "docs" / "guide" / "schedulers").glob("*.md"))

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

WIDTH = 88
"""Longer lines are folded; whoever compares outputs has to ignore the white space."""

SECONDS = 300
"""Limit of a block, on a machine with other work and kernels yet to be compiled."""

_INSTALLING = ("pip ", "make ")
FINE = (0, 5, 6)  # audits end with what they found


def played(page: str, folder: Path, run: Callable[[str, str], str]) -> str:
    """Return a page with the outputs that its commands have in an empty folder.

    `run` is called with the language and the text of a block, and returns what it prints.
    """
    output = ""

    def act(block: re.Match[str]) -> str:
        nonlocal output
        language, name, body = block.groups()
        if name:
            (folder / name).write_text(body)
        elif language in ("sh", "python") and not body.startswith(_INSTALLING):
            output = run(language, body)
        elif language == "text":
            return f"```text\n{_folded(output)}```"
        return block[0]

    return BLOCK.sub(act, page)


def environment_of(folder: Path) -> dict[str, str]:
    """Put `topoplace` and `python3` on the path, as they are in an installation."""
    programs = folder / ".programs"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    for name, command in (("python3", python), ("topoplace", f"{python} -m topoplace")):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    modules = os.pathsep.join([str(ROOT / "solver"), *filter(None, sys.path)])
    return os.environ | {"PATH": path, "PYTHONPATH": modules, "COLUMNS": "100"}


def run_by_shell(commands: str, folder: Path, environment: dict[str, str]) -> str:
    """Return what commands print.

    Raises
    ------
    RuntimeError
        If they fail.
    """
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode not in FINE:
        raise RuntimeError(f"{commands}exits with {done.returncode}:\n{done.stdout}")
    return done.stdout


def _folded(text: str) -> str:
    return "".join(
        textwrap.fill(line, WIDTH, subsequent_indent="    ") + "\n"
        if len(line) > WIDTH
        else f"{line}\n"
        for line in text.splitlines()
    )


def main() -> None:
    """Write the outputs into the pages."""
    for page in (*FRONT, PAGE, *SCHEDULERS):
        with tempfile.TemporaryDirectory() as folder:
            within = Path(folder), environment_of(Path(folder))
            run_by_shell("topoplace warmup\n", *within)  # compiling is said once

            def run(language: str, body: str, within: Any = within) -> str:
                python = f"python3 - <<'END'\n{body}END\n"
                return run_by_shell(python if language == "python" else body, *within)

            write_text(page, played(page.read_text(), Path(folder), run))


if __name__ == "__main__":
    main()
