"""Compiled loops over the rows of columns (see `columns`)."""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def marked_rows(starts, rows, which, marked):
    """Return some lists of rows without those that are not marked (see `columns`)."""
    size = 0
    for j in which:
        size += starts[j + 1] - starts[j]
    new_starts = np.zeros(which.shape[0] + 1, np.uint32)
    kept = np.empty(size, np.uint32)
    num = 0
    for i in range(which.shape[0]):
        for k in range(starts[which[i]], starts[which[i] + 1]):
            if marked[rows[k]]:
                kept[num] = rows[k]
                num += 1
        new_starts[i + 1] = num
    return new_starts, kept[:num]


@kernel()
def maximal_sets(words, rarest, starts, holders):
    """Mark the bit sets that are in no earlier set; sets come in order of falling size.

    Only sets that hold the `rarest` member of a set can hold it all: those of member m are
    ``holders[starts[m]:starts[m + 1]]``, ascending.
    """
    num, width = words.shape
    kept = np.ones(num, np.bool_)
    for i in range(num):
        for k in range(starts[rarest[i]], starts[rarest[i] + 1]):
            j = holders[k]
            if j >= i:
                break
            if not kept[j]:
                continue
            inside = True
            for w in range(width):
                if words[i, w] & ~words[j, w]:
                    inside = False
                    break
            if inside:
                kept[i] = False
                break
    return kept
