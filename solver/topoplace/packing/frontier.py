"""The trade-off between levels: all placements that are best on several of them.

A *point* is a placement that no other one surpasses on some levels. *Corners* bound the region that
no point covers: for every point, a placement in it is better on some level, so it reaches all
numbers of a corner. A search that has to reach those of the earlier levels finds another point, or
proves that there is none (the epsilon-constraint method of Haimes, Lasdon and Wismer 1971, for
three levels as Kirlik and Sayin 2014).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from topoplace.packing.budget import Budget
from topoplace.packing.problem import PackingProblem
from topoplace.packing.search import Found, LevelBound, Search
from topoplace.packing.state import Say, silent

Corner = tuple[float, ...]
"""A number per traded level; minus infinity where any value will do."""

SHARE = 0.25
"""Share of the remaining time for one search; two and three times as much for what it left open."""

MOST_TRIES = 3
"""Searches at one corner."""


@dataclass(frozen=True)
class Point:
    """A placement and its values, on all levels."""

    values: tuple[int, ...]
    placement: list[Any]


@dataclass(frozen=True)
class Step:
    """No placement that reaches `floors` on the levels before has a value above the bound."""

    floors: tuple[int | None, ...]
    bound: LevelBound


@dataclass
class TradeOff:
    """The known part of the trade-off between some levels, in maximising sense.

    Attributes
    ----------
    traded
        Numbers of the levels, ascending.
    least
        By level the least value that is considered; a number, or more of them, for levels before
        the last.
    points
        The best placements known: none is as good as another on all these levels.
    steps
        The proven bounds.
    """

    traded: tuple[int, ...]
    least: Mapping[int, int] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def copy(self) -> TradeOff:
        """Return a copy of the present state."""
        return replace(self, points=[*self.points], steps=[*self.steps])

    def add(self, found: Point) -> None:
        """Take in a placement."""
        if any(_covers(self._of(p), self._of(found)) for p in self.points):
            return
        kept = [p for p in self.points if not _covers(self._of(found), self._of(p))]
        self.points = sorted([*kept, found], key=self._of, reverse=True)

    def prove(self, step: Step) -> None:
        """Take in a proven step, unless another one implies it."""
        if not any(_implies(known, step) for known in self.steps):
            self.steps = [*(known for known in self.steps if not _implies(step, known)), step]

    def boxes(self) -> list[tuple[Corner, Corner]]:
        """Return where other points may be: from a corner that no step rules out to the best."""
        found: list[Corner] = [tuple(self.least.get(level, -math.inf) for level in self.traded)]
        for values in map(self._of, self.points):
            inside = [c for c in found if _covers(values, c)]
            moved = [(*c[:k], v + 1, *c[k + 1 :]) for c in inside for k, v in enumerate(values)]
            found = _least([*(c for c in found if c not in inside), *moved])
        limits = {c: [self._limits(step, c) for step in self.steps] for c in found}
        anything = (math.inf,) * len(self.traded)  # without a step nothing is proven
        return [
            (c, tuple(map(min, zip(anything, *own, strict=True))))
            for c, own in limits.items()
            if None not in own
        ]

    def _of(self, point: Point) -> tuple[int, ...]:
        return tuple(point.values[level] for level in self.traded)

    def _limits(self, step: Step, corner: Corner) -> Corner | None:
        """Return how far a step lets levels go from a corner; None if it rules the corner out."""
        least = [-math.inf if f is None else f for f in (*step.floors, step.bound.value + 1)]
        at = {**self.least, **dict(zip(self.traded, corner, strict=True))}
        lacks = [k for k, v in enumerate(least) if at.get(k, -math.inf) < v]
        if not lacks:
            return None
        limits = dict.fromkeys(self.traded, math.inf)
        if len(lacks) == 1 and lacks[0] in limits:
            limits[lacks[0]] = least[lacks[0]] - 1
        return tuple(limits.values())


def steps_of(found: Found) -> list[Step]:
    """Return what a search proves, level by level."""
    every = enumerate(found.bounds)
    return [Step(found.reached[:level], bound) for level, bound in every if bound is not None]


def _implies(one: Step, other: Step) -> bool:
    """Return whether a step bounds the same level by no more, and requires no more."""
    pairs = [*zip(one.floors, other.floors, strict=False)]
    same = len(one.floors) == len(other.floors) and one.bound.value <= other.bound.value
    return same and all(f is None or (g is not None and f <= g) for f, g in pairs)


def _covers(values: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether values are at least as good as others on all levels."""
    return all(v >= o for v, o in zip(values, others, strict=True))


