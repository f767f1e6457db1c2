"""The method `exact`: the engine on prisms, and why the rest of the queue waits."""

from __future__ import annotations

from topoplace import clock
from topoplace.memory import return_large_arrays
from topoplace.packing.budget import Budget
from topoplace.packing.search import Found, Search
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.footprints import quickest_footprints
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import PlacementProblem
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
    budget, packing = Budget(options.time_limit), TorusPacking(problem)
    signs = packing.senses

    def bounds_of(found: Found) -> list[Bound | None]:
        pairs = zip(signs, found.bounds, strict=False)
        return [None if b is None else Bound(sign * b.value, b.certificate) for sign, b in pairs]

    def report(found: Found) -> None:
        values = [sign * v for sign, v in zip(signs, found.values, strict=True)]
        options.report(found.placement, values, bounds_of(found))

    def say(phase: str, level: int, bound: int | None) -> None:
        options.say(phase, level, None if bound is None else signs[level] * bound)

    found = Search(
        packing, budget, seed=options.seed, thorough=options.thorough, report=report, say=say
    ).run()
    del packing  # explanations have large tables of their own
    proven = all(b and b.value == v for b, v in zip(found.bounds, found.values, strict=True))
    hit = not proven and budget.now() - budget.start >= 0.9 * budget.length
    left = budget.limit - clock.now()
    size = len(quickest_footprints(problem.torus).extents) * problem.torus.num_routers
    explanations: list[Explanation] = []
    if left >= _EXPLAINING or size <= _QUICK_TABLE:
        until = clock.now() + max(left, _EXPLAINING)
        explanations = explain(problem, found.placement, until)
    return Outcome(found.placement, bounds_of(found), hit, explanations=explanations)
