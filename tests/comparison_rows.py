"""Rows of comparisons made by hand."""

from __future__ import annotations

from topoplace.result import Interference
from topoplace.study.compare import ComparisonRow


def row(instance: str, method: str, gap: float | None, rank: int | None) -> ComparisonRow:
    fits = rank is not None
    return ComparisonRow(
        snapshot=instance,
        method=method,
        interference=Interference.STRICT,
        objective=10,
        bound=12,
        gap=gap,
        seconds=0.5,
        jobs_started=1,
        jobs_queued=2,
        shared_links=0,
        conforming=fits,
        status="feasible",
        proof="none",
        rank=rank,
        ratio=1.25 if fits else None,
    )
