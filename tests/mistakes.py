"""Typical mistakes, and what is said of each: the sections of `mistakes.txt`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from topoplace.cli.app import COMMANDS
from topoplace.errors import MAX_FAULTS, InputError
from topoplace.kinds import kind_named
from topoplace.shipped import FORMATS, MACHINES
from topoplace.snapshot.convert import CONVERSIONS


def _methods(problem: str, *first: str) -> str:
    """Return methods as an error lists them: those that are near a wrong one first, and not all."""
    names = dict.fromkeys([*first, *kind_named(problem).methods])
    return ", ".join([*names][:MAX_FAULTS]) + (", ..." if len(names) > MAX_FAULTS else "")


NAMES = {
    "PLACING": _methods("placement"),
    "PLACING first_fit": _methods("placement", "first-fit"),
    "PLACING bestfit": _methods("placement", "best-fit", "first-fit"),
    "ALLOCATING": _methods("allocation"),
    "MAPPING pensils": _methods("mapping", "pencils"),
    "MACHINE": "a file, a shorthand such as torus:4x4x4, tree:24x16 or hierarchy:4x8x18, or one of "
    + ", ".join(MACHINES),
    "COMMANDS": ", ".join(COMMANDS),
    "FORMATS": ", ".join(FORMATS),
    "CONVERSIONS": "a known conversion "
    f"({', '.join(f'{source} to {target}' for source, target in CONVERSIONS)})",
    "A SNAPSHOT": 'a snapshot ("topoplace.snapshot/1"), which topoplace place, compare, batch and '
    "map --on take",
    "A RESULT": 'a result ("topoplace.result/4"), which topoplace check, show, compare and map '
    "--on take",
    "AN INSTANCE": 'a mapping instance ("topoplace.mapping/1"), which topoplace compare and batch '
    "take",
}
"""What stands for what in `mistakes.txt`."""


def _sections() -> dict[str, list[tuple[str, list[str]]]]:
    text = (Path(__file__).parent / "mistakes.txt").read_text()
    for name, told in NAMES.items():
        text = text.replace(f"<{name}>", told)
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for section in text.split("\n# ")[1:]:
        title, *lines = section.splitlines()
        own = found[title.partition(":")[0]] = []
        for line in filter(None, lines):
            if line.startswith("    "):
                own[-1][1].append(line.strip())
            else:
                own.append((line, []))
    return found


MISTAKES = _sections()
"""By section, mistakes with the lines that they get to hear."""


def lines_said(call: Callable[..., object], *arguments: object, **options: object) -> list[str]:
    """Return what is said of arguments that a call refuses."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    return str(caught.value).splitlines()
