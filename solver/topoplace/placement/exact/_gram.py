"""Compiled counts of the rows that columns have in common (see `_bundle`)."""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg

from __future__ import annotations

import numpy as np
from numba.extending import intrinsic

from topoplace.kernels import kernel

_WORD = 64  # bits
_SHIFT, _IN_WORD = np.uint64(6), np.uint64(63)
_LINE = 8  # words


@intrinsic
def num_set(typing_context, word):
    """Count the bits set in an unsigned integer, by the processor's own instruction."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return word(word), generate


@kernel()
def rows_in_words(columns, starts, rows, marked):
    """Return the marked rows of some columns as bits, a row of words per column.

    Rows of zeros are added until there are a multiple of four. Rows begin where lines of the cache
    do, and fill them: a fifth faster to go through.
    """
    num = 0
    for r in range(marked.shape[0]):
        num += marked[r]
    place = np.empty(marked.shape[0], np.uint32)
    before = 0
    for r in range(marked.shape[0]):  # the bit after all others is that of rows not marked,
        place[r] = before if marked[r] else num  # until it is cleared
        before += marked[r]
    height = (columns.shape[0] + 3) // 4 * 4
    width = (num // _WORD + _LINE) // _LINE * _LINE
    room = np.zeros(height * width + _LINE, np.uint64)
    first = -(room.ctypes.data // 8) % _LINE
    words = room[first : first + height * width].reshape(height, width)
    one, last = np.uint64(1), np.uint64(num)
    for i in range(columns.shape[0]):
        mine = words[i]
        for k in range(np.uint64(starts[columns[i]]), np.uint64(starts[columns[i] + 1])):
            at = np.uint64(place[np.uint64(rows[k])])
            mine[at >> _SHIFT] |= one << (at & _IN_WORD)
        mine[last >> _SHIFT] &= ~(one << (last & _IN_WORD))
    return words


@kernel()
def gram(words):
    """Return how many bits every two rows of words have in common; rows come in fours."""
    num = words.shape[0]
    common = np.empty((num, num), np.float32)
    for i in range(0, num, 4):  # four at once: each row is read a quarter as often
        one, two, three, four = words[i], words[i + 1], words[i + 2], words[i + 3]
        for k in range(i + 4):
            other = words[k]
            a = b = c = d = np.uint64(0)
            for w in range(words.shape[1]):
                bits = other[w]
                a += num_set(one[w] & bits)
                b += num_set(two[w] & bits)
                c += num_set(three[w] & bits)
                d += num_set(four[w] & bits)
            common[k, i] = common[i, k] = a
            common[k, i + 1] = common[i + 1, k] = b
            common[k, i + 2] = common[i + 2, k] = c
            common[k, i + 3] = common[i + 3, k] = d
    return common
