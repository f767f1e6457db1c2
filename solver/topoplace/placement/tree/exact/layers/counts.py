"""All numbers of ranks that leaves may have which have little room to spare."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.lines.tables import Tables

IntArray = NDArray[np.int64]

_MOST = 1500
_MOST_SPARE = 24
"""More counts or spare ranks are not tried one by one."""


def whole_counts(tables: Tables) -> IntArray | None:
    """Return leaves per state in all ways that hold all ranks, row by row; None if too many."""
    num_types = len(tables.multiplicity)
    most = [int(tables.ranks[tables.leaf_type == t].max()) for t in range(num_types)]
    spare = int(tables.multiplicity @ most) - tables.cells
    if not 0 <= spare <= _MOST_SPARE:
        return None
    state = {(t, x): s for s, (t, x) in enumerate(zip(*_keys(tables), strict=True))}
    found: list[IntArray] = []
    for lacks in _shared(spare, most, tables.multiplicity.tolist()):
        if len(found) == _MOST:
            return None
        row = np.zeros(len(tables.ranks), dtype=np.int64)
        for t, own in enumerate(lacks):
            for lack in own:
                if lack < most[t]:
                    row[state[t, most[t] - lack]] += 1
        found.append(row)
    return np.array(found)


def _keys(tables: Tables) -> tuple[list[int], list[int]]:
    return tables.leaf_type.tolist(), tables.ranks.tolist()


def _shared(
    spare: int, most: list[int], leaves: list[int]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield what the leaves of every type lack, in all ways to share out what all lack."""
    if not most:
        if spare == 0:
            yield ()
        return
    later = sum(m * n for m, n in zip(most[1:], leaves[1:], strict=True))
    for own in range(max(0, spare - later), min(spare, most[0] * leaves[0]) + 1):
        for lacks in _partitions(own, most[0], leaves[0]):
            for rest in _shared(spare - own, most[1:], leaves[1:]):
                yield lacks, *rest


def _partitions(total: int, most: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield so many numbers from 0 to a most, descending, that add up to a total."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(min(total, most), -(-total // parts) - 1, -1):
        for rest in _partitions(total - first, first, parts - 1):
            yield first, *rest
