"""Bounds by what must be apart: every task sends to those that do not fit with it.

See docs/proofs/graphs.md, "Routes".
"""

from __future__ import annotations

import math

import numpy as np

from topoplace.machine import MatrixMachine, Torus
from topoplace.mapping.bounds.spreading import Shells, routed
from topoplace.mapping.graph import Rows, rows_of
from topoplace.mapping.objects.bounds import tree_floor, tree_routers
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import STAR_ROUTERS, RoutesCertificate
from topoplace.solving import Bound
from topoplace.types import IntArray

MOST_CLOSED = 1 << 10
"""Routers up to which a matrix of distances is completed to shortest ways."""

TREE_PARTS = 1 << 16
"""The bytes of pairs are counted in such parts, so that a tree of messages can be divided."""


def routes_bound(problem: MappingProblem, time_limit: float | None = 0.0) -> Bound | None:
    """Return the bound by routes, in bytes x hops; None if it is none or there are no pairs.

    Without a time limit the work is fixed; with one of 0 seconds it takes a moment.
    """
    rows, parts = _rows_with_trees(problem)
    shells = shells_of(problem)
    if not len(rows.weight) or shells is None or not len(shells.room):
        return None
    found = routed(rows, problem.loads, shells, time_limit)
    if found is None:
        return None
    value, routes = found
    unit = int(np.gcd.reduce([*problem.graph.bytes, *problem.trees.bytes], initial=0))
    least = math.ceil(value / parts)
    return Bound(
        unit * -(-least // unit) + tree_floor(problem),
        RoutesCertificate(**dict(routes)),
    )


def _rows_with_trees(problem: MappingProblem) -> tuple[Rows, int]:
    """Return the bytes of pairs in parts of a byte, with those of trees that fit on one router."""
    rows = problem.graph.exchanged
    small = np.flatnonzero(tree_routers(problem) <= 1)
    if not len(small):
        return rows, 1
    ends: list[tuple[int, int, int]] = []
    for tree in small.tolist():
        listed = problem.listed_trees[tree]
        members = sorted({*listed.members} - {listed.root})
        ends += [(listed.root, one, listed.bytes * TREE_PARTS // len(members)) for one in members]
    more = np.array(ends, dtype=np.int64).reshape(-1, 3)
    roots, members, sizes = more[more[:, 2] > 0].T
    every = rows.owner, rows.other.astype(np.int64), rows.weight * TREE_PARTS
    both = (roots, members, sizes), (members, roots, sizes)
    joined = (np.concatenate(part) for part in zip(every, *both, strict=True))
    return rows_of(problem.num_tasks, *joined), TREE_PARTS


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
