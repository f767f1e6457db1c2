"""First fit and best fit: every request in turn takes free cubes, or a free part of one."""

from __future__ import annotations

from topoplace import clock
from topoplace.placement.cubes.problem import CubesProblem, Placed, Room
from topoplace.solving import Options, Outcome, register


@register("cubes", "first-fit")
def first_fit(problem: CubesProblem, options: Options) -> Outcome:
    """Place requests in queue order, each in the first cube that has room for it."""
    return _in_turn(problem, options, fullest=False)


@register("cubes", "best-fit")
def best_fit(problem: CubesProblem, options: Options) -> Outcome:
    """Place requests in queue order, parts in the fullest cube that has room for them."""
    return _in_turn(problem, options, fullest=True)


def _in_turn(problem: CubesProblem, options: Options, *, fullest: bool) -> Outcome:
    room, until = Room(problem), clock.deadline(options.time_limit)
    started: list[Placed] = []
    for idx in range(len(problem.requests)):
        if clock.now() >= until:
            return Outcome(started, time_limit_hit=True)
        placed = room.place(idx, fullest=fullest)
        if placed is not None:
            started.append(placed)
    return Outcome(started)
