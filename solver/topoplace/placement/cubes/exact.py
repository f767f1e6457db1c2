"""The method `exact` on cubes: the engine, and places for what it starts."""

from __future__ import annotations

from functools import partial

from topoplace.packing.budget import Budget
from topoplace.placement.cubes.packing import CubesPacking, unpooled
from topoplace.placement.cubes.problem import CubesProblem
from topoplace.placement.engine import solved
from topoplace.solving import Options, Outcome, register


@register("cubes", "exact")
def exact(problem: CubesProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    budget, packing = Budget(options.time_limit), CubesPacking(problem)
    return solved(packing, options, budget, partial(unpooled, packing))
