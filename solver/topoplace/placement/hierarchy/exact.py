"""The method `exact`: the engine on domains and hosts."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.packing.budget import Budget
from topoplace.placement.engine import solved
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed
from topoplace.solving import Options, Outcome, register


@register("hierarchy", "exact")
def exact(problem: HierarchyProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    budget, packing = Budget(options.time_limit), HierarchyPacking(problem)

    def started(placement: Sequence[Candidate]) -> dict[int, Placed]:
        """Return a placement as units on hosts, every pool's hosts in their order."""
        taken: dict[int, int] = {}
        return {c.request_idx: packing.placed(c, taken) for c in sorted(placement)}

    return solved(packing, options, budget, started)
