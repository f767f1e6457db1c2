"""The claims of a frontier: its points are placements, and its steps leave no other one.

A step rules out whatever is as good as it requires and better than its bound. What no point covers
is the union of what reaches certain corners; nothing is left if a step rules out each corner
(docs/proofs/placement.md, "Frontiers").
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from topoplace.certify.report import Claims, RefusedError
from topoplace.certify.several import Placements, reaches
from topoplace.errors import number_of
from topoplace.result.several import Frontier, OpenBox, Step

Corner = tuple[float, ...]

MOST_CORNERS = 1 << 24
"""Most corners of a frontier that the checker reads."""


def follow_frontier(document: Frontier, claims: Claims) -> None:
    """Add the claims of a frontier, as far as they can be followed."""
    trade = _Trade(document)
    checks = {
        **{"traded": trade.check_traded, "points": trade.check_frontier},
        **{"steps": trade.check_steps, "open": trade.check_open},
    }
    trade.follow(claims, checks)


class _Trade(Placements):
    """Points and steps in maximising sense, by the levels traded."""

    document: Frontier

    def check_traded(self) -> str:
        """Check that the levels traded are some of the levels."""
        traded = self.document.traded
        if traded != [name for name in self.names if name in traded]:
            raise RefusedError("the levels traded are not some of the levels, in their order")
        self._numbers = [self.names.index(name) for name in traded]
        return ", ".join(traded)

    def check_frontier(self) -> str:
        """Check that no point is as good as another, and the best on the first level is first."""
        self.check_points()
        every = [self.turned(point.values) for point in self.document.points]
        points = self._points = [tuple(values[k] for k in self._numbers) for values in every]
        if points != sorted(points, reverse=True):
            raise RefusedError("the best on the first level does not come first")
        for one, other in itertools.permutations(points, 2):
            if reaches(one, other):
                raise RefusedError(f"a point with {one} leaves nothing to one with {other}")
        return f"{number_of(len(points), 'placement')}, none as good as another"

    def check_open(self) -> str:
        """Check where another point may be."""
        document = self.document
        found = [self._box(corner) for corner in self._corners() if not self._is_closed(corner)]
        if document.open != found:
            raise RefusedError(f"the open boxes are {found}")
        if document.complete != (not found):
            raise RefusedError(
                f"complete is {document.complete}, and {number_of(len(found), 'box')} open"
            )
        return (
            "complete: no other point"
            if document.complete
            else f"{number_of(len(found), 'box')} open"
        )

    def _corners(self) -> list[Corner]:
        """Return the least corners that no point reaches, in the grid of all that may be some."""
        levels = range(len(self._numbers))
        axes: list[list[float]] = [
            sorted({self._least(k), *(p[k] + 1 for p in self._points)}) for k in levels
        ]
        if math.prod(map(len, axes)) > MOST_CORNERS:
            raise RefusedError("too many points to follow")
        reached = np.zeros([len(axis) for axis in axes], dtype=bool)
        for point in self._points:
            reached[tuple(slice(axes[k].index(point[k] + 1)) for k in levels)] = True
        least = ~reached
        for k in levels:  # and one step back on any axis is reached
            np.moveaxis(least, k, 0)[1:] &= np.moveaxis(reached, k, 0)[:-1]
        return [tuple(axes[k][at[k]] for k in levels) for at in np.argwhere(least).tolist()]

    def _least(self, k: int) -> float:
        """Return what all points reach on a level that is traded."""
        return self.problem.least.get(self._numbers[k], -math.inf)

    def _lacks(self, step: Step, corner: Corner) -> dict[int, float]:
        """Return by level what something at a corner must reach to be ruled out by a step."""
        beyond = [*self.floors(step), self.bound(step) + 1]
        at = {**self.problem.least, **dict(zip(self._numbers, corner, strict=True))}
        return {k: v for k, v in enumerate(beyond) if at.get(k, -math.inf) < v}

    def _is_closed(self, corner: Corner) -> bool:
        """Tell whether some step rules out whatever reaches a corner."""
        return any(not self._lacks(step, corner) for step in self.document.steps)

    def _box(self, corner: Corner) -> OpenBox:
        """Return the box from a corner to where a step rules out what is better on one level."""
        best = dict.fromkeys(self._numbers, math.inf)
        for step in self.document.steps:
            lacks = self._lacks(step, corner)
            if len(lacks) == 1 and (level := min(lacks)) in best:
                best[level] = min(best[level], lacks[level] - 1)
        return OpenBox(worst=self._reported(corner), best=self._reported([*best.values()]))

    def _reported(self, values: Sequence[float]) -> list[int | None]:
        pairs = zip(self._numbers, values, strict=True)
        return [None if math.isinf(v) else self.problem.turned(k, int(v)) for k, v in pairs]
