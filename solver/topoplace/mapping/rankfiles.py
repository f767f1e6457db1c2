"""Mappings as files of other tools: rank orders, host files, tables, MapLib's and Scotch's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from topoplace.errors import InputError, number_of, unknown_name
from topoplace.formats.text import field_lines, integer
from topoplace.mapping.problem import MappingProblem, require_mapping, spread_over_nodes
from topoplace.snapshot.files import write_text
from topoplace.types import IntArray

__all__ = ["FORMATS", "node_list_beside", "read_mapping", "write_mapping"]

# ---- The common parts of all formats: a site's node ids, and lines that give tasks a place -------

_HOST = re.compile(r"nid(\d{1,18})")


class _Nids:
    """The node ids (nids) of a site's files; without a table a nid is our node number."""

    def __init__(self, node_of_nid: Mapping[int, int] | None = None) -> None:
        self._nodes = node_of_nid
        self._nids = {node: nid for nid, node in (node_of_nid or {}).items()}
        if node_of_nid is not None and len(self._nids) < len(node_of_nid):
            raise InputError("one nid for each node", field="node_of_nid")

    def of(self, node: int) -> int:
        if self._nodes is None:
            return node
        if node not in self._nids:
            raise InputError("a nid for every node of the mapping", field="node", value=node)
        return self._nids[node]

    def node(self, nid: int, *, file: str, field: str) -> int:
        if self._nodes is None:
            return nid
        if nid not in self._nodes:
            raise InputError("a nid of the machine", file=file, field=field, value=nid)
        return self._nodes[nid]


def _placed(
    num_tasks: int, lines: Iterable[tuple[str, int, int]], file: str
) -> tuple[IntArray, Callable[[int], str]]:
    """Return the place of every task by lines (their name, task, place), and the line of a task."""
    found = np.full(num_tasks, -1, dtype=np.int64)
    line_of = [""] * num_tasks
    for line, task, place in lines:
        if not 0 <= task < num_tasks:
            expected = f"one of {number_of(num_tasks, 'task')}, from 0 to {num_tasks - 1}"
            raise InputError(expected, file=file, field=line, value=task)
        if line_of[task]:
            raise InputError("each task once", file=file, field=line, value=task)
        found[task], line_of[task] = place, line
    if "" in line_of:
        raise InputError("every task", file=file, value=f"no task {line_of.index('')}")
    return found, line_of.__getitem__


def _mapping(problem: MappingProblem, lines: Iterable[tuple[str, int, int]], file: str) -> IntArray:
    """Return the mapping of lines that put every task on a node."""
    nodes, where = _placed(problem.num_tasks, lines, file)
    require_mapping(problem, nodes, file=file, where=where)
    return nodes


# ---- Cray's ``MPICH_RANK_ORDER`` with a node list: the two files Topaware writes -----------------
# ``aprun -l NODE_LIST -N m`` puts m ranks on each node of the list, node by node; with
# ``MPICH_RANK_REORDER_METHOD=3`` those are the ranks in the order of ``MPICH_RANK_ORDER`` (Fiedler
# 2014, "Running Batch Jobs Using Topaware"). Every node gets the same number of ranks, so a mapping
# that fills nodes unevenly has idle ranks: they are numbered from the number of tasks on, and come
# last on their node (Enos 2014 IV.F).

MAX_NUMBERS = 1 << 24
"""Most numbers read from one file, including those of ranges."""


def node_list_beside(path: str | Path) -> Path:
    """Return the default file of the node list of a rank order."""
    path = Path(path)
    return path.with_name(path.name + ".nodes")


def _rank_order_text(problem: MappingProblem, nodes: IntArray, nids: _Nids) -> str:
    """Return a line of ranks for every node with tasks, in order of our node numbers."""
    order = np.argsort(nodes, kind="stable")
    _, count = np.unique(nodes, return_counts=True)
    idle, per_node = problem.num_tasks, int(count.max())
    lines = []
    for tasks in np.split(order, np.cumsum(count)[:-1]):
        spare = per_node - len(tasks)
        lines.append(",".join(map(str, [*tasks.tolist(), *range(idle, idle + spare)])))
        idle += spare
    return "\n".join(lines) + "\n"


