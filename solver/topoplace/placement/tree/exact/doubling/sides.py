"""Which steps are inside leaves altogether: the boxes that a search begins with.

Where a step that crosses precedes one that is inside, they can change places: rank a has child b,
then a and b have c and d on their own leaves; so a may have c first, and then a has b and c has d.
With equal prices and no idle ranks, all steps inside come first, and they are all on one leaf.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Box = tuple[IntArray, IntArray]


def inside_first(inside: IntArray, gap: int, top: int, num_steps: int) -> Iterator[Box]:
    """Yield boxes of thresholds by number for steps that can change places.

    Parameters
    ----------
    inside
        Numbers of the hops inside leaves.
    gap, top
        Numbers of the least hops between leaves and of the most.
    """
    for num_inside in range(num_steps + 1):
        for value in sorted(inside.tolist(), reverse=True) if num_inside else (0,):
            low = np.full(num_steps, gap, dtype=np.int64)
            high = np.full(num_steps, top, dtype=np.int64)
            low[:num_inside] = high[:num_inside] = value
            yield low, high


def any_inside(gap: int, top: int, num_steps: int) -> Iterator[Box]:
    """Yield boxes of thresholds by number for every set of steps inside leaves."""
    for inside in itertools.product((True, False), repeat=num_steps):
        kept = np.array(inside)
        yield np.where(kept, 0, gap), np.where(kept, gap - 1, top)
