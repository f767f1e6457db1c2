"""What the parts of a search of one problem share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from topoplace.packing.budget import Budget
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.relaxation import Relaxation
from topoplace.packing.problem import PackingProblem, Subproblem, fits
from topoplace.packing.tree.nodes import Root

_NOTHING = -(1 << 62)

Say = Callable[[str, int, int | None], None]
"""Takes the progress of a search: the phase, the level, and that level's bound if known."""


def silent(phase: str, level: int, bound: int | None) -> None:
    """Say nothing."""


class Incumbent:
    """The best placement found, and what a level has to exceed.

    Parameters
    ----------
    floors
        By level the threshold of a placement, where that is enough; None without a threshold.
    to_beat
        By level a known objective: the search looks only for placements that exceed it.
    report
        Called when there is a better placement.

    Attributes
    ----------
    best, first
        The best placement found, and the one at the start.
    """

    def __init__(
        self,
        problem: PackingProblem,
        start: Iterable[Any],
        floors: Mapping[int, int | None] = MappingProxyType({}),
        to_beat: Mapping[int, int] = MappingProxyType({}),
        report: Callable[[Incumbent], None] = lambda incumbent: None,
    ) -> None:
        self._problem, self._report = problem, report
        self._floors, self._to_beat = floors, to_beat
        self._known_values: dict[Any, list[int]] = {}
        self.best: list[Any] = problem.completed(start)
        self.first = self.best
        self._reached = self.best, self.totals(self.best)  # in one, for threads

    @property
    def values(self) -> list[int]:
        """The value of the incumbent on every level."""
        best, values = self._reached
        if best is not self.best:
            best = self.best
            values = self.totals(best)
            self._reached = best, values
        return values

    def objective(self, level: int) -> int:
        """Return the incumbent's value on a level, or what it has to exceed."""
        return max(self.values[level], self._to_beat.get(level, _NOTHING))

    def meets(self, level: int) -> bool:
        """Return whether the incumbent reaches the threshold of a level; not if there is none."""
        return level in self._floors and self._short(self.values)[level] == 0

    @property
    def is_answer(self) -> bool:
        """Whether the incumbent reaches the thresholds of all levels."""
        return all(self.meets(level) for level in self._floors)

    def _short(self, totals: Sequence[int]) -> list[int]:
        """Return by level how far totals are below its floor, negated; 0 without one."""
        floors = [self._floors.get(level) for level in range(len(totals))]
        return [0 if f is None else min(0, v - f) for v, f in zip(totals, floors, strict=True)]

    def _rank(self, totals: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return totals such that better ones are larger."""
        short = self._short(totals)
        return short, [0 if level in self._floors else v for level, v in enumerate(totals)]

    def totals(self, started: Sequence[Any]) -> list[int]:
        """Return the value of some candidates on every level."""
        new = [c for c in started if c not in self._known_values]
        values = self._problem.values_of(new).tolist()
        self._known_values.update(zip(new, values, strict=True))
        known = [self._known_values[c] for c in started]
        return [sum(v[level] for v in known) for level in range(len(self._problem.senses))]

    def offer(self, sub: Subproblem, placement: Iterable[Any]) -> None:
        """Take a placement if it is the best of its level."""
        started = self._problem.completed(placement)
        totals = self.totals(started)
        reached = all(v is None or totals[k] >= v for k, v in enumerate(sub.reached))
        if reached and totals[sub.level] > self.objective(sub.level):
            assert fits(self._problem, started), "no row is overfull"
            self.best = started
            self._report(self)

    def offer_start(self, placement: Iterable[Any]) -> None:
        """Take a placement of a heuristic if it is the best by all levels, one after the other."""
        started = self._problem.completed(placement)
        better = self._rank(self.totals(started)) > self._rank(self.totals(self.best))
        if better or not self.best:
            self.best = self.first = started
            self._report(self)

    def closes(self, root: Root) -> bool:
        """Return whether the placement meets a bound, or is good enough."""
        level = root.sub.level
        return root.bound is None or self.meets(level) or root.bound <= self.objective(level)


@dataclass(frozen=True)
class State:
    """What the parts of a search of one problem share.

    Attributes
    ----------
    columns
        The known columns of the whole problem, with the root's amounts.
    say
        Takes messages on what the search is doing.
    """

    problem: PackingProblem
    budget: Budget
    relaxation: Relaxation
    columns: Columns
    incumbent: Incumbent
    seed: int
    say: Say = silent

    def take(self, found: Sequence[Any]) -> None:
        """Take in a placement: its columns are known, and it may be the best."""
        self.columns.add(self.problem.merged(found))
        self.incumbent.offer(Subproblem(), found)