def _read_rank_order(problem: MappingProblem, file: str, nids: _Nids) -> IntArray:
    """Read a rank order and its node list: numbers and ranges such as ``4-7``."""
    list_path = str(node_list_beside(file))
    listed: dict[int, None] = {}
    for line, nid in _numbers(list_path):
        node = nids.node(nid, file=list_path, field=line)
        if node in listed:
            raise InputError("each node once", file=list_path, field=line, value=nid)
        listed[node] = None
    ranks = _numbers(file)
    if not listed or len(ranks) % len(listed) or len(ranks) < problem.num_tasks:
        expected = (
            f"the same number of ranks for each node of {list_path} ({len(listed):,}), and at "
            f"least {problem.num_tasks}"
        )
        raise InputError(expected, file=file, value=number_of(len(ranks), "rank"))
    goals = np.repeat(np.array(list(listed)), len(ranks) // len(listed)).tolist()
    lines = ((line, rank, goal) for (line, rank), goal in zip(ranks, goals, strict=True))
    nodes, where = _placed(len(ranks), lines, file)
    tasks = nodes[: problem.num_tasks]
    require_mapping(problem, tasks, file=file, where=lambda t: f"{where(t)}, rank {t}")
    return tasks


def _numbers(path: str) -> list[tuple[str, int]]:
    """Return all numbers of a file with their lines, ranges written out."""
    found: list[tuple[str, int]] = []
    for line, fields in field_lines(path, "#"):
        for text in filter(None, ",".join(fields).split(",")):
            low, dash, high = text.partition("-")
            first = integer(low, 0, file=path, field=line)
            last = integer(high, first, file=path, field=line) if dash else first
            if last - first >= MAX_NUMBERS - len(found):
                expected = f"at most {MAX_NUMBERS} numbers"
                raise InputError(expected, file=path, field=line, value=text)
            found.extend((line, number) for number in range(first, last + 1))
    return found


# ---- Host files with one line per task, as ``srun -m arbitrary`` reads ``SLURM_HOSTFILE`` --------
# Line i names the host of task i, such as ``nid00012``; on trees and hierarchies, whose nodes have
# names, by its name. The shorter forms ``host slots=4`` and
# ``host:4`` take the next four tasks: what is not consecutive has no such form, so they are read
# but not written.


def _hostfile_text(problem: MappingProblem, nodes: IntArray, nids: _Nids) -> str:
    levels = problem.machine.levels
    if levels is not None:
        return "".join(f"{levels.node_names[node]}\n" for node in nodes.tolist())
    return "".join(f"nid{nids.of(node):05d}\n" for node in nodes.tolist())


def _read_hostfile(problem: MappingProblem, path: str, nids: _Nids) -> IntArray:
    names: dict[str, int] | None = None
    if problem.machine.levels is not None:
        names = {name: node for node, name in enumerate(problem.machine.levels.node_names)}

    def lines() -> Iterator[tuple[str, int, int]]:
        task = 0
        for line, fields in field_lines(path, "#"):
            text = " ".join(fields)
            host, separator, slots = text.partition(" slots=" if " slots=" in text else ":")
            count = integer(slots, 1, file=path, field=line) if separator else 1
            match = _HOST.fullmatch(host)
            if names is not None:
                if host not in names:
                    raise InputError(
                        "a host of the machine", file=path, field=line, value=host, known=names
                    )
                node = names[host]
            elif match is None:
                raise InputError("a host name such as nid00012", file=path, field=line, value=host)
            else:
                node = nids.node(int(match[1]), file=path, field=line)
            for _ in range(count):
                yield line, task, node
                task += 1

    return _mapping(problem, lines(), path)


# ---- Tables ``task,node,c0,c1,...`` with the coordinates of the router ---------------------------
# A machine without coordinates has its router numbers as the only ones. Rows may come in any order;
# all coordinates may be left out, but where they are given they must be those of the node's router.


def _csv_text(problem: MappingProblem, nodes: IntArray, nids: _Nids) -> str:
    places = _coordinates(problem, nodes)
    rows = np.column_stack([np.arange(problem.num_tasks), nodes, places]).tolist()
    return "".join(f"{','.join(map(str, row))}\n" for row in [_header(places), *rows])


def _read_csv(problem: MappingProblem, path: str, nids: _Nids) -> IntArray:
    given: dict[int, list[int]] = {}
    rows = [
        (line, [text.strip() for text in " ".join(fields).split(",")])
        for line, fields in field_lines(path, "#")
    ]
    full = _header(_coordinates(problem, problem.nodes[:1]))
    field, header = rows[0] if rows else (None, [])
    if header not in (full, full[:2]):
        expected = f"a header {','.join(full)} or task,node"
        raise InputError(expected, file=path, field=field, value=",".join(header) or None)

    def lines() -> Iterator[tuple[str, int, int]]:
        for line, fields in rows[1:]:
            if len(fields) != len(header):
                raise InputError(
                    number_of(len(header), "column"), file=path, field=line, value=len(fields)
                )
            task, node, *coordinates = (integer(t, 0, file=path, field=line) for t in fields)
            given[task] = coordinates
            yield line, task, node

    nodes, where = _placed(problem.num_tasks, lines(), path)
    require_mapping(problem, nodes, file=path, where=where)
    for task, true in enumerate(_coordinates(problem, nodes).tolist()):
        if given[task] and given[task] != true:
            expected = "the coordinates of the node's router"
            raise InputError(expected, file=path, field=where(task), value=given[task])
    return nodes


def _header(coordinates: IntArray) -> list[str]:
    return ["task", "node", *(f"c{d}" for d in range(coordinates.shape[1]))]


def _coordinates(problem: MappingProblem, nodes: IntArray) -> IntArray:
    """Return the coordinates of every node's router."""
    return problem.machine.places_of(nodes)


# ---- Mappings as MapLib writes them (Korndoerfer et al., arXiv:2005.10413): one line per router --
# After up to two lines of words, a title and the names of the columns, a line has the coordinates
# of a router, the number of tasks on it, and those tasks, separated by blanks or commas. It does
# not say on which of a router's nodes a task is, so that reading spreads them evenly: hop-bytes are
# kept, nodes only where a router has one.

_NUM_TITLES = 2
_LETTERS = "xyzt"


def _maplib_text(problem: MappingProblem, nodes: IntArray, nids: _Nids) -> str:
    torus = problem.torus
    order = np.lexsort((nodes, problem.routers_of(nodes)))
    used, count = np.unique(problem.routers_of(nodes), return_counts=True)
    parts = np.split(order, np.cumsum(count)[:-1])
    names = [f"{_LETTERS[d] if d < 4 else f'c{d}'}_coord" for d in range(torus.num_dims)]
    lines = ["topoplace", " ".join([*names, "number_of_processes", "process_id(s)"])]
    for router, tasks in zip(used.tolist(), parts, strict=True):
        lines.append(" ".join(map(str, [*torus.coords(router), len(tasks), *tasks.tolist()])))
    return "\n".join(lines) + "\n"


def _read_maplib(problem: MappingProblem, path: str, nids: _Nids) -> IntArray:
    torus = problem.torus

    def lines() -> Iterator[tuple[str, int, int]]:
        seen = set()
        for position, (line, words) in enumerate(field_lines(path, "#")):
            fields = " ".join(words).replace(",", " ").split()
            if position < _NUM_TITLES and fields and not fields[0].removeprefix("-").isdigit():
                continue
            numbers = [integer(text, 0, file=path, field=line) for text in fields]
            coordinates, tasks = numbers[: torus.num_dims], numbers[torus.num_dims + 1 :]
            if len(numbers) <= torus.num_dims or numbers[torus.num_dims] != len(tasks):
                expected = (
                    f"{number_of(torus.num_dims, 'coordinate')}, a number of tasks, and so "
                    "many tasks"
                )
                raise InputError(expected, file=path, field=line, value=" ".join(fields))
            if any(c >= n for c, n in zip(coordinates, torus.shape, strict=True)):
                expected = f"coordinates inside {torus.text}"
                raise InputError(expected, file=path, field=line, value=coordinates)
            router = torus.router(coordinates)
            if router in seen:
                raise InputError("each router once", file=path, field=line, value=coordinates)
            seen.add(router)
            if len(tasks) > problem.capacity[router]:
                expected = (
                    f"at most {number_of(problem.capacity[router], 'task')}, the places on the "
                    "router"
                )
                raise InputError(expected, file=path, field=line, value=len(tasks))
            yield from ((line, task, router) for task in tasks)

    return spread_over_nodes(problem, _placed(problem.num_tasks, lines(), path)[0])


# ---- Mappings as Scotch writes them (Scotch user's guide, "Mapping files") -----------------------
# The number of lines, then per line, in any order, a vertex of the graph and the vertex of the
# target it goes to. Target vertices are our node numbers; those of the graph are counted from its
# base value: from 1 if the highest one is the number of tasks, else from 0. Scotch numbers its
# built-in meshes and tori with the first dimension fastest and we with the last, so that our torus
# 4x6x8 is its ``torus3D 8 6 4``.


def _scotch_text(problem: MappingProblem, nodes: IntArray, nids: _Nids) -> str:
    lines = [f"{problem.num_tasks}", *(f"{t}\t{node}" for t, node in enumerate(nodes.tolist()))]
    return "\n".join(lines) + "\n"


def _read_scotch(problem: MappingProblem, path: str, nids: _Nids) -> IntArray:
    rows = list(field_lines(path, "#"))
    if not rows or len(rows[0][1]) != 1:
        field, found = (rows[0][0], " ".join(rows[0][1])) if rows else (None, None)
        raise InputError("the number of lines", file=path, field=field, value=found)
    told = integer(rows[0][1][0], 0, file=path, field=rows[0][0])
    if told != len(rows) - 1 or told != problem.num_tasks:
        expected = (
            f"the number of tasks first, then {number_of(problem.num_tasks, 'line')}, one for each"
        )
        raise InputError(
            expected, file=path, value=f"{told}, and {number_of(len(rows) - 1, 'line')}"
        )
    lines: list[tuple[str, int, int]] = []
    for line, fields in rows[1:]:
        if len(fields) != 2:
            raise InputError("a task and a node", file=path, field=line, value=" ".join(fields))
        task, node = (integer(text, 0, file=path, field=line) for text in fields)
        lines.append((line, task, node))
    base = int(max(task for _, task, _ in lines) == problem.num_tasks)
    return _mapping(problem, ((line, task - base, node) for line, task, node in lines), path)


Form = tuple[
    Callable[[MappingProblem, str, _Nids], IntArray],
    Callable[[MappingProblem, IntArray, _Nids], str],
]
_TABLE: dict[str, Form] = {
    "rank-order": (_read_rank_order, _rank_order_text),
    "hostfile": (_read_hostfile, _hostfile_text),
    "csv": (_read_csv, _csv_text),
    "maplib": (_read_maplib, _maplib_text),
    "scotch": (_read_scotch, _scotch_text),
}
"""How the formats are read, and the text of their files."""

FORMATS = tuple(_TABLE)
"""Names of the formats that `read_mapping` and `write_mapping` know."""


def _form(format: str) -> Form:
    if format not in _TABLE:
        raise unknown_name(format, FORMATS, field="format")
    return _TABLE[format]


def read_mapping(
    path: str | Path,
    format: str,
    problem: MappingProblem,
    node_of_nid: Mapping[int, int] | None = None,
) -> IntArray:
    """Read a mapping file and return the node of every task.

    Parameters
    ----------
    path
        The file; the node list of a rank order is expected next to it (`node_list_beside`). Both
        hold numbers and ranges such as ``4-7``, separated by commas, spaces or line ends; ranks
        from the number of tasks on are idle.
    format
        One of `FORMATS`.
    problem
        The instance.
    node_of_nid
        Our node number (``router * nodes_per_router + k``) of every node id in rank orders and
        host files, such as `CrayTable.router_of_nid` of a machine with one node per router.
        Without it a node id is our node number, as it always is in the other formats.

    Raises
    ------
    InputError
        If the format is unknown, or the file is not a mapping of the instance; it names file, line
        and value.
    """
    reader, _ = _form(format)
    return reader(problem, str(path), _Nids(node_of_nid))


def write_mapping(
    path: str | Path,
    format: str,
    problem: MappingProblem,
    nodes: IntArray,
    node_of_nid: Mapping[int, int] | None = None,
    node_list: str | Path | None = None,
) -> None:
    """Write a mapping file that `read_mapping` reads back unchanged.

    (``maplib`` says on which router a task is, not on which of its nodes.) A rank order has its
    nodes, ascending in our numbers, in a second file, by default that of `node_list_beside`.

    Raises `InputError` if the format is unknown or `nodes` is no mapping of the instance.
    """
    _, text_of = _form(format)
    require_mapping(problem, nodes)
    nids = _Nids(node_of_nid)
    texts = {str(path): text_of(problem, nodes, nids)}
    if format == "rank-order":
        listed = ",".join(str(nids.of(node)) for node in np.unique(nodes).tolist())
        texts[str(node_list or node_list_beside(path))] = listed + "\n"
    for file, text in texts.items():
        write_text(file, text)
