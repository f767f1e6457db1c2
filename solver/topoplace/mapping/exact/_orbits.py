"""Compiled questions to the symmetries that leave in place all that a partial mapping placed.

``listed[kept[depth, s]]`` for s below ``count[depth]`` are the symmetries of a level.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

from topoplace.kernels import kernel


@kernel()
def keep_fixing(listed, kept, count, depth, point):
    """Keep one level down the symmetries that leave a task or router where it is."""
    found = 0
    for s in range(count[depth]):
        if listed[kept[depth, s], point] == point:
            kept[depth + 1, found] = kept[depth, s]
            found += 1
    count[depth + 1] = found


@kernel()
def images(listed, kept, count, depth, point, marks):
    """Mark what the symmetries of a level make of a task or router."""
    marks[:] = 0
    for s in range(count[depth]):
        marks[listed[kept[depth, s], point]] = 1


@kernel()
def representatives(listed, kept, count, depth, first):
    """Set for every task or router the least one that a symmetry of this level makes of it."""
    for p in range(listed.shape[1]):
        first[p] = p
    for s in range(count[depth]):
        for p in range(listed.shape[1]):
            first[p] = min(first[p], listed[kept[depth, s], p])
