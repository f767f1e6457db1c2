"""All placements at the optimum of the first levels, one by one, with a proof that these are all.

The first search finds the optimum. Every other one looks for a placement as good in a problem that
excludes those found so far (`excluding`), and finds another one or proves that there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from topoplace.packing.budget import Budget
from topoplace.packing.excluding import Excluding, PlaceOf, rows_against
from topoplace.packing.frontier import SHARE, Point, Step, steps_of
from topoplace.packing.problem import PackingProblem
from topoplace.packing.search import Found, Search
from topoplace.packing.state import Say, silent

_FIRST_SHARE = 0.5
"""Share of the time that goes into the optimum itself."""


@dataclass
class Alternatives:
    """The known placements at the optimum of the first levels, in maximising sense.

    Attributes
    ----------
    num_levels
        How many levels count.
    points
        Placements that are as good as each other on these levels.
    steps
        The proven bounds on all placements.
    rest
        The proven bound on the others: a step that is not about the points, so they may exceed it.
    """

    num_levels: int
    points: list[Point] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    rest: Step | None = None

    def copy(self) -> Alternatives:
        """Return a copy of the present state."""
        return replace(self, points=[*self.points], steps=[*self.steps])

    @property
    def values(self) -> tuple[int, ...]:
        """The values of the points on the levels that count."""
        return self.points[0].values[: self.num_levels]

    @property
    def are_best(self) -> bool:
        """Whether no placement is better, level by level."""
        met = {
            len(s.floors)
            for s in self.steps
            if all(f is None or v >= f for v, f in zip(self.values, s.floors, strict=False))
            and s.bound.value <= self.values[len(s.floors)]
        }
        return len(met) == self.num_levels

    @property
    def are_all(self) -> bool:
        """Whether no other placement is as good."""
        return self.are_best and (not self.values[0] or self.rest is not None)


def all_optima(
    packing: PackingProblem,
    num_levels: int,
    most: int,
    budget: Budget,
    *,
    place_of: PlaceOf | None = None,
    seed: int = 0,
    report: Callable[[Alternatives], None] = lambda found: None,
    progress: Callable[[Found], None] = lambda found: None,
    say: Say = silent,
) -> Alternatives:
    """Return up to a number of placements at the optimum, or all, as the budget allows.

    Parameters
    ----------
    num_levels
        How many of the first levels count; on later ones any value will do.
    place_of
        What counts as a place; None if placements are distinguished only by the requests that
        start.
    report
        Takes the present state before every search except the first.
    progress, say
        As in every search (see `Search`).
    """
    first = Search(
        packing, budget.within(_FIRST_SHARE * budget.length), seed=seed,
        num_levels=num_levels, report=progress, say=say,
    ).run()  # fmt: skip
    found = Alternatives(num_levels, [Point(tuple(first.values), first.placement)])
    found.steps = steps_of(first)
    while len(found.points) < most and not budget.is_over() and not found.are_all:
        report(found)
        rows = rows_against(packing, [point.placement for point in found.points], place_of)
        if rows is None:
            break
        *floors, last = found.values
        other = Search(
            Excluding(packing, rows), budget.within(SHARE * (budget.end - budget.now())),
            seed=seed, start=found.points[-1].placement, num_levels=num_levels,
            floors=dict(enumerate(floors)), to_beat={num_levels - 1: last - 1},
            report=progress, say=say,
        ).run()  # fmt: skip
        if not _takes(found, other):
            break
    return found


def _takes(found: Alternatives, other: Found) -> bool:
    """Take in the result of a search that excludes the points; return whether it is a point."""
    best, values = found.values, tuple(other.values)
    if other.is_answer and values[: found.num_levels] >= best:
        point = Point(values, other.placement)
        better = values[: found.num_levels] > best
        found.points = [point] if better else [*found.points, point]
        return True
    for step in steps_of(other):
        if step.bound.value < best[len(step.floors)]:
            found.rest = step
    return False
