"""The checker's own reading of a mapping instance, and the bytes between pairs of tasks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.hierarchy.instance import machine_of as read_hierarchy
from topoplace.certify.integers import require_room
from topoplace.certify.mapping.groups import Kind, read_kinds
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import torus_of
from topoplace.errors import number_of
from topoplace.machine import Network, Torus, parse_node_set
from topoplace.machine.levels import levels_of_hierarchy
from topoplace.machine.matrix import MatrixMachine
from topoplace.result.mapping import STAR_ROUTERS
from topoplace.snapshot.schema import (
    MAX_TASKS,
    GraphApplication,
    GridApplication,
    HierarchyModel,
    MappingInstance,
    MatrixModel,
    NamedArray,
    ObjectsGraph,
    ParallelismApplication,
    TreeModel,
)
from topoplace.types import IntArray

Vector = tuple[int, ...]

MOST_MESSAGES = 1 << 27
"""Between ranks on a parallelism grid."""

MOST_LOAD = 1 << 60
"""All loads together stay below, so that sums of some of them fit 64 bits."""


@dataclass(frozen=True)
class Grid:
    """A virtual grid: tasks per dimension, which dimensions close, bytes per offset."""

    shape: Vector
    periodic: tuple[bool, ...]
    sent: dict[Vector, int]


Axis = tuple[int, str, int]
"""An axis of a parallelism grid: ranks, pattern, and the bytes of a pair, both ways together."""


class Tree(NamedTuple):
    """A multicast from a root to members, or a reduction of what they have, and its bytes.

    `by_node`: once to every node that has members, rather than over every link.
    """

    reduces: bool
    by_node: bool
    root: int
    members: IntArray
    size: int


@dataclass(frozen=True)
class Instance:
    """An application and the places for its tasks (docs/proofs/mapping.md, "The problem").

    `usable` tells of every node whether tasks may go to it; `sources`, `targets` and `sizes` are
    the ends of every message that is in no tree, and its bytes. Bytes of all messages times the
    longest distance fit 64 bits (`read_instance`), and so does what any messages cost on any
    routers.

    Tasks are objects of load 1 (docs/proofs/objects.md, "The problem"): `cap` is the most load of a
    node, and `balanced` says whether the largest one counts. `fixed` has the node of every object
    that has no choice, `moves` the node of every task before and how many may leave theirs. `kinds`
    are groups that should span few domains.
    """

    machine: Network
    usable: NDArray[np.bool_]
    num_tasks: int
    sources: IntArray
    targets: IntArray
    sizes: IntArray
    grid: Grid | None
    axes: tuple[Axis, ...]
    loads: IntArray
    cap: int
    balanced: bool
    pooled: bool
    fixed: dict[int, int]
    trees: tuple[Tree, ...]
    kinds: tuple[Kind, ...]
    moves: tuple[IntArray, int] | None

    @cached_property
    def of_tasks(self) -> bool:
        """Whether all have a load of 1, and nothing but their number matters."""
        return not (self.fixed or self.trees or (self.loads != 1).any())

    @property
    def torus(self) -> Torus:
        """The torus or mesh; `RefusedError` if the machine is none."""
        if self.machine.torus is None:
            raise RefusedError("a claim of coordinates on a machine without them")
        return self.machine.torus

    @cached_property
    def total(self) -> int:
        """Bytes of all messages."""
        return sum(map(int, self.sizes))

    @cached_property
    def usable_nodes(self) -> IntArray:
        """Usable nodes of every router, shape ``(num_routers,)``."""
        counts: IntArray = self.usable.reshape(-1, self.machine.nodes_per_router).sum(axis=1)
        return counts

    @cached_property
    def capacity(self) -> IntArray:
        """Most tasks on every router, shape ``(num_routers,)``; refuse other loads than 1."""
        if not self.of_tasks:
            raise RefusedError("a certificate of tasks for objects that are more than tasks")
        return self.usable_nodes * min(self.cap, 1 << 21)

    @property
    def unit(self) -> int:
        """What the bytes over any link are a multiple of; 0 if nothing is sent."""
        return math.gcd(*self.sizes.tolist(), *(tree.size for tree in self.trees))

    @cached_property
    def total_load(self) -> int:
        """Load of all tasks."""
        return sum(self.loads.tolist())

    @cached_property
    def room(self) -> IntArray:
        """Most load on every router, shape ``(num_routers,)``; no more than all there is."""
        nodes = self.usable_nodes.tolist()
        return np.array([min(self.cap * n, self.total_load) for n in nodes], dtype=np.int64)

    @cached_property
    def volumes(self) -> Volumes:
        """Bytes of every task with each partner, both ways together."""
        return mutual_volumes(self)

    @cached_property
    def widest(self) -> int:
        """Most load on anything that has a cap of its own."""
        width = int(self.usable_nodes.max()) if self.pooled else 1
        return min(self.cap * width, self.total_load)

    def groups(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the number of what shares a cap, per node, and how many nodes each group has."""
        if not self.pooled:
            return nodes, self.usable.astype(np.int64)
        return nodes // self.machine.nodes_per_router, self.usable_nodes


