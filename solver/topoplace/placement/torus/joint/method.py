"""The search for placements of few hop-bytes, and their proven bound.

Costs of candidates are those of quick mappings by extents. The jobs of a placement are then mapped
in their prisms, which corrects the costs, and so on; the answer is the best of the measured
placements, one of which is that of the best shapes. The bound comes from another packing, in which
the cost of a candidate is its proven bound.

Achieved costs by extents steer the search: bounds are nearly the same for all extents that are
large enough, and do not show which are good. Both are for idle prisms. A prism around another one
holds every mapping of that one, so achieved costs never rise with extents, and a bound holds for
all prisms that fit inside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.total import total_bound
from topoplace.mapping.methods.best import map_exact
from topoplace.mapping.problem import MappingProblem
from topoplace.packing.budget import Budget
from topoplace.packing.search import Found, Search
from topoplace.placement.torus.joint.applications import (
    EXACT_SECONDS,
    FEW_TASKS,
    Applications,
    Extents,
    in_order,
)
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.result.placement import HopBytesCertificate, MappingBound
from topoplace.solving import Bound, Options, Outcome, stronger
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


_ROUNDS = 6
"""Placements at corrected costs; most often the third brings nothing new."""

_NODES, _ROUND, _BOUNDS = 0.3, 0.2, 0.5
"""Shares of the remaining time: for the first level, a round, and certified costs."""

_FIND = 0.7
"""Share of the time for better placements: the rest is for bounds."""


class JointSearch:
    """One search of a problem whose second level is hop-bytes."""

    def __init__(self, problem: PlacementProblem, options: Options) -> None:
        self._problem, self._options = problem, options
        self._budget = Budget(options.time_limit)
        self._applications = Applications(problem, self._until(_FIND))
        self._best: list[Candidate] = []
        self._nodes: Bound | None = None

    def run(self) -> Outcome:
        """Place and map; return the best by both levels, and their bounds."""
        self._say("nodes", 0)
        first = self._search(replace(self._problem, maps=False), _NODES, num_levels=1)
        if first.bounds[0] is not None:
            self._nodes = Bound(first.bounds[0].value, first.bounds[0].certificate)
        self._take(self._mapped(first.placement))
        for placement in self._placements():
            self._take(placement)
        bounds = [self._nodes, self._bound()]
        proven = [
            b is not None and b.value == v for b, v in zip(bounds, self._worth(), strict=True)
        ]
        return Outcome(self._best, bounds, self._budget.is_over() and not all(proven))

    def _placements(self) -> Iterator[list[Candidate]]:
        """Yield the placement of the best shapes, then placements at costs that these correct."""
        self._say("shapes", 1)
        plain = replace(self._problem, maps=False)
        yield self._mapped(self._search(plain, _ROUND, **self._from_best).placement)
        self._say("costs of extents", 1)
        apps = range(len(self._problem.state.tasks))
        costs = [achieved_costs(self._applications, k) for k in apps]
        for _ in range(_ROUNDS):
            if clock.now() >= self._applications.deadline or clock.is_stopped():
                return
            self._say("hop-bytes", 1)
            own = replace(self._problem, costs=tuple(costs))
            found = self._mapped(self._search(own, _ROUND, **self._from_best).placement)
            yield found
            if not self._corrected(costs, found):
                return

    def _corrected(self, costs: list[IntArray], jobs: list[Candidate]) -> bool:
        """Set the costs of jobs to the measured ones; return whether any of them changed."""
        changed = False
        for job in jobs:
            if isinstance(job, MappedJob):
                tasks = self._problem.requests[job.request_idx].tasks
                assert tasks is not None, "only applications are mapped"
                at = tuple(e - 1 for e in job.prism.extents)
                if costs[tasks][at] != job.hop_bytes:
                    costs[tasks] = costs[tasks].copy()
                    costs[tasks][at] = job.hop_bytes
                    changed = True
        return changed

    def _bound(self) -> Bound | None:
        """Return the bound on the hop-bytes of placements that start as many nodes."""
        self._say("bounds of mappings", 1)
        lower = lower_costs(self._problem, self._applications, self._until(_BOUNDS))
        self._say("bound", 1)
        own = replace(self._problem, costs=lower.costs)
        found = self._search(own, 1.0, **self._from_best).bounds
        if len(found) < 2 or found[1] is None:
            return None
        evidence = HopBytesCertificate(mappings=list(lower.bounds), packing=found[1].certificate)
        return Bound(-found[1].value, evidence)

    # what all of these share

    @property
    def _from_best(self) -> dict[str, Any]:
        """How searches begin with the best placement, and what they have to reach."""
        start = [Candidate(job.request_idx, job.prism) for job in self._best]
        return {"start": start, "floors": {0: self._worth()[0]}}

    def _search(self, problem: PlacementProblem, share: float, **options: Any) -> Found:
        """Search with a share of the time that is left."""
        budget = self._budget
        within = budget.within(share * max(0.0, budget.end - budget.now()))
        packing = TorusPacking(problem)
        return Search(packing, within, seed=self._options.seed, **options).run()

    def _mapped(self, placement: list[Candidate]) -> list[Candidate]:
        return [self._applications.mapped(job, self._options.seed) for job in placement]

    def _take(self, jobs: list[Candidate]) -> None:
        """Keep a placement if it is the best, and report it."""
        nodes, cost = self._worth(jobs)
        if not self._best or (-nodes, cost) < (-self._worth()[0], self._worth()[1]):
            self._best = jobs
            self._options.report(jobs, [nodes, cost], [self._nodes])

    def _worth(self, jobs: list[Candidate] | None = None) -> tuple[int, int]:
        """Return the figures of both levels, of the best placement or another."""
        jobs = self._best if jobs is None else jobs
        nodes = sum(self._problem.requests[job.request_idx].value for job in jobs)
        return nodes, sum(job.hop_bytes for job in jobs if isinstance(job, MappedJob))

    def _say(self, phase: str, level: int) -> None:
        self._options.say(phase, level)

    def _until(self, share: float) -> float:
        """Return when a share of the remaining time is over; never if there is no time limit."""
        if self._budget.counts_work:
            return math.inf
        return clock.now() + share * max(0.0, self._budget.end - clock.now())
