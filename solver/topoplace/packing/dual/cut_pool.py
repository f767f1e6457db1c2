"""The Benders cut pool: dual points, kept for their constraints on sets of started requests.

At any prices, the started requests cost at most the value of all capacities, and each of them at
least its cheapest candidate (docs/proofs/placement.md, "A leaf"). The least costs do not depend on
the other requests, so one call of the oracle gives a knapsack constraint on the requests that
start: a Benders cut of the relaxation (Benders 1962). It bounds every set of starts by the best
multiple of the prices for the set, without another call.

All cuts at a leaf together, for requests that start as a whole or not at all, give a far better
bound than the best of them: a knapsack branch and bound (`KnapsackSearch`) searches the sets of
started requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace.kernels import compile_late
from topoplace.packing.dual import _knapsacks
from topoplace.packing.dual._starts import bounds_by
from topoplace.packing.dual.sparse import SparsePrices
from topoplace.packing.problem import Cover
from topoplace.result.certificate import CertificateNode, LeafRef, StartBranch
from topoplace.types import BoolArray, FloatArray, IntArray

NONE = -1
"""The answer of `few_that_cover` for a row without a column."""


def few_that_cover(covers: BoolArray) -> list[int]:
    """Choose for every row a column that covers it, few columns in total; NONE where none does."""
    chosen = np.full(len(covers), NONE)
    left = covers.any(axis=1)
    while left.any():
        column = int(covers[left].sum(axis=0).argmax())
        chosen[left & covers[:, column]] = column
        left &= ~covers[:, column]
    return [int(column) for column in chosen]


FINENESS = 1024
"""Multiples of prices are this fraction of a whole number."""

MOST_POINTS, MOST_BYTES = 2000, 1 << 26
"""Limits of a pool. A search fills up to six; a point of a 24^3 machine takes 30 to 100 kB."""

LARGEST_MULTIPLE = 1000.0
"""Except for knapsacks that are too small: larger ones would magnify rounding errors."""

_ROOM = 16  # points, to begin with
_SAFE = 1e-6  # nodes: above the rounding errors of a bound
_OVERFULL = 1e-4  # nodes by which a knapsack must be too small to count as that
_FOREVER = 1e9  # the cost of a request without candidates

KNAPSACK_NUMBERS = (float(FINENESS), LARGEST_MULTIPLE, _OVERFULL, _SAFE)
"""For `_starts.bounds_by`."""


@dataclass(frozen=True)
class Knapsacks:
    """Some of a pool's points as knapsack constraints, in true units.

    Attributes
    ----------
    totals
        The value of all capacities, shape ``(num_points,)``.
    costs
        Least cost per request, shape ``(num_points, num_requests)``.
    order
        Requests by falling value per cost, same shape.
    """

    totals: FloatArray
    costs: FloatArray
    order: IntArray

    def of(self, points: IntArray | slice) -> Knapsacks:
        """Return some of them."""
        return Knapsacks(self.totals[points], self.costs[points], self.order[points])

    def bounds(self, values: FloatArray, states: NDArray[np.int8]) -> tuple[FloatArray, IntArray]:
        """Bound the value of what may start by the best multiple of each point's prices.

        Parameters
        ----------
        values
            Value of every request.
        states
            1 for a request that starts, -1 for one that does not, 0 for others, shape
            ``(num_states, num_requests)``.

        Returns
        -------
        bounds, times
            Shape ``(num_states, num_points)``; the multiple is ``times / FINENESS``.
        """
        own = self.totals, self.costs, self.order
        found: tuple[FloatArray, IntArray] = bounds_by(states, values, *own, KNAPSACK_NUMBERS)
        return found


class CutPool:
    """A pool of dual points without multipliers, all with the same integer scale.

    Attributes
    ----------
    covers, fixed
        The costs of requests hold under these restrictions of places, and with these jobs fixed.
        Rows that fixed jobs hold have no price.
    startable
        Requests with candidates: a pricing pass must compute their costs, even if they are high.
    """

    level = 0

    def __init__(
        self,
        scale: int,
        values: FloatArray,
        startable: frozenset[int],
        covers: tuple[Cover, ...] = (),
        fixed: tuple[Any, ...] = (),
    ) -> None:
        self.scale, self.values, self.startable = scale, values, startable
        self.covers, self.fixed = covers, fixed
        self._num_bytes = 0  # of the points, with those that other pools have as well
        self._points: list[SparsePrices] = []
        room = (_ROOM, len(values))
        self._all = Knapsacks(np.zeros(_ROOM), np.zeros(room), np.zeros(room, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._points)

    def add(self, row_prices: SparsePrices, worth: int, gains: IntArray) -> None:
        """Take in an evaluated point, unless it is known or the pool is full.

        Parameters
        ----------
        row_prices
            Integer prices.
        worth
            The value of the capacities at these prices.
        gains
            Largest (value - price) per request, shape ``(num_requests,)``.
        """
        number, every = len(self), self._all
        total = worth / self.scale
        costs = np.full(len(gains), _FOREVER)
        known = sorted(self.startable)
        costs[known] = np.maximum(0.0, self.values[known] - gains[known] / self.scale)
        alike = np.flatnonzero(every.totals[:number] == total)
        is_full = number >= MOST_POINTS or self._num_bytes >= MOST_BYTES
        if is_full or (every.costs[alike] == costs).all(axis=1).any():
            return
        self._append(row_prices, total, costs)

    def _append(self, point: SparsePrices, total: float, costs: FloatArray) -> None:
        number, every = len(self), self._all
        if number == len(every.totals):
            double = np.arange(2 * number) % number
            self._all = every = every.of(double)
        self._points.append(point)
        self._num_bytes += point.num_bytes
        every.totals[number], every.costs[number] = total, costs
        every.order[number] = np.argsort(costs / np.maximum(self.values, 1e-9), kind="stable")

    def under(self, covers: tuple[Cover, ...], numbers: Sequence[int]) -> CutPool:
        """Return some of its points in a pool of their own, for more covers than those of this one.

        Requests cost at least as much there.
        """
        pool = CutPool(self.scale, self.values, self.startable, covers)
        pool.extend(self, numbers)
        return pool

    def beside(self, fixed: tuple[Any, ...], covers: tuple[Cover, ...]) -> CutPool:
        """Return a pool for the problem left by fixed jobs under covers, with no points yet."""
        return CutPool(self.scale, self.values, self.startable, covers, fixed)

    def extend(self, other: CutPool, numbers: Sequence[int]) -> None:
        """Take in points of a pool for fewer covers."""
        for number in numbers:
            every = other._all
            self._append(other._points[number], every.totals[number], every.costs[number])

    def points(self) -> list[SparsePrices]:
        """Return the integer prices of all points."""
        return list(self._points)

    def point(self, number: int) -> SparsePrices:
        """Return the integer prices of a point."""
        return self._points[number]

    def parts(self, number: int) -> tuple[int, SparsePrices, tuple[int, ...]]:
        """Return what a leaf with the prices of a point has: scale, prices, no multipliers."""
        return self.scale, self._points[number], ()

    def multiple(
        self, number: int, forced: frozenset[int], excluded: frozenset[int]
    ) -> tuple[int, int]:
        """Return which multiple of a point bounds a set of starts best, as a fraction."""
        state = self.state(forced, excluded)[None]
        _, times = self.knapsacks(number).of(slice(1)).bounds(self.values, state)
        return int(times[0, 0]), FINENESS

    def knapsacks(self, first: int = 0) -> Knapsacks:
        """Return the points from the first on as constraints."""
        return self._all.of(slice(first, len(self)))

    def state(self, forced: frozenset[int], excluded: frozenset[int]) -> NDArray[np.int8]:
        """Return 1 for requests that must start, 0 for those that may, -1 for all others."""
        state = np.full(len(self.values), -1, dtype=np.int8)
        state[list(self.startable - forced - excluded)] = 0
        state[list(forced)] = 1
        return state

    def bounds(
        self, forced: frozenset[int], excluded: frozenset[int], first: int = 0
    ) -> FloatArray:
        """Return the bounds of all points, from the first on, on a set of starts."""
        state = self.state(forced, excluded)[None]
        bounds, _ = self.knapsacks(first).bounds(self.values, state)
        found: FloatArray = bounds[0]
        return found


MOST_TRIED = 40
"""The number of largest requests from which the one to be split is chosen."""

SEARCH_WORK = 0.01
"""Nominal seconds of a search for sets of starts."""

_MOST_SPLITS = 400
_LOOKED_AT = 4  # points, when a request to split is chosen


@dataclass(frozen=True)
class StartsBelow:
    """A tree of starts below a leaf; nodes are numbered, 0 is the top.

    Attributes
    ----------
    bound
        Of all its ends.
    request, children
        What a node splits, -1 for an end, and its sides: out, into.
    point, times
        The point that bounds an end, and its multiple.
    points, numbers
        Those that bound an end, and where in the pool they are.
    """

    bound: int
    request: list[int]
    children: list[tuple[int, int]]
    point: list[int]
    times: list[int]
    points: list[SparsePrices]
    numbers: list[int]

    def written(self, names: Sequence[str], numbers: Sequence[int]) -> CertificateNode:
        """Return it as part of a certificate that shares the points under the given numbers."""

        def node(i: int) -> CertificateNode:
            if self.request[i] < 0:
                return LeafRef(leaf=numbers[self.point[i]], times=self.times[i], over=FINENESS)
            out, into = self.children[i]
            return StartBranch(request=names[self.request[i]], out=node(out), into=node(into))

        return node(0)


class KnapsackSearch:
    """Searches the sets of started requests below leaves of one problem.

    Parameters
    ----------
    sides
        By request, those that also do not start if it does not, and those that also start if it
        does.
    """

    def __init__(
        self, values: FloatArray, sides: Sequence[Mapping[int, frozenset[int]]] = ({}, {})
    ) -> None:
        num = len(values)
        self._values = values
        longest = max((len(found) for side in sides for found in side.values()), default=0)
        self._follows = np.full((2, num, longest + 1), -1)
        for starts, side in enumerate(sides):
            for q, found in side.items():
                self._follows[starts, q, : len(found)] = sorted(found)
        self._largest = np.lexsort((np.arange(num), -values))[:MOST_TRIED]

    def below(
        self,
        forced: frozenset[int],
        excluded: frozenset[int],
        pool: CutPool,
        lower: int,
        deepest: int,
    ) -> StartsBelow:
        """Bound the sets of started requests at a leaf by points that hold there.

        Parameters
        ----------
        forced, excluded
            The decisions at the leaf.
        lower
            The value below which the bound need not go.
        deepest
            The largest depth of branches.
        """
        compile_late("packing.starts")
        state, every = pool.state(forced, excluded), pool.knapsacks()
        states, request, children, bounds, whole = _knapsacks.search_starts(
            state, self._values, every.totals, every.costs, every.order, self._largest,
            self._follows, float(lower), _MOST_SPLITS, deepest, _LOOKED_AT, KNAPSACK_NUMBERS,
        )  # fmt: skip
        bound = max(lower, int(whole))
        ends = np.flatnonzero(request < 0)
        number = np.full(len(request), 0)
        number[ends] = few_that_cover(np.floor(bounds[ends]) <= bound)
        used = np.unique(number[ends])
        point, times = np.searchsorted(used, number), np.zeros(len(request), dtype=np.int64)
        for i in ends:
            k = number[i]
            times[i] = every.of(slice(k, k + 1)).bounds(self._values, states[i : i + 1])[1][0, 0]
        return StartsBelow(
            bound,
            request.tolist(),
            [(int(out), int(into)) for out, into in children],
            point.tolist(),
            times.tolist(),
            [pool.point(int(k)) for k in used],
            used.tolist(),
        )