def read_instance(model: MappingInstance) -> Instance:
    """Return the checker's view of an instance."""
    machine = _machine(model)
    usable = np.zeros(machine.num_nodes, dtype=bool)
    usable[parse_node_set(model.nodes, machine.num_nodes, "nodes")] = True
    application = model.application
    grid = None
    axes: tuple[Axis, ...] = ()
    if isinstance(application, ParallelismApplication):
        axes, num_tasks, ends = _ranks(application)
    elif isinstance(application, GridApplication):
        grid = read_grid(application)
        num_tasks = math.prod(grid.shape)
        ends = grid_messages(grid)
    else:
        num_tasks = application.num_tasks
        ends = _listed_messages(application)
    if grid is not None:
        axes = axes_of(grid)
    loads = getattr(application, "loads", [1] * num_tasks)
    if sum(loads) >= MOST_LOAD:
        raise RefusedError("the loads together do not fit")
    cap = model.tasks_per_node if model.cap is None else model.cap
    if cap is None or None not in (model.cap, model.tasks_per_node):
        raise RefusedError("either tasks_per_node or a cap says how much a node takes")
    found = Instance(
        *(machine, usable, num_tasks, *ends, grid, axes, np.asarray(loads, dtype=np.int64), cap),
        balanced=model.cap is not None,
        pooled=model.pooled,
        fixed=_fixed(model, num_tasks, usable),
        trees=_trees(application, num_tasks),
        kinds=read_kinds(model, machine, num_tasks),
        moves=_moves(model, num_tasks, machine, usable),
    )
    places = int(usable.sum()) * cap
    if found.total_load > places or not usable.any():
        raise RefusedError(f"only {number_of(places, 'place')} for {number_of(num_tasks, 'task')}")
    _require_objects(found, getattr(application, "arrays", []))
    longest = sum(machine.torus.shape) if machine.torus else machine.diameter
    require_room(found.total * max(1, longest), "all bytes times the longest distance")
    return found


def _require_objects(found: Instance, arrays: list[NamedArray]) -> None:
    """Refuse objects without a cap, on machines that they are not mapped to, or of other arrays."""
    machine = found.machine
    if not found.balanced and (found.pooled or not found.of_tasks):
        raise RefusedError("objects that are more than tasks have a cap")
    if found.balanced and machine.levels is not None:
        raise RefusedError("objects are on a torus, a mesh or a matrix")
    if found.balanced and not machine.is_symmetric:
        raise RefusedError("distances differ by direction, those of objects may not")
    if arrays and sum(math.prod(a.shape) for a in arrays) != found.num_tasks:
        raise RefusedError("the arrays do not have as many elements as there are loads")
    if found.trees:
        linked = any(not tree.by_node for tree in found.trees)
        farthest = sum(found.torus.shape) if linked else machine.diameter
        most = found.total * farthest
        for tree in found.trees:
            most += tree.size * (
                len(tree.members) * farthest if tree.by_node else machine.num_routers
            )
        require_room(most, "the bytes of messages and trees times all links they may take")


def _fixed(model: MappingInstance, num: int, usable: NDArray[np.bool_]) -> dict[int, int]:
    """Return the node of every fixed object."""
    fixed: dict[int, int] = {}
    for one in model.fixed:
        if one.object >= num or one.object in fixed:
            raise RefusedError(f"object {one.object} is fixed twice, or is none")
        if one.node >= len(usable) or not usable[one.node]:
            raise RefusedError(f"object {one.object} is fixed to node {one.node}, not in the set")
        fixed[one.object] = one.node
    return fixed


def _moves(
    model: MappingInstance, num: int, machine: Network, usable: NDArray[np.bool_]
) -> tuple[IntArray, int] | None:
    """Return the nodes of tasks before, and how many may leave theirs, if that is limited."""
    if model.moves is None:
        return None
    if not machine.is_symmetric:
        raise RefusedError("distances differ by direction, with a limit of moves they may not")
    if len(model.moves.nodes) != num or max(model.moves.nodes) >= machine.num_nodes:
        raise RefusedError("what tasks move from is not a node for each")
    before = np.asarray(model.moves.nodes, dtype=np.int64)
    if not usable[before].all():
        raise RefusedError("a task moves from a node that is not in the set")
    return before, model.moves.most


