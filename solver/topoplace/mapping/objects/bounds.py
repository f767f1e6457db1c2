"""Lower bounds on the hop-bytes of objects, with certificates (docs/proofs/objects.md)."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from topoplace import clock
from topoplace.mapping.graph import Rows, rows_of
from topoplace.mapping.problem import MappingProblem
from topoplace.result.certificate import packed
from topoplace.result.mapping import (
    DENOMINATOR,
    SharesCertificate,
    SpreadCertificate,
)
from topoplace.solving import Bound
from topoplace.types import BoolArray, FloatArray, IntArray

# ---- Shares: every object alone, its partners as close as the caps allow -------------------------

ASCENTS, ASCENT_WORK, STEP = 24, 20_000_000, 0.35
"""Steps towards better shares, pairs to consider, and the first step's length (from 0 to 1)."""

LARGEST = 1 << 62


@dataclass(frozen=True)
class Stars:
    """The pairs of objects at both their ends, and the capacity around any place.

    Entry k is a partner of `owner[k]` with load `load[k]`; `pair[k]` is the number of their pair,
    ascending, with `weight` bytes; `lower[k]` says whether the owner is the lower of the two.
    """

    owner: IntArray
    load: IntArray
    pair: IntArray
    lower: BoolArray
    weight: IntArray
    own: IntArray
    room: IntArray

    def parts(self, shares: FloatArray) -> FloatArray:
        """Return the part of every entry's bytes that counts at its owner."""
        part = np.where(self.lower, shares[self.pair], DENOMINATOR - shares[self.pair])
        return part * self.weight[self.pair]


def stars_of(problem: MappingProblem, rows: Rows) -> Stars:
    """Return the stars of the bytes between pairs of objects."""
    owner, other = rows.owner, rows.other.astype(np.int64)
    lower = owner < other
    keys = np.minimum(owner, other) * problem.num_tasks + np.maximum(owner, other)
    _, first, pair = np.unique(keys, return_index=True, return_inverse=True)
    loads = problem.loads
    return Stars(owner, loads[other], pair, lower, rows.weight[first], loads, rooms(problem))


def rooms(problem: MappingProblem) -> IntArray:
    """Return the most load within 0, 1, 2, ... hops of any place, up to the first that has all."""
    machine, room = problem.machine, problem.room
    centres = np.flatnonzero(np.diff(problem.cells.first))
    if machine.is_transitive and len(np.unique(room)) == 1:
        centres = centres[:1]
    best = np.zeros(machine.diameter + 1, dtype=np.int64)
    for centre in centres.tolist():
        away = machine.distances_from(centre)
        around = np.zeros(machine.diameter + 1, dtype=np.int64)
        np.add.at(around, away, room)
        np.maximum(best, np.cumsum(around), out=best)
    return best[: int(np.searchsorted(best, problem.total_load)) + 1]


def far_shares(stars: Stars, parts: FloatArray) -> FloatArray:
    """Return the hops of every entry if each owner has its best star, fractions allowed."""
    density = parts / np.maximum(stars.load, 1e-6)
    order = np.lexsort((-density, stars.owner))
    owner, load = stars.owner[order], stars.load[order].astype(float)
    total = np.cumsum(load)
    begins = np.searchsorted(owner, np.arange(len(stars.own)))
    before = total - load - np.concatenate([[0.0], total])[begins[owner]]
    hops = np.zeros(len(order))
    for room in stars.room[:-1].tolist():
        left = np.maximum(room - stars.own[owner], 0) - before
        hops += 1.0 - np.clip(left / np.maximum(load, 1e-9), 0.0, 1.0)
    found = np.empty(len(order))
    found[order] = hops
    return found


