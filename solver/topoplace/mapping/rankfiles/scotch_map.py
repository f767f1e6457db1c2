"""Mappings as Scotch writes them (Scotch user's guide, "Mapping files").

The number of lines, then per line a vertex of the graph and the vertex of the target it goes to.
Target vertices are our node numbers. Scotch numbers its built-in meshes and tori with the first
dimension fastest and we with the last, so that our torus 4x6x8 is its ``torus3D 8 6 4``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.check import require_mapping
from topoplace.snapshot.files import write_text
from topoplace.snapshot.readers.lines import field_lines, integer


def write_scotch_map(problem: MappingProblem, nodes: IntArray, path: str | Path) -> None:
    """Write task and node, both counted from 0, line by line.

    Raises
    ------
    InputError
        If `nodes` is no mapping of the instance.
    """
    require_mapping(problem, nodes)
    lines = [f"{problem.num_tasks}", *(f"{t}\t{node}" for t, node in enumerate(nodes.tolist()))]
    write_text(path, "\n".join(lines) + "\n")


def read_scotch_map(problem: MappingProblem, path: str | Path) -> IntArray:
    """Read a Scotch mapping file and return the node of every task.

    Lines may come in any order. Vertices are counted from the base value of the graph file: from
    1 if the highest one is the number of tasks, else from 0. Nodes are counted from 0.

    Raises
    ------
    InputError
        Naming file, line and value: also for a vertex without node (-1).
    """
    file = str(path)
    rows = list(field_lines(path, "#"))
    if not rows or len(rows[0][1]) != 1:
        field, found = (rows[0][0], " ".join(rows[0][1])) if rows else (None, None)
        raise InputError("the number of lines", file=file, field=field, value=found)
    told = integer(rows[0][1][0], 0, file=file, field=rows[0][0])
    if told != len(rows) - 1 or told != problem.num_tasks:
        raise InputError(
            f"a line for each of the {problem.num_tasks} tasks, and their number first",
            file=file,
            value=f"{told}, and {len(rows) - 1} lines",
        )
    pairs: list[tuple[str, int, int]] = []
    for line, fields in rows[1:]:
        if len(fields) != 2:
            raise InputError("a task and a node", file=file, field=line, value=" ".join(fields))
        task, node = (integer(text, 0, file=file, field=line) for text in fields)
        pairs.append((line, task, node))
    base = int(max(task for _, task, _ in pairs) == problem.num_tasks)
    nodes = np.full(problem.num_tasks, -1, dtype=np.int64)
    where = [""] * problem.num_tasks
    for line, task, node in pairs:
        if not base <= task < problem.num_tasks + base:
            raise InputError(
                f"tasks from {base} to {problem.num_tasks + base - 1}",
                file=file,
                field=line,
                value=task,
            )
        if nodes[task - base] >= 0:
            raise InputError("each task once", file=file, field=line, value=task)
        nodes[task - base], where[task - base] = node, line
    require_mapping(problem, nodes, file=file, where=where.__getitem__)
    return nodes
