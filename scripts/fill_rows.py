"""Rows of the study of filling machines, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PRISM_METHODS = ("first-fit", "best-fit")
NODE_ORDERS = ("alps-o2", "alps-2y", "alps-4y")
"""They give nodes in a fixed order, with shared links and without prisms: no bound holds for it."""

EXACT = "exact"
METHODS = (*PRISM_METHODS, *NODE_ORDERS, EXACT)


@dataclass(frozen=True)
class Row:
    """One method on one snapshot.

    Attributes
    ----------
    fill
        Busy nodes in percent, as asked of the generator.
    seed
        Of the generator.
    idle
        Usable nodes that no job holds, of all classes.
    started
        Nodes of the requests started.
    incumbent, bound
        Most nodes any conforming placement found starts, and the certified bound: the optimum is
        between the two.
    gap
        ``(bound - started) / max(1, started)``; None if the method does not conform.
    shared_links
        Links shared against the strict rule.
    """

    machine: str
    fill: int
    seed: int
    method: str
    status: str
    idle: int
    queued: int
    jobs_started: int
    started: int
    incumbent: int
    bound: int
    gap: float | None
    shared_links: int
    seconds: float


@dataclass(frozen=True)
class Short:
    """What a method starts less than the optimum, as a share of that: between two values."""

    least: float
    most: float


def short_of(rows: Sequence[Row]) -> Short:
    """Return how far the rows of one method fall short of the optimum; sums over the snapshots."""
    started = sum(row.started for row in rows)
    incumbent, bound = sum(row.incumbent for row in rows), sum(row.bound for row in rows)
    return Short(_loss(started, incumbent), _loss(started, bound))


def _loss(started: int, best: int) -> float:
    return (best - started) / best if best else 0.0


def per_fill(rows: Sequence[Row], machine: str, method: str) -> dict[int, list[Row]]:
    """Return the rows of a method on a machine by fill, ascending."""
    mine = [row for row in rows if (row.machine, row.method) == (machine, method)]
    fills = sorted({row.fill for row in mine})
    return {fill: [row for row in mine if row.fill == fill] for fill in fills}


def machines_of(rows: Sequence[Row]) -> list[str]:
    """Return the machines of rows in their order, each once."""
    return list(dict.fromkeys(row.machine for row in rows))
