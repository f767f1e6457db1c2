"""What documents of several placements have in common: each is one, and steps are about all."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from topoplace.certify.candidates import told
from topoplace.certify.packing import CheckingOracle, Packings
from topoplace.certify.report import Claims, RefusedError
from topoplace.errors import InputError, number_of
from topoplace.kinds import kind_named
from topoplace.result import PlacementLimits
from topoplace.result.several import Point, Several, Step
from topoplace.snapshot.schema import DefragmentInstance, Snapshot


@contextlib.contextmanager
def told_of(where: str) -> Iterator[None]:
    """Say where it is if something is refused."""
    try:
        yield
    except (RefusedError, InputError, OverflowError) as error:
        raise RefusedError(f"{where}: {error}") from None


class Placements:
    """The placements of a document, and its steps.

    Attributes
    ----------
    problem
        The instance, as its results have it; known after `read`.
    names
        Of all levels.
    """

    def __init__(self, document: Several) -> None:
        self.document = document
        kind = kind_named(document.problem)
        self._result, self._kind = kind.get("result"), kind.get("solution")
        checker = kind.get("several") or kind.get("checker")
        limits = PlacementLimits(**document.limits.model_dump())
        self._own: dict[str, Any] = {
            **{"instance": document.instance, "limits": limits},
            **{"explanations": [], "levels": []},
        }
        self.problem: Packings[Any] = checker(self._with(None))
        self.names = [level.name for level in document.levels]

    def _with(self, solution: Any) -> Any:
        return self._result.model_construct(**self._own, solution=solution)

    def read(self, claims: Claims) -> bool:
        """Add the claims about the instance and its levels; tell whether they hold."""
        if claims.add("instance", self._read) is None:
            return False
        instance = self.document.instance
        snapshot = instance if isinstance(instance, Snapshot) else instance.snapshot
        if snapshot.left_out:
            claims.add("held", lambda: told(snapshot))
        return claims.add("levels", self._check_levels) is not None

    def follow(self, claims: Claims, checks: Mapping[str, Callable[[], str]]) -> None:
        """Add the claims about the instance, then those of checks in turn, as far as they hold."""
        if self.read(claims):
            for name, check in checks.items():
                if claims.add(name, check) is None:
                    return

    def _read(self) -> str:
        moves = isinstance(self.document.instance, DefragmentInstance)
        if moves != (self.document.problem == "repack"):
            raise RefusedError("an instance of another problem")
        return self.problem.read()

    def _check_levels(self) -> str:
        found = [(level.name, level.sense) for level in self.document.levels]
        if found != list(self.problem.levels):
            raise RefusedError(f"the levels are {found}, not {list(self.problem.levels)}")
        return ", ".join(self.names)

    def check_points(self) -> None:
        """Check that points are placements, with the values that they state."""
        for k, point in enumerate(self.document.points):
            with told_of(f"points[{k}]"):
                self._check_point(point)

    def _check_point(self, point: Point) -> None:
        if not isinstance(point.solution, self._kind):
            raise RefusedError("a solution of another problem")
        self.problem.worth_of(self._with(point.solution), point.values)

    def check_steps(self) -> str:
        """Check that certificates of steps prove their bounds, which no point contradicts."""
        for k, step in enumerate(self.document.steps):
            with told_of(f"steps[{k}]"):
                self.check_step(step)
                self._check_against_points(step)
        return f"bounds proven by {number_of(len(self.document.steps), 'certificate')}"

    def check_step(self, step: Step, oracle: CheckingOracle | None = None) -> None:
        """Check that the certificate of a step proves its bound, by another oracle perhaps."""
        level = len(step.required)
        if step.level not in self.names or self.names.index(step.level) != level:
            raise RefusedError(f"{number_of(level, 'level')} before {step.level}")
        proven, where = self.problem.proven(
            level, step.certificate, step.required, oracle, step.bound
        )
        if self.bound(step) < self.problem.turned(level, proven):
            raise RefusedError(f"bound is {step.bound}, the certificate proves {proven}{where}")

    def _check_against_points(self, step: Step) -> None:
        level = len(step.required)
        for point in self.document.points:
            values = self.turned(point.values)
            if reaches(values, self.floors(step)) and values[level] > self.bound(step):
                raise RefusedError(f"bound is {step.bound}, a point reaches {point.values[level]}")

    def turned(self, values: Sequence[int]) -> list[int]:
        """Return values of all levels as they are maximised."""
        return [self.problem.turned(k, v) for k, v in enumerate(values)]

    def floors(self, step: Step) -> list[float]:
        """Return what a step requires, as it is maximised."""
        turned = enumerate(step.required)
        return [-math.inf if v is None else self.problem.turned(k, v) for k, v in turned]

    def bound(self, step: Step) -> int:
        """Return the bound of a step as it is maximised."""
        return self.problem.turned(len(step.required), step.bound)


def reaches(values: Sequence[float], floors: Sequence[float]) -> bool:
    """Tell whether values are at least as large as others, as far as these go."""
    return all(v >= f for v, f in zip(values, floors, strict=False))
