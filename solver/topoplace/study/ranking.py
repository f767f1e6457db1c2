"""Rows of comparisons, and figures of methods: ranks, wins and performance profiles."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from topoplace.result import Proof

Exact = int | Fraction
Loss = tuple[Exact, ...]
"""The quantity that a method minimises, the most important part first."""


def exact(value: Any) -> Exact | None:
    """Return a figure of a result document as a number."""
    if value is None or isinstance(value, int):
        return value
    return Fraction(value.numerator, value.denominator)


@dataclass(frozen=True)
class Figure:
    """The value that a method reached on one level, and the best valid bound, with its proof.

    `gap` is by how much the objective falls short of the bound, over ``max(1, abs(objective))``.
    It is negative only for an answer that does not conform: the bound does not hold for it.
    """

    name: str
    sense: str
    objective: Exact | None
    bound: Exact | None
    gap: float | None
    proof: Proof


@dataclass(frozen=True)
class Row:
    """One result of one instance; what does not apply is null.

    Attributes
    ----------
    method
        If one method has several results on the instance, the second is ``NAME #2``.
    status
        That of the decisive level; or ``unsuited`` for a method that is not made for the instance,
        such as a fold of a cube.
    conforming
        Whether the answer obeys the rules under which bounds hold.
    decisive
        Number of the level by which methods are compared, after all before it.
    facts
        Other figures of the problem, such as jobs started.
    weighted
        Whether priorities weigh what the first level counts.
    value
        What that is (`topoplace.snapshot.schema.Counted`).
    rank
        Among the conforming answers to the instance. Ties share the better rank.
    ratio
        Performance ratio to the best on the decisive level, among those best on all levels before.
    """

    problem: str
    instance: str
    sha256: str
    interference: str | None
    method: str
    status: str
    seconds: float | None
    conforming: bool
    levels: tuple[Figure, ...]
    decisive: int
    facts: Mapping[str, int | None]
    weighted: bool = False
    value: str = "nodes"
    rank: int | None = None
    ratio: float | None = None

    @property
    def group(self) -> tuple[str, str, str | None]:
        """What rows of one problem of an instance under one rule share, in addition to bounds."""
        return self.problem, self.sha256, self.interference

    @property
    def label(self) -> str:
        """The name of the instance, with the rule unless it is the usual one."""
        usual = self.interference in (None, "strict")
        return self.instance if usual else f"{self.instance} ({self.interference})"

    @property
    def decider(self) -> Figure:
        """The level by which methods are compared."""
        return self.levels[self.decisive]

    @property
    def loss(self) -> Loss | None:
        """The quantity that the method minimised; None without an answer that conforms."""
        levels = self.levels[: self.decisive + 1]
        loss = tuple(
            -level.objective if level.sense == "max" else level.objective
            for level in levels
            if level.objective is not None
        )
        return loss if self.conforming and len(loss) == len(levels) else None

    @property
    def gap(self) -> float | None:
        """Gap on the level by which methods are compared."""
        return self.decider.gap

    @property
    def breaks_rule(self) -> bool:
        """Whether there is an answer for which bounds do not hold."""
        return self.levels[0].objective is not None and not self.conforming


def ranks(losses: Sequence[Loss | None]) -> list[int | None]:
    """Return the rank of every loss: 1 for the least, ties share the better; None for no answer."""
    known = [loss for loss in losses if loss is not None]
    return [None if loss is None else 1 + sum(k < loss for k in known) for loss in losses]


def ratios(values: Sequence[Exact | None], *, larger_is_better: bool = False) -> list[float | None]:
    """Return the performance ratio of every value to the best one (Dolan and More 2002, sec. 2).

    It is at least 1, and 1 for the best. None where there is no answer, or where the ratio is
    not finite because one of the two is 0.
    """
    known = [value for value in values if value is not None]
    best = (max if larger_is_better else min)(known, default=None)

    def ratio(value: Exact | None) -> float | None:
        if value is None or best is None or value == best:
            return None if value is None else 1.0
        low, high = sorted((value, best))
        return float(Fraction(high) / low) if low else None

    return [ratio(value) for value in values]


def performance_profile(found: Sequence[float | None]) -> list[tuple[float, float]]:
    """Return the performance profile of a method (Dolan and More 2002, sec. 2) as its steps.

    `found` has a performance ratio per instance; None where the method failed. From the tau of each
    step on, up to the next, its share of all instances has a ratio of at most tau.
    """
    known = sorted(ratio for ratio in found if ratio is not None)
    return [
        (tau, idx / len(found))
        for idx, tau in enumerate(known, 1)
        if idx == len(known) or known[idx] > tau
    ]


@dataclass(frozen=True)
class MethodSummary:
    """One method over all instances of one problem that it ran on.

    `ranked` counts the instances with a conforming answer; `mean_rank` and the gaps are over
    those, null if there are none. A win is rank 1, shared or not.
    """

    problem: str
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
    """Return a summary per problem and method, in the order in which these first occur."""
    of_method: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        of_method.setdefault((row.problem, row.method), []).append(row)
    return [_summary(*names, own) for names, own in of_method.items()]


def by_instance(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the rows that share bounds together, in the order in which these first occur."""
    groups: dict[tuple[str, str, str | None], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return list(groups.values())


def certified_gap(row: Row) -> float | None:
    """Return the gap of a row; None if its answer breaks the rules under which the bound holds."""
    return row.gap if row.conforming else None


def _summary(problem: str, method: str, rows: list[Row]) -> MethodSummary:
    places = [row.rank for row in rows if row.rank is not None]
    gaps = [gap for gap in map(certified_gap, rows) if gap is not None]
    seconds = [row.seconds for row in rows if row.seconds is not None]
    return MethodSummary(
        problem=problem,
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
