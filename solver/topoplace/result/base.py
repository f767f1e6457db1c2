"""What the result documents of all problems share.

Absent is null, never 0. A result holds its instance, so that `check`, `show` and `compare` need
nothing else.
"""

from __future__ import annotations

import fractions
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypeVar

from pydantic import Field

from topoplace.kinds import kind_named
from topoplace.result.claims import Report
from topoplace.shown import Drawn, Tabled, work
from topoplace.snapshot.files import write_document
from topoplace.snapshot.schema import Model, Name, Seconds

if TYPE_CHECKING:
    from pandas import DataFrame

    from topoplace.result.started import Start

Value = TypeVar("Value")
Certificate = TypeVar("Certificate")
LevelType = TypeVar("LevelType")
SolutionType = TypeVar("SolutionType")
InstanceType = TypeVar("InstanceType")

RESULT_SCHEMA: Literal["topoplace.result/4"] = "topoplace.result/4"


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

    @classmethod
    def of(cls, number: int | fractions.Fraction) -> Fraction:
        """Return a number as documents have it."""
        return cls(numerator=number.numerator, denominator=number.denominator)


def level_label(instance: object, name: str) -> str:
    """Return the name of a level for people, who read there whether priorities weigh its nodes."""
    weighted = name == "nodes" and any(r.priority > 1 for r in getattr(instance, "queue", ()))
    return "weighted nodes" if weighted else name


class Limits(Model):
    """What bounded the solve."""

    time_limit: Seconds | None = None
    hit: bool = Field(default=False, description="whether the time limit ended the solve")
    thorough: bool | None = Field(
        default=None,
        description="whether method exact worked on later levels as hard as on the first; null "
        "where that makes no difference",
    )


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


class Kept(Model):
    """A document that is written to files, and whose claims can be checked."""

    def check(self) -> Report:
        """Recompute every claim from the instance inside, as the command `check` does."""
        report: Report = work("check", self)(self)
        return report

    def save(self, path: str | Path) -> Path:
        """Write the document to a file, all of it or nothing; `check` and `show` take it."""
        write_document(path, self)
        return Path(path)


class Result(Drawn, Tabled, Kept, Generic[LevelType, SolutionType, InstanceType]):
    """One solve of one instance: what was asked, what was found, and the evidence.

    `objective`, `bound`, `gap`, `proof` and `status` are those of the first level.
    """

    schema_version: Annotated[Literal["topoplace.result/4"], Field(alias="schema")]
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

    @property
    def placements(self) -> list[Start]:
        """The requests that start: nodes, hosts, and prism or cost; none of a mapping."""
        starts: list[Start] = kind_named(self.problem).get("view")(self).starts
        return starts

    def to_frame(self) -> DataFrame:
        """Return a row for every request, or for every task of a mapping (pandas)."""
        return super().to_frame()

    def _repr_html_(self) -> str:
        """Return what notebooks show: what is proven, the levels, and what was found."""
        return str(work("notebook", self)(self))
