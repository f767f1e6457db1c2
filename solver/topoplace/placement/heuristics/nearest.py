"""The prisms nearest to free: admissible, and with the fewest nodes of other jobs inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism
from topoplace.placement.heuristics import _nearest
from topoplace.placement.heuristics.footprints import Footprints
from topoplace.placement.heuristics.prism_search import Entries, entries_of
from topoplace.placement.heuristics.room import Reach
from topoplace.snapshot import QueuedState

IntArray = NDArray[np.int64]


def nearest_prisms(
    footprints: Footprints,
    requests: Sequence[QueuedState],
    reach: Reach,
    usable: IntArray,
    held: IntArray,
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

    Returns
    -------
    list
        None for a request without prism. Ties go to the least volume, then to the smallest
        extents and origin in lexicographic order.
    """
    whole = usable == footprints.torus.nodes_per_router
    parts = [entries_of(footprints, request, whole) for request in requests]
    footprint, owner, entries = _joined(parts)
    first = np.searchsorted(footprint, np.arange(len(footprints.area) + 1))
    num = len(requests)
    fewest = np.full(num, np.iinfo(np.int64).max, dtype=np.int64)
    volume = np.full(num, np.iinfo(np.int64).max, dtype=np.int64)
    code = np.full(num, -1, dtype=np.int64)
    _nearest.nearest(
        first, owner, entries.low, entries.high, entries.least_idx, entries.least,
        np.array([request.nodes for request in requests], dtype=np.int64),
        reach.table, reach.deepest, footprints.sums(usable), footprints.sums(held),
        footprints.bases, footprints.box, footprints.signs, footprints.area,
        fewest, volume, code,
    )  # fmt: skip
    return [
        None if c < 0 else (footprints.prism(c), h)
        for c, h in zip(code.tolist(), fewest.tolist(), strict=True)
    ]


def _joined(parts: Sequence[Entries]) -> tuple[IntArray, IntArray, Entries]:
    """Return all entries sorted by footprint, with their footprints and owners."""
    shift = np.cumsum([0] + [len(part.least) for part in parts])
    least_idx = [
        np.where(part.least_idx < 0, -1, part.least_idx + by)
        for part, by in zip(parts, shift.tolist(), strict=False)
    ]
    owner = np.concatenate([np.full(len(p.low), i, dtype=np.int64) for i, p in enumerate(parts)])
    joined = Entries(
        np.concatenate([part.footprint for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate(least_idx),
        np.concatenate([part.least for part in parts]),
    )
    order = np.argsort(joined.footprint, kind="stable")
    kept = joined.kept(order)
    return kept.footprint, np.ascontiguousarray(owner[order]), kept
