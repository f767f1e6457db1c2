"""The mapping problem as solvers see it: a graph, and routers with places for tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine import Network, Torus, parse_node_set
from topoplace.machine.links import tree_arms
from topoplace.mapping.graph import Rows, TaskGraph, VirtualGrid, grid_of
from topoplace.mapping.machines import machine_of
from topoplace.mapping.parallelism import parallelism_graph
from topoplace.mapping.spread.groups import Groups, groups_of
from topoplace.snapshot.schema import (
    MAX_TASKS,
    AnyApplication,
    GraphApplication,
    GridApplication,
    MappingInstance,
    MessageTree,
    NamedArray,
    ObjectsGraph,
    ParallelismApplication,
)
from topoplace.types import BoolArray, IntArray

if TYPE_CHECKING:
    from topoplace.mapping.recognition import Recognition
    from topoplace.solving import Bound, Method

MAX_MESSAGES = 1 << 26
"""Most messages of a parallelism grid."""

MAX_HOP_BYTES = 1 << 62
"""Objectives must stay exact in 64-bit integers."""

MOST_LOAD = 1 << 60
"""Loads of all objects together stay below it."""

MOST_PER_NODE = 1 << 20


class Cells(NamedTuple):
    """What has room for loads, in the order of routers: nodes, or routers with pooled caps.

    Router r has the cells from ``first[r]`` to ``first[r + 1]``; a cell has `width` usable nodes
    and room for `room`.
    """

    first: IntArray
    router: IntArray
    width: IntArray
    room: IntArray


class Trees(NamedTuple):
    """Multicasts and reductions: tree t has the members from ``first[t]`` to ``first[t + 1]``.

    `reduces` tells whether they send to the root, rather than get what that sends, and `by_node`
    whether a message goes once to every node (cell) with members, rather than over every link. The
    trees of object i are ``of[of_first[i]:of_first[i + 1]]``.
    """

    root: IntArray
    first: IntArray
    member: IntArray
    bytes: IntArray
    reduces: BoolArray
    by_node: BoolArray
    of_first: IntArray
    of: IntArray

    @property
    def ends(self) -> tuple[IntArray, IntArray, IntArray]:
        """For every member its tree, the root of that, and the member itself."""
        tree = np.repeat(np.arange(len(self.root)), np.diff(self.first))
        return tree, self.root[tree], self.member

    @property
    def over_links(self) -> bool:
        """Whether some go once over every link."""
        return not self.by_node.all()


def trees_of(listed: Sequence[MessageTree], num_tasks: int) -> Trees:
    """Return the arrays of trees."""
    ends = np.cumsum([0, *(len(one.members) for one in listed)])
    member = np.array([m for one in listed for m in one.members], dtype=np.int64)
    root = np.array([one.root for one in listed], dtype=np.int64)
    sizes = np.array([one.bytes for one in listed], dtype=np.int64)
    reduces = np.array([one.kind == "reduction" for one in listed], dtype=np.bool_)
    by_node = np.array([one.once == "node" for one in listed], dtype=np.bool_)
    numbers = np.arange(len(root))
    tree = np.concatenate([numbers, np.repeat(numbers, np.diff(ends))])
    keys = np.sort(np.concatenate([root, member]) * max(1, len(root)) + tree)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    owner, of = np.divmod(keys, max(1, len(root)))
    first = np.searchsorted(owner, np.arange(num_tasks + 1))
    return Trees(root, ends, member, sizes, reduces, by_node, first, of)


@dataclass(frozen=True)
class MappingProblem:
    """A mapping instance, checked and turned into arrays.

    Attributes
    ----------
    machine
        The machine: a torus or mesh, a matrix of distances, or a tree or hierarchy as levels.
    nodes
        Nodes that tasks may go to, ascending.
    tasks_per_node
        Most tasks on one node; any number where `of_tasks` is false, as loads decide.
    graph
        The messages that are no trees.
    grid
        The virtual grid they come from, if they do.
    loads
        Of every task, shape ``(num_tasks,)``: 1 unless they are objects with others.
    home
        The node of every fixed task, -1 of others.
    """

    instance: MappingInstance
    machine: Network
    nodes: IntArray
    tasks_per_node: int
    graph: TaskGraph
    grid: VirtualGrid | None
    loads: IntArray
    home: IntArray
    kind: ClassVar[str] = "mapping"

    @cached_property
    def before(self) -> IntArray | None:
        """The node of every task in the mapping before, if only some may move."""
        moves = self.instance.moves
        return None if moves is None else np.asarray(moves.nodes, dtype=np.int64)

    @property
    def levels(self) -> tuple[tuple[str, str], ...]:
        """Name and sense of what counts: hop-bytes and, under a cap, the largest load.

        Where groups are kept together, what they span comes first.
        """
        every = (("spread", "min"), ("hop-bytes", "min"), ("largest-load", "min"))
        first = 0 if self.spread else 1
        return every[first : 2 if self.instance.cap is None else 3]

    @cached_property
    def of_tasks(self) -> bool:
        """Whether all are tasks: objects of load 1, none of them fixed, without trees."""
        return not (self.listed_trees or self.fixed.any() or (self.loads != 1).any())

    def takes(self, method: Method) -> bool:
        """Return whether a method is for a mapping of this form: of tasks, objects, or a grid.

        With a limit of moves, methods are those that know of it.
        """
        forms = {"tasks"} if self.of_tasks else set()
        forms |= set() if self.instance.cap is None else {"objects"}
        forms = forms if self.before is None else {"moves"}
        return bool(forms & set(method.takes)) and not (method.needs_grid and self.grid is None)

    @property
    def torus(self) -> Torus:
        """The torus or mesh; `InputError` for other machines."""
        if self.machine.torus is None:
            raise InputError("a torus or mesh machine", field="machine", value=self.machine.text)
        return self.machine.torus

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return self.graph.num_tasks

    @cached_property
    def recognised(self) -> Recognition | None:
        """The pattern recognised in the graph; None if the application is given as a grid."""
        from topoplace.mapping.recognition import recognise  # noqa: PLC0415 - heavy

        return recognise(self.graph) if self.grid is None else None

    @cached_property
    def floor(self) -> int:
        """A quick lower bound on the hop-bytes of any mapping."""
        from topoplace.mapping.bounds.levels import levels_bound  # noqa: PLC0415 - a circle
        from topoplace.mapping.bounds.total import total_bound  # noqa: PLC0415 - a circle

        bound = total_bound(self) or levels_bound(self, 0.0, target=0)
        return 0 if bound is None else int(bound.value)

    # ---- Groups that should span few domains

    @cached_property
    def spread(self) -> tuple[Groups, ...]:
        """Groups to keep together, by kind."""
        return groups_of(self.instance, self.machine, self.num_tasks)

    @property
    def num_counts(self) -> int:
        """Pairs of a group and a domain of its level."""
        return sum(len(kind) * (int(kind.domain_of.max()) + 1) for kind in self.spread)

    @cached_property
    def without_spread(self) -> MappingProblem:
        """The same problem with hop-bytes alone."""
        return replace(self, instance=self.instance.model_copy(update={"spread": []}))

    def spans(self, nodes: IntArray) -> list[int]:
        """Return for every kind of groups the most domains that one of them spans."""
        routers = self.routers_of(nodes)
        return [int(kind.spans(routers).max()) for kind in self.spread]

    @cached_property
    def link_floor(self) -> Bound | None:
        """A quick lower bound on the largest link load of any mapping."""
        from topoplace.mapping.link_bounds import quick_bound  # noqa: PLC0415 - a circle

        return quick_bound(self)

    @cached_property
    def usable(self) -> IntArray:
        """Usable nodes of every router, shape ``(num_routers,)``."""
        routers = self.routers_of(self.nodes)
        counts: IntArray = np.bincount(routers, minlength=self.machine.num_routers)
        return counts

    @cached_property
    def capacity(self) -> IntArray:
        """Most tasks on every router, shape ``(num_routers,)``."""
        return self.tasks_per_node * self.usable

    @cached_property
    def whole_routers(self) -> BoolArray:
        """Routers whose nodes may all be used, shape ``(num_routers,)``."""
        return np.equal(self.usable, self.machine.nodes_per_router)

    def routers_of(self, nodes: IntArray) -> IntArray:
        """Return the router of every node of an array."""
        return nodes // self.machine.nodes_per_router

    @property
    def in_order(self) -> IntArray:
        """The node of every task if consecutive tasks fill node after node."""
        return self.nodes[np.arange(self.num_tasks) // self.tasks_per_node]

    # ---- Messages, and trees of them

    @property
    def listed_trees(self) -> list[MessageTree]:
        """The multicasts and reductions, as documents have them."""
        found: list[MessageTree] = getattr(self.instance.application, "trees", [])
        return found

    @cached_property
    def trees(self) -> Trees:
        """The multicasts and reductions."""
        return trees_of(self.listed_trees, self.num_tasks)

    @cached_property
    def guide(self) -> Rows:
        """Bytes between tasks as searches follow them: of a tree, a message to every member."""
        if not self.listed_trees:
            return self.graph.exchanged
        graph, (tree, root, member) = self.graph, self.trees.ends
        sources, targets = np.append(graph.sources, root), np.append(graph.targets, member)
        sizes = np.append(graph.bytes, self.trees.bytes[tree])
        kept = (sources != targets) & (sizes > 0)
        return TaskGraph(self.num_tasks, sources[kept], targets[kept], sizes[kept]).exchanged

    def sent(self, nodes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the routers at both ends of every message, and its bytes, given all nodes.

        Trees are messages of one hop, one over each of their links, or one to every node that has
        members: away from the root in multicasts, towards it in reductions.
        """
        routers, graph = self.routers_of(nodes), self.graph
        messages = routers[graph.sources], routers[graph.targets], graph.bytes
        if not self.listed_trees:
            return messages
        tree, *ends = self.copies(nodes)
        back = self.trees.reduces[tree]
        parts = [messages, (*np.where(back, ends[::-1], ends), self.trees.bytes[tree])]
        torus = self.torus if self.trees.over_links else Torus((1,))
        ways = zip(torus.shape, torus.strides, self.arms(nodes), strict=False)
        for n, stride, (tree, router, *lengths) in ways:
            at = router // stride % n
            for length, way in zip(lengths, (1, -1), strict=True):
                arm = np.repeat(np.arange(len(length)), length)
                step = np.arange(len(arm)) - np.repeat(np.cumsum(length) - length, length)
                near = (at[arm] + way * step) % n
                ends = [router[arm] + (k - at[arm]) * stride for k in (near, (near + way) % n)]
                back = self.trees.reduces[tree[arm]]
                source, target = np.where(back, ends[::-1], ends)
                parts.append((source, target, self.trees.bytes[tree[arm]]))
        sources, targets, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sources, targets, sizes

    def arms(self, nodes: IntArray) -> Iterator[tuple[IntArray, IntArray, IntArray, IntArray]]:
        """Return the arms of trees over links (`tree_arms`), given all nodes; none without any."""
        if not self.trees.over_links:
            return iter(())
        routers, (tree, _, member) = self.routers_of(nodes), self.trees.ends
        kept = ~self.trees.by_node[tree]
        roots = routers[self.trees.root]
        return tree_arms(self.torus, roots, tree[kept], routers[member[kept]])

    def copies(self, nodes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return a message to every node with members, of trees of that kind.

        For each its tree, the router of that tree's root, and that of the node.
        """
        tree, _, member = self.trees.ends
        kept, num = self.trees.by_node[tree], len(self.cells.router)
        keys = np.unique(tree[kept] * num + self.cells_of(nodes)[member[kept]])
        tree, cell = np.divmod(keys, num)
        return tree, self.routers_of(nodes)[self.trees.root[tree]], self.cells.router[cell]

    def array(self, name: str) -> tuple[IntArray, tuple[int, ...]] | None:
        """Return the objects of an array in its shape, and that; None if there is no such array."""
        begin = 0
        for one in self.arrays:
            shape = tuple(one.shape)
            if one.name == name:
                return np.arange(begin, begin + math.prod(shape)).reshape(shape), shape
            begin += math.prod(shape)
        return None

    @property
    def arrays(self) -> list[NamedArray]:
        """The arrays of objects, as documents have them."""
        found: list[NamedArray] = getattr(self.instance.application, "arrays", [])
        return found

    # ---- Room for loads

    @cached_property
    def fixed(self) -> BoolArray:
        """Whether a task is fixed."""
        return self.home >= 0

    @cached_property
    def total_load(self) -> int:
        """Load of all tasks."""
        return int(self.loads.sum())

    @cached_property
    def cap(self) -> int:
        """Most load of a node, no more than that of all."""
        cap = self.instance.cap
        return min(self.tasks_per_node if cap is None else cap, self.total_load)

    @cached_property
    def cells(self) -> Cells:
        """Where there is room."""
        return self._cells_of(pooled=self.instance.pooled)

    @cached_property
    def pools(self) -> Cells:
        """What searches fill: the cells; of tasks whole routers, whose nodes then share evenly."""
        return self._cells_of(pooled=self.instance.pooled or self._shares_evenly)

    @property
    def _shares_evenly(self) -> bool:
        """Whether any nodes of their routers will do for tasks: unless moves are limited."""
        return self.of_tasks and self.before is None

    def _cells_of(self, *, pooled: bool) -> Cells:
        routers = self.routers_of(self.nodes)
        width = np.ones(len(routers), dtype=np.int64)
        if pooled:
            routers = np.flatnonzero(self.usable)
            width = self.usable[routers].astype(np.int64)
        first = np.searchsorted(routers, np.arange(self.machine.num_routers + 1))
        return Cells(first, routers, width, self.cap * width)

    @cached_property
    def room(self) -> IntArray:
        """Load that every router has room for, none above all loads, ``(num_routers,)``."""
        nodes = np.minimum(self.usable, self.total_load // max(1, self.cap) + 1)
        room: IntArray = np.minimum(nodes * self.cap, self.total_load)
        return room

    def cells_of(self, nodes: IntArray) -> IntArray:
        """Return the cell of every node."""
        if self.instance.pooled:
            return self.cells.first[self.routers_of(nodes)]
        return np.searchsorted(self.nodes, nodes)

    def pools_of(self, nodes: IntArray) -> IntArray:
        """Return the pool of every node."""
        if self._shares_evenly:
            return self.pools.first[self.routers_of(nodes)]
        return self.cells_of(nodes)

    def nodes_of(self, cells: IntArray) -> IntArray:
        """Return a node for every task, given its pool: of objects, the emptiest in turn.

        With a limit of moves, who stays in a pool stays on its node.
        """
        if self._shares_evenly:
            return spread_over_nodes(self, self.pools.router[cells])
        if not self.instance.pooled:
            return self.nodes[cells]
        found = self.home.copy()
        if self.before is not None:
            found = np.where(self.cells_of(self.before) == cells, self.before, -1)
        routers, filled = self.routers_of(self.nodes), dict.fromkeys(self.nodes.tolist(), 0)
        below = {r: self.nodes[routers == r].tolist() for r in np.unique(routers).tolist()}
        for one in np.flatnonzero(found >= 0).tolist():
            filled[int(found[one])] += int(self.loads[one])
        for one in np.argsort(-self.loads, kind="stable").tolist():
            if found[one] < 0:
                found[one] = min(below[int(self.cells.router[cells[one]])], key=filled.__getitem__)
                filled[int(found[one])] += int(self.loads[one])
        return found

    def filled(self, cells: IntArray, which: BoolArray | None = None) -> IntArray:
        """Return the load of every cell, perhaps by some tasks alone."""
        filled = np.zeros(len(self.cells.router), dtype=np.int64)
        which = np.ones(self.num_tasks, dtype=bool) if which is None else which
        np.add.at(filled, cells[which], self.loads[which])
        return filled

    def largest_load(self, cells: IntArray) -> int:
        """Return the largest load of a cell, for each of its nodes, rounded up."""
        return int((-(-self.filled(cells) // self.cells.width)).max())


def prepare_mapping(instance: MappingInstance) -> MappingProblem:
    """Check a mapping instance and return its arrays.

    Raises
    ------
    InputError
        With the field at fault: lists of different length, nodes outside the machine, more tasks
        than places, objects fixed elsewhere, loads beyond the caps, or bytes so large that
        hop-bytes would not be exact in 64 bits.
    """
    machine = machine_of(instance.machine, instance.level_costs)
    nodes = np.asarray(parse_node_set(instance.nodes, machine.num_nodes, "nodes"), dtype=np.int64)
    application, cap = instance.application, instance.cap
    graph, grid = messages_of(application)
    loads: list[int] | None = getattr(application, "loads", None)
    if (cap is None) is (instance.tasks_per_node is None):
        raise InputError("this or a cap", field="tasks_per_node", value=instance.tasks_per_node)
    if cap is None and (loads or instance.pooled or instance.fixed):
        raise InputError("a cap, for objects with loads", field="cap", found="none")
    num = graph.num_tasks
    if sum(loads or ()) >= MOST_LOAD:
        raise InputError(f"loads below {MOST_LOAD} together", field="loads")
    sizes = np.ones(num, dtype=np.int64) if loads is None else np.asarray(loads, dtype=np.int64)
    home = _homes(instance, num, nodes)
    problem = MappingProblem(instance, machine, nodes, num, graph, grid, sizes, home)
    most = min(num, MOST_PER_NODE)
    if problem.of_tasks:
        most = min(most, cap) if cap is not None else int(instance.tasks_per_node or 0)
    problem = replace(problem, tasks_per_node=most)
    _ = problem.spread  # checks it
    if cap is not None:
        _require_loads(problem)
    _require_moves(problem)
    places = len(nodes) * most
    if num > places:
        expected = (
            f"at most {number_of(places, 'task')}, the places on "
            f"{number_of(len(nodes), 'usable node')}"
        )
        if cap is None:
            expected += " (see --tasks-per-node)"
        raise InputError(expected, field="num_tasks", value=num)
    if graph.total_bytes * max(1, machine.diameter) >= MAX_HOP_BYTES:
        expected = f"bytes x hops below {MAX_HOP_BYTES}, to be exact"
        raise InputError(expected, field="bytes", value=graph.total_bytes)
    return problem


def _homes(instance: MappingInstance, num: int, nodes: IntArray) -> IntArray:
    home = np.full(num, -1, dtype=np.int64)
    usable = set(nodes.tolist() if instance.fixed else ())
    for k, one in enumerate(instance.fixed):
        if one.object >= num or home[one.object] >= 0:
            expected = f"objects below {num}, each once"
            raise InputError(expected, field=f"fixed[{k}].object", value=one.object)
        if one.node not in usable:
            raise InputError("a usable node", field=f"fixed[{k}].node", value=one.node)
        home[one.object] = one.node
    return home


def _require_loads(problem: MappingProblem) -> None:
    """Raise unless distances, arrays and trees are such as objects have, and the caps have room."""
    machine, num = problem.machine, problem.num_tasks
    if machine.levels is not None:
        raise InputError("a torus, mesh or matrix for objects", field="machine", value=machine.text)
    if not machine.is_symmetric:
        raise InputError("symmetric distances for objects", field="machine.distances")
    sizes = [math.prod(one.shape) for one in problem.arrays]
    if sizes and sum(sizes) != num:
        expected = f"{number_of(num, 'element')}, one for each load"
        raise InputError(expected, field="arrays", value=sum(sizes))
    for k, one in enumerate(problem.listed_trees):
        largest = max(one.root, *one.members)
        if largest >= num:
            raise InputError(f"objects below {num}", field=f"trees[{k}]", value=largest)
    if problem.listed_trees:
        torus = problem.torus if problem.trees.over_links else None
        most = problem.graph.total_bytes * machine.diameter
        for one in problem.listed_trees:
            links = torus.num_routers if torus and one.once == "link" else 0
            most += one.bytes * (links or len(one.members) * machine.diameter)
        if most >= MAX_HOP_BYTES:
            expected = f"bytes of trees x routers below {MAX_HOP_BYTES}, to be exact"
            raise InputError(expected, field="trees", value=most)
    _require_room(problem)


def _require_moves(problem: MappingProblem) -> None:
    """Raise unless the mapping that some tasks may move from is one, on symmetric distances."""
    if problem.before is None:
        return
    if not problem.machine.is_symmetric:
        expected = "symmetric distances with a limit of moves"
        raise InputError(expected, field="machine.distances")
    require_mapping(problem, problem.before, where="moves.nodes[{}]".format)


def _require_room(problem: MappingProblem) -> None:
    """Raise unless the caps have room for all loads, for each one, and for what is fixed."""
    cells, loads, cap = problem.cells, problem.loads, problem.instance.cap
    if problem.total_load > sum(cells.room.tolist()):
        least = -(-problem.total_load // len(problem.nodes))
        raise InputError(f"at least {least}, the average load of a node", field="cap", value=cap)
    if int(loads.max()) > int(cells.room.max()):
        expected = f"room for the largest load, {int(loads.max())}"
        raise InputError(expected, field="cap", value=cap)
    filled = problem.filled(problem.cells_of(problem.home), problem.fixed)
    over = np.flatnonzero(filled > cells.room)
    if len(over):
        expected = f"room for the fixed objects of router {int(cells.router[over[0]])}"
        raise InputError(expected, field="cap", value=cap)


def messages_of(
    application: AnyApplication | ObjectsGraph,
) -> tuple[TaskGraph, VirtualGrid | None]:
    """Return the messages of an application, and the grid that they come from if they do."""
    if isinstance(application, GridApplication):
        grid = grid_of(application)
        return grid.graph(), grid
    if isinstance(application, ParallelismApplication):
        return _ranks(application), None
    return graph_of(application), None


def _ranks(application: ParallelismApplication) -> TaskGraph:
    """Return the messages of a parallelism grid that is not too large."""
    sizes = [axis.size for axis in application.axes]
    if math.prod(sizes) > MAX_TASKS:
        raise InputError(f"at most {MAX_TASKS} ranks", field="axes", value=sizes)
    messages = math.prod(sizes) * sum(a.size for a in application.axes if a.pattern == "all")
    if messages > MAX_MESSAGES:
        raise InputError(f"at most {MAX_MESSAGES} messages", field="axes", value=sizes)
    return parallelism_graph(application)


def graph_of(application: GraphApplication | ObjectsGraph) -> TaskGraph:
    """Return the messages of a graph application, except those without bytes or to the sender."""
    lists = (application.sources, application.targets, application.bytes)
    sources, targets, sizes = (np.asarray(values, dtype=np.int64) for values in lists)
    if not len(sources) == len(targets) == len(sizes):
        raise InputError(
            "as many targets and bytes as sources", field="application", value=len(targets)
        )
    for name, ends in (("sources", sources), ("targets", targets)):
        if len(ends) and int(ends.max()) >= application.num_tasks:
            raise InputError(
                f"tasks below {application.num_tasks}", field=name, value=int(ends.max())
            )
    names = getattr(application, "names", None)
    if names is not None and len(names) != application.num_tasks:
        expected = f"a name for each of {number_of(application.num_tasks, 'task')}"
        raise InputError(expected, field="names", value=len(names))
    kept = (sizes > 0) & (sources != targets)
    return TaskGraph(application.num_tasks, sources[kept], targets[kept], sizes[kept])


# ---- The nodes of tasks: a node for every router, and the conditions of a mapping ----------------


def spread_over_nodes(problem: MappingProblem, routers: IntArray) -> IntArray:
    """Return a node for every task, given its router: each router's tasks evenly on its nodes.

    No router may get more tasks than its capacity.
    """
    count = np.bincount(routers, minlength=problem.machine.num_routers)
    assert (count <= problem.capacity).all()
    usable = problem.usable
    order = np.argsort(routers, kind="stable")
    at = routers[order]
    rank = np.arange(len(at)) - (np.cumsum(count) - count)[at]
    nodes = np.empty(len(at), dtype=np.int64)
    nodes[order] = problem.nodes[(np.cumsum(usable) - usable)[at] + rank * usable[at] // count[at]]
    return nodes


def require_tasks(problem: MappingProblem) -> None:
    """Raise `InputError` unless all are tasks without loads that may be anywhere, for a model."""
    if not problem.of_tasks or problem.instance.cap is not None:
        raise InputError("tasks without loads, for a model", field="application", found="objects")
    if problem.before is not None:
        raise InputError("a mapping without a limit of moves", field="moves", found="one")
    if problem.spread:
        raise InputError("hop-bytes alone, for a model", field="spread", found="groups")


def num_moved(problem: MappingProblem, nodes: IntArray) -> int:
    """Return how many tasks are on another node than before, where moves are limited."""
    return 0 if problem.before is None else int(np.count_nonzero(nodes != problem.before))


def require_mapping(
    problem: MappingProblem,
    nodes: IntArray,
    *,
    file: str | None = None,
    where: Callable[[int], str] = "task {}".format,
) -> None:
    """Raise `InputError` unless every task has a usable node and no node too many tasks.

    Messages name the file the mapping was read from, and the place in it of a task.
    """
    if len(nodes) != problem.num_tasks:
        raise InputError(
            f"nodes for {number_of(problem.num_tasks, 'task')}", file=file, value=len(nodes)
        )
    strange = np.flatnonzero(~np.isin(nodes, problem.nodes))
    if len(strange):
        task = int(strange[0])
        raise InputError(
            "a node that tasks may go to", file=file, field=where(task), value=int(nodes[task])
        )
    elsewhere = np.flatnonzero(problem.fixed & (nodes != problem.home))
    full = np.flatnonzero(problem.filled(problem.cells_of(nodes)) > problem.cells.room)
    if problem.instance.cap is not None and (len(elsewhere) or len(full)):
        expected = f"a load of at most {problem.cap} on a node, and fixed objects where they are"
        raise InputError(expected, file=file, value=nodes.tolist()[: len(elsewhere) + 1])
    if problem.instance.moves is not None:
        moved, most = num_moved(problem, nodes), problem.instance.moves.most
        if moved > most:
            expected = f"at most {number_of(most, 'task')} moved"
            raise InputError(expected, file=file, value=moved)
    count = np.bincount(nodes)
    if count.max() > problem.tasks_per_node:
        node = int(count.argmax())
        task = int(np.flatnonzero(nodes == node)[problem.tasks_per_node])
        raise InputError(
            f"at most {number_of(problem.tasks_per_node, 'task')} on a node",
            file=file,
            field=where(task),
            value=f"{count[node]} on node {node}",
        )
