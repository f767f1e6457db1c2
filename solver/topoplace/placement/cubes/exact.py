"""The method `exact` on cubes: the engine, and places for what it starts."""

from __future__ import annotations

from topoplace.packing.budget import Budget
from topoplace.packing.search import Found, Search
from topoplace.placement.cubes.packing import CubesPacking, unpooled
from topoplace.placement.cubes.problem import CubesProblem
from topoplace.solving import Bound, Options, Outcome, register


@register("cubes", "exact")
def exact(problem: CubesProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    budget, packing = Budget(options.time_limit), CubesPacking(problem)

    def bounds_of(found: Found) -> list[Bound | None]:
        return [None if b is None else Bound(b.value, b.certificate) for b in found.bounds]

    def report(found: Found) -> None:
        started = unpooled(packing, found.placement)
        options.report(started, problem.worth(started), bounds_of(found))

    found = Search(
        packing,
        budget,
        seed=options.seed,
        thorough=options.thorough,
        report=report,
        say=options.say,
    ).run()
    started, bounds = unpooled(packing, found.placement), bounds_of(found)
    values = problem.worth(started)
    proven = all(b is not None and b.value == v for b, v in zip(bounds, values, strict=True))
    hit = not proven and budget.now() - budget.start >= 0.9 * budget.length
    return Outcome(started, bounds, hit)
