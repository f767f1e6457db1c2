"""The method `exact`: the engine on prisms, and why the rest of the queue waits."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace import clock
from topoplace.memory import return_large_arrays
from topoplace.packing.budget import Budget
from topoplace.packing.problem import PackingProblem
from topoplace.packing.search import Found, Search
from topoplace.placement.torus.anchored_packing import AnchoredPacking
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.footprints import quickest_footprints
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Explanation
from topoplace.solving import Bound, Options, Outcome, register

_EXPLAINING = 0.3
"""Seconds that explanations have if the time is over; those of a 24^3 machine take some 0.2."""

_QUICK_TABLE = 1 << 24
"""Pairs of footprint and router above which they take longer; a 24^3 machine has half as many."""


@register("placement", "exact")
def exact(problem: PlacementProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    return_large_arrays()
    budget = Budget(options.time_limit)
    found, bounds = _searched(problem, options, budget)  # explanations have large tables, too
    placement = _jobs(problem, found.placement)
    proven = all(b and b.value == v for b, v in zip(found.bounds, found.values, strict=True))
    hit = not proven and budget.now() - budget.start >= 0.9 * budget.length
    left = budget.limit - clock.now()
    size = len(quickest_footprints(problem.torus).extents) * problem.torus.num_routers
    explanations: list[Explanation] = []
    if left >= _EXPLAINING or size <= _QUICK_TABLE or problem.is_anchored:
        until = clock.now() + max(left, _EXPLAINING)
        explanations = explain(problem, placement, until)
    return Outcome(placement, bounds, hit, explanations=explanations)


def _searched(
    problem: PlacementProblem, options: Options, budget: Budget
) -> tuple[Found, list[Bound | None]]:
    """Return what the engine finds, and its bounds as they are reported."""
    packing: PackingProblem
    packing = AnchoredPacking(problem) if problem.is_anchored else TorusPacking(problem)

    def bounds_of(found: Found) -> list[Bound | None]:
        return [
            None if b is None else Bound(packing.reported(level, b.value), b.certificate)
            for level, b in enumerate(found.bounds)
        ]

    def report(found: Found) -> None:
        values = [packing.reported(level, value) for level, value in enumerate(found.values)]
        options.report(_jobs(problem, found.placement), values, bounds_of(found))

    def say(phase: str, level: int, bound: int | None) -> None:
        options.say(phase, level, None if bound is None else packing.reported(level, bound))

    found = Search(
        packing, budget, seed=options.seed, thorough=options.thorough, report=report, say=say
    ).run()
    return found, bounds_of(found)


def _jobs(problem: PlacementProblem, placement: Sequence[Candidate]) -> list[Candidate]:
    """Return the jobs of a placement: prisms that stay free are numbered after them."""
    return [c for c in placement if c.request_idx < len(problem.requests)]