def _trees(application: Any, num: int) -> tuple[Tree, ...]:
    """Return the trees of an application."""
    found = []
    for one in getattr(application, "trees", []):
        if max(one.root, *one.members) >= num:
            raise RefusedError(f"a tree has object {max(one.root, *one.members)}, there is none")
        members = np.asarray(one.members, dtype=np.int64)
        kind = one.kind == "reduction", one.once == "node"
        found.append(Tree(*kind, one.root, members, one.bytes))
    return tuple(found)


def _machine(instance: MappingInstance) -> Network:
    model, costs = instance.machine, instance.level_costs
    if isinstance(model, TreeModel | HierarchyModel):
        return levels_of_hierarchy(read_hierarchy(model), costs)
    if costs is not None:
        raise RefusedError("costs of levels on a machine that has none")
    if isinstance(model, MatrixModel):
        if any(len(row) != len(model.distances) for row in model.distances):
            raise RefusedError("the matrix of distances is not square")
        return MatrixMachine(np.asarray(model.distances, dtype=np.int64))
    return model.matrix() or torus_of(model)


def _ranks(
    application: ParallelismApplication,
) -> tuple[tuple[Axis, ...], int, tuple[IntArray, IntArray, IntArray]]:
    """Return the axes, the number of ranks, and the messages, line by line of every axis."""
    shape = [axis.size for axis in application.axes]
    num = math.prod(shape)
    if num > MAX_TASKS:
        raise RefusedError(f"the grid has more than {MAX_TASKS} ranks")
    sent = sum(a.size - 1 if a.pattern == "all" else 2 for a in application.axes if a.bytes)
    if num * sent > MOST_MESSAGES:
        raise RefusedError(f"the ranks send more than {MOST_MESSAGES} messages")
    axes = []
    parts = [(np.zeros(0, dtype=np.int64),) * 3]
    for d, axis in enumerate(application.axes):
        one_way = axis.pattern == "ring" and axis.size > 2
        axes.append((axis.size, axis.pattern, axis.bytes * (1 if one_way else 2)))
        lines = np.moveaxis(np.arange(num).reshape(shape), d, 0).reshape(axis.size, -1)
        for ends in _neighbours(lines, axis.pattern) if axis.bytes else ():
            sources, targets = (end.ravel() for end in ends)
            parts.append((sources, targets, np.full(len(sources), axis.bytes, dtype=np.int64)))
    sources, targets, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    return tuple(axes), num, (sources, targets, sizes)


def _neighbours(lines: IntArray, pattern: str) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield senders and receivers among ranks whose lines are columns."""
    if pattern == "line":
        yield lines[:-1], lines[1:]
        yield lines[1:], lines[:-1]
        return
    for step in range(1, len(lines) if pattern == "all" else min(2, len(lines))):
        yield lines, np.roll(lines, -step, axis=0)


def axes_of(grid: Grid) -> tuple[Axis, ...]:
    """Return the dimensions of a grid as axes, none if messages go diagonally."""
    if any(sum(map(abs, offset)) > 1 for offset in grid.sent):
        return ()
    return tuple(_axis(grid, dim) for dim in range(len(grid.shape)))


def _axis(grid: Grid, dim: int) -> Axis:
    """Return a dimension of a grid as an axis; a ring of two has both its messages with one."""
    size, closes = grid.shape[dim], grid.periodic[dim]
    pair = sum(sent for offset, sent in grid.sent.items() if offset[dim])
    return size, "ring" if closes else "line", pair * (2 if closes and size == 2 else 1)


def read_grid(application: GridApplication) -> Grid:
    """Return the checker's view of a grid."""
    shape, dims = tuple(application.shape), len(application.shape)
    if len(application.periodic) != dims or len(application.bytes) != dims:
        raise RefusedError(f"periodic and bytes need {number_of(dims, 'entry')}, one per dimension")
    if math.prod(shape) > MAX_TASKS:
        raise RefusedError(f"the grid has more than {MAX_TASKS} tasks")
    far = dims - 1 if application.stencil == "full" else 0
    if len(application.diagonal_bytes) != far:
        raise RefusedError(f"diagonal_bytes needs {number_of(far, 'entry')}")
    sent = {}
    for offset in itertools.product((-1, 0, 1), repeat=dims):
        moved = sum(map(abs, offset))
        if moved == 1:
            d = offset.index(max(offset, key=abs))
            sent[offset] = application.bytes[d][offset[d] < 0]
        elif moved and far:
            sent[offset] = application.diagonal_bytes[moved - 2]
    positive = {offset: size for offset, size in sent.items() if size}
    return Grid(shape, tuple(application.periodic), positive)


