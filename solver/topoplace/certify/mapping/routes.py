"""What certificates of routes prove: tasks send their loads along trees (docs/proofs/graphs.md)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from topoplace.certify.integers import largest, require_room
from topoplace.certify.mapping._routes_kernels import send
from topoplace.certify.mapping.graphs import in_bytes, in_parts, least_trees
from topoplace.certify.mapping.instance import Instance, Volumes
from topoplace.certify.report import RefusedError
from topoplace.errors import number_of
from topoplace.machine import Torus
from topoplace.machine.matrix import MatrixMachine
from topoplace.result.certificate import unpacked
from topoplace.result.mapping import LONGEST, ROUTES_WORK, STAR_ROUTERS, Routes, RoutesCertificate
from topoplace.types import IntArray

MOST_CLOSED = 1 << 10
"""Routers up to which a matrix of distances is completed to shortest ways."""


class Shell(NamedTuple):
    """At this many more hops than the shell before, what is no farther has this much room."""

    step: int
    room: int


def routes_value(instance: Instance, certificate: RoutesCertificate) -> int:
    """Return the hop-bytes that a certificate of routes proves of any mapping."""
    volumes, parts = in_parts(instance, small=True)
    found = math.ceil(routed(volumes, instance.loads, shells_of(instance), certificate))
    return in_bytes(instance, volumes.rounded_up(found, 1), parts) + least_trees(instance)


def routed(volumes: Volumes, loads: IntArray, shells: list[Shell], certificate: Routes) -> Fraction:
    """Return what bytes times distances come to at least, in any mapping.

    The distance of two tasks is at most that along any path, so that what is sent costs at most the
    bytes times the most that is sent over a byte; and the tasks of a tree need their room.
    """
    num, unit = volumes.num_tasks, certificate.unit
    own = loads // unit
    pairs = int(np.count_nonzero(volumes.tasks < volumes.partners))
    require_room(sum(own.tolist()), "all loads")
    sent, proven, work = np.zeros(pairs, dtype=np.int64), 0, 0
    number = _pair_numbers(volumes)
    starts = np.searchsorted(volumes.tasks, np.arange(num + 1))
    most = 0
    for part in certificate.rounds:
        lengths = unpacked(part.lengths, pairs, "lengths")
        sizes, times = (unpacked(each, num, "trees") for each in (part.sizes, part.times))
        if pairs and not 1 <= int(lengths.min()) <= int(lengths.max()) <= LONGEST:
            raise RefusedError(f"a length is not between 1 and {LONGEST}")
        if int(sizes.min()) < 0 or int(sizes.max()) > num or int(times.min()) < 0:
            raise RefusedError("a tree of no size, or sent no number of times")
        work += sum(sizes.tolist())
        most += sum(times.tolist()) * sum(own.tolist())
        if work > ROUTES_WORK:
            raise RefusedError("too many trees to check")
        require_room(most, "what all trees send")
        held = np.zeros(num, dtype=np.int64)
        strange = int(
            send(starts, volumes.partners, number, lengths, own, sizes, times, sent, held)
        )
        if strange >= 0:
            need = number_of(int(sizes[strange]), "task")
            raise RefusedError(f"task {strange} does not reach {need}")
        for inside, often in zip(held.tolist(), times.tolist(), strict=True):
            if inside and often:
                apart = sum(s.step * max(0, inside - s.room // unit) for s in shells)
                proven += often * apart
    if not proven:
        return Fraction(0)
    sizes = volumes.sizes[volumes.tasks < volumes.partners]
    used = zip(sent.tolist(), sizes.tolist(), strict=True)
    fullest = max(Fraction(amount, size) for amount, size in used if amount)
    return proven / fullest


def _pair_numbers(volumes: Volumes) -> IntArray:
    """Return the number of the pair of every entry, pairs ascending."""
    low = np.minimum(volumes.tasks, volumes.partners)
    keys = low * volumes.num_tasks + np.maximum(volumes.tasks, volumes.partners)
    return np.unique(keys, return_inverse=True)[1].ravel().astype(np.int64)


def shells_of(instance: Instance) -> list[Shell]:
    """Return by distance the most load that there is room for around a router, before all fits."""
    machine, room = instance.machine, instance.room
    centres = np.flatnonzero(room)
    if machine.torus is not None and len(centres) > STAR_ROUTERS:
        # the most room everywhere, and no router farther away
        machine = Torus(machine.torus.shape)
        room, centres = np.full(machine.num_routers, largest(room)), centres[:1]
    elif machine.is_transitive and (room == room[0]).all():
        centres = centres[:1]
    distances = _closed(machine.distances) if isinstance(machine, MatrixMachine) else None
    routers = np.flatnonzero(room)
    most: dict[int, int] = {}
    for centre in centres.tolist():
        away = machine.hops(np.full(len(routers), centre), routers)
        if distances is not None:
            away = distances[centre, routers]
        at, inverse = np.unique(away, return_inverse=True)
        sums = np.zeros(len(at), dtype=object)
        np.add.at(sums, inverse, room[routers].astype(object))
        inside = 0
        own = dict(zip(at.tolist(), sums.tolist(), strict=True))
        for hops in sorted(own):
            inside += own[hops]
            most[hops] = max(most.get(hops, 0), inside)
    found, reached = [], 0
    for hops, further in pairwise(sorted(most)):
        reached = max(reached, most[hops])
        if reached >= instance.total_load:
            break
        found.append(Shell(further - hops, reached))
    return found


def _closed(distances: IntArray) -> IntArray:
    """Return the lengths of shortest ways, either way round: no distance is below them."""
    if len(distances) > MOST_CLOSED:
        raise RefusedError(f"more than {MOST_CLOSED} routers of a matrix")
    closed = np.minimum(distances, distances.T)
    for k in range(len(closed)):
        closed = np.minimum(closed, closed[:, k, None] + closed[k])
    return closed
