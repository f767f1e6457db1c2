"""Compiled loops over the rows of columns (see `columns`)."""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def numbered(marked):
    """Return how many rows before each one, and in total, are marked."""
    before = np.zeros(marked.shape[0] + 1, np.uint32)
    for r in range(marked.shape[0]):
        before[r + 1] = before[r] + marked[r]
    return before


@kernel()
def runs_of(starts, rows):
    """Return lists of rows as runs of consecutive rows: the first row, and how many.

    The k-th list is ``rows[starts[k]:starts[k + 1]]``; returns such starts for runs, and the runs.
    """
    runs = np.empty((rows.shape[0], 2), np.uint32)
    new_starts = np.zeros(starts.shape[0], np.int64)
    num = 0
    for n in range(starts.shape[0] - 1):
        for k in range(starts[n], starts[n + 1]):
            if k == starts[n] or rows[k] != rows[k - 1] + 1:
                runs[num, 0], runs[num, 1] = rows[k], 0
                num += 1
            runs[num - 1, 1] += np.uint32(1)
        new_starts[n + 1] = num
    return new_starts, runs[:num]


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
def marked_runs(starts, runs, which, before):
    """Return the marked rows of some lists of rows, numbered among all that are marked, as runs.

    `before` is what `numbered` returns. Runs are pairs: the first number, and the one after the
    last; a list has its runs ``starts[k]:starts[k + 1]``.
    """
    size = np.int64(0)
    for j in which:
        size += np.int64(starts[j + 1]) - np.int64(starts[j])
    new_starts = np.zeros(which.shape[0] + 1, np.uint32)
    kept = np.empty((size, 2), np.uint32)
    num = 0
    for n in range(which.shape[0]):
        begun = num
        for i in range(np.int64(starts[which[n]]), np.int64(starts[which[n] + 1])):
            first = np.int64(runs[i, 0])
            begin, end = before[first], before[first + np.int64(runs[i, 1])]
            if end == begin:
                continue
            if num > begun and kept[num - 1, 1] == begin:
                kept[num - 1, 1] = end
                continue
            kept[num, 0], kept[num, 1] = begin, end
            num += 1
        new_starts[n + 1] = num
    return new_starts, kept[:num].copy()


@kernel()
def sums_over(starts, runs, num, values):
    """Return for each of the first lists of rows the sum of their values."""
    before = np.zeros(values.shape[0] + 1)
    for r in range(values.shape[0]):
        before[r + 1] = before[r] + values[r]
    sums = np.zeros(num)
    for j in range(num):
        for i in range(np.int64(starts[j]), np.int64(starts[j + 1])):
            first = np.int64(runs[i, 0])
            sums[j] += before[first + np.int64(runs[i, 1])] - before[first]
    return sums


@kernel()
def using(starts, runs, which, row):
    """Mark those of some lists of rows that have a row."""
    found = np.zeros(which.shape[0], np.bool_)
    for n in range(which.shape[0]):
        for i in range(np.int64(starts[which[n]]), np.int64(starts[which[n] + 1])):
            first = np.int64(runs[i, 0])
            found[n] |= first <= row < first + np.int64(runs[i, 1])
    return found


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
