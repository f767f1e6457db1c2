"""The search for placements of few hop-bytes, and their proven bound.

Costs of candidates are those of quick mappings by extents. The jobs of a placement are then mapped
in their prisms, which corrects the costs, and so on; the answer is the best of the measured
placements, one of which is that of the best shapes. The bound comes from another packing, in which
the cost of a candidate is its proven bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from topoplace import clock
from topoplace.packing.budget import Budget
from topoplace.packing.search import Found, Search
from topoplace.placement.torus.joint.applications import Applications
from topoplace.placement.torus.joint.costs import achieved_costs, lower_costs
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.result.placement import HopBytesCertificate
from topoplace.solving import Bound, Options, Outcome
from topoplace.types import IntArray

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
        return Search(packing, within, seed=self._options.seed, thorough=True, **options).run()

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
