"""Draw tori with anchored prisms on which jobs have come and gone.

Seeds from 500 are for what is reported.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from topoplace.machine.hostlist import format_node_set
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    AnchoredModel,
    PrismModel,
    Request,
    RunningJob,
    Snapshot,
    TorusModel,
)

SHAPE = (8, 8, 8)
DIMS = ((1, 2, 2), (2, 2, 2), (2, 4, 4), (4, 4, 4), (4, 4, 8), (8, 8, 8))
STEP = 2
"""Anchors are so far from each other, or as far as the shape is long if that is less."""

_JOBS = DIMS[:-1]
_FULL = 0.95  # of the nodes: then jobs end, until the load is as wanted
_MISSES = 50

Triple = tuple[int, int, int]


def busy_torus(seed: int, load: float, jobs: int) -> Snapshot:
    """Return a torus of 8x8x8 nodes on which jobs have come and gone, with a queue.

    All jobs are of a shape drawn evenly. They came to any free anchor until the torus was full, or
    many in a row found none; then they ended in any order, down to the load.

    Parameters
    ----------
    load
        Share of the nodes that running jobs hold, at most.
    jobs
        How many wait.
    """
    rng = random.Random(f"anchored-{seed}-{load}-{jobs}")
    held = _running(rng, load)
    machine = TorusModel(
        name="torus_8x8x8",
        shape=list(SHAPE),
        anchored=[AnchoredModel(dims=list(d), spacing=list(_spacing(d))) for d in DIMS],
    )
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=f"torus_{round(100 * load)}_{jobs}_{seed}",
        machine=machine,
        running=[
            RunningJob(
                id=f"run{k}",
                nodes=format_node_set(_routers(dims, origin)),
                prism=PrismModel(origin=list(origin), extents=list(dims)),
            )
            for k, (dims, origin) in enumerate(held)
        ],
        queue=[Request(id=f"job{k}", nodes=_size(rng.choice(_JOBS))) for k in range(jobs)],
        seed=seed,
    )


def _running(rng: random.Random, load: float) -> list[tuple[Triple, Triple]]:
    """Return the running jobs: dims and origin."""
    held: list[tuple[Triple, Triple]] = []
    busy: set[int] = set()
    total, misses = _size(SHAPE), 0
    while len(busy) < _FULL * total and misses < _MISSES:
        dims = rng.choice(_JOBS)
        free = [o for o in _anchors(dims) if busy.isdisjoint(_routers(dims, o))]
        misses += not free
        if free:
            held.append((dims, rng.choice(free)))
            busy |= set(_routers(*held[-1]))
    rng.shuffle(held)
    while held and len(busy) > load * total:
        busy -= set(_routers(*held.pop()))
    return held


def _size(dims: Sequence[int]) -> int:
    return dims[0] * dims[1] * dims[2]


def _spacing(dims: Triple) -> Triple:
    return (min(STEP, dims[0]), min(STEP, dims[1]), min(STEP, dims[2]))


def _anchors(dims: Triple) -> list[Triple]:
    """Return the origins of a shape; along a dimension that it spans that is 0."""
    steps = zip(dims, _spacing(dims), SHAPE, strict=True)
    x, y, z = (range(0, length if own < length else 1, step) for own, step, length in steps)
    return list(itertools.product(x, y, z))


def _routers(dims: Triple, origin: Triple) -> Iterator[int]:
    ways = zip(dims, origin, SHAPE, strict=True)
    x, y, z = ([(at + k) % length for k in range(own)] for own, at, length in ways)
    return ((a * SHAPE[1] + b) * SHAPE[2] + c for a, b, c in itertools.product(x, y, z))
