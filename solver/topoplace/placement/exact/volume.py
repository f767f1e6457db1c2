"""Dual descent by the volume algorithm (Barahona and Anbil 2000): good prices fast.

Each step is one pricing pass and no linear program. The direction is one minus a running average
of the rows' usage; the step length follows Polyak's rule towards a target below the best bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact.relaxation import DualPoint, DualValue, Relaxation, Subproblem
from topoplace.placement.exact.rows import PackingRows

_PATIENCE = 40  # steps without a better bound


@dataclass
class VolumeRun:
    """The best point of a run and its value."""

    point: DualPoint
    value: DualValue
    steps: int


def usable_prices(rows: PackingRows) -> DualPoint:
    """Return the prices that bound the nodes started by the usable nodes there are."""
    prices = np.zeros(rows.num_rows)
    usable = rows.problem.state.usable_per_router.sum(axis=0)
    highest = max((r.priority for r in rows.problem.requests), default=1)
    prices[: rows.num_routers] = usable * highest
    return DualPoint(prices)


def volume_descent(
    relaxation: Relaxation,
    sub: Subproblem,
    start: DualPoint,
    lower: float,
    *,
    max_steps: int,
    deadline: float,
    seen: Callable[[DualValue, int], None],
    per_request: int = 4,
    usage: NDArray[np.float64] | None = None,
) -> VolumeRun:
    """Lower the bound of a first-level subproblem from a starting point.

    Parameters
    ----------
    lower
        A value the bound is not expected below: the incumbent's objective, or a linear
        program's over many columns. Polyak's rule works best if it is near.
    max_steps, deadline
        Stop after so many steps or at this `time.perf_counter` reading.
    seen
        Called with every dual value and its step, for the columns in it.
    usage
        How much of every row a near-optimal fractional solution uses, if one is known.
    """
    rows = relaxation.rows
    free = np.ones(rows.num_rows)
    free[: rows.num_routers][rows.problem.state.occupied] = 0
    point = start.row_prices.copy()
    value = relaxation.evaluate(sub, DualPoint(point), per_request)
    seen(value, 0)
    average = _usage(rows, sub, value) if usage is None else usage
    factor, since, steps = 0.5, 0, 0
    while steps < max_steps and time.perf_counter() < deadline and value.bound > lower + 0.999:
        steps += 1
        direction = free - average
        direction[(point <= 0) & (direction > 0)] = 0
        norm = float(direction @ direction)
        if norm < 1e-9:
            break
        target = max(lower, 0.98 * value.bound) if value.bound > 0 else lower
        step = factor * max(value.bound - target, 1e-4 * abs(value.bound)) / norm
        trial = np.maximum(0.0, point - step * direction) * free
        trial_value = relaxation.evaluate(sub, DualPoint(trial), per_request)
        seen(trial_value, steps)
        usage = _usage(rows, sub, trial_value)
        average = 0.1 * usage + 0.9 * average
        if trial_value.bound < value.bound - 1e-9:
            if float((free - usage) @ direction) > 0:
                factor = min(8.0, factor * 1.2)
            point, value, since = trial, trial_value, 0
        else:
            since += 1
            if since % 4 == 0:
                factor *= 0.66
                if factor < 1e-3 or since >= _PATIENCE:
                    break
    return VolumeRun(DualPoint(point), value, steps)


def _usage(rows: PackingRows, sub: Subproblem, value: DualValue) -> np.ndarray:
    """Return how often the best candidates of a pricing pass use each row."""
    usage = np.zeros(rows.num_rows)
    for idx, columns in enumerate(value.priced.columns):
        if columns and idx not in sub.excluded and (columns[0][0] > 0 or idx in sub.forced):
            usage[rows.of(columns[0][1])] += 1
    return usage