def _least(corners: Iterable[Corner]) -> list[Corner]:
    """Return corners without those that reach all numbers of another."""
    every = set(corners)
    return sorted(c for c in every if not any(_covers(c, o) for o in every if o != c))


def trade_off(
    packing: PackingProblem,
    traded: Sequence[int],
    budget: Budget,
    *,
    least: Mapping[int, int] = MappingProxyType({}),
    start: Sequence[Any] | None = None,
    seed: int = 0,
    report: Callable[[TradeOff], None] = lambda found: None,
    progress: Callable[[Found], None] = lambda found: None,
    say: Say = silent,
) -> TradeOff:
    """Return the frontier of some levels, as far as the budget allows.

    The first search solves the levels one after the other, which gives one end. On large machines
    every second search begins in the middle of the open region, so that not much stays open when
    the time is over. Longer searches try again what the first ones leave open.

    Parameters
    ----------
    least
        See `TradeOff`; a known placement reaches it on the first levels.
    start
        A known placement.
    report
        Takes the present state before every search except the first.
    progress, say
        As in every search (see `Search`).
    """
    found = TradeOff(tuple(traded), least)
    search = partial(
        Search, packing, seed=seed, num_levels=found.traded[-1] + 1,
        report=progress, say=say,
    )  # fmt: skip
    if start is not None:
        found.add(Point(tuple(packing.values_of(start).sum(axis=0).tolist()), [*start]))
    _extend(found, search, None, budget)
    tries: Counter[Corner] = Counter()
    halve = False
    while not budget.is_over():
        report(found)
        boxes = [box for box in found.boxes() if tries[box[0][:-1]] < MOST_TRIES]
        if not boxes:
            break
        fewest = min(tries[corner[:-1]] for corner, _ in boxes)
        boxes = [box for box in boxes if tries[box[0][:-1]] == fewest]
        corner = _middle(boxes) if halve else boxes[0][0]
        halve = not halve and not packing.is_small
        tries[corner[:-1]] += 1
        _extend(found, search, corner, budget, tries[corner[:-1]])
    return found


def _middle(boxes: Sequence[tuple[Corner, Corner]]) -> Corner:
    """Return a corner in the middle of the widest box, by the first level, or its own."""
    worst, best = max(boxes, key=lambda box: min(box[1][0], 1e18) - max(box[0][0], 0))
    if best[0] == math.inf:
        return worst
    return ((max(worst[0], 0) + best[0] + 1) // 2, *worst[1:])


def _extend(
    known: TradeOff,
    search: Callable[..., Search],
    corner: Corner | None,
    budget: Budget,
    shares: int = 1,
) -> None:
    """Look for the best placement at a corner; without a corner, level by level."""
    last = known.traded[-1]
    floors: dict[int, int | None] = {
        k: known.least.get(k) for k in range(last) if k not in known.traded
    }
    to_beat = {}
    if corner is not None:
        pairs = zip(known.traded, corner, strict=True)
        needed = {k: None if c == -math.inf else int(c) for k, c in pairs}
        least = needed.pop(last)
        floors |= needed
        to_beat = {} if least is None else {last: least - 1}
    start = _best_within(known, floors, last)
    share = budget.within(shares * SHARE * (budget.end - budget.now()))
    found = search(budget=share, start=start, floors=floors, to_beat=to_beat).run()
    known.add(Point(tuple(found.values), found.placement))
    for step in steps_of(found):
        if len(step.floors) in known.traded:
            known.prove(step)


def _best_within(known: TradeOff, floors: dict[int, int | None], last: int) -> list[Any] | None:
    """Return the known placement that is best on the last level and reaches the floors."""
    fitting = [
        p for p in known.points if all(f is None or p.values[k] >= f for k, f in floors.items())
    ]
    return max(fitting, key=lambda p: p.values[last]).placement if fitting else None
