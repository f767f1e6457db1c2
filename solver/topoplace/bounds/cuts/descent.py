"""A quasi-Newton method for small smooth problems (L-BFGS, Nocedal 1980).

scipy's spends most of its time on waking threads for vectors of this length: on busy cores it is
ten times slower.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from topoplace import clock

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]

MEMORY = 10
ENOUGH = 1e-4
"""Share of the fall that the slope promises, which a step must reach."""

SHORTENINGS = 20

SETTLED = 1e-10
"""Share of the value that a step must promise."""


def descend(objective: Objective, start: Floats, steps: int, stop: float) -> tuple[Floats, bool]:
    """Return a better point, and whether it was found in fewer steps than allowed.

    The method ends after so many steps, when nothing helps, or when the clock is at `stop`.

    Parameters
    ----------
    objective
        Returns a value and its gradient.
    start
        The first point, of any shape.
    """
    point = start
    value, slope = objective(point)
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    for _ in range(steps):
        if clock.now() >= stop:
            break
        direction = _direction(slope, pairs)
        promised = float((direction * slope).sum())
        if promised >= 0:
            pairs.clear()
            direction, promised = -slope, -float((slope * slope).sum())
        if -promised <= SETTLED * abs(value):
            return point, True
        length = 1.0 if pairs else 1 / np.sqrt(-promised)
        for _ in range(SHORTENINGS):
            moved = length * direction
            new_value, new_slope = objective(point + moved)
            if new_value <= value + ENOUGH * length * promised:
                break
            length /= 3
        else:
            return point, True
        change = new_slope - slope
        product = float((moved * change).sum())
        if product > 0:
            pairs.append((moved, change, product))
        point, value, slope = point + moved, new_value, new_slope
    return point, False


def _direction(slope: Floats, pairs: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Return minus the slope, bent by what the last steps say of the curvature."""
    direction = -slope
    shares = []
    for moved, change, product in reversed(pairs):
        share = float((moved * direction).sum()) / product
        shares.append(share)
        direction = direction - share * change
    if pairs:
        _, change, product = pairs[-1]
        direction = direction * (product / float((change * change).sum()))
    for (moved, change, product), share in zip(pairs, reversed(shares), strict=True):
        direction = direction + moved * (share - float((change * direction).sum()) / product)
    return direction
