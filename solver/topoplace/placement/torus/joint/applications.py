"""The applications of requests as mapping problems: in idle prisms, and in that of a job.

Layouts of a grid are costed by extents, and laid onto the usable nodes of a prism with unusable
ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from topoplace import clock
from topoplace.errors import InputError, blamed_on, number_of
from topoplace.machine import Prism, Torus, format_node_set
from topoplace.mapping.coordinates import bisect_coordinates
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import VirtualGrid
from topoplace.mapping.layouts import Layout, cells, enumerate_layouts, ideal_hop_bytes
from topoplace.mapping.mapped import cheapest
from topoplace.mapping.methods.best import STRUCTURED, map_exact
from topoplace.mapping.methods.constructions import cells_on_prism, ways_by_extents
from topoplace.mapping.problem import MappingProblem, prepare_mapping, spread_over_nodes
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.snapshot.schema import MAPPING_SCHEMA, MappingInstance, TasksModel, TorusModel
from topoplace.solving import Options
from topoplace.types import IntArray

Extents = tuple[int, ...]

FEW_TASKS = 8
"""Tasks up to which applications are mapped to the proven optimum."""

EXACT_SECONDS = 2.0
"""Most for such an optimum."""

_MOST_UNITS = 2500  # nodes of a layout that are assigned: the assignment takes their third power
_MOST_PLACES = 64  # of a layout inside a prism


@dataclass(frozen=True)
class Ideal:
    """A grid laid onto a prism with nothing unusable.

    `cells` returns the router of every task, by its coordinates in the prism.
    """

    hop_bytes: int
    extents: Extents
    cells: Callable[[], IntArray]


def ideals(
    torus: Torus, nodes: int, idle: Callable[[Extents], MappingProblem], deadline: float
) -> list[Ideal]:
    """Return the best layout for all extents that hold one, with no more nodes; the best first.

    Parameters
    ----------
    nodes
        The nodes of the job.
    idle
        Returns the problem of mapping to an idle prism of some extents, from 0 on.
    deadline
        When to look at no more extents; all extents of layouts of grids are looked at.
    """
    best: dict[Extents, Ideal] = {}
    if clock.now() >= deadline:
        return []
    every = itertools.chain(_structured(idle(torus.shape), nodes), _bisected(torus, nodes, idle))
    for ideal in every:
        if ideal.extents not in best or ideal.hop_bytes < best[ideal.extents].hop_bytes:
            best[ideal.extents] = ideal
        if clock.now() >= deadline:
            break
    return sorted(best.values(), key=lambda ideal: (ideal.hop_bytes, ideal.extents))


def _bisected(
    torus: Torus, nodes: int, idle: Callable[[Extents], MappingProblem]
) -> Iterator[Ideal]:
    """Yield the mappings by bisection for the least extents that hold a given number of nodes."""
    known: dict[Extents, tuple[int, IntArray]] = {}
    for extents in minimal_extents(torus, nodes):
        kind = in_order(torus, extents)
        if kind not in known:
            problem = idle(kind)
            at = _quick(problem)
            routers = problem.routers_of(at)
            known[kind] = hop_bytes(problem, at), torus.coordinates[routers]
        cost, at = known[kind]
        order = _order_of(torus, kind, extents)
        yield Ideal(cost, extents, partial(at.__getitem__, (slice(None), order)))


def _quick(problem: MappingProblem) -> IntArray:
    """Return a node for every task by bisection, or an optimum for few tasks."""
    if problem.num_tasks <= FEW_TASKS:
        outcome = map_exact(problem, Options(time_limit=EXACT_SECONDS))
        if outcome.solution is not None:
            return np.asarray(outcome.solution.nodes)
    origin = (0,) * problem.torus.num_dims
    return spread_over_nodes(problem, bisect_coordinates(problem, origin))


def minimal_extents(torus: Torus, nodes: int) -> Iterator[Extents]:
    """Yield the minimal extents whose prisms hold a given number of nodes."""
    need = -(-nodes // torus.nodes_per_router)
    for head in itertools.product(*(range(1, n + 1) for n in torus.shape[:-1])):
        depth = -(-need // math.prod(head))
        extents = (*head, depth)
        volume = math.prod(extents)
        if depth <= torus.shape[-1] and all(volume // e * (e - 1) < need for e in extents):
            yield extents


def in_order(torus: Torus, extents: Extents) -> Extents:
    """Return extents with those of equal rings, or of equal lines, in ascending order.

    Such dimensions may be exchanged: the cost of an application does not change.
    """
    found = list(extents)
    for dims in _alike(torus):
        for d, e in zip(dims, sorted(extents[d] for d in dims), strict=True):
            found[d] = e
    return tuple(found)


def _alike(torus: Torus) -> list[list[int]]:
    """Return the dimensions in groups that may be exchanged."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for d, size in enumerate(zip(torus.shape, torus.wrap, strict=True)):
        groups.setdefault(size, []).append(d)
    return list(groups.values())


