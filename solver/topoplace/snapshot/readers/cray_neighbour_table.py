"""The Cray neighbour table: one line per node with its six neighbours and its coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError
from topoplace.machine import Torus
from topoplace.snapshot.readers.lines import field_lines, integer, name_of
from topoplace.snapshot.schema import TorusModel
from topoplace.snapshot.state import torus_of

_COLUMNS = ("nid", "x+", "x-", "y+", "y-", "z+", "z-", "lx", "ly", "lz")


@dataclass(frozen=True)
class CrayTable:
    """A machine read from a neighbour table.

    Attributes
    ----------
    machine
        The torus; routers, with one node each, are numbered by coordinates.
    router_of_nid
        Our router number for each of the table's node ids, in the table's order.
    """

    machine: TorusModel
    router_of_nid: dict[int, int]


def read_cray_neighbours(path: str | Path, name: str | None = None) -> CrayTable:
    """Read a neighbour table and check that it is a torus.

    The coordinates must fill a box once, and every neighbour entry must be the node one step
    along that dimension, wrapping around (so a mesh, or a table with holes, is refused).

    Parameters
    ----------
    path
        Lines ``nid x+ x- y+ y- z+ z- lx ly lz``; ``#`` starts a comment.
    name
        Name of the machine, by default the file's, without spaces.

    Raises
    ------
    InputError
        Naming file, line, column and value.
    """
    file = str(path)
    rows: list[tuple[str, list[int]]] = []
    for line, fields in field_lines(path, "#"):
        if len(fields) != len(_COLUMNS):
            raise InputError(
                f"{len(_COLUMNS)} columns ({' '.join(_COLUMNS)})",
                file=file,
                field=line,
                value=f"{len(fields)} columns",
            )
        numbers = [
            integer(text, 0, file=file, field=f"{line}, {column}")
            for text, column in zip(fields, _COLUMNS, strict=True)
        ]
        rows.append((line, numbers))
    if not rows:
        raise InputError("a table with at least one node", file=file)
    machine, torus = _machine_of(rows, name or name_of(path), file)
    router_of_nid: dict[int, int] = {}
    nid_of_router: dict[int, int] = {}
    for line, numbers in rows:
        nid, router = numbers[0], torus.router(numbers[7:])
        if nid in router_of_nid:
            raise InputError("each nid once", file=file, field=f"{line}, nid", value=nid)
        if router in nid_of_router:
            raise InputError(
                "each coordinate once", file=file, field=f"{line}, lx ly lz", value=numbers[7:]
            )
        router_of_nid[nid] = router
        nid_of_router[router] = nid
    for line, numbers in rows:
        _require_neighbours(torus, nid_of_router, numbers, file, line)
    return CrayTable(machine, router_of_nid)


def _machine_of(
    rows: list[tuple[str, list[int]]], name: str, file: str
) -> tuple[TorusModel, Torus]:
    shape = [1 + max(numbers[7 + d] for _, numbers in rows) for d in range(3)]
    expected = shape[0] * shape[1] * shape[2]
    if expected != len(rows):
        raise InputError(
            f"coordinates that fill {'x'.join(map(str, shape))} = {expected} places",
            file=file,
            field="lx ly lz",
            value=f"{len(rows)} nodes",
        )
    machine = TorusModel(
        name=name,
        shape=shape,
        wrap=[True] * 3,
        bandwidth=[1] * 3,
        source="a Cray neighbour table; nodes numbered by coordinates",
    )
    return machine, torus_of(machine)


def _require_neighbours(
    torus: Torus, nid_of_router: dict[int, int], numbers: list[int], file: str, line: str
) -> None:
    here = numbers[7:]
    for k, column in enumerate(_COLUMNS[1:7]):
        d, step = k // 2, 1 if k % 2 == 0 else -1
        there = [(c + step) % n if e == d else c for e, (c, n) in enumerate(_pairs(here, torus))]
        expected = nid_of_router[torus.router(there)]
        if numbers[1 + k] != expected:
            raise InputError(
                f"the torus neighbour, nid {expected}",
                file=file,
                field=f"{line}, {column}",
                value=numbers[1 + k],
            )


def _pairs(coords: list[int], torus: Torus) -> list[tuple[int, int]]:
    return list(zip(coords, torus.shape, strict=True))
