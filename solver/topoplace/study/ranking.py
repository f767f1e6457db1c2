"""Ranks, wins and performance profiles of methods over instances: pure functions of numbers."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

Exact = int | Fraction
Loss = tuple[Exact, ...]
"""What a method aims to make small, the most important part first."""


class Row(Protocol):
    """What rows of all comparisons have, whatever was compared."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def instance(self) -> str:
        """Name of the instance."""

    @property
    def method(self) -> str:
        """Name of the method."""

    @property
    def gap(self) -> float | None:
        """Relative gap to the best bound; null if there is none."""

    @property
    def seconds(self) -> float | None:
        """Wall time of the solve; null if the method was not made for the instance."""

    @property
    def rank(self) -> int | None:
        """Rank among the methods on the instance; null if the method is not ranked."""

    @property
    def ratio(self) -> float | None:
        """Performance ratio to the best method; null if it is not finite or not defined."""

    @property
    def conforming(self) -> bool:
        """Whether the answer obeys the rules under which the bound holds."""


AnyRow = TypeVar("AnyRow", bound=Row)


def ranks(losses: Sequence[Loss | None]) -> list[int | None]:
    """Return the rank of every loss among all: 1 for the least, ties share the better rank.

    None stands for no answer and gets none.
    """
    known = [loss for loss in losses if loss is not None]
    return [None if loss is None else 1 + sum(k < loss for k in known) for loss in losses]


def ratios(values: Sequence[Exact | None], *, larger_is_better: bool = False) -> list[float | None]:
    """Return the performance ratio of every value to the best one (Dolan and More 2002, sec. 2).

    It is at least 1, and 1 for the best. None where there is no answer, or where the ratio is
    not finite because one of the two is 0.
    """
    known = [value for value in values if value is not None]
    if not known:
        return [None] * len(values)
    best = max(known) if larger_is_better else min(known)
    found: list[float | None] = []
    for value in values:
        worse, better = (best, value) if larger_is_better else (value, best)
        if value == best:
            found.append(1.0)
        elif worse is None or not better:
            found.append(None)
        else:
            found.append(float(Fraction(worse) / Fraction(better)))
    return found


def ranked(
    rows: Sequence[AnyRow], losses: Sequence[Loss | None], found: Sequence[float | None]
) -> list[AnyRow]:
    """Return the rows of one instance with their ranks, by `losses`, and performance ratios."""
    return [
        dataclasses.replace(row, rank=rank, ratio=ratio)
        for row, rank, ratio in zip(rows, ranks(losses), found, strict=True)
    ]


def performance_profile(found: Sequence[float | None]) -> list[tuple[float, float]]:
    """Return the performance profile of a method (Dolan and More 2002, sec. 2) as its steps.

    Parameters
    ----------
    found
        Performance ratios of the method, one per instance; None where it failed.

    Returns
    -------
    list of (tau, share)
        From each tau on, up to the next, this share of all instances has a ratio of at most tau.
    """
    known = sorted(ratio for ratio in found if ratio is not None)
    return [
        (tau, idx / len(found))
        for idx, tau in enumerate(known, 1)
        if idx == len(known) or known[idx] > tau
    ]


@dataclass(frozen=True)
class MethodSummary:
    """One method over all instances it ran on.

    `ranked` counts the instances with a conforming answer; `mean_rank` and the gaps are over
    those, null if there are none. A win is rank 1, shared or not.
    """

    method: str
    instances: int
    ranked: int
    wins: int
    mean_rank: float | None
    median_gap: float | None
    largest_gap: float | None
    median_seconds: float | None
    total_seconds: float


def summaries(rows: Iterable[Row]) -> list[MethodSummary]:
    """Return a summary per method, in the order in which methods first occur."""
    of_method: dict[str, list[Row]] = {}
    for row in rows:
        of_method.setdefault(row.method, []).append(row)
    return [_summary(method, own) for method, own in of_method.items()]


def by_instance(rows: Sequence[AnyRow]) -> list[list[AnyRow]]:
    """Return the rows grouped by instance; two instances of one name next to each other part."""
    groups: list[list[AnyRow]] = []
    seen: set[str] = set()
    for row in rows:
        if not groups or groups[-1][0].instance != row.instance or row.method in seen:
            groups.append([])
            seen = set()
        groups[-1].append(row)
        seen.add(row.method)
    return groups


def certified_gap(row: Row) -> float | None:
    """Return the gap of a row; None if its answer breaks the rules under which the bound holds."""
    return row.gap if row.conforming else None


def _summary(method: str, rows: list[Row]) -> MethodSummary:
    places = [row.rank for row in rows if row.rank is not None]
    gaps = [gap for gap in map(certified_gap, rows) if gap is not None]
    seconds = [row.seconds for row in rows if row.seconds is not None]
    return MethodSummary(
        method=method,
        instances=len(rows),
        ranked=len(places),
        wins=places.count(1),
        mean_rank=sum(places) / len(places) if places else None,
        median_gap=statistics.median(gaps) if gaps else None,
        largest_gap=max(gaps, default=None),
        median_seconds=statistics.median(seconds) if seconds else None,
        total_seconds=sum(seconds),
    )
