"""Many vectors of thresholds held against one, in sets of bits.

Per step and value there is a set of the vectors that are no less there; those of the last value are
empty. What is no less than a vector everywhere is the intersection of one set per step.
"""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

_BIT = np.uint64(1)
_NONE = np.uint64(0)


@kernel()
def mark(sets, number, at):
    """Put a vector into its sets, of shape ``(num_steps, num_values, num_words)``."""
    bit = _BIT << np.uint64(number % 64)
    for n in range(len(at)):
        for v in range(at[n] + 1):
            sets[n, v, number // 64] |= bit


@kernel()
def no_less(sets, num, at):
    """Return the set of the first `num` vectors that are nowhere below a vector."""
    last = sets.shape[1] - 1
    found = sets[0, min(at[0], last), : (num + 63) // 64].copy()
    for n in range(1, len(at)):
        own = sets[n, min(at[n], last)]
        for w in range(len(found)):
            found[w] &= own[w]
    return found


@kernel()
def _no_more(sets, num, at, free):
    """Return the set of the first `num` vectors nowhere above a vector but in a step."""
    above = np.zeros((num + 63) // 64, dtype=np.uint64)
    last = sets.shape[1] - 1
    for n in range(len(at)):
        if n != free:
            own = sets[n, min(at[n] + 1, last)]
            for w in range(len(above)):
                above[w] |= own[w]
    if num % 64:
        above[-1] |= ~((_BIT << np.uint64(num % 64)) - _BIT)
    return ~above


@kernel()
def below(sets, num, at):
    """Tell whether one of the first `num` vectors is nowhere above a vector."""
    return (_no_more(sets, num, at, -1) != _NONE).any()


@kernel()
def members(words):
    """Return the numbers in a set."""
    found = np.empty(64 * len(words), dtype=np.int64)
    num = 0
    for w in range(len(words)):
        word = words[w]
        at = 64 * w
        while word != _NONE:
            if word & _BIT:
                found[num] = at
                num += 1
            word >>= _BIT
            at += 1
    return found[:num]


@kernel()
def ceiling(corners, sets, at, step, top):
    """Return the largest value of a step, up to `top`, with none of some vectors below `at`."""
    for c in members(_no_more(sets, len(corners), at, step)):
        top = min(top, corners[c, step] - 1)
    return top
