"""Mappings as files of other tools: rank orders, host files, tables, MapLib's and Scotch's."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, blamed_on, number_of, unknown_name
from topoplace.formats.text import field_lines, integer
from topoplace.machine import Torus
from topoplace.machine.hostlist import expand_host_list
from topoplace.mapping.machines import offer_of
from topoplace.mapping.problem import MappingProblem, require_mapping, spread_over_nodes
from topoplace.snapshot.files import csv_of, parse_object, read_bytes, write_text
from topoplace.snapshot.schema import GridApplication, ParallelismApplication
from topoplace.types import IntArray

__all__ = ["FORMATS", "node_list_beside", "note_on_names", "read_mapping", "write_mapping"]

# ---- The common parts of all formats: a site's node ids, and lines that give tasks a place -------

_HOST = re.compile(r"nid(\d{1,18})")


class _Hosts:
    """What nodes are called in a site's files: by name, or by node id (nid).

    On a torus or matrix whose nodes have no names, a nid is our node number.

    Attributes
    ----------
    names
        The names of nodes; none if they are not known.
    chips
        The extents, in routers, of the block of chips that a host has; None if nodes are hosts.
    has_levels
        Whether it is a tree or hierarchy.
    nids
        The nid of every node on a torus or matrix of nids; None of other names.
    """

    def __init__(self, problem: MappingProblem, chips: Sequence[int] | None = None) -> None:
        model = problem.instance.machine
        self.names = offer_of(model).names(model)
        self.chips = chips
        self.has_levels = problem.machine.levels is not None
        self._named = {name: node for node, name in enumerate(self.names) if name}
        self.nids: Mapping[int, int] | None = None
        found = {node: _HOST.fullmatch(name) for name, node in self._named.items()}
        if not self.has_levels and all(found.values()):
            self.nids = {node: int(match[1]) for node, match in found.items() if match}
        self._of_nid = {nid: node for node, nid in (self.nids or {}).items()}

    def nid(self, node: int) -> int:
        """Return the nid of a node, where nodes have nids."""
        return self.nids[node] if self.nids else node

    def of(self, node: int) -> str:
        """Return the name of a node."""
        return self.names[node] if self.names else f"nid{node:05d}"

    def node(self, nid: int, *, file: str, field: str) -> int:
        """Return the node of a nid."""
        if not self.names:
            return nid
        if nid not in self._of_nid:
            raise InputError("a nid of the machine", file=file, field=field, value=nid)
        return self._of_nid[nid]

    def named(self, name: str, *, file: str, field: str) -> int:
        """Return the node of a name."""
        match = _HOST.fullmatch(name)
        if not self.names and match is not None:
            return int(match[1])
        if name not in self._named:
            expected = "a host of the machine" if self.names else "a host name such as nid00012"
            raise InputError(expected, file=file, field=field, value=name, known=self._named)
        return self._named[name]


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


def _rank_order_text(problem: MappingProblem, nodes: IntArray, hosts: _Hosts) -> str:
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


def _listed_nodes(path: str, hosts: _Hosts) -> Iterator[tuple[str, object, int]]:
    """Yield the nodes of a node list with their lines: ranges of nids, or a host list."""
    if hosts.nids is not None:
        for line, nid in _numbers(path):
            yield line, nid, hosts.node(nid, file=path, field=line)
        return
    for line, fields in field_lines(path, "#"):
        with blamed_on(path, line):
            for name in expand_host_list(",".join(fields)):
                yield line, name, hosts.named(name, file=path, field=line)


def _read_rank_order(problem: MappingProblem, file: str, hosts: _Hosts) -> IntArray:
    """Read a rank order, numbers and ranges such as ``4-7``, and its node list."""
    list_path = str(node_list_beside(file))
    listed: dict[int, None] = {}
    for line, told, node in _listed_nodes(list_path, hosts):
        if node in listed:
            raise InputError("each node once", file=list_path, field=line, value=told)
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


def _hostfile_text(problem: MappingProblem, nodes: IntArray, hosts: _Hosts) -> str:
    return "".join(f"{hosts.of(node)}\n" for node in nodes.tolist())


def _read_hostfile(problem: MappingProblem, path: str, hosts: _Hosts) -> IntArray:
    def lines() -> Iterator[tuple[str, int, int]]:
        task = 0
        for line, fields in field_lines(path, "#"):
            text = " ".join(fields)
            host, separator, slots = text.partition(" slots=" if " slots=" in text else ":")
            count = integer(slots, 1, file=path, field=line) if separator else 1
            node = hosts.named(host, file=path, field=line)
            for _ in range(count):
                yield line, task, node
                task += 1

    return _mapping(problem, lines(), path)


# ---- Open MPI's rank files: a line ``rank 3=node07 slot=1`` for every rank -----------------------
# The slots of a node are numbered in the order of its ranks.

_RANK = re.compile(r"rank\s+(\d{1,18})\s*=\s*(\S+)(?:\s+slots?\s*=\s*\S+)?")


def _rankfile_text(problem: MappingProblem, nodes: IntArray, hosts: _Hosts) -> str:
    taken: Counter[int] = Counter()
    lines = []
    for task, node in enumerate(nodes.tolist()):
        lines.append(f"rank {task}={hosts.of(node)} slot={taken[node]}\n")
        taken[node] += 1
    return "".join(lines)


def _read_rankfile(problem: MappingProblem, path: str, hosts: _Hosts) -> IntArray:
    def lines() -> Iterator[tuple[str, int, int]]:
        for line, fields in field_lines(path, "#"):
            match = _RANK.fullmatch(" ".join(fields))
            if match is None:
                expected = "a line such as rank 3=node07 slot=1"
                raise InputError(expected, file=path, field=line, value=" ".join(fields))
            yield line, int(match[1]), hosts.named(match[2], file=path, field=line)

    return _mapping(problem, lines(), path)


# ---- Ranks of a launcher that fills host after host, as an array with the axes of the tasks ------
# torchrun gives the processes of its k-th host the ranks from ``k * per_host`` on, JAX the chips of
# its k-th process. ``mesh`` has the rank of every task, as a nested list with an axis for each of a
# grid or a training job: what `torch.distributed.DeviceMesh` and `jax.sharding.Mesh` are made of.
# ``groups`` has the ranks of every line of tasks along an axis, as `torch.distributed.new_group`
# takes them. Ranks that no task has are idle.

_RANKS_SCHEMA = "topoplace.ranks/1"


def _ranks_text(problem: MappingProblem, nodes: IntArray, hosts: _Hosts) -> str:
    names, per_host, ranks = _ranked(problem, nodes, hosts)
    axes, shape = _axes(problem)
    mesh = ranks.reshape(shape)
    coords: list[list[int] | None] | None = None
    if problem.machine.torus is not None and problem.torus.nodes_per_router == 1:
        coords = [None] * (len(names) * per_host)
        for rank, at in zip(ranks.tolist(), _coordinates(problem, nodes).tolist(), strict=True):
            coords[rank] = at
    groups = {
        axis: np.moveaxis(mesh, dim, -1).reshape(-1, shape[dim]).tolist()
        for dim, axis in enumerate(axes)
    }
    document = {
        "schema": _RANKS_SCHEMA,
        **{"hosts": names, "per_host": per_host, "axes": axes, "mesh": mesh.tolist()},
        **{"groups": groups, "coords": coords},
    }
    return json.dumps(document) + "\n"


def _axes(problem: MappingProblem) -> tuple[list[str], tuple[int, ...]]:
    """Return names and sizes of the axes of the tasks; one axis where they have none."""
    application = problem.instance.application
    if isinstance(application, GridApplication):
        return [_LETTERS[dim] for dim in range(len(application.shape))], tuple(application.shape)
    if isinstance(application, ParallelismApplication):
        return [a.name for a in application.axes], tuple(axis.size for axis in application.axes)
    return ["task"], (problem.num_tasks,)


def _ranked(
    problem: MappingProblem, nodes: IntArray, hosts: _Hosts
) -> tuple[list[str], int, IntArray]:
    """Return the hosts in the order of their ranks, ranks of each, and the rank of every task.

    Hosts, and tasks on one, come in the order of tasks; where hosts are blocks of chips, both come
    in the order of the machine.
    """
    if hosts.chips is None:
        order = {node: idx for idx, node in enumerate(dict.fromkeys(nodes.tolist()))}
        per_host = int(np.bincount(nodes).max())
        taken: Counter[int] = Counter()
        ranks = []
        for node in nodes.tolist():
            ranks.append(order[node] * per_host + taken[node])
            taken[node] += 1
        return [hosts.of(node) for node in order], per_host, np.asarray(ranks, dtype=np.int64)
    block, inside, corner = _blocks(problem, nodes, hosts.chips)
    used, index = np.unique(block, return_index=True)
    names = [",".join(map(str, corner[idx])) for idx in index.tolist()]
    per_host = math.prod(hosts.chips)
    return names, per_host, np.searchsorted(used, block) * per_host + inside


def require_blocks(problem: MappingProblem, chips: Sequence[int]) -> Torus:
    """Return the torus, which blocks of chips have to fill; `InputError` names ``--tpu-host``."""
    torus = problem.machine.torus
    fits = torus is not None and len(chips) == torus.num_dims and torus.nodes_per_router == 1
    if torus is None or not fits or (np.asarray(torus.shape) % np.asarray(chips)).any():
        expected = "extents that divide those of a torus or mesh with a node on each router"
        raise InputError(expected, field="--tpu-host", value="x".join(map(str, chips)))
    if problem.instance.tasks_per_node != 1:
        expected, found = "one task on each chip", f"{problem.instance.tasks_per_node}"
        raise InputError(expected, field="--tpu-host", found=found)
    return torus


def _blocks(
    problem: MappingProblem, nodes: IntArray, chips: Sequence[int]
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the block of chips of every task, its place inside, and where the block begins."""
    torus, extents = require_blocks(problem, chips), np.asarray(chips)
    at = torus.coordinates[nodes]
    grid = tuple((np.asarray(torus.shape) // extents).tolist())
    block = np.ravel_multi_index(tuple((at // extents).T), grid)
    inside = np.ravel_multi_index(tuple((at % extents).T), tuple(chips))
    return block, inside, at - at % extents


def _read_ranks(problem: MappingProblem, path: str, hosts: _Hosts) -> IntArray:
    document = parse_object(read_bytes(path), path)
    with blamed_on(path):
        if document.get("schema") != _RANKS_SCHEMA:
            raise InputError(f'"{_RANKS_SCHEMA}"', field="schema", value=document.get("schema"))
        mesh, names, per_host, coords = map(document.get, ("mesh", "hosts", "per_host", "coords"))
        places: Any = names if coords is None else coords
        width = per_host if coords is None else 1
        with contextlib.suppress(ValueError, TypeError, IndexError):
            ranks = np.asarray(mesh).reshape(-1)
            if ranks.dtype.kind == "i" and ranks.min(initial=0) >= 0:
                told = [places[at] for at in (ranks // width).tolist()]
                lines = [(f"mesh, task {task}", task, place) for task, place in enumerate(told)]
                at_node = (
                    (line, t, _at(problem, own, hosts, path, line)) for line, t, own in lines
                )
                return _mapping(problem, at_node, path)
        expected = "hosts, per_host and a mesh of their ranks, as map --ranks writes them"
        raise InputError(expected, found="others")


def _at(problem: MappingProblem, place: Any, hosts: _Hosts, file: str, field: str) -> int:
    """Return the node of a host, or of the coordinates of a chip."""
    if not isinstance(place, list):
        return hosts.named(str(place), file=file, field=field)
    torus = problem.torus
    if len(place) != torus.num_dims or not all(
        isinstance(c, int) and 0 <= c < n for c, n in zip(place, torus.shape, strict=True)
    ):
        raise InputError(f"coordinates on {torus.text}", file=file, field=field, value=place)
    return torus.router(place)


# ---- Tables ``task,node,c0,c1,...`` with the coordinates of the router, or ``task,host`` ---------
# On trees and hierarchies, the table has the names of nodes alone; on other machines whose nodes
# have names these are the last column. Machines without coordinates have their router numbers as
# the only ones. Rows may come in any order; all but task and node may be left out, but where they
# are given they must be those of the node.

_WITH_HOSTS = ["task", "host"]


def _csv_text(problem: MappingProblem, nodes: IntArray, hosts: _Hosts) -> str:
    if hosts.has_levels:
        return csv_of(_WITH_HOSTS, ((t, hosts.of(node)) for t, node in enumerate(nodes.tolist())))
    places = _coordinates(problem, nodes)
    rows = np.column_stack([np.arange(problem.num_tasks), nodes, places]).tolist()
    if not hosts.names:
        return csv_of(_header(places), rows)
    named = ([*row, hosts.of(row[1])] for row in rows)
    return csv_of([*_header(places), "host"], named)


def _read_csv(problem: MappingProblem, path: str, hosts: _Hosts) -> IntArray:
    given: dict[int, list[int]] = {}
    rows = [
        (line, [text.strip() for text in " ".join(fields).split(",")])
        for line, fields in field_lines(path, "#")
    ]
    full = _header(_coordinates(problem, problem.nodes[:1]))
    field, header = rows[0] if rows else (None, [])
    if header[:1] == ["object"]:  # as objects are written
        header = ["task", *header[1:]]
    has_host = header == [*full, "host"]
    if not has_host and header not in (full, full[:2], _WITH_HOSTS):
        first = _WITH_HOSTS if hosts.has_levels else full
        expected = f"a header {','.join(first)} or task,node"
        raise InputError(expected, file=path, field=field, value=",".join(header) or None)

    def lines() -> Iterator[tuple[str, int, int]]:
        for line, fields in rows[1:]:
            if len(fields) != len(header):
                raise InputError(
                    number_of(len(header), "column"), file=path, field=line, value=len(fields)
                )
            if header == _WITH_HOSTS:
                task = integer(fields[0], 0, file=path, field=line)
                given[task] = []
                yield line, task, hosts.named(fields[1], file=path, field=line)
                continue
            host = fields.pop() if has_host else None
            task, node, *coordinates = (integer(t, 0, file=path, field=line) for t in fields)
            given[task] = coordinates
            if host is not None and hosts.named(host, file=path, field=line) != node:
                raise InputError("the host of the node", file=path, field=line, value=host)
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


def _maplib_text(problem: MappingProblem, nodes: IntArray, hosts: _Hosts) -> str:
    torus = problem.torus
    order = np.lexsort((nodes, problem.routers_of(nodes)))
    used, count = np.unique(problem.routers_of(nodes), return_counts=True)
    parts = np.split(order, np.cumsum(count)[:-1])
    names = [f"{_LETTERS[d] if d < 4 else f'c{d}'}_coord" for d in range(torus.num_dims)]
    lines = ["topoplace", " ".join([*names, "number_of_processes", "process_id(s)"])]
    for router, tasks in zip(used.tolist(), parts, strict=True):
        lines.append(" ".join(map(str, [*torus.coords(router), len(tasks), *tasks.tolist()])))
    return "\n".join(lines) + "\n"


def _read_maplib(problem: MappingProblem, path: str, hosts: _Hosts) -> IntArray:
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


def _scotch_text(problem: MappingProblem, nodes: IntArray, hosts: _Hosts) -> str:
    lines = [f"{problem.num_tasks}", *(f"{t}\t{node}" for t, node in enumerate(nodes.tolist()))]
    return "\n".join(lines) + "\n"


def _read_scotch(problem: MappingProblem, path: str, hosts: _Hosts) -> IntArray:
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
    Callable[[MappingProblem, str, _Hosts], IntArray],
    Callable[[MappingProblem, IntArray, _Hosts], str],
]
_TABLE: dict[str, Form] = {
    "rank-order": (_read_rank_order, _rank_order_text),
    "hostfile": (_read_hostfile, _hostfile_text),
    "rankfile": (_read_rankfile, _rankfile_text),
    "ranks": (_read_ranks, _ranks_text),
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
        Where its nodes have no names, a node id (nid) is our node number.

    Raises
    ------
    InputError
        If the format is unknown, or the file is not a mapping of the instance; it names file, line
        and value.
    """
    reader, _ = _form(format)
    return reader(problem, str(path), _Hosts(problem))


def write_mapping(
    path: str | Path,
    format: str,
    problem: MappingProblem,
    nodes: IntArray,
    node_list: str | Path | None = None,
    chips: Sequence[int] | None = None,
) -> None:
    """Write a mapping file that `read_mapping` reads back unchanged.

    (``maplib`` says on which router a task is, not on which of its nodes.) A rank order has its
    nodes, ascending in our numbers, in a second file, by default that of `node_list_beside`. In
    ``ranks``, hosts have blocks of so many `chips` along each dimension of a torus or mesh.

    Raises `InputError` if the format is unknown or `nodes` is no mapping of the instance.
    """
    _, text_of = _form(format)
    require_mapping(problem, nodes)
    hosts = _Hosts(problem, chips)
    texts = {str(path): text_of(problem, nodes, hosts)}
    if format == "rank-order":
        told = hosts.of if hosts.nids is None else hosts.nid
        listed = ",".join(str(told(node)) for node in np.unique(nodes).tolist())
        texts[str(node_list or node_list_beside(path))] = listed + "\n"
    for file, text in texts.items():
        write_text(file, text)


_NAMING = ("hostfile", "rankfile", "ranks", "rank-order")
"""Formats that call nodes by name or nid."""


def note_on_names(
    formats: Iterable[str], problem: MappingProblem, chips: Sequence[int] | None = None
) -> str | None:
    """Return what a person should know about the hosts in files of these formats, in a line."""
    hosts = _Hosts(problem, chips)
    naming = [form for form in formats if form in _NAMING and (form != "ranks" or chips is None)]
    if hosts.names or not naming:
        return None
    where = "" if problem.machine.torus is None else " (--names FILE)"
    return f"node names are not known: nid00000 stands for node 0{where}"