def shares_bound(problem: MappingProblem, time_limit: float | None = None) -> Bound | None:
    """Return the best bound by stars, with the bytes of every pair divided between its ends.

    The partners of every object are as near as the caps allow. If a partner is farther in one of
    the two stars, more of the bytes count there: a few steps along the subgradient, which is the
    difference of its hops in the two stars. None if the numbers are too large for it.
    """
    stop = clock.deadline(time_limit)
    pairs = pairs_of(problem)
    stars = stars_of(problem, pairs.rows)
    beside = tree_floor(problem)
    if not len(stars.weight):
        return Bound(beside, SharesCertificate(shares=packed(stars.weight)))
    highest, kept = -1.0, np.full(len(stars.weight), DENOMINATOR / 2)
    shares = kept.copy()
    for k in range(max(2, min(ASCENTS, ASCENT_WORK // len(stars.owner)))):
        if clock.now() >= stop:
            break
        parts = stars.parts(shares)
        hops = far_shares(stars, parts)
        reached = float(parts @ hops)
        if reached > highest:
            highest, kept = reached, shares.copy()
        slope = np.zeros(len(shares))
        np.add.at(slope, stars.pair, np.where(stars.lower, hops, -hops))
        largest = np.abs(slope).max()
        if largest == 0:
            break
        step = STEP * DENOMINATOR / (1 + k / 4)
        shares = np.clip(shares + step * slope / largest, 0, DENOMINATOR)
    whole = np.rint(kept).astype(np.int64)
    value = stars_value(stars, whole)
    if value is None:
        return None
    least = pairs.bytes_of(value, DENOMINATOR)
    return Bound(least + beside, SharesCertificate(shares=packed(whole)))


def stars_value(stars: Stars, shares: IntArray) -> int | None:
    """Return the bound of shares, times their denominator; None if 64 bits are too few.

    At any price of a unit of load, the bytes that fit into a capacity are at most its price plus
    what the bytes of every partner exceed its own price; the price used is that of the last one
    that fits.
    """
    parts = np.where(stars.lower, shares[stars.pair], DENOMINATOR - shares[stars.pair])
    bytes_ = parts * stars.weight[stars.pair]
    most = int(np.bincount(stars.owner).max())
    if max(1, int(bytes_.max())) * max(1, int(stars.load.max())) * 2 * most >= LARGEST:
        return None
    order = np.lexsort((-bytes_ / np.maximum(stars.load, 1e-6), stars.owner))
    rows = stars.owner[order], stars.load[order], bytes_[order]
    total = 0
    for room in stars.room[:-1].tolist():
        if not len(rows[0]):
            break
        outside, rows = _outside(rows, np.maximum(0, room - stars.own))
        total += outside
    return total


def _outside(
    rows: tuple[IntArray, IntArray, IntArray], room: IntArray
) -> tuple[int, tuple[IntArray, IntArray, IntArray]]:
    """Return the bytes of partners that do not fit, and the rows of objects with such partners.

    Rows are owners, and the loads and bytes of partners: by owner, most bytes per load first.
    """
    owner, load, bytes_ = rows
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    degree, room = np.diff(begins, append=len(owner)), room[owner[begins]]
    ends = np.cumsum(load)
    ends -= np.repeat(ends[begins] - load[begins], degree)
    fits = np.add.reduceat(ends <= np.repeat(room, degree), begins, dtype=np.int64)
    lacks = fits < degree
    kept = np.repeat(lacks, degree)
    owner, load, bytes_ = owner[kept], load[kept], bytes_[kept]
    if not len(owner):
        return 0, (owner, load, bytes_)
    degree, room = degree[lacks], room[lacks]
    begins = np.cumsum(degree) - degree
    last = begins + fits[lacks]
    price, per = bytes_[last], load[last]
    beyond = np.maximum(bytes_ * np.repeat(per, degree) - np.repeat(price, degree) * load, 0)
    inside = (price * room + np.add.reduceat(beyond, begins)) // per
    outside = np.maximum(np.add.reduceat(bytes_, begins) - inside, 0)
    return sum(outside.tolist()), (owner, load, bytes_)


# ---- Trees ---------------------------------------------------------------------------------------

TREE_PARTS = 1 << 16
"""The bytes of pairs are counted in such parts, so that a tree of messages can be divided."""


class Pairs(NamedTuple):
    """Bytes between pairs that cost no more than messages and trees, in `parts` of a byte.

    All hop-bytes are multiples of `unit`.
    """

    rows: Rows
    parts: int
    unit: int

    def bytes_of(self, value: int, times: int = 1) -> int:
        """Return a bound in bytes, given one on the rows that is so many times too large."""
        least = self.rows.unit * -(-value // (self.rows.unit * times))
        return self.unit * -(-least // (self.parts * self.unit))


def pairs_of(problem: MappingProblem, *, small: bool = False) -> Pairs:
    """Return the bytes of pairs, with those of trees that go once to a node.

    Each member has the part of the bytes that its load is of a node's cap, so that those on a node
    have no more than all. With the `small` trees that fit on one router, which have as many links
    as the root is hops away from any member.
    """
    rows, trees, ends = problem.graph.exchanged, problem.trees, list[tuple[int, int, int]]()
    room = min(int(problem.cells.room.max()), problem.total_load)
    routers = tree_routers(problem).tolist()
    for k, one in enumerate(problem.listed_trees):
        members = sorted({*one.members} - {one.root})
        size = one.bytes * TREE_PARTS
        if one.once == "node":
            ends += [(one.root, m, size * int(problem.loads[m]) // max(1, room)) for m in members]
        elif small and routers[k] <= 1:
            ends += [(one.root, m, size // len(members)) for m in members]
    unit = math.gcd(*problem.graph.bytes.tolist(), *trees.bytes.tolist()) or 1
    every = problem.graph.total_bytes + sum(t.bytes * len(t.members) for t in problem.listed_trees)
    if not ends or every * TREE_PARTS >= LARGEST:
        return Pairs(rows, 1, unit)
    more = np.array(ends, dtype=np.int64)
    roots, members, sizes = more[more[:, 2] > 0].T
    own = rows.owner, rows.other.astype(np.int64), rows.weight * TREE_PARTS
    both = (roots, members, sizes), (members, roots, sizes)
    joined = (np.concatenate(part) for part in zip(own, *both, strict=True))
    return Pairs(rows_of(problem.num_tasks, *joined), TREE_PARTS, unit)


def tree_floor(problem: MappingProblem) -> int:
    """Return the least cost of trees over links, by the number of routers their objects need."""
    links = np.where(problem.trees.by_node, 0, np.maximum(0, tree_routers(problem) - 1)).tolist()
    return sum(map(operator.mul, links, problem.trees.bytes.tolist()))


def tree_routers(problem: MappingProblem) -> IntArray:
    """Return how many routers the objects of every tree need."""
    trees = problem.trees
    rooms = list(accumulate(sorted(problem.room.tolist(), reverse=True)))
    objects = np.repeat(np.arange(problem.num_tasks), np.diff(trees.of_first))
    load = np.zeros(len(trees.root), dtype=np.int64)
    np.add.at(load, trees.of, problem.loads[objects])
    return np.array([bisect_left(rooms, own) + 1 for own in load.tolist()], dtype=np.int64)


# ---- The largest load ----------------------------------------------------------------------------


def load_bound(problem: MappingProblem) -> Bound:
    """Return the least largest load: the average, the largest object, or two large ones."""
    loads = np.sort(problem.loads)[::-1]
    nodes = len(problem.nodes)
    value = -(-int(loads.sum()) // nodes)
    if not problem.instance.pooled:
        value = max(value, int(loads[0]))
        if len(loads) > nodes:
            value = max(value, int(loads[nodes - 1] + loads[nodes]))
    return Bound(value, SpreadCertificate())
