"""A part of a search: boxes of thresholds, cut until none is cheaper than the best known."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.cutting.boxes import Boxes, Corners
from topoplace.placement.tree.exact.doubling.incumbent import Incumbent, Verdict
from topoplace.placement.tree.exact.doubling.nogoods import Nogood, Refuter
from topoplace.placement.tree.exact.doubling.plans import Plans
from topoplace.placement.tree.exact.doubling.sharing import Gift, Sharing
from topoplace.placement.tree.exact.doubling.sides import Box

IntArray = NDArray[np.int64]

_WHOLE_SECONDS = 3.0
_TRY_SECONDS = 0.5
_LIFT_SECONDS = 0.02
"""What whole numbers of leaves may take where that decides, where it only may help, and, beyond
twice the time of a refutation, to lift it."""

_SHARE, _LARGE_SHARE = 0.1, 0.4
_FAR = 1.1
"""Shares of the time in which better allocations are looked for; the large one while the best known
costs as many times the bound."""

_CHEAP = 30
"""From how many thresholds better allocations are looked for."""


class Part:
    """Finds the least cost of thresholds in some boxes that are not impossible.

    Thresholds are numbers of `values`. What is impossible stays so with lower thresholds. Parts
    share the best allocation known, and hand over boxes; each may run in a thread.

    Attributes
    ----------
    nogoods
        Thresholds that are impossible, in these boxes or not.
    """

    def __init__(
        self,
        best: Incumbent,
        values: IntArray,
        prices: IntArray,
        gap: int,
        number: int,
        sharing: Sharing,
        seed: int,
    ) -> None:
        self.best, self.values, self.prices = best, values, prices
        self.nogoods: list[Nogood] = []
        self._gap, self._number, self._sharing = gap, number, sharing
        self._cheapest = best.cost
        self._rng = np.random.default_rng([seed, number])
        self._refuter = Refuter(Plans(best.tables), values, self._rng)
        self._impossible = Corners(len(prices))

    def cost(self, at: IntArray) -> int:
        """Return the cost of thresholds by number, in units of 1 / (100 scale)."""
        return int(self.prices @ self.values[at])

    def run(self, sides: Iterable[Box]) -> int:
        """Return a lower bound of the cost in boxes, at most that of `best`, in its units.

        Boxes taken over from other parts are among them.
        """
        try:
            return self._run(sides)
        finally:
            self._sharing.leave(self._number)

    def _run(self, sides: Iterable[Box]) -> int:
        boxes = Boxes(self.values, self.prices)
        for low, top in sides:
            high = self._affordable(low, top)
            if self._is_possible(low, high):
                boxes.add(low, high)
        begin, spent = clock.now(), 0.0
        while True:
            found = boxes.cheapest(self._impossible, self.best.cost)
            if found is None:
                gift = self._sharing.take(self._number)
                if gift is None:
                    return self.best.cost
                self._add_gift(gift, boxes)
                continue
            if self._sharing.wanted and len(boxes) > 1:
                self._sharing.give(Gift(boxes.halved(), self._impossible.all.copy()))
                continue
            cost, low, high = found
            now = clock.now()
            if now > self.best.deadline:
                return cost
            far = _FAR * cost < self.best.cost
            if now > begin + spent / (_LARGE_SHARE if far else _SHARE):
                before = self.best.cost
                self.improve(self.best.deadline, 1)
                if self.best.cost == before:  # what comes of it pays for itself
                    spent += clock.now() - now
            nogood = self._nogood(low, high)
            if nogood is None:
                return cost
            self._add(nogood)

    def _add_gift(self, gift: Gift, boxes: Boxes) -> None:
        for at in gift.impossible:
            self._impossible.add(at)
        for low, high in gift.boxes:
            boxes.add(low, high)

    def _nogood(self, low: IntArray, high: IntArray) -> Nogood | None:
        """Return a nogood above the low corner of a box, None if that may be possible."""
        nogood = self._test(low)
        if nogood is not None:
            return self._refuter.lifted(nogood, high)
        return self._whole(low, high)

    def _whole(self, low: IntArray, high: IntArray) -> Nogood | None:
        """Return thresholds from a corner up that are impossible in whole numbers of leaves.

        Steps go up as far as that shows in about twice the time that it takes at the corner.
        """
        begin = clock.now()
        nogood = self._whole_nogood(low, _WHOLE_SECONDS)
        if nogood is None:
            return None
        now = clock.now()
        end = now + _LIFT_SECONDS + 2 * (now - begin)
        for step in self._rng.permutation(len(low)).tolist():
            for top in (int(high[step]), int(low[step] + high[step] + 1) // 2):
                seconds = end - clock.now()
                if top <= nogood.at[step] or seconds <= 0:
                    continue
                trial = nogood.at.copy()
                trial[step] = top
                found = self._whole_nogood(trial, seconds)
                # what only CP-SAT shows of higher ones would cost the bound its certificate
                if found is not None and (found.proof is not None or nogood.proof is None):
                    nogood = found
        return nogood

    def _whole_nogood(self, at: IntArray, seconds: float) -> Nogood | None:
        """Return thresholds no lower than some that are impossible in whole numbers of leaves."""
        if self.best.offer(self.values[at], seconds) is not Verdict.IMPOSSIBLE:
            return None
        known = self.best.refuted(self.values[at])
        assert known is not None
        return Nogood(np.searchsorted(self.values, known.thresholds), known.proof)

    def _is_possible(self, low: IntArray, high: IntArray) -> bool:
        """Tell whether a box may hold thresholds that cost less."""
        if (high < low).any() or self.cost(low) >= self.best.cost:
            return False
        if clock.now() > self.best.deadline:
            return True
        nogood = self._test(high)
        if nogood is not None:
            self._add(nogood)
        return nogood is None

    def _affordable(self, low: IntArray, high: IntArray) -> IntArray:
        """Return the largest values with which the others, at their least, can win."""
        spare = self.best.cost - 1 - self.cost(low)
        most = self.values[low] + spare // self.prices
        return np.minimum(high, np.searchsorted(self.values, most, side="right") - 1)

    def _add(self, nogood: Nogood) -> None:
        self._impossible.add(nogood.at)
        self.nogoods.append(nogood)

    def _test(self, at: IntArray) -> Nogood | None:
        """Return why thresholds are impossible, or None; then they may lead to an allocation."""
        nogood = self._refuter.test(at)
        if nogood is None:
            least = self._refuter.possible.all[-1]
            if self.cost(least) < self._cheapest:
                self._cheapest = self.cost(least)
                self.best.offer(self.values[least], _TRY_SECONDS)
        return nogood

    def improve(self, deadline: float, times: int) -> None:
        """Look for better allocations at thresholds that can be lowered no more, so many times."""
        for _ in range(times if len(self._refuter.possible) else 0):
            if clock.now() > deadline:
                break
            possible = self._refuter.possible.all
            cost = self.values[possible] @ self.prices
            cheap = np.argsort(cost, kind="stable")[:_CHEAP]
            at = possible[self._rng.choice(cheap)].copy()
            for step in self._rng.permutation(len(at)).tolist():
                if self.cost(at) >= self.best.cost:
                    self._lower(at, step)
            if self.cost(at) < self.best.cost:
                self._raise(at)
                self.best.offer(self.values[at], _TRY_SECONDS)

    def _raise(self, at: IntArray) -> None:
        """Raise thresholds in place, any step by one, as long as they are worth it.

        The lowest that programs allow are rarely possible in whole numbers of leaves.
        """
        spare = self.best.cost - 1 - self.cost(at)
        steps = list(range(len(at)))
        while steps:
            step = int(self._rng.choice(steps))
            edge = at[step] + 1 in (self._gap, len(self.values))
            extra = 0 if edge else int(np.diff(self.values)[at[step]] * self.prices[step])
            if edge or extra > spare:
                steps.remove(step)
            else:
                at[step] += 1
                spare -= extra

    def _lower(self, at: IntArray, step: int) -> None:
        """Lower a threshold in place to the least that is possible."""
        bottom = 0
        while bottom < at[step]:
            trial = at.copy()
            trial[step] = middle = (bottom + int(at[step])) // 2
            if self._test(trial) is None:
                at[step] = middle
            else:
                bottom = middle + 1
