"""The method `exact`: the engine on domains and hosts."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.packing.budget import Budget
from topoplace.placement.engine import Packed, solved
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed
from topoplace.solving import Options, Outcome, register


def packed(problem: HierarchyProblem) -> Packed:
    """Return the problem for the engine."""
    packing = HierarchyPacking(problem)

    def started(placement: Sequence[Candidate]) -> dict[int, Placed]:
        """Return a placement as units on hosts, every pool's hosts in their order."""
        taken: dict[int, int] = {}
        return {c.request_idx: packing.placed(c, taken) for c in sorted(placement)}

    return Packed(packing, started)


@register("hierarchy", "exact")
def exact(problem: HierarchyProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    budget = Budget(options.time_limit)
    return solved(problem, packed(problem), options, budget)