def grid_messages(grid: Grid) -> tuple[IntArray, IntArray, IntArray]:
    """Walk every task along every offset, by its coordinates."""
    tasks = np.arange(math.prod(grid.shape), dtype=np.int64)
    coords, sizes = np.stack(np.unravel_index(tasks, grid.shape)), np.array(grid.shape)[:, None]
    parts = [(tasks[:0], tasks[:0], tasks[:0])]
    for offset, size in grid.sent.items():
        at = coords + np.array(offset)[:, None]
        at = np.where(np.array(grid.periodic)[:, None], at % sizes, at)
        exists = ((at >= 0) & (at < sizes)).all(axis=0)
        target = np.ravel_multi_index(tuple(at), grid.shape, mode="clip")
        senders = tasks[exists & (target != tasks)]
        parts.append((senders, target[senders], np.full(len(senders), size, dtype=np.int64)))
    sources, targets, amounts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sources, targets, amounts


def _listed_messages(
    application: GraphApplication | ObjectsGraph,
) -> tuple[IntArray, IntArray, IntArray]:
    sources, targets, sizes = (
        np.asarray(values, dtype=np.int64)
        for values in (application.sources, application.targets, application.bytes)
    )
    if not len(sources) == len(targets) == len(sizes):
        raise RefusedError("sources, targets and bytes differ in length")
    if len(sources) and max(sources.max(), targets.max()) >= application.num_tasks:
        raise RefusedError(f"a message ends at a task beyond {application.num_tasks - 1}")
    real = (sources != targets) & (sizes > 0)
    return sources[real], targets[real], sizes[real]


@dataclass(frozen=True)
class Volumes:
    """Bytes of every task with each of its partners, one entry per pair; ascending by task."""

    num_tasks: int
    tasks: IntArray
    partners: IntArray
    sizes: IntArray

    @cached_property
    def _starts(self) -> IntArray:
        return np.searchsorted(self.tasks, np.arange(self.num_tasks + 1))

    def of(self, task: int) -> IntArray:
        """Return a task's bytes with its partners."""
        return self.sizes[self._starts[task] : self._starts[task + 1]]

    @property
    def most(self) -> int:
        """Partners of the task that has most."""
        return int(np.diff(self._starts).max())

    @property
    def unit(self) -> int:
        """What all bytes, and with them hop-bytes, are multiples of."""
        return math.gcd(*self.sizes.tolist()) or 1

    def rounded_up(self, total: int, times: int) -> int:
        """Return total / times as a bound: not negative, up to the next multiple of the unit."""
        return max(0, self.unit * -(-total // (times * self.unit)))


def directed_volumes(instance: Instance) -> tuple[Volumes, Volumes]:
    """Return what every task sends to its partners, and what it gets from them."""
    sources, targets, sizes = instance.sources, instance.targets, instance.sizes
    num = instance.num_tasks
    return merged(num, sources, targets, sizes), merged(num, targets, sources, sizes)


def mutual_volumes(instance: Instance) -> Volumes:
    """Return bytes in both directions together; every pair is listed at both its ends."""
    ends = (instance.sources, instance.targets)
    sizes = np.tile(instance.sizes, 2)
    firsts, seconds = np.concatenate(ends), np.concatenate(ends[::-1])
    return merged(instance.num_tasks, firsts, seconds, sizes)


def merged(num: int, tasks: IntArray, partners: IntArray, sizes: IntArray) -> Volumes:
    """Add up the bytes of every pair: no sum is above all bytes (`Instance`)."""
    pairs, which = np.unique(tasks * num + partners, return_inverse=True)
    sums = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(sums, which.ravel(), sizes)
    return Volumes(num, pairs // num, pairs % num, sums)


def nearest_places(instance: Instance, machine: Network, width: int) -> Iterator[IntArray]:
    """Yield the distances from every router that takes tasks to its nearest other places.

    `width` of them, ascending; the machine is that of the instance, or one no larger. From more
    than `STAR_ROUTERS` routers of a torus there is one list for all.
    """
    routers = np.flatnonzero(instance.capacity)
    rooms = np.minimum(instance.capacity[routers], instance.num_tasks)
    num_lists = len(routers)
    if isinstance(machine, Torus) and num_lists > STAR_ROUTERS:
        # closed and full the machine has all its places, and none farther away
        machine, routers, num_lists = Torus(machine.shape), np.arange(machine.num_routers), 1
        rooms = np.full(len(routers), rooms.max())
    for k in range(num_lists):
        distances = machine.hops(routers[k], routers)
        order = np.argsort(distances, kind="stable")
        others = (rooms - (routers == routers[k]))[order]
        enough = int(np.searchsorted(np.cumsum(others), width)) + 1
        yield np.repeat(distances[order][:enough], others[:enough])[:width]
