"""Small cases to the end: every assignment of the ranks of all jobs, worse branches cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.cost import CostModel
from topoplace.placement.tree.exact.building._kernels import exhaust
from topoplace.placement.tree.exact.job import JobStep

IntArray = NDArray[np.int64]

_LARGEST = 1 << 60


@dataclass(frozen=True)
class SmallJob:
    """A job of `ranks` ranks; without `intensive` it only takes nodes."""

    ranks: int
    steps: tuple[JobStep, ...]
    intensive: bool


def best_of_all(
    model: CostModel,
    jobs: Sequence[SmallJob],
    comm: IntArray,
    free: IntArray,
    to_beat: int,
    limit: int,
) -> tuple[list[IntArray] | None, bool]:
    """Return the leaf of every rank of all jobs at the least total cost below `to_beat`.

    Parameters
    ----------
    to_beat
        In units of 1 / (100 `model.scale`).
    limit
        Assignments, partial ones included, to try.

    Returns
    -------
    The assignment per job, None if there is none below; and whether that is certain.
    """
    prices = [step.price for job in jobs for step in job.steps]
    common = math.gcd(*prices) or 1
    levels = 2 * model.tree.common_level
    worst = 4 * int(levels.max()) * int(model.scale)
    if worst * sum(prices) // common >= _LARGEST:
        return None, False
    sizes = model.tree.nodes_per_leaf
    pairs, step, job_of_rank = [np.zeros((0, 2), dtype=np.int64)], [], []
    number, base = 0, 0
    for idx, job in enumerate(jobs):
        for each in job.steps:
            pairs.append(np.sort(each.pairs, axis=1) + base)
            step += [number] * len(each.pairs)
            number += 1
        job_of_rank += [idx] * job.ranks
        base += job.ranks
    all_pairs = np.concatenate(pairs)
    order = np.argsort(all_pairs[:, 1], kind="stable")
    all_pairs = all_pairs[order]
    _, complete, leaf = exhaust(
        all_pairs,
        np.searchsorted(all_pairs[:, 1], np.arange(base + 1)),
        np.array(step, dtype=np.int64)[order],
        np.array([price // common for price in prices], dtype=np.int64),
        np.array(job_of_rank, dtype=np.int64),
        np.array([job.intensive for job in jobs], dtype=np.int64),
        free.astype(np.int64),
        comm.astype(np.int64),
        levels.astype(np.int64),
        int(model.scale),
        (int(model.scale) // sizes).astype(np.int64),
        (int(model.scale) // (2 * (sizes[:, None] + sizes))).astype(np.int64),
        _twins(model, comm, free),
        -(-to_beat // common),
        limit,
    )
    if leaf[0] < 0:
        return None, bool(complete)
    ends = np.cumsum([job.ranks for job in jobs])
    return np.split(leaf, ends[:-1]), bool(complete)


def _twins(model: CostModel, comm: IntArray, free: IntArray) -> IntArray:
    """Return, per leaf, the last leaf before it that is the same in size, state and place."""
    tree = model.tree
    twin = np.full(tree.num_leaves, -1, dtype=np.int64)
    for leaf in range(tree.num_leaves):
        for other in range(leaf - 1, -1, -1):
            swapped = np.arange(tree.num_leaves)
            swapped[[leaf, other]] = other, leaf
            if (
                tree.nodes_per_leaf[leaf] == tree.nodes_per_leaf[other]
                and comm[leaf] == comm[other]
                and free[leaf] == free[other]
                and (tree.common_level[leaf] == tree.common_level[other][swapped]).all()
            ):
                twin[leaf] = other
                break
    return twin
