"""Cubes on machines that they fill more or less."""

from __future__ import annotations

import random

import numpy as np

from topoplace.placement.tree.exact.job import Job
from topoplace.snapshot.schema import Communication, Pattern, PatternUse, Snapshot
from topoplace.snapshot.tree_state import prepare_tree
from tree_cases import model_of, snapshot_on
from tree_exact_cases import job_on, jobs_of

CUBE = Pattern.RECURSIVE_DOUBLING
CUBES = (CUBE, Pattern.VECTOR_DOUBLING)


def random_job(pattern: Pattern, seed: int) -> tuple[Job, np.random.Generator]:
    """Return a cube on leaves of two to nine nodes, some partly held, and what drew it."""
    rng = np.random.default_rng(seed)
    ranks = int(rng.choice([8, 16, 32]))
    sizes: list[int] = []
    busy: list[int] = []
    while sum(sizes) - sum(busy) < ranks:
        size = int(rng.integers(2, 10))
        sizes.append(size)
        busy.append(int(rng.integers(0, size)) if rng.random() < 0.3 else 0)
    return job_on([*sizes, 3], pattern, ranks, [*busy, 0]), rng


def cube_snapshot(seed: int) -> tuple[Snapshot, Job]:
    """Return leaves that a cube nearly fills, some partly held, and the request alone."""
    rng = random.Random(f"cube-{seed}")
    ranks = rng.choice((32, 64, 128))
    sizes = [rng.choice((6, 9, 10))] * (ranks // 6)
    while sum(sizes) > 1.2 * ranks:
        sizes.pop()
    while sum(sizes) < ranks + 3:
        sizes.append(rng.choice((5, 7, 9)))
    held = [(f"n{sum(sizes) - k}", Communication.STRICT) for k in (1, 2, 3)]
    pattern = rng.choice(CUBES)
    snapshot = snapshot_on(model_of(sizes), held, [(ranks, [PatternUse(pattern=pattern)])])
    (job,) = jobs_of(prepare_tree(snapshot))
    return snapshot, job
