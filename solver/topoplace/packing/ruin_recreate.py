"""Ruin and recreate: jobs are taken out of a placement, and these or others put in again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace.packing.budget import Budget
from topoplace.types import IntArray

Again = Callable[[list[Any], np.random.Generator], list[Any]]
"""Returns a placement without some jobs of another one, and with others."""


@dataclass(frozen=True)
class RuinRecreate:
    """The search, in the form in which the engine runs it along with the bounds.

    Attributes
    ----------
    values
        What every request adds to the first level, shape ``(num_requests,)``.
    again
        A step of the search; it counts its work.
    """

    values: IntArray
    again: Again

    def run(
        self,
        start: Sequence[Any],
        budget: Budget,
        until: float,
        temperature: float,
        seed: int,
        is_over: Callable[[], bool],
    ) -> list[Any]:
        """Return the best placement met on the first level; see `packing.problem.PrimalHeuristic`.

        The result of a step is kept if its value is lower by no more than the temperature, which
        falls to 0.
        """
        rng, begin = np.random.default_rng(seed), budget.now()
        best = now = list(start)
        most = worth = self._worth(now)
        while (time := budget.now()) < until and not is_over():
            heat = temperature * (until - time) / max(1e-9, until - begin)
            found = self.again(now, rng)
            total = self._worth(found)
            if total >= worth - heat * rng.random():
                now, worth = found, total
            if total > most:
                best, most = found, total
        return sorted(best)

    def _worth(self, placed: Sequence[Any]) -> int:
        return sum(int(self.values[c.request_idx]) for c in placed)


def ruined(
    placed: list[Any],
    parts: Callable[[Any], Iterable[Hashable]],
    rng: np.random.Generator,
    most: int,
) -> list[Any]:
    """Return what stays when at most so many jobs near one are taken out, and some others.

    Those are near a job that have a part of the machine in common with it.
    """
    if not placed:
        return []
    number = int(rng.integers(1, most + 1))
    first = {*parts(placed[int(rng.integers(len(placed)))])}
    order = rng.permutation(len(placed)).tolist()
    near = [k for k in order if not first.isdisjoint(parts(placed[k]))]
    gone = {*near[:number], *order[: number // 3]}
    return [c for k, c in enumerate(placed) if k not in gone]