def _order_of(torus: Torus, kind: Extents, extents: Extents) -> list[int]:
    """Return for each dimension of some extents its dimension in the ordered extents."""
    order = [0] * len(extents)
    for dims in _alike(torus):
        for k, d in zip(dims, sorted(dims, key=lambda d: extents[d]), strict=True):
            order[d] = k
    assert tuple(kind[k] for k in order) == extents, "they are the same in order"
    return order


def _structured(whole: MappingProblem, nodes: int) -> Iterator[Ideal]:
    torus, grid = whole.torus, whole.grid
    if grid is None:
        return
    for way, costs in ways_by_extents(whole):
        found = np.argwhere(costs >= 0)
        fits = (found + 1).prod(axis=1) * torus.nodes_per_router <= nodes
        for at in found[fits].tolist():
            extents = tuple(e + 1 for e in at)
            yield Ideal(int(costs[tuple(at)]), extents, partial(cells_on_prism, grid, way, extents))
    for layout in _layouts(whole, grid):
        if layout.num_nodes <= nodes:
            cost = ideal_hop_bytes(layout, grid, torus)
            yield Ideal(cost, layout.extents, partial(cells, layout, grid))


def _layouts(whole: MappingProblem, grid: VirtualGrid) -> list[Layout]:
    torus = whole.torus
    try:
        return enumerate_layouts(
            grid, whole.tasks_per_node, torus.nodes_per_router, torus.shape, rings=torus.wrap
        )
    except InputError:  # more dimensions than layouts have
        return []


def laid_out(
    problem: MappingProblem, ideal: Ideal, origin: Extents, extents: Extents
) -> IntArray | None:
    """Return a node for every task: that of a layout inside a prism, or a usable one near it.

    Nodes of the layout are assigned to usable ones at the least sum of squared distances, so that
    rows shift by a router rather than one node goes far. None if there are too few or too many.
    """
    torus = problem.torus
    here = problem.routers_of(problem.nodes)
    at = (torus.coordinates[here] - np.array(origin)) % np.array(torus.shape)
    cell, unit = _units(ideal.cells(), torus.nodes_per_router, problem.tasks_per_node)
    if not len(cell) <= len(at) <= _MOST_UNITS:
        return None
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - heavy

    shift = _best_shift(at, ideal.extents, extents)
    away = np.abs((cell + shift)[:, None, :] - at[None, :, :])
    away = np.where(torus.wrap, np.minimum(away, np.array(torus.shape) - away), away)
    hops = away.sum(axis=2)
    _, chosen = linear_sum_assignment(hops * hops)
    return np.asarray(problem.nodes[chosen[unit]])


