"""Who starts at a leaf where places are limited: a tree that the leaf's own points bound.

The bundle lowers a leaf's bound while all that is not decided may start in part. Every point that
it tried there is a knapsack constraint on who starts (`price_pool`). All of them together, for
requests that start as a whole or not at all, bound far more than the best of them does, without
another pricing pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact import _starts
from topoplace.placement.exact.covering import few_that_cover
from topoplace.placement.exact.preferences import Preferences
from topoplace.placement.exact.price_pool import FINENESS, KNAPSACK_NUMBERS, PricePool, SparsePoint
from topoplace.placement.exact.relaxation import Subproblem
from topoplace.result import LeafRef, StartBranch
from topoplace.result.placement import CertificateNode

IntArray = NDArray[np.int64]

_MOST_SPLITS = 400
_LOOKED_AT = 4  # points, when a request to split is chosen
_MOST_TRIED = 40  # requests, the largest ones, of which that is


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
        By which point an end is bounded, and at which multiple.
    points, numbers
        Those that bound an end, and where in the pool they are.
    """

    bound: int
    request: list[int]
    children: list[tuple[int, int]]
    point: list[int]
    times: list[int]
    points: list[SparsePoint]
    numbers: list[int]

    def written(self, names: Sequence[str], first: int) -> CertificateNode:
        """Return it as part of a certificate that shares the points from a number on."""

        def node(i: int) -> CertificateNode:
            if self.request[i] < 0:
                return LeafRef(leaf=first + self.point[i], times=self.times[i], over=FINENESS)
            out, into = self.children[i]
            return StartBranch(request=names[self.request[i]], out=node(out), into=node(into))

        return node(0)


class StartSearch:
    """Searches who starts below leaves of one problem."""

    def __init__(self, values: NDArray[np.float64], preferences: Preferences | None = None) -> None:
        num = len(values)
        self._values = values
        sides: tuple[dict[int, frozenset[int]], ...] = ({}, {})
        if preferences is not None:
            sides = (preferences.worse, preferences.better)
        longest = max((len(found) for side in sides for found in side.values()), default=0)
        self._follows = np.full((2, num, longest + 1), -1)
        for starts, side in enumerate(sides):
            for q, found in side.items():
                self._follows[starts, q, : len(found)] = sorted(found)
        self._largest = np.lexsort((np.arange(num), -values))[:_MOST_TRIED]

    def below(self, sub: Subproblem, pool: PricePool, lower: int, deepest: int) -> StartsBelow:
        """Bound who starts at a leaf by points that hold there.

        Parameters
        ----------
        lower
            What the bound need not go below.
        deepest
            Branches that may be one below the other.
        """
        forced, free = pool.sides(sub.forced, sub.excluded)
        state = np.where(forced[0], 1, np.where(free[0], 0, -1)).astype(np.int8)
        every = pool.knapsacks()
        states, request, children, bounds, whole = _starts.search_starts(
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
            _, multiple = _starts.bound_by(
                states[i], self._values, every.totals[k], every.costs[k], every.order[k],
                *KNAPSACK_NUMBERS,
            )  # fmt: skip
            times[i] = multiple
        return StartsBelow(
            bound,
            request.tolist(),
            [(int(out), int(into)) for out, into in children],
            point.tolist(),
            times.tolist(),
            [pool.point(int(k)) for k in used],
            used.tolist(),
        )
