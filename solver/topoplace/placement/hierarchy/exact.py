"""The method `exact`: the engine on domains and hosts."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.packing.budget import Budget
from topoplace.packing.search import Found, Search
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed
from topoplace.solving import Bound, Options, Outcome, register


@register("hierarchy", "exact")
def exact(problem: HierarchyProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    budget, packing = Budget(options.time_limit), HierarchyPacking(problem)
    signs = packing.senses

    def bounds_of(found: Found) -> list[Bound | None]:
        pairs = zip(signs, found.bounds, strict=False)
        return [None if b is None else Bound(sign * b.value, b.certificate) for sign, b in pairs]

    def report(found: Found) -> None:
        values = [sign * v for sign, v in zip(signs, found.values, strict=True)]
        options.report(_started(packing, found.placement), values, bounds_of(found))

    def say(phase: str, level: int, bound: int | None) -> None:
        options.say(phase, level, None if bound is None else signs[level] * bound)

    found = Search(
        packing, budget, seed=options.seed, thorough=options.thorough, report=report, say=say
    ).run()
    proven = all(b and b.value == v for b, v in zip(found.bounds, found.values, strict=True))
    hit = not proven and budget.now() - budget.start >= 0.9 * budget.length
    return Outcome(_started(packing, found.placement), bounds_of(found), hit)


def _started(packing: HierarchyPacking, placement: Sequence[Candidate]) -> dict[int, Placed]:
    """Return a placement as units on hosts, every pool's hosts in their order."""
    taken: dict[int, int] = {}
    return {c.request_idx: packing.placed(c, taken) for c in sorted(placement)}
