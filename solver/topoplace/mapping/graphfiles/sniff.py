"""Which format a graph file has, by its ending or else by its first lines."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.mapping.graphfiles.matrices import split_fields
from topoplace.snapshot.readers.tables import text_of

GRAPH_FORMATS = ("csv", "qaplib", "metis", "grf", "edges")
"""Names of the formats of graph files."""

_ENDINGS = {
    ".dat": "qaplib",
    ".graph": "metis",
    ".metis": "metis",
    ".grf": "grf",
    ".src": "grf",
    ".edges": "edges",
    ".edgelist": "edges",
    ".el": "edges",
}


def graph_format(path: str | Path) -> str:
    """Return the name of a graph file's format.

    The endings ``.dat`` (QAPLIB), ``.graph`` and ``.metis``, ``.grf`` and ``.src`` (Scotch),
    ``.edges``, ``.edgelist`` and ``.el`` tell. In a ``.csv`` file a first line of names starts an
    edge list, anything else is a matrix. Other files are told by their first lines: ``%`` starts
    METIS, a line of names an edge list, one number alone QAPLIB or, if it is 0 and two numbers
    follow, Scotch; a line of as many fields as the file has lines starts a matrix, and one of two
    or three fields an edge list.

    Raises
    ------
    InputError
        If the file cannot be read or looks like none of these.
    """
    ending = Path(path).suffix.lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    lines = [line.strip() for line in text_of(path).splitlines() if line.strip()]
    if lines and lines[0].startswith("%"):
        return "metis"
    rows = [split_fields(line) for line in lines if not line.startswith("#")]
    found = _by_rows(rows, ending)
    if found is None:
        raise InputError(
            f"a graph file of a known form (or --graph-format {', '.join(GRAPH_FORMATS)})",
            file=str(path),
            value=lines[0] if lines else "",
        )
    return found


def _by_rows(rows: list[list[str]], ending: str) -> str | None:
    if not rows:
        return None
    first = rows[0]
    width = len(first)
    if all(field[:1].isalpha() for field in first):
        return "edges"
    if ending == ".csv":
        return "csv"  # never a list: a matrix that lost a row would become one
    if width == 1 and len(rows) > 1:
        return "grf" if first == ["0"] and len(rows[1]) == 2 else "qaplib"
    if len(rows) == width:
        return "csv"
    return "edges" if width in (2, 3) else None
