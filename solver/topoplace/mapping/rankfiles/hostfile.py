"""Host files with one line per task, as ``srun -m arbitrary`` reads ``SLURM_HOSTFILE``.

Line i names the host of task i. The shorter form ``host slots=4`` cannot say which tasks a host
gets unless they are consecutive, so it is read but not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.check import require_mapping
from topoplace.mapping.rankfiles.numbering import Numbering
from topoplace.snapshot.files import write_text
from topoplace.snapshot.readers.lines import field_lines, integer


def write_hostfile(
    problem: MappingProblem,
    nodes: IntArray,
    path: str | Path,
    node_of_nid: Mapping[int, int] | None = None,
) -> None:
    """Write the host name of every task, such as ``nid00012``, line by line.

    Raises
    ------
    InputError
        If `nodes` is no mapping of the instance, or a node has no nid (see `Numbering`).
    """
    require_mapping(problem, nodes)
    numbering = Numbering(node_of_nid)
    write_text(path, "".join(f"{numbering.host(node)}\n" for node in nodes.tolist()))


def read_hostfile(
    problem: MappingProblem,
    path: str | Path,
    node_of_nid: Mapping[int, int] | None = None,
) -> IntArray:
    """Read a host file and return the node of every task.

    A line ``host`` takes one task, ``host slots=4`` or ``host:4`` the next four; ``#`` starts a
    comment line.

    Raises
    ------
    InputError
        Naming file, line and value.
    """
    numbering = Numbering(node_of_nid)
    file = str(path)
    nodes: list[int] = []
    where: list[str] = []
    for line, fields in field_lines(path, "#"):
        text = " ".join(fields)
        host, separator, slots = text.partition(" slots=" if " slots=" in text else ":")
        count = integer(slots, 1, file=file, field=line) if separator else 1
        node = numbering.node_of_host(host, file=file, field=line)
        if len(nodes) + count > problem.num_tasks:
            raise InputError(
                f"hosts for {problem.num_tasks} tasks, not more", file=file, field=line, value=text
            )
        nodes.extend([node] * count)
        where.extend([line] * count)
    found = np.asarray(nodes, dtype=np.int64)
    require_mapping(problem, found, file=file, where=where.__getitem__)
    return found
