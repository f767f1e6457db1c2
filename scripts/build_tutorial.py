"""Run the pages that show what their commands print, and write the outputs.

These are README.md, the front page, the chapters of the tutorial, docs/guide/schedulers/,
docs/guide/users/, and the pages of docs/develop on adding something. Each page is run from top to
bottom in a folder of its own. The files that earlier chapters of the tutorial show are there
already.

A fenced block whose first line names a file after the language is saved under that name; ``sh``
and ``python`` blocks are run; a ``text`` block without a name, behind one of these, is what they
print. Blocks that install the project are not run.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from topoplace.cli import run
from topoplace.snapshot.files import write_text

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide"
FRONT = (ROOT / "README.md", ROOT / "docs" / "index.md")
NAMES = ("place", "slurm", "compare", "map", "batch", "trade-offs", "repack")
CHAPTERS = tuple(GUIDE / "tutorial" / f"{name}.md" for name in NAMES)
SCHEDULERS = sorted((GUIDE / "schedulers").glob("*.md"))
USERS = sorted((GUIDE / "users").glob("*.md"))
DEVELOP = sorted((ROOT / "docs" / "develop").glob("adding-*.md"))

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

WIDTH = 88
"""Longer lines are folded; whoever compares outputs has to ignore the white space."""

SECONDS = 300
"""Limit of a block, on a machine with other work and kernels yet to be compiled."""

_INSTALLING = ("pip ", "make ")
_FINE = (0, 5, 6)  # audits end with what they found


def played(path: Path, folder: Path) -> str:
    """Return a page with the outputs that its commands have in an empty folder.

    Raises
    ------
    RuntimeError
        If a command fails.
    """
    earlier = CHAPTERS[: CHAPTERS.index(path)] if path in CHAPTERS else ()
    for name, body in (own[1:] for one in earlier for own in BLOCK.findall(one.read_text())):
        if name:
            (folder / name).write_text(body)
    output = ""

    def act(block: re.Match[str]) -> str:
        nonlocal output
        language, name, body = block.groups()
        if name:
            (folder / name).write_text(body)
        elif language == "sh" and not body.startswith(_INSTALLING):
            output = "".join(map(_printed, body.replace("\\\n", " ").splitlines()))
        elif language == "python":
            output = _of_python(body, alone=any(folder.glob("*.py")))
        elif language == "text":
            return f"```text\n{_folded(output)}```"
        return block[0]

    with _inside(folder):
        _warm()
        return BLOCK.sub(act, path.read_text())


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Go to a folder, with `topoplace` and `python3` on the path as in an installation."""
    programs = folder / ".programs"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    for name, command in (("python3", python), ("topoplace", f"{python} -m topoplace")):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    modules = os.pathsep.join([str(ROOT / "solver"), str(ROOT / "tests"), *filter(None, sys.path)])
    changed = {"PATH": path, "PYTHONPATH": modules, "COLUMNS": "100"}
    with contextlib.chdir(folder), mock.patch.dict(os.environ, changed):
        yield


@functools.cache
def _warm() -> None:
    """Compile what is not compiled yet: a command says so once per installation."""
    _of_shell("topoplace warmup")


def _printed(line: str) -> str:
    """Run a line: a command of ours in this process, all else, and what follows it, in a shell."""
    command, *rest = re.split(r"(?= \|)", line, maxsplit=1)
    words = shlex.split(command, comments=True)
    if words[:1] != ["topoplace"]:
        return _of_shell(line)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(words[1:])
    if not rest:
        return _checked(line, code, said.getvalue())
    printed = Path(".programs", "printed")
    printed.write_text(said.getvalue())
    return _of_shell(f"(cat {printed}; exit {code}){rest[0]}")


def _of_python(program: str, *, alone: bool) -> str:
    """Run a program: in this process, except where it may change it by a module of the page."""
    if alone:
        return _of_shell(f"python3 - <<'END'\n{program}END\n")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        exec(compile(program, "<page>", "exec"), {"__name__": "__main__"})
    return said.getvalue()


def _of_shell(commands: str) -> str:
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return _checked(commands, done.returncode, done.stdout)


def _checked(commands: str, code: int, printed: str) -> str:
    if code not in _FINE:
        raise RuntimeError(f"{commands} exits with {code}:\n{printed}")
    return printed


def _folded(text: str) -> str:
    return "".join(
        textwrap.fill(line, WIDTH, subsequent_indent="    ") + "\n"
        if len(line) > WIDTH
        else f"{line}\n"
        for line in text.splitlines()
    )


def main() -> None:
    """Write the outputs into the pages."""
    for page in (*FRONT, *CHAPTERS, *SCHEDULERS, *USERS, *DEVELOP):
        with tempfile.TemporaryDirectory() as folder:
            write_text(page, played(page, Path(folder)))


if __name__ == "__main__":
    main()
