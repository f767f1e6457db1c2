"""Random rings, and every packing of one, for tests of the engine and the checker."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from random_certificates import Column, Packing
from toy_ring import Job, Ring, RingOracle, windows


def packings(ring: Ring, jobs: Sequence[Job]) -> Iterator[tuple[int, int]]:
    """Yield what every packing is worth on both levels."""
    for choice in itertools.product(*([None, *windows(ring, job)] for job in jobs)):
        some = [window for window in choice if window is not None]
        used = [sum(w.rows.count(slot) for w in some) for slot in range(len(ring.capacities))]
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


def packing_of(ring: Ring, jobs: Mapping[str, Job], earlier: Sequence[int]) -> Packing:
    """Return jobs on a ring as random certificates want them."""
    columns = [
        Column(
            name,
            {("slots", slot): window.rows.count(slot) for slot in window.rows},
            frozenset(window.rows),
            window.values,
        )
        for name, job in jobs.items()
        for window in windows(ring, job)
    ]
    kinds: dict[object, list[str]] = {}
    for name, job in jobs.items():
        kinds.setdefault(frozenset(job.shapes), []).append(name)

    def among(chosen: object) -> Packing:
        some = {
            name: replace(jobs[name], shapes=jobs[other].shapes)
            for name, other in chosen  # type: ignore[attr-defined]
        }
        return packing_of(ring, some, earlier)

    num = len(ring.capacities)
    return Packing(
        list(jobs),
        {"slots": list(ring.capacities)},
        columns,
        num,
        RingOracle(ring, tuple(jobs.values())).largest,
        list(kinds.values()),
        among,
        earlier,
    )
