"""What the parts of a search of one problem share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from topoplace.packing.budget import Budget
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.relaxation import Relaxation
from topoplace.packing.problem import PackingProblem, Subproblem, fits
from topoplace.packing.tree.nodes import Root

Say = Callable[[str, int, int | None], None]
"""Takes what a search is doing: the phase, the level, and that level's bound if it is known."""


def silent(phase: str, level: int, bound: int | None) -> None:
    """Say nothing."""


class Incumbent:
    """The best placement found, and what a level has to exceed.

    Parameters
    ----------
    to_beat
        A first-level objective that is known: the search looks for nothing that does not exceed it.
    report
        Is told when there is a better placement.

    Attributes
    ----------
    best, first
        The best placement found, and the one at the start.
    """

    def __init__(
        self,
        problem: PackingProblem,
        start: Iterable[Any],
        to_beat: int = 0,
        report: Callable[[Incumbent], None] = lambda incumbent: None,
    ) -> None:
        self._problem, self._to_beat, self._report = problem, to_beat, report
        self._known_values: dict[Any, list[int]] = {}
        self.best: list[Any] = problem.completed(start)
        self.first = self.best

    def objective(self, level: int) -> int:
        """Return the incumbent's value on a level, or what it has to exceed."""
        reached = self.totals(self.best)[level]
        return reached if level else max(reached, self._to_beat)

    def totals(self, started: Sequence[Any]) -> list[int]:
        """Return what some candidates are worth on every level."""
        new = [c for c in started if c not in self._known_values]
        values = self._problem.values_of(new).tolist()
        self._known_values.update(zip(new, values, strict=True))
        known = [self._known_values[c] for c in started]
        return [sum(v[level] for v in known) for level in range(len(self._problem.senses))]

    def offer(self, sub: Subproblem, placement: Iterable[Any]) -> None:
        """Take a placement if it is the best of its level."""
        started = self._problem.completed(placement)
        totals = self.totals(started)
        reached = all(totals[k] >= v for k, v in enumerate(sub.reached))
        if reached and totals[sub.level] > self.objective(sub.level):
            assert fits(self._problem, started), "no row is overfull"
            self.best = started
            self._report(self)

    def offer_start(self, placement: Iterable[Any]) -> None:
        """Take a placement of a heuristic if it is the best by all levels, one after the other."""
        started = self._problem.completed(placement)
        if self.totals(started) > self.totals(self.best) or not self.best:
            self.best = self.first = started
            self._report(self)

    def closes(self, root: Root) -> bool:
        """Tell whether the placement meets a bound."""
        return root.bound is None or root.bound <= self.objective(root.sub.level)


@dataclass(frozen=True)
class State:
    """What the parts of a search of one problem share.

    Attributes
    ----------
    columns
        What is known of the whole problem, the root's amounts among it.
    say
        Is told what the search is doing.
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
