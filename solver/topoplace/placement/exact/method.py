"""The method `exact`."""

from __future__ import annotations

from dataclasses import replace

from topoplace import clock
from topoplace.placement.exact.search import ExactSearch
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.footprints import quickest_footprints
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.solving import Options, Outcome, register

_EXPLAINING = 0.3
"""Seconds that explanations have if the time is over; those of a 24^3 machine take some 0.2."""

_QUICK_TABLE = 1 << 24
"""Pairs of footprint and router above which they take longer; a 24^3 machine has half as many."""


@register("placement", "exact", "column generation, integer phase and branching; certified bounds")
def exact(problem: PlacementProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    search = ExactSearch(problem, options)
    outcome = search.run()
    started = [c for c in outcome.solution or () if isinstance(c, Candidate)]
    left = search.limit - clock.now()
    size = len(quickest_footprints(problem.torus).extents) * problem.torus.num_routers
    if left < _EXPLAINING and size > _QUICK_TABLE:
        return outcome
    until = clock.now() + max(left, _EXPLAINING)
    return replace(outcome, explanations=explain(problem, started, until))
