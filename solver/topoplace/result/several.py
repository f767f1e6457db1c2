"""Several placements of one snapshot: frontiers and all optima.

A frontier (``topoplace.frontier/1``) says what levels cost each other. A point is a placement that
no other one known equals or surpasses on all levels traded, a step a claim about all placements;
where points and steps leave room for others is an open box. All optima (``topoplace.optima/1``) are
placements at the optimum of the first levels. What tells these apart is who starts, or on which
prism, or on which nodes; requests that are equal may exchange their places.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from topoplace.kinds import kind_named, shipped
from topoplace.result.base import Kept, Limits
from topoplace.result.certificate import Certificate
from topoplace.result.placement import PlacementLimits
from topoplace.shown import Drawn, work
from topoplace.snapshot.schema import DefragmentInstance, Model, Name, Seconds, Snapshot

if TYPE_CHECKING:
    from topoplace.result.placement import CubesResult, HierarchyResult, PlacementResult

    OfAny: TypeAlias = Any
    Problem: TypeAlias = str
    Placed: TypeAlias = str
else:
    _KINDS = [kind for kind in shipped().values() if kind.solution is not None]
    OfAny = reduce(or_, dict.fromkeys(kind.get("solution") for kind in _KINDS))
    """A solution of any kind that has documents of several."""
    Problem = Literal[tuple(kind.name for kind in _KINDS)]
    Placed = Literal[tuple(kind.name for kind in _KINDS if kind.machine is not None)]
    """The kinds that have such documents, and those of them that place a queue."""


class NamedLevel(Model):
    """A level of the problem."""

    name: Name
    sense: Literal["max", "min"]


class Point(Model):
    """A placement, and its value on every level of the problem."""

    values: list[int]
    solution: OfAny

    def of_kind(self, name: str) -> Point:
        """Return the point with the solution read as one of a kind, if it may be one."""
        model = kind_named(name).get("solution")
        written = self.solution.model_dump(mode="json", by_alias=True)
        try:
            return self.model_copy(update={"solution": model.model_validate(written)})
        except ValidationError:
            return self


class Step(Model):
    """No placement that is as good as required on the levels before surpasses a bound on one."""

    required: list[int | None] = Field(
        description="one per level before, at least (max) or at most (min) this; null for anything"
    )
    level: Name
    bound: int
    certificate: Certificate


class Several(Drawn, Kept):
    """Several placements of a snapshot, and what is proven of all."""

    problem: Problem
    method: Name
    levels: list[NamedLevel] = Field(description="of the problem")
    complete: bool
    seconds: Seconds
    limits: Limits | PlacementLimits
    seed: int | None
    versions: dict[str, str]
    points: list[Point]
    steps: list[Step]
    instance: Snapshot | DefragmentInstance

    @field_validator("points")
    @classmethod
    def _of_problem(cls, points: list[Point], info: ValidationInfo) -> list[Point]:
        """Read placements that look like those of several problems as those of the own one."""
        name = info.data.get("problem")
        return points if name is None else [point.of_kind(name) for point in points]


class OpenBox(Model):
    """Where another point may be: between two values on every level traded, these included."""

    worst: list[int | None] = Field(description="null where there is no limit")
    best: list[int | None] = Field(description="null where nothing is proven")


class Frontier(Several):
    """The trade-off between two or three levels of the placements of a snapshot."""

    schema_version: Annotated[Literal["topoplace.frontier/1"], Field(alias="schema")]
    traded: Annotated[list[Name], Field(min_length=2)]
    complete: bool = Field(description="whether no box is open")
    points: list[Point] = Field(description="the best on the first first")
    open: list[OpenBox]


class Optima(Several):
    """Placements of a snapshot that are as good as each other, and as any other one."""

    schema_version: Annotated[Literal["topoplace.optima/1"], Field(alias="schema")]
    problem: Placed
    instance: Snapshot
    chosen: Annotated[list[Name], Field(min_length=1)] = Field(
        description="the first levels, which count; of the others anything will do"
    )
    distinct: Literal["started", "prisms", "nodes"]
    equal: list[list[Name]] = Field(description="requests that may exchange their places")
    asked: Annotated[int, Field(ge=1)]
    rest: Step | None = Field(description="of all placements but the points")

    def result(self, number: int = 0) -> PlacementResult | HierarchyResult | CubesResult:
        """Return a placement as a result of its own, with the proof that no other one is better.

        It can be checked, shown, drawn, and mapped to as any other.
        """
        found: PlacementResult | HierarchyResult | CubesResult = work("result", self)(self, number)
        return found
