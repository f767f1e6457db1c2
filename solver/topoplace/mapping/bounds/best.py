"""The best bound on the hop-bytes of any mapping, within a time."""

from __future__ import annotations

from topoplace import clock
from topoplace.mapping.bounds.blocks import blocks_bound
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.distance_classes import MAX_PLACES, distance_classes_bound
from topoplace.mapping.bounds.levels import levels_bound
from topoplace.mapping.bounds.pairs import pairs_bound
from topoplace.mapping.bounds.recognised import recognised_bound
from topoplace.mapping.bounds.routes import routes_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.bounds.total import total_bound
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import CUT_TASKS
from topoplace.solving import Bound, stronger

ROUTES_SHARE = 0.2
"""The most of the time left that routes have, where cuts come after them."""

CUTS_SHARE = 0.3
"""The most of the time left that cuts have where distance classes may come after them."""


def best_bound(
    problem: MappingProblem, time_limit: float | None = None, target: int | None = None
) -> Bound | None:
    """Bound the hop-bytes of any mapping of the problem's tasks to its nodes from below.

    The highest of `total_bound`, `blocks_bound` (grids), `recognised_bound` (graphs that are grids)
    and `star_bound`, which take a moment; if that is below `target`, the hop-bytes of a mapping in
    hand, also of `routes_bound` and `pairs_bound`. Where there are too many places for pairs,
    `cuts_bound` and `distance_classes_bound` take their part. Grids go without routes and cuts, to
    which blocks are superior, and have the others only within a time limit, as their blocks are
    rarely weaker.

    The time that the quick bounds leave goes to the semidefinite ones; without a time limit the
    work is limited, and the answer is the same each time. The value is in bytes x hops; None if
    there is no bound.
    """
    stop = clock.deadline(time_limit)
    if problem.machine.levels is not None:
        return _on_levels(problem, time_limit, target)
    best = stronger(total_bound(problem), star_bound(problem))
    best = stronger(blocks_bound(problem), best)
    best = stronger(best, recognised_bound(problem))
    if reached(best, target):
        return best
    if problem.grid is None or not (best and best.value):
        share = ROUTES_SHARE if problem.num_tasks <= CUT_TASKS else 1.0
        own = time_limit and share * max(0.0, stop - clock.now())
        best = stronger(best, routes_bound(problem, own))

    def left() -> float | None:
        return None if time_limit is None else max(0.0, stop - clock.now())

    if problem.grid is not None and time_limit is None:
        return best
    if clock.now() < stop:
        pairs = pairs_bound(problem, left(), target)
        best = stronger(best, pairs)
        if pairs is not None and best is pairs:
            return best
    if problem.grid is None:
        share = CUTS_SHARE if int(problem.capacity.sum()) <= MAX_PLACES else 1.0
        most = left()
        best = stronger(best, cuts_bound(problem, None if most is None else share * most))
    if reached(best, target) or clock.now() >= stop:
        return best
    return stronger(best, distance_classes_bound(problem, left(), target))


def _on_levels(
    problem: MappingProblem, time_limit: float | None, target: int | None
) -> Bound | None:
    """Return the best bound on a tree or hierarchy: of levels, stars, and recognised grids."""
    stop = clock.deadline(time_limit)
    best = stronger(star_bound(problem), recognised_bound(problem))
    if reached(best, target):
        return best
    left = None if time_limit is None else max(0.0, stop - clock.now())
    return stronger(best, levels_bound(problem, left, target))


def reached(bound: Bound | None, target: int | None) -> bool:
    """Return whether a bound is as high as is enough."""
    return bound is not None and target is not None and bound.value >= target
