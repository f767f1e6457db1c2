"""The method `exact`: the engine on domains and hosts."""

from __future__ import annotations

from topoplace.packing.budget import Budget
from topoplace.placement.engine import Packed, solved
from topoplace.placement.hierarchy.free import FreePacking
from topoplace.placement.hierarchy.later import LaterOnHierarchy
from topoplace.placement.hierarchy.packing import HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.solving import Options, Outcome, register


def packed(problem: HierarchyProblem) -> Packed:
    """Return the problem for the engine."""
    packing = HierarchyPacking(problem) if problem.free_level is None else FreePacking(problem)
    return Packed(packing, packing.started, later=lambda: LaterOnHierarchy(problem))


@register("hierarchy", "exact")
def exact(problem: HierarchyProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    budget = Budget(options.time_limit)
    return solved(problem, packed(problem), options, budget)
