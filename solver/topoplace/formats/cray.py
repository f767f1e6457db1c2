"""Cray's neighbour table: one line per node with its six neighbours and its coordinates."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.text import field_lines, integer, name_of, require_once
from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.schema import TorusModel
from topoplace.snapshot.state import torus_of
from topoplace.types import IntArray

_COLUMNS = ("nid", "x+", "x-", "y+", "y-", "z+", "z-", "lx", "ly", "lz")


def read_cray_neighbours(path: str | Path, name: str | None = None) -> TorusModel:
    """Read a neighbour table and check that it is a torus, whose nodes are called ``nid00012``.

    The coordinates must fill a box once, and every neighbour entry must be the node one step
    along that dimension, wrapping around (so a mesh, or a table with holes, is refused).
    Lines are ``nid x+ x- y+ y- z+ z- lx ly lz``; ``#`` starts a comment. The machine is named as
    the file if not told otherwise.
    """
    rows: list[tuple[str, list[int]]] = []
    for line, fields in field_lines(path, "#"):
        with blamed_on(path, line):
            if len(fields) != len(_COLUMNS):
                expected = f"{number_of(len(_COLUMNS), 'column')} ({' '.join(_COLUMNS)})"
                raise InputError(expected, value=number_of(len(fields), "column"))
            pairs = zip(fields, _COLUMNS, strict=True)
            rows.append((line, [integer(own, 0, field=column) for own, column in pairs]))
    if not rows:
        raise InputError("a table with at least one node", file=str(path))
    with blamed_on(path):
        return _table([line for line, _ in rows], np.asarray([row for _, row in rows]), path, name)


def _table(lines: list[str], numbers: IntArray, path: str | Path, name: str | None) -> TorusModel:
    nids, coords = numbers[:, 0], numbers[:, 7:]
    shape = (coords.max(axis=0) + 1).tolist()
    if math.prod(shape) != len(lines):
        expected = (
            f"coordinates that fill {'x'.join(map(str, shape))} = "
            f"{number_of(math.prod(shape), 'place')}"
        )
        raise InputError(expected, field="lx ly lz", value=number_of(len(lines), "node"))
    machine = TorusModel(
        name=name or name_of(path),
        shape=shape,
        wrap=[True] * 3,
        bandwidth=[1] * 3,
        source="a Cray neighbour table; nodes numbered by coordinates",
    )
    torus = torus_of(machine)
    line_of_nid: dict[int, str] = {}
    line_of_coords: dict[tuple[int, ...], str] = {}
    for line, nid, at in zip(lines, nids.tolist(), coords.tolist(), strict=True):
        with blamed_on(path, line):
            require_once(line_of_nid, nid, line, "nid", field="nid")
            require_once(line_of_coords, tuple(at), line, "coordinate", field="lx ly lz")
    routers = coords @ torus.strides
    nid_of_router = np.zeros(len(lines), dtype=np.int64)
    nid_of_router[routers] = nids
    steps = np.concatenate([(step, -step) for step in np.eye(3, dtype=np.int64)])  # as columns
    expected_nids = nid_of_router[((coords[:, None] + steps) % shape) @ torus.strides]
    wrong = np.argwhere(numbers[:, 1:7] != expected_nids)
    if len(wrong):
        row, k = wrong[0]
        raise InputError(
            f"the torus neighbour, nid {expected_nids[row, k]}",
            field=f"{lines[row]}, {_COLUMNS[1 + k]}",
            value=int(numbers[row, 1 + k]),
        )
    names = format_host_list(f"nid{nid:05d}" for nid in nid_of_router.tolist())
    return machine.model_copy(update={"names": names})
