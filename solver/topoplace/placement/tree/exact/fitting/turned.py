"""The numbering of a cube's ranks at which its dearest steps have the fewest hops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]


def turned(job: Job, leaves: IntArray) -> IntArray:
    """Return an allocation with the distances of a full cube exchanged to the least cost.

    Any order of the bits of the ranks' numbers is the same pattern with its steps in another
    order (the rearrangement inequality says which is best). Other jobs are left as they are.
    """
    if len(job.families) != 1 or not job.families[0].alike:
        return leaves
    comm = job.comm + np.bincount(leaves, minlength=len(job.comm))
    hops, bits = [], []
    for step in job.steps:
        ends = leaves[step.pairs]
        hops.append(int(job.model.scaled_hops(ends[:, 0], ends[:, 1], comm).max()))
        bits.append(int(step.pairs[0, 0] ^ step.pairs[0, 1]))
    by_hops = np.argsort(hops, kind="stable")
    by_price = np.argsort([-step.price for step in job.steps], kind="stable")
    ranks = np.arange(job.ranks)
    came = np.zeros(job.ranks, dtype=np.int64)
    for old, new in zip(by_hops.tolist(), by_price.tolist(), strict=True):
        came += np.where(ranks & bits[new], bits[old], 0)
    found: IntArray = leaves[came]
    return found
