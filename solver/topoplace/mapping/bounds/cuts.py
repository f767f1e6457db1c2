"""Bounds by the cuts of a machine (docs/proofs/graphs.md, "Cuts")."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.bounds.bisection import bisection, height
from topoplace.mapping.bounds.semidefinite import test_seconds
from topoplace.mapping.objects.bounds import pairs_of, tree_floor
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import CUT_LAYERS, CUT_TASKS, STAR_ROUTERS, CutsCertificate
from topoplace.solving import Bound
from topoplace.types import IntArray

LARGEST = 1 << 62
"""Sums of loads times distances stay below it, or are not formed."""


class Cuts(NamedTuple):
    """Cuts of a machine: how often each kind is there, by twice its weight and the largest s.

    s is the difference of the loads on the two sides, 0 or more. The hop distance is the sum of the
    weights of the cuts between two routers. `spread` is an upper bound on the sum of all s^2, each
    as often as twice the weight of its cut.
    """

    kinds: Counter[tuple[int, int]]
    spread: int

    @property
    def weight(self) -> int:
        """Twice the sum of all weights."""
        return sum(count * weight for (weight, _), count in self.kinds.items())


def machine_cuts(torus: Torus, room: IntArray, total: int) -> Cuts:
    """Return the cuts with room on both sides, for a load of `total` in all."""
    kinds = Counter[tuple[int, int]]()
    for d, (size, wraps) in enumerate(zip(torus.shape, torus.wrap, strict=True)):
        rooms = np.moveaxis(room.reshape(torus.shape), d, 0).reshape(size, -1)
        layers = np.array([min(sum(row), total) for row in rooms.tolist()], dtype=object)
        half, at = size // 2, np.arange(size)
        sides = [(at - k) % size < half for k in at] if wraps else [at < k for k in at[1:]]
        for side in sides if size > 1 else []:
            near, far = (min(int(layers[own].sum()), total) for own in (side, ~side))
            if near and far:
                kinds[1 if wraps else 2, 2 * max(near, far) - total] += 1
    found = Cuts(kinds, sum(count * w * s * s for (w, s), count in kinds.items()))
    if total * torus.num_routers * sum(torus.shape) >= LARGEST:
        return found
    apart = found.weight * total**2 - 4 * least_apart(torus, room, total)
    return Cuts(kinds, min(found.spread, apart))


def least_apart(torus: Torus, room: IntArray, total: int) -> int:
    """Return a lower bound on the sum of distances between all units of load, both ways.

    No unit is closer to all others than those that are as close to it as there is room for. Beyond
    `STAR_ROUTERS` routers, and where all are alike, one router of a full torus stands for all.
    """
    routers = np.flatnonzero(room)
    rooms = room[routers].tolist()
    alike = torus.is_transitive and len(routers) == torus.num_routers and len(set(rooms)) == 1
    if alike or len(routers) > STAR_ROUTERS:
        torus, room = Torus(torus.shape), np.full(torus.num_routers, max(rooms))
        routers, rooms = routers[:1], [total]
    sums = []
    for router in routers.tolist():
        within = np.zeros(torus.diameter + 1, dtype=np.int64)
        np.add.at(within, torus.distances_from(router), room)
        sums.append(sum(np.maximum(0, total - np.cumsum(within)).tolist()))
    apart, left = 0, total
    for own, places in sorted(zip(sums, rooms, strict=True)):
        apart += own * min(places, left)
        left -= min(places, left)
    return apart


def cut_seconds(problem: MappingProblem) -> float:
    """Return about the least time of the bound by cuts; infinite without one."""
    torus = problem.machine.torus
    if torus is None or max(torus.shape) > CUT_LAYERS or not 2 <= problem.num_tasks <= CUT_TASKS:
        return math.inf
    return test_seconds(problem.num_tasks)


def cuts_bound(
    problem: MappingProblem, time_limit: float | None = None, seed: int = 0
) -> Bound | None:
    """Return the bound by the bytes over all cuts of a torus or mesh, in bytes x hops.

    None for other machines, too many tasks, or if there is no time. Without a time limit, in
    seconds, the work is bounded, and the answer the same each time.
    """
    stop = clock.deadline(time_limit)
    pairs, loads, total = pairs_of(problem), problem.loads, problem.total_load
    rows = pairs.rows
    if cut_seconds(problem) == math.inf or not len(rows.weight) or not total:
        return None
    cuts = machine_cuts(problem.torus, problem.room, total)
    if not cuts.kinds:
        return None
    most = math.isqrt(max(0, cuts.spread) // cuts.weight)
    found = bisection(rows, loads, most, seed=seed, stop=stop)
    if found is None:
        return None
    num, whole = problem.num_tasks, 4 * found.scale * rows.unit
    each = sum(
        count * weight * max(0, -(-height(found, num, uneven) // whole))
        for (weight, uneven), count in cuts.kinds.items()
    )
    together = cuts.weight * height(found, num, 0) - found.balance * cuts.spread
    least = rows.unit * -(-max(each, -(-together // whole)) // 2)
    return Bound(pairs.bytes_of(least) + tree_floor(problem), CutsCertificate(**dict(found)))
