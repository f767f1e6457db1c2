"""The solver's side of the toy topology: a ring of slots as a plug-in of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.packing.listed import ListedOracle
from topoplace.packing.problem import Cover, PackingProblem, Priced, capacities_left
from topoplace.types import IntArray
from toy_ring import Job, Ring, windows


@dataclass(frozen=True, order=True)
class Placed:
    """A job in a window."""

    request_idx: int
    units: tuple[int, ...]
    values: tuple[int, int]


class RingPacking(PackingProblem):
    """Jobs on a ring; slots are the rows, and all candidates are listed."""

    senses = (1, 1)
    is_small = True

    def __init__(self, ring: Ring, jobs: Sequence[Job]) -> None:
        self.ring, self.jobs = ring, jobs
        self.names = [job.id for job in jobs]
        self.values = np.array([job.value for job in jobs], dtype=np.int64)
        self.capacities = np.array(ring.capacities, dtype=np.int64)
        self.num_covers = len(ring.capacities)
        self.families = {"slots": slice(0, self.num_covers)}
        self._oracle = ListedOracle(self, self.candidates)

    @property
    def kinds(self) -> list[object]:
        return [(job.value, frozenset(job.shapes)) for job in self.jobs]

    def candidates(self) -> list[Placed]:
        """Return all windows of all jobs."""
        every = enumerate(self.jobs)
        return [Placed(q, w.units, w.values) for q, job in every for w in windows(self.ring, job)]

    def rows_of(self, candidate: Placed) -> IntArray:
        return np.repeat(np.arange(self.num_rows), candidate.units)

    def values_of(self, candidates: Sequence[Placed]) -> IntArray:
        return np.array([c.values for c in candidates], dtype=np.int64).reshape(-1, 2)

    def largest(self, level: int) -> int:
        return self.num_rows if level else int(self.values.max(initial=0))

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return 1e-4

    def price(
        self,
        row_prices: IntArray,
        weights: Sequence[int],
        per_request: int,
        covers: tuple[Cover, ...] = (),
        *,
        exact_for: frozenset[int] | None = None,
    ) -> Priced:
        return self._oracle.price(row_prices, weights, per_request, covers)

    def starts(self, deadline: float) -> Iterator[list[Placed]]:
        yield []

    def left_by(self, fixed: Sequence[Placed], kept: Sequence[int]) -> RingPacking:
        left = capacities_left(self, fixed)
        return RingPacking(Ring(tuple(left.tolist())), [self.jobs[q] for q in kept])
