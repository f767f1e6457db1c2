"""The claims of a frontier: its points are placements, and its steps leave no other one.

A step rules out whatever is as good as it requires and better than its bound. What no point covers
is the union of what reaches certain corners; nothing is left if a step rules out each corner
(docs/proofs.md, "Frontiers").
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from topoplace.certify.cubes.check import CubesPlacements
from topoplace.certify.hierarchy.check import HierarchyPlacements
from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, RefusedError
from topoplace.certify.torus.check import TorusPlacement
from topoplace.errors import InputError
from topoplace.result import PlacementLimits, PlacementResult, Solution
from topoplace.result.cubes import CubesResult, CubesSolution
from topoplace.result.frontier import Frontier, FrontierPoint, FrontierStep, OpenBox
from topoplace.result.hierarchy import HierarchyResult, HierarchySolution

Corner = tuple[float, ...]

MOST_CORNERS = 1 << 24
"""Of a frontier that is followed."""

_PROBLEMS: dict[str, tuple[Any, type[Any], type[Packings[Any]]]] = {
    "placement": (PlacementResult, Solution, TorusPlacement),
    "hierarchy": (HierarchyResult, HierarchySolution, HierarchyPlacements),
    "cubes": (CubesResult, CubesSolution, CubesPlacements),
}


def follow_frontier(document: Frontier, claims: Claims) -> None:
    """Add the claims of a frontier, as far as they can be followed."""
    result, kind, checker = _PROBLEMS[document.problem]
    limits = PlacementLimits(**document.limits.model_dump())
    own = {"instance": document.instance, "limits": limits, "explanations": [], "levels": []}
    problem: Packings[Any] = checker(result.model_construct(**own, solution=None))
    if claims.add("instance", problem.read) is None:
        return
    if claims.add("levels", lambda: _levels(document, problem)) is None:
        return

    def points() -> _Trade:
        for k, point in enumerate(document.points):
            problem.result = result.model_construct(**own, solution=point.solution)
            with _told_of(f"points[{k}]"):
                _check_point(problem, point, kind)
        trade = _Trade(document, problem)
        trade.check_points()
        return trade

    trade = claims.add("points", points, lambda trade: trade.counts)
    if trade is not None and claims.add("steps", trade.check_steps) is not None:
        claims.add("open", trade.check_open)


@contextlib.contextmanager
def _told_of(where: str) -> Iterator[None]:
    """Say where it is if something is refused."""
    try:
        yield
    except (RefusedError, InputError, OverflowError) as error:
        raise RefusedError(f"{where}: {error}") from None


def _levels(document: Frontier, problem: Packings[Any]) -> str:
    found = [(level.name, level.sense) for level in document.levels]
    if found != list(problem.levels):
        raise RefusedError(f"the levels are {found}, not {list(problem.levels)}")
    names = [name for name, _ in found]
    if document.traded != [name for name in names if name in document.traded]:
        raise RefusedError("the levels traded are not some of the levels, in their order")
    return ", ".join(document.traded)


def _check_point(problem: Packings[Any], point: FrontierPoint, kind: type[Any]) -> None:
    """Check a placement, and what it is worth."""
    is_empty = not point.solution.placements and kind is not Solution  # of any other problem
    if not (isinstance(point.solution, kind) or is_empty):
        raise RefusedError("a solution of another problem")
    own = Claims()
    problem.values = []
    problem.follow(own)
    for claim in own:
        if not claim.holds:
            raise RefusedError(f"{claim.name}: {claim.detail}")
    if list(point.values) != list(problem.values):
        raise RefusedError(f"values are {point.values}, the placement's are {problem.values}")


class _Trade:
    """Points and steps in maximising sense, by the levels traded."""

    def __init__(self, document: Frontier, problem: Packings[Any]) -> None:
        self._document, self._problem = document, problem
        names = [level.name for level in document.levels]
        self._numbers = [names.index(name) for name in document.traded]
        self._names = names
        self._points = [self._maximised(point.values) for point in document.points]

    def _maximised(self, values: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._problem.turned(k, values[k]) for k in self._numbers)

    def _floors(self, step: FrontierStep) -> list[float]:
        turned = enumerate(step.required)
        return [-math.inf if v is None else self._problem.turned(k, v) for k, v in turned]

    @property
    def counts(self) -> str:
        """How many points there are."""
        return f"{len(self._points)} placements, none as good as another"

    def check_steps(self) -> str:
        """Check all steps."""
        for k, step in enumerate(self._document.steps):
            with _told_of(f"steps[{k}]"):
                self._check_step(step)
        return f"{len(self._document.steps)} certificates prove their bounds"

    def _check_step(self, step: FrontierStep) -> None:
        """Check that the certificate of a step proves its bound, which no point contradicts."""
        level = len(step.required)
        if step.level not in self._names or self._names.index(step.level) != level:
            raise RefusedError(f"{level} levels before {step.level}")
        proven, where = self._problem.proven(level, step.certificate, step.required)
        bound = self._problem.turned(level, step.bound)
        if bound < self._problem.turned(level, proven):
            raise RefusedError(f"bound is {step.bound}, the certificate proves {proven}{where}")
        for point in self._document.points:
            values = [self._problem.turned(k, v) for k, v in enumerate(point.values)]
            if _reaches(values, self._floors(step)) and values[level] > bound:
                raise RefusedError(f"bound is {step.bound}, a point reaches {point.values[level]}")

    def check_points(self) -> None:
        """Check that no point is as good as another, and the best on the first level is first."""
        if self._points != sorted(self._points, reverse=True):
            raise RefusedError("the best on the first level does not come first")
        for one, other in itertools.permutations(self._points, 2):
            if _reaches(one, other):
                raise RefusedError(f"a point with {one} leaves nothing to one with {other}")

    def check_open(self) -> str:
        """Check where another point may be."""
        document = self._document
        found = [self._box(corner) for corner in self._corners() if not self._is_closed(corner)]
        if document.open != found:
            raise RefusedError(f"the open boxes are {found}")
        if document.complete != (not found):
            raise RefusedError(f"complete is {document.complete}, and {len(found)} boxes are open")
        return "complete: no other point" if document.complete else f"{len(found)} boxes are open"

    def _corners(self) -> list[Corner]:
        """Return the least corners that no point reaches, in the grid of all that may be some."""
        levels = range(len(self._numbers))
        axes: list[list[float]] = [
            sorted({-math.inf, *(p[k] + 1 for p in self._points)}) for k in levels
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

    def _lacks(self, step: FrontierStep, corner: Corner) -> dict[int, float]:
        """Return by level what something at a corner must reach to be ruled out by a step."""
        level = len(step.required)
        beyond = [*self._floors(step), self._problem.turned(level, step.bound) + 1]
        at = dict(zip(self._numbers, corner, strict=True))
        return {k: v for k, v in enumerate(beyond) if at.get(k, -math.inf) < v}

    def _is_closed(self, corner: Corner) -> bool:
        """Tell whether some step rules out whatever reaches a corner."""
        return any(not self._lacks(step, corner) for step in self._document.steps)

    def _box(self, corner: Corner) -> OpenBox:
        """Return the box from a corner to where a step rules out what is better on one level."""
        best = dict.fromkeys(self._numbers, math.inf)
        for step in self._document.steps:
            lacks = self._lacks(step, corner)
            if len(lacks) == 1 and (level := min(lacks)) in best:
                best[level] = min(best[level], lacks[level] - 1)
        return OpenBox(worst=self._reported(corner), best=self._reported([*best.values()]))

    def _reported(self, values: Sequence[float]) -> list[int | None]:
        pairs = zip(self._numbers, values, strict=True)
        return [None if math.isinf(v) else self._problem.turned(k, int(v)) for k, v in pairs]


def _reaches(values: Sequence[float], floors: Sequence[float]) -> bool:
    return all(v >= f for v, f in zip(values, floors, strict=False))
