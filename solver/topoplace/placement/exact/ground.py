"""What a tree of starts and places stands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from topoplace.placement.exact.master import Master
from topoplace.placement.exact.price_pool import PricePool
from topoplace.placement.exact.relaxation import DualPoint, Relaxation, Subproblem


@dataclass(frozen=True)
class Ground:
    """What a tree stands on.

    Attributes
    ----------
    relaxation, master, pool
        All of the same problem; the pool takes in the points that the relaxation evaluates.
    lower
        Returns what the bound is lowered to: the incumbent's objective.
    groups
        Alike requests, each of which needs the same nodes in the problem (see `alike`).
    """

    relaxation: Relaxation
    master: Master
    pool: PricePool
    lower: Callable[[], int]
    groups: tuple[tuple[int, ...], ...] = ()


def new_pool(relaxation: Relaxation) -> PricePool:
    """Return a pool that takes in the points that are evaluated from now on."""
    requests = relaxation.problem.requests
    free = DualPoint(np.zeros(relaxation.rows.num_rows))
    best = relaxation.evaluate(Subproblem(), free, 1).priced.best
    startable = frozenset(q for q in range(len(requests)) if best[q] > 0)
    values = np.array([request.value for request in requests], dtype=float)
    relaxation.pool = PricePool(relaxation.scale, relaxation.rows.num_rows, values, startable)
    return relaxation.pool
