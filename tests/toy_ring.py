"""A topology that nobody ships: jobs on a ring of slots that hold several units each.

A job takes a window of consecutive slots, with one or two units in each: any of its shapes, from
any slot. Levels: its value, and then slots left out of the window, so that short ones are better.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from topoplace.certify.packing import Covers, Prices
from topoplace.types import IntArray


@dataclass(frozen=True)
class Ring:
    """Units that every slot holds, round the ring."""

    capacities: tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """A request: its shapes are the units per slot of a window."""

    id: str
    value: int
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Window:
    """A candidate: units per slot of the ring, and values on both levels."""

    units: tuple[int, ...]
    values: tuple[int, int]


def windows(ring: Ring, job: Job) -> list[Window]:
    """Return the candidates of a job."""
    num = len(ring.capacities)
    found = []
    for shape, start in itertools.product(job.shapes, range(num)):
        units = [0] * num
        for k, amount in enumerate(shape):
            units[(start + k) % num] = amount
        if len(shape) <= num and all(u <= c for u, c in zip(units, ring.capacities, strict=True)):
            found.append(Window(tuple(units), (job.value, num - len(shape))))
    return list(dict.fromkeys(found))


def packings(ring: Ring, jobs: Sequence[Job]) -> Iterator[tuple[int, int]]:
    """Yield what every packing is worth on both levels."""
    for choice in itertools.product(*([None, *windows(ring, job)] for job in jobs)):
        some = [window for window in choice if window is not None]
        used = [sum(window.units[slot] for window in some) for slot in range(len(ring.capacities))]
        if all(u <= c for u, c in zip(used, ring.capacities, strict=True)):
            yield sum(w.values[0] for w in some), sum(w.values[1] for w in some)


def random_ring(rng: random.Random) -> tuple[Ring, list[Job]]:
    """Return a ring of up to five slots and up to four jobs, some of them alike."""
    ring = Ring(tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 5))))
    shapes = [
        tuple(rng.randint(1, 2) for _ in range(rng.randint(1, min(3, len(ring.capacities)))))
        for _ in range(rng.randint(1, 3))
    ]
    jobs = []
    for k in range(rng.randint(1, 4)):
        own = rng.sample(shapes, rng.randint(1, len(shapes)))
        jobs.append(Job(f"j{k}", rng.randint(0, 6), tuple(own)))
    if rng.random() < 0.4:  # some of one kind
        jobs = [replace(job, id=f"j{k}") for k, job in enumerate(rng.choices(jobs, k=4))]
    return ring, jobs


# ---- The checker's side -------------------------------------------------------------------------


@dataclass(frozen=True)
class RingOracle:
    """A ring as `certify.packing.CheckingOracle`, written apart from `windows`."""

    ring: Ring
    requests: tuple[Job, ...]

    @property
    def coverable(self) -> int:
        return len(self.ring.capacities)

    @property
    def rows(self) -> dict[str, IntArray]:
        return {"slots": np.array(self.ring.capacities, dtype=np.int64)}

    @property
    def largest(self) -> tuple[int, int]:
        return max((job.value for job in self.requests), default=0), self.coverable

    def may_replace(self, one: int, other: int) -> bool:
        return {*self.requests[one].shapes} >= {*self.requests[other].shapes}

    def among(self, chosen: Sequence[tuple[int, int]]) -> RingOracle:
        jobs = self.requests
        some = (replace(jobs[q], shapes=jobs[other].shapes) for q, other in chosen)
        return replace(self, requests=tuple(some))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        return {q: self._best(self.requests[q], prices, covers) for q, covers in wanted.items()}

    def _best(self, job: Job, prices: Prices, covers: Covers) -> int | None:
        num = self.coverable
        price = prices.rows.get("slots", np.zeros(num, dtype=np.int64))
        gains = []
        for shape in job.shapes:
            values = job.value, num - len(shape)
            worth = sum(f * v for f, v in zip(prices.factors, values, strict=False))
            for start in range(num) if len(shape) <= num else ():
                slots = (start + np.arange(len(shape))) % num
                too_much = (np.array(shape) > self.rows["slots"][slots]).any()
                if too_much or covers.inside - {*slots} or covers.outside & {*slots}:
                    continue
                gains.append(worth - int((price[slots] * shape).sum()))
        return max(gains, default=None)
