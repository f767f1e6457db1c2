"""Whether vectors that lie under none of some others are all dear enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.certify.integers import ROOM, require_room

_LARGEST = ROOM


Box = tuple[Sequence[int], Sequence[int]]
"""Least and largest components."""


def has_cheap_one(
    costs: Sequence[Sequence[int]],
    nogoods: Sequence[Sequence[int]],
    bound: int,
    boxes: Sequence[Box] | None = None,
) -> bool:
    """Tell whether a vector under no nogood costs less than a bound.

    A vector is under a nogood if no component is above the nogood's. What a nogood leaves of a
    box of vectors are boxes again; it takes those whose cheapest corner is under no nogood.

    Parameters
    ----------
    costs
        Per component the cost of its values 0, 1, .., ascending; they are added up.
    boxes
        Which vectors count; all without it.

    Raises
    ------
    RefusedError
        If a sum of costs or the bound does not fit 64 bits.
    """
    require_room(sum(own[-1] for own in costs), "the cost of thresholds")
    require_room(abs(bound), "the bound of a proof, in the unit of its thresholds")
    # one value more, dearer than all: above it there is nothing
    cost = np.array([[*own, _LARGEST] for own in costs], dtype=np.int64)
    corners = np.array(nogoods, dtype=np.int64).reshape(-1, len(costs)).T.copy()
    every = np.arange(len(costs))
    above = cost[every[:, None], corners + 1]
    if boxes is None:
        boxes = [([0] * len(costs), [len(costs[0]) - 1] * len(costs))]
    stack = []
    for lows, highs in boxes:
        low, high = np.array(lows), np.array(highs)
        over = np.flatnonzero((corners >= low[:, None]).all(axis=0))
        stack.append((low, high, over, 0))
    while stack:
        low, high, over, raised = stack.pop()
        at_low = cost[every, low]
        spare = bound - int(at_low.sum())
        if spare <= 0:
            continue
        # nogoods above the box that this is a part of, which begins as low but for one component
        over = over[corners[raised, over] >= low[raised]]
        if not len(over):
            return True
        # The nogood outside of which the box costs most, and the dearest part of it first.
        dearer = above[:, over] - at_low[:, None]
        extras = np.where(corners[:, over] < high[:, None], dearer, _LARGEST)
        best = int(extras.min(axis=0).argmax())
        corner, extra = corners[:, over[best]], extras[:, best]
        for n in np.argsort(-extra, kind="stable").tolist():
            if corner[n] < high[n] and extra[n] < spare:
                part = low.copy()
                part[n] = corner[n] + 1
                stack.append((part, high.copy(), over, n))
            high[n] = min(high[n], corner[n])
    return False
