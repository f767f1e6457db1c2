"""Rows of the study of pencils, and what they say together."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

METHODS = {
    "topaware": "Topaware: leftmost",
    "window": "optimal in the same window",
    "pencils": "optimal over all windows",
    "searched": "with local search",
}
"""Fields of a row that hold hop-bytes, in the order in which each starts from the one before."""


@dataclass(frozen=True)
class Row:
    """One grid, and one state of the routers. Hop-bytes are None where nothing has room.

    Attributes
    ----------
    percent, seed
        Share of the region's routers that is unusable, and its draw.
    needed
        Least hop-bytes of any layout with nothing unusable.
    layout_ideal
        The same of the layout that Topaware takes.
    topaware, window, pencils, searched
        Hop-bytes by method (`METHODS`).
    bound
        Certified: no mapping onto the usable nodes has less.
    window_proven
        Whether a flow proves the selection best in its window.
    pencils_complete
        Whether all windows were searched or ruled out within the time limit.
    """

    setting: str
    snapshot: str
    percent: int
    seed: int
    grid: str
    needed: int
    layout_ideal: int | None = None
    topaware: int | None = None
    window: int | None = None
    pencils: int | None = None
    searched: int | None = None
    bound: int | None = None
    window_proven: bool | None = None
    pencils_complete: bool | None = None
    seconds_topaware: float | None = None
    seconds_window: float | None = None
    seconds_pencils: float | None = None


def excess(rows: Sequence[Row], method: str) -> float | None:
    """Return the mean excess of a method over what is needed, as a share of that."""
    return _mean([getattr(row, method) / row.needed - 1 for row in complete(rows)])


def gap(rows: Sequence[Row], method: str) -> float | None:
    """Return the mean gap of a method to the certified bound."""
    return _mean([1 - (row.bound or 0) / getattr(row, method) for row in complete(rows)])


def removed(rows: Sequence[Row], method: str, base: str) -> float | None:
    """Return the share of Topaware's excess over `base`, a field, that a method removes.

    Excesses are added up first, so that rows with hardly any do not count as much as others.
    """
    known = complete(rows)
    before = sum(row.topaware - getattr(row, base) for row in known)
    after = sum(getattr(row, method) - getattr(row, base) for row in known)
    return (before - after) / before if before > 0 else None


def complete(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with figures of every method."""
    return [row for row in rows if row.searched is not None]


def grids_of(rows: Sequence[Row]) -> list[str]:
    """Return the grids of rows in their order, each once."""
    return list(dict.fromkeys(row.grid for row in rows))


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
