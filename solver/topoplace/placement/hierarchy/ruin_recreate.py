"""Ruin and recreate: take requests out of some domains, and put those and others in again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from topoplace.packing.budget import Budget
from topoplace.types import IntArray

if TYPE_CHECKING:
    from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking

_MOST_RUINED = 12
"""Requests taken out at once, at most."""

_REMEMBERED = 500
"""Candidates whose amounts are kept."""

_NOISE = 0.4
"""The relative variation of a request's difficulty from try to try."""


@dataclass(frozen=True)
class RuinRecreate:
    """The search, in the form in which the engine runs it along with the bounds."""

    packing: HierarchyPacking

    def run(
        self,
        start: Sequence[Candidate],
        budget: Budget,
        until: float,
        temperature: float,
        seed: int,
        is_over: Callable[[], bool],
    ) -> list[Candidate]:
        """Return the best placement met on the first level; see `packing.problem.PrimalHeuristic`.

        A request is taken out with others in its domains, and all waiting requests are tried in a
        random order that prefers those that are hard to place. The result is kept if its value is
        lower by no more than the temperature, which falls to 0.
        """
        rng = np.random.default_rng(seed)
        amounts = functools.lru_cache(_REMEMBERED)(self.packing.amounts_of)
        packing, begin = self.packing, budget.now()
        best = now = list(start)
        values = packing.values
        worth = sum(int(values[c.request_idx]) for c in now)
        most = worth
        while (time := budget.now()) < until and not is_over():
            heat = temperature * (until - time) / max(1e-9, until - begin)
            kept = self._ruined(now, rng)
            found = self._recreated(kept, budget, rng, amounts)
            total = sum(int(values[c.request_idx]) for c in found)
            if total >= worth - heat * rng.random():
                now, worth = found, total
            if total > most:
                best, most = found, total
        return sorted(best)

    def _ruined(self, placed: list[Candidate], rng: np.random.Generator) -> list[Candidate]:
        """Return what stays when requests in the same domains are taken out."""
        if not placed:
            return []
        number = int(rng.integers(1, _MOST_RUINED + 1))
        first = placed[int(rng.integers(len(placed)))]
        leaves = {leaf for _, leaf, _ in first.uses}
        order = rng.permutation(len(placed)).tolist()
        near = [k for k in order if any(leaf in leaves for _, leaf, _ in placed[k].uses)]
        gone = {*near[:number], *order[: number // 3]}
        return [c for k, c in enumerate(placed) if k not in gone]

    def _recreated(
        self,
        kept: list[Candidate],
        budget: Budget,
        rng: np.random.Generator,
        amounts: Callable[[Candidate], IntArray],
    ) -> list[Candidate]:
        """Return what stayed, and those of the other requests that find a place."""
        packing = self.packing
        started = {c.request_idx for c in kept}
        waiting = [q for q in range(len(packing.names)) if q not in started]
        hardness = packing.hardness[waiting] * (1 + _NOISE * rng.standard_normal(len(waiting)))
        order = [waiting[k] for k in np.argsort(-hardness, kind="stable").tolist()]
        return packing.with_best_fits(kept, order, budget, amounts)
