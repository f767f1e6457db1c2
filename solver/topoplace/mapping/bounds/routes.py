"""Bounds by what must be apart: every task sends to those that do not fit with it.

See docs/proofs/graphs.md, "Routes".
"""

from __future__ import annotations

import math

import numpy as np

from topoplace.machine import MatrixMachine, Torus
from topoplace.mapping.bounds.spreading import Shells, routed
from topoplace.mapping.objects.bounds import pairs_of, tree_floor
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import STAR_ROUTERS, RoutesCertificate
from topoplace.solving import Bound
from topoplace.types import IntArray

MOST_CLOSED = 1 << 10
"""Routers up to which a matrix of distances is completed to shortest ways."""


def routes_bound(problem: MappingProblem, time_limit: float | None = 0.0) -> Bound | None:
    """Return the bound by routes, in bytes x hops; None if it is none or there are no pairs.

    Without a time limit the work is fixed; with one of 0 seconds it takes a moment.
    """
    pairs = pairs_of(problem, small=True)
    shells = shells_of(problem)
    if not len(pairs.rows.weight) or shells is None or not len(shells.room):
        return None
    found = routed(pairs.rows, problem.loads, shells, time_limit)
    if found is None:
        return None
    value, routes = found
    least = pairs.bytes_of(math.ceil(value)) + tree_floor(problem)
    return Bound(least, RoutesCertificate(**dict(routes)))


def shells_of(problem: MappingProblem) -> Shells | None:
    """Return the room around the best router; None without any, or for matrices of too many."""
    machine, room = problem.machine, problem.room
    centres = np.flatnonzero(room)
    if not len(centres):
        return None
    alike = len(np.unique(room)) == 1
    if isinstance(machine, MatrixMachine):
        if len(room) > MOST_CLOSED:
            return None
        machine = MatrixMachine(closed(machine.distances))
    elif isinstance(machine, Torus) and len(centres) > STAR_ROUTERS:
        machine = Torus(machine.shape)
        room, centres = np.full(machine.num_routers, room.max()), centres[:1]
    elif machine.is_transitive and alike:
        centres = centres[:1]
    around: dict[int, int] = {}
    for centre in centres.tolist():
        away = machine.distances_from(centre)
        order = np.argsort(away, kind="stable")
        order = order[room[order] > 0]
        at, inside = away[order], np.minimum(np.cumsum(room[order]), problem.total_load)
        last = np.flatnonzero(np.diff(at, append=-1))
        for hops, most in zip(at[last].tolist(), inside[last].tolist(), strict=True):
            around[hops] = max(around.get(hops, 0), most)
    hops = np.array(sorted(around), dtype=np.int64)
    most = np.maximum.accumulate([around[own] for own in hops.tolist()])
    lacking = most < problem.total_load
    return Shells(np.diff(hops, append=hops[-1])[lacking], most[lacking])


def closed(distances: IntArray) -> IntArray:
    """Return the lengths of shortest ways, either way round: no distance is below them."""
    least = np.minimum(distances, distances.T)
    for k in range(len(least)):
        np.minimum(least, least[:, k, None] + least[k], out=least)
    return least
