"""The problem of mapping objects as solvers see it: a graph with loads, cells with capacities."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine import Network, Torus, format_node_set
from topoplace.machine.links import tree_arms
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import Rows, TaskGraph
from topoplace.mapping.onto import Places
from topoplace.mapping.problem import MAX_HOP_BYTES, MappingProblem, prepare_mapping
from topoplace.snapshot.objects import ObjectsInstance
from topoplace.snapshot.schema import GraphApplication, MappingInstance
from topoplace.types import BoolArray, IntArray

if TYPE_CHECKING:
    from topoplace.solving import Bound

MOST_LOAD = 1 << 60
"""The sum of all loads stays below it."""

MOST_PER_NODE = 1 << 20


class Cells(NamedTuple):
    """The units that hold loads, in the order of routers: nodes, or routers with pooled caps.

    Router r has the cells from ``first[r]`` to ``first[r + 1]``; a cell has `width` usable nodes
    and can hold `room`.
    """

    first: IntArray
    router: IntArray
    width: IntArray
    room: IntArray


class Trees(NamedTuple):
    """Multicasts and reductions: tree t has the members from ``first[t]`` to ``first[t + 1]``.

    `reduces` says whether they send to the root, or else receive from it. The trees of object i are
    ``of[of_first[i]:of_first[i + 1]]``.
    """

    root: IntArray
    first: IntArray
    member: IntArray
    bytes: IntArray
    reduces: BoolArray
    of_first: IntArray
    of: IntArray

    @property
    def ends(self) -> tuple[IntArray, IntArray, IntArray]:
        """For every member its tree, the root of that, and the member itself."""
        tree = np.repeat(np.arange(len(self.root)), np.diff(self.first))
        return tree, self.root[tree], self.member


@dataclass(frozen=True)
class ObjectsProblem:
    """An instance of objects, checked and turned into arrays.

    Attributes
    ----------
    instance
        The document.
    plain
        The same mapping without loads: any number of tasks on a node.
    loads
        Of every object, shape ``(num_objects,)``.
    home
        The node of every fixed object, -1 of others.
    """

    instance: ObjectsInstance
    plain: MappingProblem
    loads: IntArray
    home: IntArray
    kind: ClassVar[str] = "objects"

    @property
    def machine(self) -> Network:
        """The machine."""
        return self.plain.machine

    @property
    def graph(self) -> TaskGraph:
        """The messages."""
        return self.plain.graph

    @cached_property
    def tasks(self) -> MappingProblem | None:
        """The equivalent mapping of tasks, if all loads are 1 and there are no other conditions.

        The cap is the most tasks on a node; with shared caps routers have the same capacity. None
        if there are other loads, trees or fixed objects.
        """
        most = min(self.instance.cap, self.num_objects)
        if (self.loads != 1).any() or self.instance.trees or self.fixed.any():
            return None
        if most > MOST_PER_NODE:
            return None
        return prepare_mapping(self.plain.instance.model_copy(update={"tasks_per_node": most}))

    @property
    def torus(self) -> Torus:
        """The torus or mesh; `InputError` for other machines."""
        return self.plain.torus

    @cached_property
    def trees(self) -> Trees:
        """The multicasts and reductions."""
        listed = self.instance.trees
        ends = np.cumsum([0, *(len(one.members) for one in listed)])
        member = np.array([m for one in listed for m in one.members], dtype=np.int64)
        root = np.array([one.root for one in listed], dtype=np.int64)
        sizes = np.array([one.bytes for one in listed], dtype=np.int64)
        reduces = np.array([one.kind == "reduction" for one in listed], dtype=np.bool_)
        numbers = np.arange(len(root))
        tree = np.concatenate([numbers, np.repeat(numbers, np.diff(ends))])
        keys = np.sort(np.concatenate([root, member]) * max(1, len(root)) + tree)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        owner, of = np.divmod(keys, max(1, len(root)))
        first = np.searchsorted(owner, np.arange(self.num_objects + 1))
        return Trees(root, ends, member, sizes, reduces, first, of)

    @cached_property
    def guide(self) -> Rows:
        """Bytes between objects as searches use them: a tree is a message to every member."""
        if not self.instance.trees:
            return self.graph.exchanged
        graph, (tree, root, member) = self.graph, self.trees.ends
        sources, targets = np.append(graph.sources, root), np.append(graph.targets, member)
        sizes = np.append(graph.bytes, self.trees.bytes[tree])
        kept = (sources != targets) & (sizes > 0)
        return TaskGraph(self.num_objects, sources[kept], targets[kept], sizes[kept]).exchanged

    def sent(self, nodes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the routers at both ends of every message, and its bytes, given all nodes.

        Trees are messages of one hop, one over each of their links: away from the root in
        multicasts, towards it in reductions.
        """
        sent = self.plain.sent(nodes)
        if not self.instance.trees:
            return sent
        torus, trees, parts = self.torus, self.trees, [sent]
        ways = zip(torus.shape, torus.strides, self._arms(nodes), strict=True)
        for n, stride, (tree, router, *lengths) in ways:
            at = router // stride % n
            for length, way in zip(lengths, (1, -1), strict=True):
                arm = np.repeat(np.arange(len(length)), length)
                step = np.arange(len(arm)) - np.repeat(np.cumsum(length) - length, length)
                near = (at[arm] + way * step) % n
                ends = [router[arm] + (k - at[arm]) * stride for k in (near, (near + way) % n)]
                back = trees.reduces[tree[arm]]
                source, target = np.where(back, ends[::-1], ends)
                parts.append((source, target, trees.bytes[tree[arm]]))
        sources, targets, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sources, targets, sizes

    def _arms(self, nodes: IntArray) -> Iterator[tuple[IntArray, IntArray, IntArray, IntArray]]:
        """Return the arms of all trees (`tree_arms`), given the node of every object."""
        routers, (tree, _, member) = self.plain.routers_of(nodes), self.trees.ends
        return tree_arms(self.torus, routers[self.trees.root], tree, routers[member])

    def hop_bytes(self, nodes: IntArray) -> int:
        """Return the hop-bytes of a mapping, given the node of every object."""
        total = hop_bytes(self.plain, nodes)
        if self.instance.trees:
            sizes = self.trees.bytes
            total += sum(int((up + down) @ sizes[tree]) for tree, _, up, down in self._arms(nodes))
        return total

    @property
    def num_objects(self) -> int:
        """Number of objects."""
        return len(self.loads)

    @property
    def nodes(self) -> IntArray:
        """Nodes that objects may go to, ascending."""
        return self.plain.nodes

    @cached_property
    def movable(self) -> IntArray:
        """Objects that are not fixed."""
        return np.flatnonzero(self.home < 0)

    @cached_property
    def cells(self) -> Cells:
        """The cells."""
        routers = self.plain.routers_of(self.nodes)
        width = np.ones(len(routers), dtype=np.int64)
        if self.instance.pooled:
            routers, width = np.unique(routers, return_counts=True)
        first = np.searchsorted(routers, np.arange(self.machine.num_routers + 1))
        room = np.minimum(self.instance.cap, int(self.loads.sum())) * width
        return Cells(first, routers, width.astype(np.int64), room)

    @cached_property
    def router_room(self) -> IntArray:
        """Load that every router can hold, shape ``(num_routers,)``."""
        cells = self.cells
        room = np.zeros(self.machine.num_routers, dtype=np.int64)
        np.add.at(room, cells.router, cells.room)
        return room

    def cells_of(self, nodes: IntArray) -> IntArray:
        """Return the cell of every node."""
        if self.instance.pooled:
            return self.cells.first[self.plain.routers_of(nodes)]
        return np.searchsorted(self.nodes, nodes)

    def nodes_of(self, cells: IntArray) -> IntArray:
        """Return a node for every object, given its cell: in a pooled one the emptiest in turn."""
        if not self.instance.pooled:
            return self.nodes[cells]
        found = self.home.copy()
        routers, filled = self.plain.routers_of(self.nodes), dict.fromkeys(self.nodes.tolist(), 0)
        below = {r: self.nodes[routers == r].tolist() for r in np.unique(routers).tolist()}
        for one in np.flatnonzero(found >= 0).tolist():
            filled[int(found[one])] += int(self.loads[one])
        for one in np.argsort(-self.loads, kind="stable").tolist():
            if found[one] < 0:
                found[one] = min(below[int(self.cells.router[cells[one]])], key=filled.__getitem__)
                filled[int(found[one])] += int(self.loads[one])
        return found

    def filled(self, cells: IntArray) -> IntArray:
        """Return the load of every cell."""
        return self.filled_by(np.ones(self.num_objects, dtype=bool), cells)

    def filled_by(self, which: BoolArray, cells: IntArray) -> IntArray:
        """Return the load of every cell by some objects alone."""
        filled = np.zeros(len(self.cells.router), dtype=np.int64)
        np.add.at(filled, cells[which], self.loads[which])
        return filled

    def largest_load(self, cells: IntArray) -> int:
        """Return the largest load of a cell, for each of its nodes, rounded up."""
        return int((-(-self.filled(cells) // self.cells.width)).max())

    def fits(self, cells: IntArray) -> bool:
        """Return whether no cell has more load than it can hold."""
        return bool((self.filled(cells) <= self.cells.room).all())

    @cached_property
    def link_floor(self) -> Bound | None:
        """A quick lower bound on the largest link load of any mapping."""
        from topoplace.mapping.link_bounds import quick_bound  # noqa: PLC0415 - a circle

        return quick_bound(self)

    @cached_property
    def fixed(self) -> BoolArray:
        """Whether an object is fixed."""
        return self.home >= 0

    def array(self, name: str) -> tuple[IntArray, tuple[int, ...]] | None:
        """Return the objects of an array in its shape, and the shape; None without the array."""
        begin = 0
        for one in self.instance.arrays:
            shape = tuple(one.shape)
            if one.name == name:
                return np.arange(begin, begin + math.prod(shape)).reshape(shape), shape
            begin += math.prod(shape)
        return None


def prepare_objects(instance: ObjectsInstance) -> ObjectsProblem:
    """Check an instance and return its arrays.

    Raises
    ------
    InputError
        With the field at fault: lists of different length, nodes outside the machine, fixed objects
        on other nodes, loads beyond the caps, or bytes so large that hop-bytes would not be exact
        in 64 bits.
    """
    loads = np.asarray(instance.loads, dtype=np.int64)
    if sum(instance.loads) >= MOST_LOAD:
        raise InputError(f"loads below {MOST_LOAD} together", field="loads")
    graph = GraphApplication(
        num_tasks=len(loads),
        sources=instance.sources,
        targets=instance.targets,
        bytes=instance.bytes,
    )
    plain = prepare_mapping(
        MappingInstance(
            schema_version="topoplace.mapping/1",
            name=instance.name,
            machine=instance.machine,
            nodes=instance.nodes,
            tasks_per_node=min(len(loads), MOST_PER_NODE),
            application=graph,
        )
    )
    problem = ObjectsProblem(instance, plain, loads, _homes(instance, plain))
    sizes = [math.prod(one.shape) for one in instance.arrays]
    if instance.arrays and sum(sizes) != len(loads):
        expected = f"{number_of(len(loads), 'element')}, one for each load"
        raise InputError(expected, field="arrays", value=sum(sizes))
    _require_trees(problem)
    _require_room(problem)
    return problem


def _require_trees(problem: ObjectsProblem) -> None:
    """Raise unless all trees are of known objects, on a torus, and their bytes fit."""
    listed = problem.instance.trees
    for k, one in enumerate(listed):
        if max(one.root, *one.members) >= problem.num_objects:
            expected = f"objects below {problem.num_objects}"
            found = max(one.root, *one.members)
            raise InputError(expected, field=f"trees[{k}]", value=found)
    if listed:
        torus = problem.torus
        most = problem.graph.total_bytes * torus.diameter
        most += sum(one.bytes for one in listed) * torus.num_routers
        if most >= MAX_HOP_BYTES:
            expected = f"bytes of trees x routers below {MAX_HOP_BYTES}, to be exact"
            raise InputError(expected, field="trees", value=most)


def _homes(instance: ObjectsInstance, plain: MappingProblem) -> IntArray:
    home = np.full(plain.num_tasks, -1, dtype=np.int64)
    usable = set(plain.nodes.tolist())
    for k, one in enumerate(instance.fixed):
        if one.object >= len(home) or home[one.object] >= 0:
            expected = f"objects below {len(home)}, each once"
            raise InputError(expected, field=f"fixed[{k}].object", value=one.object)
        if one.node not in usable:
            raise InputError("a usable node", field=f"fixed[{k}].node", value=one.node)
        home[one.object] = one.node
    return home


def _require_room(problem: ObjectsProblem) -> None:
    """Raise unless the caps can hold all loads, each single one, and the fixed ones."""
    cells, loads, cap = problem.cells, problem.loads, problem.instance.cap
    total = int(loads.sum())
    if total > sum(cells.room.tolist()):
        least = -(-total // len(problem.nodes))
        raise InputError(f"at least {least}, the average load of a node", field="cap", value=cap)
    if int(loads.max()) > int(cells.room.max()):
        expected = f"room for the largest load, {int(loads.max())}"
        raise InputError(expected, field="cap", value=cap)
    fixed = np.flatnonzero(problem.home >= 0)
    filled = np.zeros(len(cells.room), dtype=np.int64)
    np.add.at(filled, problem.cells_of(problem.home[fixed]), loads[fixed])
    over = np.flatnonzero(filled > cells.room)
    if len(over):
        expected = f"room for the fixed objects of router {int(cells.router[over[0]])}"
        raise InputError(expected, field="cap", value=cap)


def objects_on(
    places: Places,
    graph: GraphApplication,
    loads: IntArray,
    cap: int,
    **more: object,
) -> ObjectsProblem:
    """Return the problem of mapping objects to places; `more` are other fields of the instance."""
    fields = {"name": "objects", "source": places.source} | more
    return prepare_objects(
        ObjectsInstance.model_validate(
            {
                "schema_version": "topoplace.objects/1",
                "machine": places.machine,
                "nodes": format_node_set(places.nodes.tolist()),
                "cap": cap,
                "loads": loads.tolist(),
                "sources": graph.sources,
                "targets": graph.targets,
                "bytes": graph.bytes,
                **fields,
            }
        )
    )


def cap_of(loads: IntArray, num_nodes: int, balance: str, pooled: int = 1) -> int:
    """Return the most load of a node at `balance` times the average, rounded down.

    At most `pooled` nodes share their caps.

    Raises `InputError` if `balance` is not a number of at least 1, or the cap is below the largest
    load.
    """
    from fractions import Fraction  # noqa: PLC0415 - only here

    try:
        factor = Fraction(balance)
    except (ValueError, ZeroDivisionError):
        factor = Fraction(0)
    if factor < 1:
        raise InputError("a number from 1 on, such as 1.1", field="--balance", value=balance)
    total, largest = int(loads.sum()), int(loads.max())
    cap = max(math.floor(factor * total / num_nodes), -(-total // num_nodes))
    if cap * pooled < largest:
        least = math.ceil(Fraction(100 * largest * num_nodes, pooled * max(1, total))) / 100
        expected = f"at least {least:g}: the largest object has a load of {largest}"
        raise InputError(expected, field="--balance", value=balance)
    return cap
