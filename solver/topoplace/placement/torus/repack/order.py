"""The order in which jobs move through free space, and the jobs to suspend where there is none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

MOST_SETS = 100_000
"""Sets of suspended jobs that are tried one by one; beyond, their number is not proven least."""

After = Mapping[int, frozenset[int]]
"""By job, those that have to leave before it arrives: itself, if its places overlap."""


def ordered(after: After) -> list[int] | None:
    """Return an order in which each job arrives after all that it waits for, None without one."""
    order: list[int] = []
    left = set(after)
    while left:
        ready = sorted(job for job in left if not after[job] & left)
        if not ready:
            return None
        order += ready
        left -= set(ready)
    return order


def without(after: After, gone: Iterable[int]) -> dict[int, frozenset[int]]:
    """Return which jobs wait for which if some leave at the beginning and arrive at the end."""
    away = frozenset(gone)
    return {job: others - away for job, others in after.items() if job not in away}


def fewest_suspended(after: After) -> tuple[tuple[int, ...], bool]:
    """Return a set of jobs to suspend so that the others have an order.

    Returns
    -------
    The jobs, ascending, and whether it is proven that fewer are not enough.
    """
    core = _cyclic(after)
    tried = 0
    for size in range(len(core) + 1):
        if tried + math.comb(len(core), size) > MOST_SETS:
            break
        tried += math.comb(len(core), size)
        for gone in itertools.combinations(core, size):
            if ordered(without(after, gone)) is not None:
                return gone, True
    gone = tuple(core)
    for job in core:
        fewer = tuple(k for k in gone if k != job)
        if ordered(without(after, fewer)) is not None:
            gone = fewer
    return gone, False


def _cyclic(after: After) -> Sequence[int]:
    """Return the jobs left when those that wait for none, or none waits for, are gone."""
    left = set(after)
    while True:
        waited_for = set().union(*(after[job] for job in left)) if left else set()
        kept = {job for job in left if after[job] & left and job in waited_for}
        if kept == left:
            return sorted(left)
        left = kept
