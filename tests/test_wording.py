"""Messages count things in the singular where there is one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from topoplace.errors import number_of

PACKAGE = Path(__file__).resolve().parent.parent / "solver" / "topoplace"

THINGS = (
    "amounts|answers|axes|boxes|branches|bytes|cells|certificates|characters|chips|classes|columns"
    "|coordinates|cubes|decisions|dimensions|domains|elements|entries|extents|faults|fields|gains"
    "|groups|hops|hosts|indices|instances|jobs|kernels|layouts|leaves|levels|lines|links|loads"
    "|messages|moves|multipliers|nodes|numbers|objects|pairs|partitions|parts|pencils|pictures"
    "|places|placements|pods|points|prices|prisms|ranks|requests|routers|rows|scenarios|segments|slices|states"
    "|steps|switches|tasks|units|values|vertices|windows"
)
COUNTED = re.compile(rf"\{{([^{{}}]*)\}} (?:free |more |running |whole )?(?:{THINGS})\b")

TEXTS = {"field", "heaviest", "logical", "name", "one", "own.id", "partitions", "shape", "sizes"}
TEXTS |= {"width", "self._most", "one.most_nodes or 'any'"}
"""Expressions that are no whole numbers, or are never 1."""


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "job", "0 jobs"),
        (1, "request", "1 request"),
        (2, "free node", "2 free nodes"),
        (1024, "node", "1,024 nodes"),
        (1, "leaf", "1 leaf"),
        (3, "leaf", "3 leaves"),
        (3, "switch", "3 switches"),
        (3, "box", "3 boxes"),
        (2, "entry", "2 entries"),
        (2, "array", "2 arrays"),
        (2, "index", "2 indices"),
    ],
)
def test_number_of(number: int, noun: str, text: str) -> None:
    assert number_of(number, noun) == text


def told(path: Path) -> Iterator[str]:
    """Yield the formatted texts of a module, what is filled in as its source."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                part.value
                if isinstance(part, ast.Constant)
                else f"{{{ast.unparse(part.value).replace('{', '(').replace('}', ')')}}}"
                for part in node.values
            )


def is_number(source: str) -> bool:
    """Tell whether the source of what is filled in is a count that may be 1."""
    if source in TEXTS or "join(" in source or "number_of" in source or "argmax" in source:
        return False
    return not re.fullmatch(r"(\w+\.)*_?[A-Z][A-Z_]*( // 2)?|_?[A-Z_]+\[.*\]|.*\.(id|name)", source)


def test_no_message_counts_without_it() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {match[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in told(path)
        for match in COUNTED.finditer(text)
        if is_number(match[1])
    ]
    assert found == []
