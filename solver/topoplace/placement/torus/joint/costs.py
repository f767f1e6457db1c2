"""The cost of an application by the extents of its prism: achieved, and at least.

The achieved costs steer the search: bounds are nearly the same for all extents that are large
enough, and do not show which are good. Both are for idle prisms. A prism around another one holds
every mapping of that one, so achieved costs never rise with extents, and a bound holds for all
prisms that fit inside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.total import total_bound
from topoplace.mapping.methods.best import map_exact
from topoplace.mapping.problem import MappingProblem
from topoplace.placement.torus.joint.applications import Applications
from topoplace.placement.torus.joint.layouts import EXACT_SECONDS, FEW_TASKS, Extents, in_order
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result.placement import MappingBound
from topoplace.solving import Bound, Options, stronger
from topoplace.types import IntArray

_MOST_BOUNDS = 16
"""Extents of an application for which a bound is certified; a moment each here and in the check."""


def achieved_costs(applications: Applications, tasks: int) -> IntArray:
    """Return hop-bytes by extents less 1 of the best layout inside; shape ``torus.shape``.

    For prisms without a layout, it is an upper limit on any mapping.
    """
    torus = applications.problem.torus
    most = applications.in_idle(tasks, torus.shape).graph.total_bytes * max(1, torus.diameter)
    costs = np.full(torus.shape, most, dtype=np.int64)
    for ideal in applications.ideals(tasks):
        at = tuple(e - 1 for e in ideal.extents)
        costs[at] = min(int(costs[at]), ideal.hop_bytes)
    for d in range(torus.num_dims):
        costs = np.minimum.accumulate(costs, axis=d)
    return costs


# ---- Lower bounds on the cost --------------------------------------------------------------------


@dataclass(frozen=True)
class LowerCosts:
    """The least costs of applications, by extents less 1, and the bounds that prove them."""

    costs: tuple[IntArray, ...]
    bounds: tuple[MappingBound, ...]


def lower_costs(problem: PlacementProblem, applications: Applications, end: float) -> LowerCosts:
    """Bound the hop-bytes of every application in the free prisms that its requests may have.

    It begins with the whole machine, then, until the end, takes some extents that hold all of these
    prisms.
    """
    every = range(len(problem.state.tasks))
    tables = [np.zeros(problem.torus.shape, dtype=np.int64) for _ in every]
    bounds: list[MappingBound] = []
    todo = [(tasks, problem.torus.shape) for tasks in every]
    todo += [(tasks, extents) for tasks in every for extents in _free_extents(problem, tasks)]
    for number, (tasks, extents) in enumerate(todo):
        if number >= len(every) and clock.now() >= end:
            break
        achieved = achieved_costs(applications, tasks)[tuple(e - 1 for e in extents)]
        bound = _bound_in(applications.in_idle(tasks, extents), int(achieved))
        if bound is None or bound.certificate is None or not bound.value:
            continue
        name = next(r.id for r in problem.requests if r.tasks == tasks)
        bounds.append(
            MappingBound(request=name, extents=list(extents), certificate=bound.certificate)
        )
        inside = int(bound.value) * _inside(problem.torus, extents)
        tables[tasks] = np.maximum(tables[tasks], inside)
    return LowerCosts(tuple(tables), tuple(bounds))


def _free_extents(problem: PlacementProblem, tasks: int) -> list[Extents]:
    """Return a few extents that hold all free prisms of the requests with an application."""
    own = [q for q, r in enumerate(problem.requests) if r.tasks == tasks]
    return merged(in_order(problem.torus, e) for q in own for e in _largest_free(problem, q))


def _bound_in(problem: MappingProblem, achieved: int) -> Bound | None:
    """Return the best bound on any mapping; for few tasks the optimum, if it is certified."""
    quick = best_bound(problem) if problem.grid is not None else total_bound(problem)
    if problem.num_tasks > FEW_TASKS:
        return quick if problem.grid is not None else best_bound(problem)
    if quick is not None and quick.value >= achieved:
        return quick
    [found] = map_exact(problem, Options(time_limit=EXACT_SECONDS)).bounds
    if found is not None and found.certificate is not None:
        return stronger(quick, found)
    return best_bound(problem)


def _largest_free(problem: PlacementProblem, q: int) -> Iterator[Extents]:
    """Yield the extents of the deepest free prism on each footprint, if it holds a request."""
    view, request = problem.view, problem.requests[q]
    deepest = problem.reach(request, view).deepest
    for footprint in np.flatnonzero(deepest).tolist():
        turned = (*view.extents[footprint].tolist(), int(deepest[footprint]))
        if math.prod(turned) * problem.torus.nodes_per_router >= request.nodes:
            yield view.back(turned)


def merged(extents: Iterable[Extents]) -> list[Extents]:
    """Return a few extents, ascending, so that each of these is inside one of them."""
    every = sorted(set(extents))
    found = [e for e in every if not any(_is_inside(e, o) for o in every if o != e)]
    while len(found) > _MOST_BOUNDS:
        pairs = itertools.combinations(found, 2)
        one, other = min(pairs, key=lambda pair: _added(*pair))
        both = tuple(map(max, one, other))
        found = [*(e for e in found if not _is_inside(e, both)), both]
    return sorted(found)


def _is_inside(extents: Extents, others: Extents) -> bool:
    return all(e <= o for e, o in zip(extents, others, strict=True))


def _added(one: Extents, other: Extents) -> int:
    """Return how many more routers the extents around two others have."""
    both = math.prod(map(max, one, other))
    return both - max(math.prod(one), math.prod(other))


def _inside(torus: Torus, extents: Extents) -> IntArray:
    """Mark by extents less 1 those inside some extents, in any order of equal dimensions."""
    most = in_order(torus, extents)
    marks = np.zeros(torus.shape, dtype=np.int64)
    axes = range(torus.num_dims)
    for order in itertools.permutations(axes):
        turned = tuple(most[d] for d in order)
        alike = all(
            (torus.shape[d], torus.wrap[d]) == (torus.shape[k], torus.wrap[k])
            for d, k in zip(axes, order, strict=True)
        )
        if alike:
            marks[tuple(slice(0, e) for e in turned)] = 1
    return marks
