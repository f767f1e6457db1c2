"""The method `exact`: the engine on domains and hosts."""

from __future__ import annotations

from topoplace.placement.engine import Packed, exact
from topoplace.placement.hierarchy.free import FreePacking
from topoplace.placement.hierarchy.later import LaterOnHierarchy
from topoplace.placement.hierarchy.packing import HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.solving import register


def packed(problem: HierarchyProblem) -> Packed:
    """Return the problem for the engine."""
    packing = HierarchyPacking(problem) if problem.free_level is None else FreePacking(problem)
    return Packed(packing, packing.started, later=lambda: LaterOnHierarchy(problem))


register("hierarchy", "exact")(exact)
