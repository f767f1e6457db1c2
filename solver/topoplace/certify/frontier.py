"""The claims of a frontier: its points are placements, and its steps leave no other one.

A step rules out whatever is as good as it requires and better than its bound. What no point covers
is the union of what reaches certain corners; nothing is left if a step rules out each corner
(docs/proofs.md, "Frontiers").
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from topoplace.certify.cubes.check import CubesPlacements
from topoplace.certify.hierarchy.check import HierarchyPlacements
from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, RefusedError
from topoplace.certify.torus.check import TorusPlacement
from topoplace.result import PlacementResult
from topoplace.result.cubes import CubesResult
from topoplace.result.frontier import AnyFrontier, FrontierStep, OpenBox
from topoplace.result.hierarchy import HierarchyResult

Corner = tuple[float, ...]

MOST_CORNERS = 1 << 18
"""Of a frontier that is followed."""

_PROBLEMS: dict[str, tuple[Any, type[Packings[Any]]]] = {
    "placement": (PlacementResult, TorusPlacement),
    "hierarchy": (HierarchyResult, HierarchyPlacements),
    "cubes": (CubesResult, CubesPlacements),
}


def follow_frontier(document: AnyFrontier, claims: Claims) -> None:
    """Add the claims of a frontier, as far as they can be followed."""
    result, checker = _PROBLEMS[document.problem]
    own = {"instance": document.instance, "limits": document.limits, "explanations": []}
    problem: Packings[Any] = checker(result.model_construct(**own, levels=[], solution=None))
    if claims.add("instance", problem.read) is None:
        return
    if claims.add("levels", lambda: _levels(document, problem)) is None:
        return
    for k, point in enumerate(document.points):
        problem.result = result.model_construct(**own, levels=[], solution=point.solution)
        claims.add(f"points[{k}]", partial(_point, problem, point.values))
    if not claims.hold:
        return
    trade = _Trade(document, problem)
    for k, step in enumerate(document.steps):
        claims.add(f"steps[{k}]", partial(trade.check_step, step))
    claims.add("points", trade.check_points)
    claims.add("open", trade.check_open)


def _levels(document: AnyFrontier, problem: Packings[Any]) -> str:
    found = [(level.name, level.sense) for level in document.levels]
    if found != list(problem.levels):
        raise RefusedError(f"the levels are {found}, not {list(problem.levels)}")
    names = [name for name, _ in found]
    if document.traded != [name for name in names if name in document.traded]:
        raise RefusedError("the levels traded are not some of the levels, in their order")
    return ", ".join(document.traded)


def _point(problem: Packings[Any], values: Sequence[int]) -> str:
    """Check a placement, and what it is worth."""
    own = Claims()
    problem.values = []
    problem.follow(own)
    for claim in own:
        if not claim.holds:
            raise RefusedError(f"{claim.name}: {claim.detail}")
    if list(values) != list(problem.values):
        raise RefusedError(f"values are {values}, the placement's are {problem.values}")
    names = [name for name, _ in problem.levels]
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


class _Trade:
    """Points and steps in maximising sense, by the levels traded."""

    def __init__(self, document: AnyFrontier, problem: Packings[Any]) -> None:
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

    def check_step(self, step: FrontierStep) -> str:
        """Check that the certificate of a step proves its bound, which no point contradicts."""
        level = len(step.required)
        if step.level not in self._names or self._names.index(step.level) != level:
            raise RefusedError(f"{level} levels before {step.level}")
        proven, where = self._problem.proven(level, step.certificate, step.required)
        bound = self._problem.turned(level, step.bound)
        if bound < self._problem.turned(level, proven):
            raise RefusedError(
                f"bound is {step.bound}, the certificate only proves {proven}{where}"
            )
        for point in self._document.points:
            values = [self._problem.turned(k, v) for k, v in enumerate(point.values)]
            if _reaches(values, self._floors(step)) and values[level] > bound:
                raise RefusedError(f"bound is {step.bound}, a point reaches {point.values[level]}")
        return f"the certificate proves {proven} where {step.required} is required"

    def check_points(self) -> str:
        """Check that no point is as good as another."""
        if self._points != sorted(self._points, reverse=True):
            raise RefusedError("the best on the first level does not come first")
        for one, other in itertools.permutations(self._points, 2):
            if _reaches(one, other):
                raise RefusedError(f"a point with {one} leaves nothing to one with {other}")
        return f"{len(self._points)} points"

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
        """Return the least corners that no point reaches, by trying all combinations."""
        axes = [sorted({-math.inf, *(v + 1 for v in axis)}) for axis in self._by_level()]
        if math.prod(map(len, axes)) > MOST_CORNERS:
            raise RefusedError("too many points to follow")
        return [
            corner
            for at in itertools.product(*(range(len(axis)) for axis in axes))
            if not self._is_covered(corner := _on(axes, at))
            and all(self._is_covered(_on(axes, lower)) for lower in _one_lower(at))
        ]

    def _by_level(self) -> list[tuple[int, ...]]:
        return [tuple(p[k] for p in self._points) for k in range(len(self._numbers))]

    def _is_covered(self, corner: Corner) -> bool:
        return any(_reaches(point, corner) for point in self._points)

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


def _on(axes: Sequence[Sequence[float]], at: Sequence[int]) -> Corner:
    return tuple(axis[k] for axis, k in zip(axes, at, strict=True))


def _one_lower(at: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield what is one lower in one place."""
    for k, number in enumerate(at):
        if number:
            yield (*at[:k], number - 1, *at[k + 1 :])
