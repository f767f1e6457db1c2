"""All placements at the optimum of the first levels, one after the other, and that these are all.

The first search finds the optimum. Every other one looks for a placement as good in a problem that
excludes those found so far (`excluding`), and finds another one or proves that none is there.
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
"""Of the time, for the optimum itself."""


@dataclass
class Alternatives:
    """What is known of the placements at the optimum of the first levels, in maximising sense.

    Attributes
    ----------
    num_levels
        How many levels count.
    points
        Placements that are as good as each other on these levels.
    steps
        What is proven of all placements.
    rest
        What is proven of the others: a step that no point contradicts, as it is not about them.
    """

    num_levels: int
    points: list[Point] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    rest: Step | None = None

    def copy(self) -> Alternatives:
        """Return what is known now."""
        return replace(self, points=[*self.points], steps=[*self.steps])

    @property
    def values(self) -> tuple[int, ...]:
        """What the points are worth on the levels that count."""
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
    """Return placements at the optimum, until they are so many or all, as the budget allows.

    Parameters
    ----------
    num_levels
        The first so many levels count; of the later ones anything will do.
    place_of
        What counts as a place; None if placements are told apart by who starts alone.
    report
        Takes what there is before every search but the first.
    progress, say
        Of every search (see `Search`).
    """
    first = Search(
        packing, budget.within(_FIRST_SHARE * budget.length), seed=seed, thorough=True,
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
            seed=seed, thorough=True, start=found.points[-1].placement, num_levels=num_levels,
            floors=dict(enumerate(floors)), to_beat={num_levels - 1: last - 1},
            report=progress, say=say,
        ).run()  # fmt: skip
        if not _takes(found, other):
            break
    return found


def _takes(found: Alternatives, other: Found) -> bool:
    """Take in what a search has found beside the points known; tell whether it is another point."""
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
