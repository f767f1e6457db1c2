"""What the checker found, one claim after the other, and whether the figures of levels fit.

Figures are objective, bound, gap, status and proof.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set
from fractions import Fraction
from typing import Any, ClassVar, Generic, Literal, TypeVar

from topoplace.errors import InputError
from topoplace.result import Fraction as FractionModel
from topoplace.result import Level, Proof, Result, Status
from topoplace.result.base import Claim
from topoplace.snapshot.schema import Request, RunningJob

Found = TypeVar("Found")


class RefusedError(Exception):
    """A claim does not hold; the message is its detail. Never leaves the checker.

    Whatever reads a part of a result raises it (or `InputError`, from what is shared) at the first
    thing that is not as docs/proofs/ says, or that is too large or too long to be followed.
    """


def require_none(job: RunningJob | Request, *names: str) -> None:
    """Refuse fields that are about something else: a rule that is not looked at is not kept."""
    given = [name for name in names if getattr(job, name, None) is not None]
    if given:
        raise RefusedError(f"{job.id} has {', '.join(given)}, which have no meaning here")


def require_only(job: RunningJob | Request, plain: Set[str]) -> None:
    """Refuse fields of a job except for some that are looked at, or mean nothing."""
    foreign = {name for name, value in job if value is not None} - plain
    if foreign:
        raise RefusedError(f"{job.id} has {', '.join(sorted(foreign))}, which have no meaning here")


class Claims(list[Claim]):
    """Collects claims, one call each."""

    def add(
        self,
        name: str,
        check: Callable[[], Found],
        detail: Callable[[Found], object] = str,
        *,
        by_search: bool = False,
    ) -> Found | None:
        """Add a claim: it holds if the check returns something, and fails if it refuses.

        `detail` is what to say of what was found, which is returned; None if the claim fails.
        """
        try:
            found = check()
        except (RefusedError, InputError, OverflowError, MemoryError) as error:
            self.append(Claim(name, False, str(error)))
            return None
        self.append(Claim(name, True, str(detail(found)), by_search))
        return found

    @property
    def hold(self) -> bool:
        """Whether all so far hold."""
        return all(claim.holds for claim in self)


# ---- What the frame asks of a problem, and whether its figures fit each other --------------------

AnyLevel = Level[Any, Any]
AnyResult = TypeVar("AnyResult", bound=Result[Any, Any, Any])
Number = int | Fraction
Searches = Literal["none", "alone", "beside"]
"""Which bounds may rest on a search: none, those without a certificate, or any."""

_TOLERANCE = Fraction(1, 10**9)
"""A gap is written as a float, which is off by a share of some 10^-16."""


class Problem(ABC, Generic[AnyResult]):
    """A problem, made of a result of it, with name and sense of its `levels`.

    `values` are what the solution is worth by the checker's own computation, per level; known after
    `follow`. None without a solution, or where a level does not apply.
    """

    searches: ClassVar[Searches]

    def __init__(self, result: AnyResult) -> None:
        self.result = result
        self.values: Sequence[Number | None] = [None] * len(result.levels)

    @property
    @abstractmethod
    def levels(self) -> Sequence[tuple[str, str]]:
        """Name and sense of every level that a result of this instance has."""

    @property
    def held(self) -> Sequence[Number | None]:
        """What bounds of later levels take for granted of every level."""
        return self.values

    @abstractmethod
    def read(self) -> str:
        """Read the instance and return what it is; raise if it contradicts itself."""

    @abstractmethod
    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution; tell whether it is understood."""

    def follow_witness(self, claims: Claims) -> bool:
        """Add the claim about a witness, if there is one; return whether it holds."""
        return True

    @abstractmethod
    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves, and which part of it decides."""

    def beside(self, claims: Claims) -> None:
        """Add the claims about bounds that are of no level; there are none by default."""


def exact(number: Any) -> Any:
    """Return a figure of a document, fractions in lowest terms."""
    return fraction_of(number) if isinstance(number, FractionModel) else number


def fraction_of(number: FractionModel) -> Fraction:
    """Return a fraction of a document, in lowest terms."""
    return Fraction(number.numerator, number.denominator)


def check_top(result: Result[Any, Any, Any]) -> None:
    """Raise unless the figures of the result are those of its first level."""
    first = result.levels[0]
    for field in ("status", "objective", "bound", "gap", "proof"):
        top, own = getattr(result, field), exact(getattr(first, field))
        if top != own:
            raise RefusedError(f"{field} of the result is {top}, that of its first level {own}")


def check_figures(
    level: AnyLevel, value: Number | None, searches: Searches, *, settled: bool = True
) -> str:
    """Check the figures of a level against the value of its solution; return a summary.

    Without a solution, a level is infeasible if its bound excludes what is required, and those
    before are `settled`: where one of them may be better than known, the bound says less.
    """
    objective, bound = exact(level.objective), exact(level.bound)
    if objective != value:
        raise RefusedError(f"objective is {objective}, the solution's is {value}")
    _check_proof(level, searches)
    required: int | None = getattr(level, "required", None)
    if objective is not None and required is not None and is_beyond(level, objective, required):
        raise RefusedError(f"objective is {objective}, required was {required}")
    status = Status.OPTIMAL if objective == bound else Status.FEASIBLE
    if objective is None:
        status = Status.UNKNOWN
        if bound is not None and required is not None and is_beyond(level, bound, required):
            status = Status.INFEASIBLE if settled else Status.UNKNOWN
    if level.status is not status:
        raise RefusedError(f"status is {level.status.value}, the figures say {status.value}")
    _check_gap(level.gap, objective, bound)
    if objective is not None and bound is not None and is_beyond(level, bound, objective):
        raise RefusedError(f"bound is {bound}, the solution reaches {objective}")
    as_set = "" if required is None else f", {required} required"
    return f"{level.status.value}, objective {objective}, bound {bound}{as_set}"


def check_proven(level: AnyLevel, value: Number | None, proven: Number, where: str = "") -> str:
    """Check a bound, and the value of the solution, against what the certificate proves.

    `where` is the part of the certificate that decides, for the reason of a refusal.
    """
    bound, searched = exact(level.bound), level.proof is Proof.SEARCH
    if value is not None and is_beyond(level, proven, value):
        raise RefusedError(
            f"the certificate proves {proven}{where}, yet the solution reaches {value}: "
            "the evidence contradicts itself"
        )
    if bound is not None and is_beyond(level, bound, proven) != searched:
        if searched:
            raise RefusedError(f"proof is search, but the certificate proves {proven}")
        raise RefusedError(f"bound is {bound}, the certificate only proves {proven}{where}")
    return f"the certificate proves {proven}"


def is_settled(level: AnyLevel, held: Number | None) -> bool:
    """Return whether a level is as required, or proven to be no better than what is held."""
    if getattr(level, "required", None) is not None:
        return True
    return held is not None and exact(level.bound) == held


def is_beyond(level: AnyLevel, one: Number, other: Number) -> bool:
    """Tell whether a bound says more than another, or excludes an objective."""
    return one < other if level.sense == "max" else one > other


def _check_proof(level: AnyLevel, searches: Searches) -> None:
    certificate = level.certificate is not None
    if level.bound is None:
        if certificate:
            raise RefusedError("a certificate without a bound")
        allowed = [Proof.NONE]
    else:
        allowed = [Proof.CERTIFICATE] if certificate else []
        if searches == "beside" or (searches == "alone" and not certificate):
            allowed.append(Proof.SEARCH)
        if not allowed:
            raise RefusedError(f"bound is {exact(level.bound)}, and no certificate supports it")
    if level.proof not in allowed:
        names = " or ".join(proof.value for proof in allowed)
        raise RefusedError(f"proof is {level.proof.value}, the evidence is {names}")


def _check_gap(gap: float | None, objective: Number | None, bound: Number | None) -> None:
    if objective is None or bound is None:
        if gap is not None:
            raise RefusedError(f"gap is {gap} without objective and bound")
        return
    found = abs(Fraction(objective) - Fraction(bound)) / max(Fraction(1), abs(Fraction(objective)))
    stated = None if gap is None or not math.isfinite(gap) else Fraction(gap)
    if stated is None or abs(stated - found) > found * _TOLERANCE:
        raise RefusedError(f"gap is {gap}, the figures say {float(found)}")
