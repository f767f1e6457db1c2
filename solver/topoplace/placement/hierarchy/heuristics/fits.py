"""The textbook's rules, for all that a request may ask: best fit, first fit, and at random.

Each decides two things: in which domains a group of parts is tried, and how the units of a part are
split over the children of a domain. How many units a domain can hold is counted from the hosts up,
with whole segments, no more than a spread allows, and none where an exclusive part meets others.
All levels below a domain use multiples of the largest segment there; so any multiple up to the
count has a place, no matter how it is split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from topoplace.machine.hierarchy import Hierarchy
from topoplace.placement.hierarchy.heuristics.queue import Vacancy, groups_of, register_rule
from topoplace.placement.hierarchy.problem import Placed, room, windows_of
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState
from topoplace.types import IntArray

Site = tuple[int, int]
"""A level and a domain there; level -1 is the whole machine."""

Rooms = list[IntArray]
"""By level how many units of a part each of its domains can hold."""

Sites = Callable[[Hierarchy, list[Rooms], list[PartState]], Iterable[Site]]
"""Yields where a group of parts is tried, of the sites that `required` allows."""

Split = Callable[[IntArray, int, int], IntArray]
"""Splits units over children, given how many they can hold, and the size of pieces."""


@register_rule("tree-best-fit")
def tree_best_fit(
    vacancy: Vacancy, request: HierarchyRequest, _: np.random.Generator
) -> Placed | None:
    """Take the lowest domain that holds all, the fullest first, and split largest children first.

    A child that holds all the rest is taken instead, the fullest of those.
    """
    if request.parts[0].order is not None:
        return _in_a_row(vacancy, request, lambda rows: min(rows, key=_spread_of(vacancy.machine)))
    return place(vacancy, request, lowest_sites, best_split)


@register_rule("first-fit")
def first_fit(vacancy: Vacancy, request: HierarchyRequest, _: np.random.Generator) -> Placed | None:
    """Take the first required domain that holds all, and hosts in their order."""
    if request.parts[0].order is not None:
        return _in_a_row(vacancy, request, lambda rows: rows[0])
    return place(vacancy, request, required_sites, first_split)


@register_rule("random")
def random_fit(
    vacancy: Vacancy, request: HierarchyRequest, rng: np.random.Generator
) -> Placed | None:
    """Take any required domain that holds all, and in it places for units or segments at random."""

    def sites(machine: Hierarchy, rooms: list[Rooms], parts: list[PartState]) -> list[Site]:
        found = list(required_sites(machine, rooms, parts))
        return [found[at] for at in rng.permutation(len(found))]

    if request.parts[0].order is not None:
        return _in_a_row(vacancy, request, lambda rows: rows[int(rng.integers(len(rows)))])

    def split(rooms: IntArray, units: int, grain: int) -> IntArray:
        return grain * _drawn(rng, rooms // grain, units // grain)

    return place(vacancy, request, sites, split)


def _drawn(rng: np.random.Generator, rooms: IntArray, pieces: int) -> IntArray:
    """Draw the places of pieces, in proportion to the free places, until all have one."""
    left = rooms.copy()
    while pieces:
        drawn = np.minimum(rng.multinomial(pieces, left / left.sum()), left)
        left -= drawn
        pieces -= int(drawn.sum())
    return rooms - left


def place(vacancy: Vacancy, request: HierarchyRequest, sites: Sites, split: Split) -> Placed | None:
    """Place the groups of a request one after another, each at the first site that holds it."""
    placed: list[dict[int, int]] = [{} for _ in request.parts]
    for group in groups_of(request):
        parts = [request.parts[number] for number in group]
        found = _place_group(vacancy, parts, sites, split)
        if found is None:
            return None
        for number, hosts in zip(group, found, strict=True):
            placed[number] = hosts
    return tuple(placed)


def _in_a_row(
    vacancy: Vacancy, request: HierarchyRequest, choose: Callable[[list[list[int]]], list[int]]
) -> Placed | None:
    """Place a request that is contiguous on the hosts in a row that a rule chooses."""
    (part,) = request.parts
    may = np.where(vacancy.closed(part), 0, room(vacancy.free, part)) > 0
    rows = windows_of(vacancy.machine, part, may).tolist()
    if not rows:
        return None
    hosts = dict.fromkeys(choose(rows), 1)
    vacancy.take(part, hosts)
    return (hosts,)


def _spread_of(machine: Hierarchy) -> Callable[[list[int]], list[int]]:
    """Return what counts the domains that hosts are in, the highest level first."""
    return lambda hosts: [len(np.unique(of[hosts])) for of in machine.domain_of]


def _place_group(
    vacancy: Vacancy, parts: list[PartState], sites: Sites, split: Split
) -> list[dict[int, int]] | None:
    """Return the hosts of the parts of a group, taken from the vacancy; None if no site does."""
    machine = vacancy.machine
    rooms = [rooms_of(vacancy, part) for part in parts]
    before = vacancy.free.copy()
    for site in sites(machine, rooms, parts):
        found: list[dict[int, int]] = []
        for part in parts:
            own = rooms_of(vacancy, part) if found else rooms[0]
            if room_at(own, site) < part.units:
                break
            found.append(fill(machine, own, part, site, split))
            vacancy.take(part, found[-1])
        if len(found) == len(parts):
            return found
        vacancy.free[:] = before
    return None


# ---- Room


def rooms_of(vacancy: Vacancy, part: PartState) -> Rooms:
    """Return how many units of a part every domain can hold, by level."""
    machine = vacancy.machine
    last = machine.num_levels - 1
    closed = vacancy.closed(part)
    found: Rooms = []
    units = np.zeros(len(machine.domain_names[last]), dtype=np.int64)
    units[machine.domain_of[last]] = np.where(closed, 0, room(vacancy.free, part))
    for level in reversed(range(machine.num_levels)):
        if level < last:
            parents = machine.parents[level + 1]
            units = np.zeros(len(machine.domain_names[level]), dtype=np.int64)
            np.add.at(units, parents, found[-1])
        if part.spread is not None and part.spread[0] == level:
            units = np.minimum(units, part.spread[1])
        found.append(units // grain_at(part, level) * grain_at(part, level))
    return found[::-1]


def grain_at(part: PartState, level: int) -> int:
    """Return the size that divides the units in a domain: segments at or below its level."""
    return max((size for at, size in part.segments if at >= level), default=1)


def room_at(rooms: Rooms, site: Site) -> int:
    """Return how many units a site can hold."""
    level, domain = site
    return int(rooms[0].sum() if level < 0 else rooms[level][domain])


# ---- Where


def required_sites(
    machine: Hierarchy, rooms: list[Rooms], parts: list[PartState]
) -> Iterable[Site]:
    """Yield the domains that may hold the group, in order; the machine if no level is required."""
    level = parts[0].required
    if level is None:
        yield -1, 0
        return
    yield from ((level, domain) for domain in _enough(rooms, parts, level))


def lowest_sites(machine: Hierarchy, rooms: list[Rooms], parts: list[PartState]) -> Iterable[Site]:
    """Yield domains that may hold the group, lowest levels first, there the fullest first."""
    highest = parts[0].required
    for level in reversed(range(highest or 0, machine.num_levels)):
        together = np.sum([own[level] for own in rooms], axis=0)
        enough = _enough(rooms, parts, level)
        order = sorted(enough, key=lambda domain: int(together[domain]))
        yield from ((level, domain) for domain in order)
    if highest is None:
        yield -1, 0


def _enough(rooms: list[Rooms], parts: list[PartState], level: int) -> list[int]:
    """Return the domains of a level that can hold each of the parts alone."""
    enough = np.ones(len(rooms[0][level]), dtype=bool)
    for own, part in zip(rooms, parts, strict=True):
        enough &= own[level] >= part.units
        if part.spread is not None and level > part.spread[0]:
            enough &= part.units <= part.spread[1]
    return [int(domain) for domain in np.flatnonzero(enough)]


# ---- How


@dataclass(frozen=True)
class _Share:
    level: int
    domain: int
    units: int


def fill(
    machine: Hierarchy, rooms: Rooms, part: PartState, site: Site, split: Split
) -> dict[int, int]:
    """Return the hosts of a part in a site that can hold it, split level by level."""
    shares = [_Share(*site, part.units)]
    for level in range(site[0] + 1, machine.num_levels):
        grain = grain_at(part, level)
        below = []
        for share in shares:
            children = np.arange(len(rooms[0]))
            if level > 0:
                children = np.flatnonzero(machine.parents[level] == share.domain)
            taken = split(rooms[level][children], share.units, grain)
            below += [
                _Share(level, int(child), int(units))
                for child, units in zip(children, taken, strict=True)
                if units
            ]
        shares = below
    host_of = np.argsort(machine.domain_of[-1])
    return {int(host_of[share.domain]): share.units for share in shares}


def best_split(rooms: IntArray, units: int, grain: int) -> IntArray:
    """Split over the largest children first; one that holds the rest ends it, the fullest."""
    taken = np.zeros_like(rooms)
    while units:
        left = np.where(taken > 0, 0, rooms)
        enough = np.flatnonzero(left >= units)
        child = enough[np.argmin(left[enough])] if len(enough) else np.argmax(left)
        taken[child] = min(units, int(left[child]))
        units -= int(taken[child])
    return taken


def first_split(rooms: IntArray, units: int, grain: int) -> IntArray:
    """Split over children in their order."""
    before = np.cumsum(rooms) - rooms
    return np.asarray(np.clip(units - before, 0, rooms))
