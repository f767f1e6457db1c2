"""Mappings as CSV: ``task,node,c0,c1,...`` with the coordinates of the router."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.check import require_mapping
from topoplace.snapshot.files import write_text
from topoplace.snapshot.readers.lines import field_lines, integer


def write_csv(problem: MappingProblem, nodes: IntArray, path: str | Path) -> None:
    """Write one row per task: its number, its node, and the coordinates of its router.

    A machine without coordinates gets its router number as the only one.

    Raises
    ------
    InputError
        If `nodes` is no mapping of the instance.
    """
    require_mapping(problem, nodes)
    places = _places(problem, nodes)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_header(places.shape[1]))
    rows = np.column_stack([np.arange(problem.num_tasks), nodes, places])
    writer.writerows(rows.tolist())
    write_text(path, out.getvalue())


def read_csv(problem: MappingProblem, path: str | Path) -> IntArray:
    """Read a table with the columns task and node and return the node of every task.

    Rows may come in any order. Coordinates may be left out (all of them); where they are given
    they must be those of the node's router.

    Raises
    ------
    InputError
        Naming file, line and value.
    """
    file = str(path)
    rows = [
        (line, [text.strip() for text in " ".join(fields).split(",")])
        for line, fields in field_lines(path, "#")
    ]
    full = _header(_places(problem, problem.nodes[:1]).shape[1])
    if not rows or rows[0][1] not in (full, full[:2]):
        raise InputError(
            f"a header {','.join(full)} or task,node",
            file=file,
            field=rows[0][0] if rows else None,
            value=",".join(rows[0][1]) if rows else None,
        )
    width = len(rows[0][1])
    nodes = np.full(problem.num_tasks, -1, dtype=np.int64)
    where = [""] * problem.num_tasks
    given = np.zeros((problem.num_tasks, width - 2), dtype=np.int64)
    for line, fields in rows[1:]:
        if len(fields) != width:
            raise InputError(f"{width} columns", file=file, field=line, value=len(fields))
        task, node, *coordinates = (integer(text, 0, file=file, field=line) for text in fields)
        if task >= problem.num_tasks:
            raise InputError(f"tasks below {problem.num_tasks}", file=file, field=line, value=task)
        if nodes[task] >= 0:
            raise InputError("each task once", file=file, field=line, value=task)
        nodes[task], given[task], where[task] = node, coordinates, line
    missing = np.flatnonzero(nodes < 0)
    if len(missing):
        raise InputError("a row for every task", file=file, value=f"no task {missing[0]}")
    require_mapping(problem, nodes, file=file, where=where.__getitem__)
    if width > 2:
        wrong = np.flatnonzero((given != _places(problem, nodes)).any(axis=1))
        if len(wrong):
            raise InputError(
                "the coordinates of the node's router",
                file=file,
                field=where[wrong[0]],
                value=given[wrong[0]].tolist(),
            )
    return nodes


def _header(num_coordinates: int) -> list[str]:
    return ["task", "node", *(f"c{d}" for d in range(num_coordinates))]


def _places(problem: MappingProblem, nodes: IntArray) -> IntArray:
    """Return the coordinates of every node's router."""
    routers = problem.routers_of(nodes)
    if not isinstance(problem.machine, Torus):
        return routers[:, None]
    return problem.machine.coordinates[routers]
