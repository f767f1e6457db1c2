"""The method `exact` on cubes: the engine, and places for what it starts."""

from __future__ import annotations

from functools import partial

from topoplace.packing.budget import Budget
from topoplace.placement.cubes.packing import CubesPacking, unpooled
from topoplace.placement.cubes.problem import CubesProblem
from topoplace.placement.engine import Packed, solved
from topoplace.solving import Options, Outcome, register


def packed(problem: CubesProblem) -> Packed:
    """Return the problem for the engine."""
    packing = CubesPacking(problem)
    return Packed(packing, partial(unpooled, packing))


@register("cubes", "exact")
def exact(problem: CubesProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    budget = Budget(options.time_limit)
    return solved(problem, packed(problem), options, budget)
