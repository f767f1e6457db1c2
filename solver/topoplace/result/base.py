"""What the result documents of all problems share.

Absent is null, never 0. A result holds its instance, so that `check`, `show` and `compare` need
nothing else.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypeVar

from pydantic import Field

from topoplace.snapshot.schema import Model, Name, Seconds

if TYPE_CHECKING:
    pass

Value = TypeVar("Value")
Certificate = TypeVar("Certificate")
LevelType = TypeVar("LevelType")
SolutionType = TypeVar("SolutionType")
InstanceType = TypeVar("InstanceType")

RESULT_SCHEMA: Literal["topoplace.result/1"] = "topoplace.result/1"


class Status(StrEnum):
    """What a solve established."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


class Proof(StrEnum):
    """What supports the bound: a `certificate` the checker verifies, or nothing."""

    CERTIFICATE = "certificate"
    SEARCH = "search"
    NONE = "none"


class Fraction(Model):
    """An exact rational number."""

    numerator: int
    denominator: Annotated[int, Field(ge=1)]


class Limits(Model):
    """What bounded the solve."""

    time_limit: Seconds | None = None
    hit: bool = Field(default=False, description="whether the time limit ended the solve")


class Level(Model, Generic[Value, Certificate]):
    """One level of the lexicographic objective.

    `objective` and `bound` are exact; `sense` says whether larger or smaller is better. A level's
    bound holds among the solutions whose earlier levels are at least as good as reported.
    """

    name: Name
    sense: Literal["max", "min"]
    status: Annotated[Status, Field(strict=False)]
    objective: Value | None
    bound: Value | None
    gap: float | None
    proof: Annotated[Proof, Field(strict=False)]
    certificate: Certificate | None = None


class Result(Model, Generic[LevelType, SolutionType, InstanceType]):
    """One solve of one instance: what was asked, what was found, and the evidence.

    `objective`, `bound`, `gap`, `proof` and `status` are those of the first level.
    """

    schema_version: Annotated[Literal["topoplace.result/1"], Field(alias="schema")]
    problem: str
    method: Name
    status: Annotated[Status, Field(strict=False)]
    objective: int | None
    bound: int | None
    gap: float | None
    proof: Annotated[Proof, Field(strict=False)]
    seconds: Seconds
    limits: Limits
    seed: int | None
    versions: dict[str, str]
    levels: list[LevelType]
    solution: SolutionType | None
    instance: InstanceType
