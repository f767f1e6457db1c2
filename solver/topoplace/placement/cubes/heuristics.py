"""First fit and best fit: every request in turn takes free cubes, or a free part of one."""

from __future__ import annotations

from functools import partial

from topoplace.placement.cubes.problem import CubesProblem, Room
from topoplace.solving import Options, Outcome, in_turn, register


@register("cubes", "first-fit")
def first_fit(problem: CubesProblem, options: Options) -> Outcome:
    """Place requests in queue order, each in the first cube that has room for it."""
    return _in_turn(problem, options, fullest=False)


@register("cubes", "best-fit")
def best_fit(problem: CubesProblem, options: Options) -> Outcome:
    """Place requests in queue order, parts in the fullest cube that has room for them."""
    return _in_turn(problem, options, fullest=True)


def _in_turn(problem: CubesProblem, options: Options, *, fullest: bool) -> Outcome:
    room = Room(problem)
    place = partial(room.place, fullest=fullest)
    return in_turn(len(problem.requests), options, place)
