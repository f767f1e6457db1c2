"""Compiled loops over the rows of columns (see `columns`)."""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def runs_of(rows):
    """Return a list of rows as runs of consecutive rows: the first row, and how many."""
    num = 0
    for k in range(rows.shape[0]):
        num += k == 0 or rows[k] != rows[k - 1] + 1
    runs = np.empty((num, 2), np.uint32)
    num = 0
    for k in range(rows.shape[0]):
        if k == 0 or rows[k] != rows[k - 1] + 1:
            runs[num, 0], runs[num, 1] = rows[k], 0
            num += 1
        runs[num - 1, 1] += np.uint32(1)
    return runs


@kernel()
def rows_of_runs(runs):
    """Return the rows of some runs."""
    size = 0
    for i in range(runs.shape[0]):
        size += runs[i, 1]
    rows = np.empty(size, np.uint32)
    at = 0
    for i in range(runs.shape[0]):
        first = np.int64(runs[i, 0])
        for k in range(np.int64(runs[i, 1])):
            rows[at] = first + k
            at += 1
    return rows


@kernel()
def marked_rows(starts, runs, which, marked):
    """Return the marked rows of some lists of rows (see `columns`)."""
    size = 0
    for j in which:
        for i in range(np.int64(starts[j]), np.int64(starts[j + 1])):
            first = np.int64(runs[i, 0])
            for r in range(first, first + np.int64(runs[i, 1])):
                size += marked[r]
    new_starts = np.zeros(which.shape[0] + 1, np.uint32)
    kept = np.empty(size, np.uint32)
    num = 0
    for n in range(which.shape[0]):
        for i in range(np.int64(starts[which[n]]), np.int64(starts[which[n] + 1])):
            first = np.int64(runs[i, 0])
            for r in range(first, first + np.int64(runs[i, 1])):
                if marked[r]:
                    kept[num] = r
                    num += 1
        new_starts[n + 1] = num
    return new_starts, kept


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
