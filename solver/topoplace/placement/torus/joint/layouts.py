"""Layouts of a grid by extents, and on the usable nodes of a prism with unusable ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.machine import Torus
from topoplace.mapping.coordinates import bisect_coordinates
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import VirtualGrid
from topoplace.mapping.layouts import Layout, cells, enumerate_layouts, ideal_hop_bytes
from topoplace.mapping.methods.best import map_exact
from topoplace.mapping.methods.constructions import cells_on_prism, ways_by_extents
from topoplace.mapping.problem import MappingProblem, spread_over_nodes
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
