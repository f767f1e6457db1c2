"""The prisms nearest to free: admissible, and with the fewest nodes of other jobs inside."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from topoplace import clock
from topoplace.machine import Prism
from topoplace.placement.torus.footprints import Footprints, Reach
from topoplace.placement.torus.heuristics import _kernels
from topoplace.placement.torus.heuristics.prism_search import entries_of
from topoplace.snapshot import QueuedState
from topoplace.types import IntArray

_NOTHING = np.iinfo(np.int64).max
_WORTH_THREADS = 64  # footprints


def nearest_prisms(
    footprints: Footprints,
    requests: Sequence[QueuedState],
    reach: Reach,
    usable: IntArray,
    held: IntArray,
    deadline: float = math.inf,
) -> list[tuple[Prism, int] | None]:
    """Return per request the prism that holds the fewest nodes of others, and their number.

    Parameters
    ----------
    requests
        Requests that differ in nodes and geometries only.
    reach
        How deep their prisms may go.
    usable
        Nodes per router that count for the requests.
    held
        Nodes per router that other jobs hold.
    deadline
        When to give up.

    Returns
    -------
    list
        None for a request without prism. Ties go to the least volume, then to the smallest
        extents and origin in lexicographic order, the longest dimension last.

    Raises
    ------
    OutOfTimeError
        At the deadline.
    """
    entries = entries_of(footprints, requests, usable == footprints.torus.nodes_per_router)
    every = np.arange(len(footprints.area))
    first = np.searchsorted(entries.footprint, np.arange(len(every) + 1))
    need = np.array([request.nodes for request in requests], dtype=np.int64)
    sums, held_sums = footprints.sums(usable), footprints.sums(held)

    def search(part: IntArray) -> IntArray:
        """Return (fewest nodes of others, volume, code) of every request, of some footprints."""
        found = np.full((3, len(requests)), _NOTHING, dtype=np.int64)
        for some in footprints.chunks(len(footprints.bases), part):
            clock.check(deadline)
            _kernels.nearest(
                some, first, entries.table, entries.least, need, reach.table, reach.deepest,
                sums, held_sums, footprints.bases, footprints.box, footprints.signs,
                footprints.area, *found,
            )  # fmt: skip
        return found

    num_parts = min(8, os.cpu_count() or 1) if len(every) >= _WORTH_THREADS else 1
    with ThreadPoolExecutor(num_parts) as pool:
        parts_found = list(pool.map(search, [every[k::num_parts].copy() for k in range(num_parts)]))
    best = [min(rows) for rows in zip(*(found.T.tolist() for found in parts_found), strict=True)]
    return [None if b[0] == _NOTHING else (footprints.prism(b[2]), b[0]) for b in best]
