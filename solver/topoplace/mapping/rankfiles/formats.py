"""Mappings in the files of other tools: rank orders, host files, maplib, Scotch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.methods.orders import spread_over_nodes
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.places import Numbering, require_mapping
from topoplace.snapshot.files import write_text
from topoplace.snapshot.readers.tables import field_lines, integer

# ---- Cray's ``MPICH_RANK_ORDER`` with a node list: the two files Topaware writes -----------------
# ``aprun -l NODE_LIST -N m`` puts m ranks on each node of the list, node by node; with
# ``MPICH_RANK_REORDER_METHOD=3`` those are the ranks in the order of ``MPICH_RANK_ORDER`` (Fiedler
# 2014, "Running Batch Jobs Using Topaware"). Every node gets the same number of ranks, so a mapping
# that fills nodes unevenly has idle ranks: they are numbered from the number of tasks on, and come
# last on their node (Enos 2014 IV.F).

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


# ---- Host files with one line per task, as ``srun -m arbitrary`` reads ``SLURM_HOSTFILE`` --------
# Line i names the host of task i. The shorter form ``host slots=4`` cannot say which tasks a host
# gets unless they are consecutive, so it is read but not written.


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


# ---- Mappings as MapLib writes them (Korndoerfer et al., arXiv:2005.10413): one line per router --
# After a title and the names of the columns, a line has the coordinates of a router, the number of
# tasks on it, and those tasks. It does not say on which of a router's nodes a task is, so that
# reading spreads them evenly: hop-bytes are kept, nodes only where a router has one.

_NUM_TITLES = 2
_LETTERS = "xyzt"


def write_maplib(problem: MappingProblem, nodes: IntArray, path: str | Path) -> None:
    """Write one line for every router that has tasks, its tasks separated by blanks.

    Raises
    ------
    InputError
        If `nodes` is no mapping of the instance, or the machine has no coordinates.
    """
    require_mapping(problem, nodes)
    torus = problem.torus
    order = np.lexsort((nodes, problem.routers_of(nodes)))
    used, count = np.unique(problem.routers_of(nodes), return_counts=True)
    parts = np.split(order, np.cumsum(count)[:-1])
    names = [f"{_LETTERS[d] if d < 4 else f'c{d}'}_coord" for d in range(torus.num_dims)]
    lines = ["topoplace", " ".join([*names, "number_of_processes", "process_id(s)"])]
    for router, tasks in zip(used.tolist(), parts, strict=True):
        lines.append(" ".join(map(str, [*torus.coords(router), len(tasks), *tasks.tolist()])))
    write_text(path, "\n".join(lines) + "\n")


def read_maplib(problem: MappingProblem, path: str | Path) -> IntArray:
    """Read lines ``x y z count tasks`` and return the node of every task.

    There are as many coordinates as the machine has dimensions; tasks are separated by blanks or
    commas. Up to two lines of words at the start are left out.

    Raises
    ------
    InputError
        Naming file, line and value; also if the machine has no coordinates.
    """
    file = str(path)
    torus = problem.torus
    routers = np.full(problem.num_tasks, -1, dtype=np.int64)
    where: dict[int, str] = {}
    for position, (line, words) in enumerate(field_lines(path, "#")):
        fields = " ".join(words).replace(",", " ").split()
        if position < _NUM_TITLES and fields and not fields[0].removeprefix("-").isdigit():
            continue
        numbers = [integer(text, 0, file=file, field=line) for text in fields]
        coordinates, tasks = numbers[: torus.num_dims], numbers[torus.num_dims + 1 :]
        if len(numbers) <= torus.num_dims or numbers[torus.num_dims] != len(tasks):
            expected = f"{torus.num_dims} coordinates, a number of tasks, and so many tasks"
            raise InputError(expected, file=file, field=line, value=" ".join(fields))
        if any(c >= n for c, n in zip(coordinates, torus.shape, strict=True)):
            expected = f"coordinates inside {torus.text}"
            raise InputError(expected, file=file, field=line, value=coordinates)
        router = torus.router(coordinates)
        if router in where:
            raise InputError("each router once", file=file, field=line, value=coordinates)
        where[router] = line
        if len(tasks) > problem.capacity[router]:
            expected = f"at most {problem.capacity[router]} tasks, the places on the router"
            raise InputError(expected, file=file, field=line, value=len(tasks))
        for task in tasks:
            if task >= problem.num_tasks:
                expected = f"tasks below {problem.num_tasks}"
                raise InputError(expected, file=file, field=line, value=task)
            if routers[task] >= 0:
                raise InputError("each task once", file=file, field=line, value=task)
            routers[task] = router
    missing = np.flatnonzero(routers < 0)
    if len(missing):
        raise InputError("a router for every task", file=file, value=f"no task {missing[0]}")
    return spread_over_nodes(problem, routers)


# ---- Mappings as Scotch writes them (Scotch user's guide, "Mapping files") -----------------------
# The number of lines, then per line a vertex of the graph and the vertex of the target it goes to.
# Target vertices are our node numbers. Scotch numbers its built-in meshes and tori with the first
# dimension fastest and we with the last, so that our torus 4x6x8 is its ``torus3D 8 6 4``.


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
