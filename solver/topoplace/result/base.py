"""What the result documents of all problems share, what starts in them, and what a check finds.

Absent is null, never 0. A result holds its instance, so that `check`, `show` and `compare` need
nothing else.
"""

from __future__ import annotations

import fractions
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypeGuard, TypeVar

from pydantic import Field

from topoplace.kinds import kind_named
from topoplace.machine import Prism
from topoplace.shown import Drawn, Tabled, work
from topoplace.snapshot.files import write_document
from topoplace.snapshot.schema import WITHOUT_GPUS, Model, Name, Order, Seconds, Snapshot

if TYPE_CHECKING:
    from pandas import DataFrame

Value = TypeVar("Value")
Certificate = TypeVar("Certificate")
LevelType = TypeVar("LevelType")
SolutionType = TypeVar("SolutionType")
InstanceType = TypeVar("InstanceType")

RESULT_SCHEMA: Literal["topoplace.result/4"] = "topoplace.result/4"
FRONTIER_SCHEMA: Literal["topoplace.frontier/1"] = "topoplace.frontier/1"
OPTIMA_SCHEMA: Literal["topoplace.optima/1"] = "topoplace.optima/1"


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


_LABELS = {"gpus": "GPUs", WITHOUT_GPUS: "units without GPUs"}


def level_label(instance: object, name: str) -> str:
    """Return the name of a level for people: what its value counts, and whether priorities do.

    Where an order decides who starts, the value is not the largest possible, and the name says so.
    """
    if name != "nodes":
        return _LABELS.get(name, name)
    weighted = any(request.priority > 1 for request in getattr(instance, "queue", ()))
    label = value_label(getattr(instance, "value", name), weighted=weighted)
    return f"{label} by {instance.order}" if _is_in_order(instance) else label


def level_title(instance: object, name: str, sense: str) -> str:
    """Return the name of a level for people with what is best: ``nodes (max)``."""
    of_order = name == "nodes" and _is_in_order(instance)
    return f"{level_label(instance, name)} ({'in order' if of_order else sense})"


def _is_in_order(instance: object) -> TypeGuard[Snapshot]:
    return getattr(instance, "order", Order.VALUE) is not Order.VALUE


def value_label(counted: str, *, weighted: bool) -> str:
    """Return what is counted, for people."""
    return f"{'weighted ' if weighted else ''}{_LABELS.get(counted, counted)}"


class Limits(Model):
    """What bounded the solve."""

    time_limit: Seconds | None = None
    hit: bool = Field(default=False, description="whether the time limit ended the solve")
    first_level: bool | None = Field(
        default=None,
        description="whether method exact ended after the first level, as asked; null where it "
        "cannot",
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


WAITS = Field(
    default=None,
    description="by request that does not start why it waits, for people, as far as that is "
    "known; null if nobody asked",
)
"""Of documents that place queues; the function and the command `place` fill it in."""


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


# ---- What starts, whatever the kind of problem ---------------------------------------------------


@dataclass(frozen=True)
class Start:
    """A request that starts.

    Attributes
    ----------
    nodes
        Numbers of its nodes: ascending on a torus, in the order of its ranks on a tree; on a
        hierarchy the hosts of its units, ascending, a host once for each.
    hosts
        The same nodes as text: ranges of numbers on a torus, a host list as Slurm has it on a
        tree (``srun -w``) or hierarchy, there with the units of each host if they are several.
    origin, extents
        Its prism in routers; None on trees, and where the nodes form no prism. On cubes, of a part
        of one, from its first chip on.
    node_class
        On a torus.
    cost
        By eq. (6) of Mishra 2020, on a tree.
    score
        The value of the prism on level `shape`.
    cubes
        The cubes it is in.
    others
        The prisms of its further segments.
    plain
        On a hierarchy the host list without units, as ``srun -w`` takes it.
    """

    request: str
    nodes: tuple[int, ...]
    hosts: str
    origin: tuple[int, ...] | None = None
    extents: tuple[int, ...] | None = None
    node_class: str | None = None
    cost: fractions.Fraction | None = None
    score: int | None = None
    cubes: tuple[int, ...] | None = None
    others: tuple[Prism, ...] = ()
    plain: str | None = None

    @property
    def prism(self) -> str | None:
        """Extents and origin, such as ``4x4x8@0,0,8``; of several prisms one after another."""
        if self.origin is None or self.extents is None:
            return None
        prisms = (Prism(self.origin, self.extents), *self.others)
        return " ".join(prism.text for prism in prisms)


# ---- What a check finds: one claim after the other -----------------------------------------------


@dataclass(frozen=True)
class Claim:
    """One statement of a result, and whether it holds.

    Attributes
    ----------
    name
        What is claimed, such as ``links`` or ``shape.bound``.
    holds
        Whether the checker's own computation agrees.
    detail
        What was found; the first disagreement if the claim does not hold.
    by_search
        Whether it rests on a search of the solver, which the checker does not repeat: nothing
        speaks against the claim, but nothing here confirms it either.
    """

    name: str
    holds: bool
    detail: str
    by_search: bool = False

    def __str__(self) -> str:
        mark = "FAILS" if not self.holds else "trust" if self.by_search else "holds"
        return f"{mark}  {self.name}: {self.detail}"


@dataclass(frozen=True)
class Report:
    """All claims of a result in the order they were checked.

    Attributes
    ----------
    sha256
        The sum of the instance that the claims are about (`topoplace.snapshot.normal.sha256_of`).
        None if nobody asked for it, or if the instance has no normal form.
    """

    claims: tuple[Claim, ...]
    sha256: str | None = None

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)

    @property
    def verified(self) -> bool:
        """Whether every claim holds and none rests on a search alone."""
        return self.holds and not any(claim.by_search for claim in self.claims)

    @property
    def lines(self) -> list[str]:
        """A line for every claim, and one for what follows of them."""
        verdict = "NOT verified"
        if self.verified:
            verdict = "every claim holds"
        elif self.holds:
            verdict += ": no claim fails, but a bound rests on a search not repeated here"
        return [*(str(claim) for claim in self.claims), verdict]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    @property
    def failures(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if not claim.holds)
