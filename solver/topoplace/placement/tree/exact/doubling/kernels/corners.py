"""Many vectors of thresholds held against one."""

from __future__ import annotations

import numba


@numba.njit(cache=True, nogil=True)
def below(corners, at):
    """Tell whether a vector is nowhere above another."""
    for c in range(len(corners) - 1, -1, -1):
        fits = True
        for n in range(len(at)):
            if corners[c, n] > at[n]:
                fits = False
                break
        if fits:
            return True
    return False


@numba.njit(cache=True, nogil=True)
def ceiling(corners, at, step, top):
    """Return the largest value of a step, up to `top`, with which no vector lies below `at`."""
    for c in range(len(corners)):
        if corners[c, step] <= top:
            fits = True
            for n in range(len(at)):
                if n != step and corners[c, n] > at[n]:
                    fits = False
                    break
            if fits:
                top = corners[c, step] - 1
    return top