def _units(cells: IntArray, per_router: int, per_node: int) -> tuple[IntArray, IntArray]:
    """Return the cell of every node that a layout needs, and the node of every task.

    The tasks of a cell go evenly to as few nodes as hold them, in their order.
    """
    kinds, of_cell = np.unique(cells, axis=0, return_inverse=True)
    of_cell = of_cell.ravel()
    count = np.bincount(of_cell)
    need = -(-count // per_node)
    assert need.max() <= per_router, "a cell has room for its tasks"
    order = np.argsort(of_cell, kind="stable")
    rank = np.empty(len(cells), dtype=np.int64)
    rank[order] = np.arange(len(cells)) - (np.cumsum(count) - count)[of_cell[order]]
    first = np.cumsum(need) - need
    unit = first[of_cell] + rank * need[of_cell] // count[of_cell]
    return np.repeat(kinds, need, axis=0), unit


def _best_shift(at: IntArray, inner: Extents, outer: Extents) -> IntArray:
    """Return where in a prism a smaller one has the most usable nodes, the first such place."""
    slack = [range(o - i + 1) for i, o in zip(inner, outer, strict=True)]
    places = itertools.islice(itertools.product(*slack), _MOST_PLACES)
    shifts = np.array([*places], dtype=np.int64)
    inside = [((at >= s) & (at < s + np.array(inner))).all(axis=1).sum() for s in shifts]
    return np.asarray(shifts[int(np.argmax(inside))])


def fitting(every: list[Ideal], extents: Extents, most: int) -> list[Ideal]:
    """Return the best layouts that fit inside some extents."""
    some = (i for i in every if all(a <= b for a, b in zip(i.extents, extents, strict=True)))
    return [*itertools.islice(some, most)]


_LAYOUTS = 3  # that are laid onto the nodes of a job, the best by extents
_SECONDS = 2.0  # most for a method of mapping a job


class Applications:
    """The applications of the requests of a problem (`SnapshotState.tasks`).

    After the `deadline` there is no more search for layouts, and jobs get the quickest mapping.
    """

    def __init__(self, problem: PlacementProblem, deadline: float = math.inf) -> None:
        self.problem, self.deadline = problem, deadline
        self._ideals: dict[int, list[Ideal]] = {}
        self._known: dict[tuple[int, Prism, int], MappedJob] = {}
        for idx, request in enumerate(problem.requests):
            if request.tasks is not None:
                self._require_room(idx, request.tasks)

    def _require_room(self, idx: int, tasks: int) -> None:
        """Raise `InputError` unless the tasks of a request fit its nodes and are well-formed."""
        own, field_name = self.problem.state.tasks[tasks], f"queue[{idx}].tasks"
        with blamed_on(inside=field_name):
            whole = self.in_idle(tasks, self.problem.torus.shape)
        room = self.problem.requests[idx].nodes * own.per_node
        if whole.num_tasks > room:
            expected = (
                f"at most {number_of(room, 'task')}, {own.per_node} on each node of the request"
            )
            raise InputError(expected, field=field_name, value=whole.num_tasks)

    def nodes_of(self, tasks: int) -> int:
        """Return the fewest nodes that a request with an application has."""
        return min(r.nodes for r in self.problem.requests if r.tasks == tasks)

    def ideals(self, tasks: int) -> list[Ideal]:
        """Return the layouts of an application, the best first; made once."""
        if tasks not in self._ideals:
            idle = partial(self.in_idle, tasks)
            torus = self.problem.torus
            self._ideals[tasks] = ideals(torus, self.nodes_of(tasks), idle, self.deadline)
        return self._ideals[tasks]

    @cached_property
    def _bare(self) -> TorusModel:
        """The machine without classes and service nodes."""
        machine = self.problem.state.snapshot.on(TorusModel, "a torus or mesh")
        return machine.model_copy(update={"classes": {}, "service": "", "anchored": None})

    def in_idle(self, tasks: int, extents: Extents) -> MappingProblem:
        """Return the problem of mapping an application to all nodes of a prism from 0 on."""
        torus = self.problem.torus
        inside = Prism((0,) * len(extents), extents).routers(torus)
        return self._on(self.problem.state.tasks[tasks], np.sort(torus.nodes_of(inside)))

    def _on(self, tasks: TasksModel, nodes: IntArray) -> MappingProblem:
        return prepare_mapping(
            MappingInstance(
                schema_version=MAPPING_SCHEMA,
                name="job",
                machine=self._bare,
                nodes=format_node_set(nodes.tolist()),
                tasks_per_node=tasks.per_node,
                application=tasks.application,
            )
        )

    def mapped(self, candidate: Candidate, seed: int) -> Candidate:
        """Return a candidate with its application mapped, if it has one."""
        request = self.problem.requests[candidate.request_idx]
        if request.tasks is None:
            return candidate
        key = candidate.request_idx, candidate.prism, seed
        if key not in self._known:
            self._known[key] = self._mapped(candidate, request.tasks, seed)
        return self._known[key]

    def _mapped(self, candidate: Candidate, tasks: int, seed: int) -> MappedJob:
        """Map to the default nodes of the job, and to any nodes of its prism; return the better."""
        problem = self.problem
        request = problem.requests[candidate.request_idx]
        lowest = problem.choose_nodes(candidate)
        found = [self._best_on(tasks, lowest, candidate.prism, seed)]
        if not request.geometries:  # which may need nodes in certain places
            inside = problem.torus.nodes_of(candidate.prism.routers(problem.torus))
            fits = problem.state.usable & (problem.state.node_class == request.class_idx)
            every = np.sort(inside[fits[inside]])
            if len(every) > len(lowest):
                found.append(self._best_on(tasks, every, candidate.prism, seed))
        valid = [one for one in found if len(np.unique(one[1])) <= request.nodes]
        value, at = min(valid, key=lambda one: one[0])
        used = np.unique(at)
        if np.isin(used, lowest).all():
            nodes = lowest
        else:
            rest = np.setdiff1d(every, used)[: request.nodes - len(used)]
            nodes = np.sort(np.concatenate([used, rest]))
        return MappedJob(candidate.request_idx, candidate.prism, nodes, at, value)

    def _best_on(
        self, tasks: int, nodes: IntArray, prism: Prism, seed: int
    ) -> tuple[int, IntArray]:
        """Return hop-bytes and the node of every task of the best of the quick methods."""
        problem = self._on(self.problem.state.tasks[tasks], nodes)
        at = spread_over_nodes(problem, bisect_coordinates(problem, prism.origin))
        found = [(hop_bytes(problem, at), at)]
        if clock.now() >= self.deadline:
            return found[0]
        for ideal in fitting(self.ideals(tasks), prism.extents, _LAYOUTS):
            laid = laid_out(problem, ideal, prism.origin, prism.extents)
            if laid is not None:
                found.append((hop_bytes(problem, laid), laid))
        options = Options(time_limit=_SECONDS, seed=seed)
        outcome = None
        if problem.num_tasks <= FEW_TASKS:
            outcome = map_exact(problem, options)
        elif problem.grid is not None:
            outcome = cheapest(problem, options, STRUCTURED)
            found += _by_turned_pencils(problem, options)
        if outcome is not None and outcome.solution is not None:
            at = outcome.solution.nodes
            found.append((hop_bytes(problem, at), at))
        return min(found, key=lambda one: one[0])


def _by_turned_pencils(problem: MappingProblem, options: Options) -> list[tuple[int, IntArray]]:
    """Return the pencil placements along all dimensions except the last, which `pencils` has."""
    torus, found = problem.torus, []
    machine = problem.instance.machine.only(TorusModel, "a torus or mesh")
    every = np.arange(torus.num_nodes).reshape(*torus.shape, torus.nodes_per_router)
    for d in range(torus.num_dims - 1):
        axes = [*(k for k in range(torus.num_dims) if k != d), d]
        here = every.transpose(*axes, torus.num_dims).ravel()  # our node of every turned one
        turned = {
            name: None if own is None else [own[k] for k in axes]
            for name, own in (("wrap", machine.wrap), ("bandwidth", machine.bandwidth))
        }
        nodes = np.flatnonzero(np.isin(here, problem.nodes))
        instance = problem.instance.model_copy(
            update={
                "machine": machine.model_copy(
                    update={"shape": [machine.shape[k] for k in axes], **turned}
                ),
                "nodes": format_node_set(nodes.tolist()),
            }
        )
        outcome = cheapest(prepare_mapping(instance), options, ["pencils"])
        if outcome is not None and outcome.solution is not None:
            at = here[outcome.solution.nodes]
            found.append((hop_bytes(problem, at), at))
    return found
