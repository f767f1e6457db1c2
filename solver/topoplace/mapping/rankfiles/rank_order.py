"""Cray's ``MPICH_RANK_ORDER`` with a node list: the two files Topaware writes.

``aprun -l NODE_LIST -N m`` puts m ranks on each node of the list, node by node; with
``MPICH_RANK_REORDER_METHOD=3`` those are the ranks in the order of ``MPICH_RANK_ORDER`` (Fiedler
2014, "Running Batch Jobs Using Topaware"). Every node gets the same number of ranks, so a mapping
that fills nodes unevenly has idle ranks: they are numbered from the number of tasks on, and come
last on their node (Enos 2014 IV.F).
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

MAX_NUMBERS = 1 << 24
"""Most numbers read from one file: no line can ask for more by a range."""


def node_list_beside(path: str | Path) -> Path:
    """Return where the node list of a rank order lies if not said otherwise."""
    path = Path(path)
    return path.with_name(path.name + ".nodes")


def write_rank_order(
    problem: MappingProblem,
    nodes: IntArray,
    path: str | Path,
    node_list_path: str | Path | None = None,
    node_of_nid: Mapping[int, int] | None = None,
) -> int:
    """Write a mapping as a rank order and a node list.

    Parameters
    ----------
    problem
        The instance.
    nodes
        Node of every task.
    path, node_list_path
        The two files; the list goes beside the order (`node_list_beside`) if not given. The order
        has one line per node, the list is one line of nids with commas between, ascending in our
        node numbers; nodes without tasks are left out.
    node_of_nid
        See `Numbering`.

    Returns
    -------
    int
        Ranks per node (``aprun -N``); times the nodes it is the number of ranks (``aprun -n``).

    Raises
    ------
    InputError
        If `nodes` is no mapping of the instance, or a node has no nid.
    """
    require_mapping(problem, nodes)
    numbering = Numbering(node_of_nid)
    used, position = np.unique(nodes, return_inverse=True)
    per_node = int(np.bincount(position).max())
    order = np.argsort(position, kind="stable")
    idle = problem.num_tasks
    lines = []
    for tasks in np.split(order, np.searchsorted(position[order], np.arange(1, len(used)))):
        spare = per_node - len(tasks)
        lines.append(",".join(map(str, [*tasks.tolist(), *range(idle, idle + spare)])))
        idle += spare
    nids = ",".join(str(numbering.nid(node)) for node in used.tolist())
    write_text(path, "\n".join(lines) + "\n")
    write_text(node_list_path or node_list_beside(path), nids + "\n")
    return per_node


def read_rank_order(
    problem: MappingProblem,
    path: str | Path,
    node_list_path: str | Path | None = None,
    node_of_nid: Mapping[int, int] | None = None,
) -> IntArray:
    """Read a rank order with its node list and return the node of every task.

    Both files hold numbers and ranges such as ``4-7``, separated by commas, spaces or line ends;
    ``#`` starts a comment line. Ranks from the number of tasks on are idle.

    Raises
    ------
    InputError
        Naming file, line and value: numbers that are none, ranks missing or twice, a number of
        ranks that the nodes cannot share equally, or what is no mapping of the instance.
    """
    list_path = Path(node_list_path or node_list_beside(path))
    numbering = Numbering(node_of_nid)
    seen: set[int] = set()
    listed = []
    for line, nid in _numbers(list_path):
        node = numbering.node(nid, file=str(list_path), field=line)
        if node in seen:
            raise InputError("each node once", file=str(list_path), field=line, value=nid)
        seen.add(node)
        listed.append(node)
    ranks = _numbers(path)
    file = str(path)
    if not listed or len(ranks) % len(listed) or len(ranks) < problem.num_tasks:
        raise InputError(
            f"the same number of ranks for each of the {len(listed)} nodes of {list_path}, and at "
            f"least {problem.num_tasks}",
            file=file,
            value=f"{len(ranks)} ranks",
        )
    per_node = len(ranks) // len(listed)
    nodes = np.full(len(ranks), -1, dtype=np.int64)
    where = [""] * len(ranks)
    for i, (line, rank) in enumerate(ranks):
        if rank >= len(ranks):
            raise InputError(f"ranks below {len(ranks)}", file=file, field=line, value=rank)
        if nodes[rank] >= 0:
            raise InputError("each rank once", file=file, field=line, value=rank)
        nodes[rank] = listed[i // per_node]
        where[rank] = line
    tasks = nodes[: problem.num_tasks]
    require_mapping(problem, tasks, file=file, where=lambda t: f"{where[t]}, rank {t}")
    return tasks


def _numbers(path: str | Path) -> list[tuple[str, int]]:
    """Return all numbers of a file with the line each stands in, ranges written out."""
    found: list[tuple[str, int]] = []
    for line, fields in field_lines(path, "#"):
        for text in ",".join(fields).split(","):
            if not text:
                continue
            low, dash, high = text.partition("-")
            first = integer(low, 0, file=str(path), field=line)
            last = integer(high, first, file=str(path), field=line) if dash else first
            if last - first >= MAX_NUMBERS - len(found):
                raise InputError(
                    f"at most {MAX_NUMBERS} numbers", file=str(path), field=line, value=text
                )
            found.extend((line, number) for number in range(first, last + 1))
    return found
