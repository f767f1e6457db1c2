"""The rows of a queue on a hierarchy (docs/proofs/hierarchy.md, "Rows")."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from topoplace.certify.hierarchy.instance import Asked, Instance, holds
from topoplace.types import IntArray

KS = range(1, 17)


@dataclass(frozen=True)
class Place:
    """Where units go at the bottom: one host, or a pool of several that are alike.

    Attributes
    ----------
    rows
        Number of its row by resource; of a pool the one row, by None.
    """

    hosts: tuple[int, ...]
    rows: dict[int | None, int]

    @property
    def is_pool(self) -> bool:
        """Whether it is a pool."""
        return None in self.rows


@dataclass(frozen=True)
class Domain:
    """A domain with something in it that holds a unit; level -1 is the whole machine.

    Attributes
    ----------
    cuts
        Its rounded rows: resource (None counts units), `k`, and the row's number.
    whole
        What it has of every resource, and of units in pools by None; only where a cut is.
    """

    level: int
    number: int
    inside: tuple[Domain, ...]
    places: tuple[Place, ...]
    cuts: list[tuple[int | None, int, int]] = field(default_factory=list)
    whole: dict[int | None, int] = field(default_factory=dict)

    def all_places(self) -> list[Place]:
        """Return its places and those of all that is inside."""
        return [*self.places, *(place for one in self.inside for place in one.all_places())]

    def all_rows(self, of: Set[int | None]) -> list[int]:
        """Return its rows of some resources, None for pools, and those of all that is inside."""
        own = [row for resource, _, row in self.cuts if resource in of]
        own += [n for place in self.places for resource, n in place.rows.items() if resource in of]
        return own + [row for one in self.inside for row in one.all_rows(of)]


class Rows:
    """The rows, by family and by number, and the domains with what they have of them."""

    def __init__(self, instance: Instance) -> None:
        self.instance, machine = instance, instance.machine
        parts = [p for asked in instance.queue for way in asked.ways for p in way]
        kinds = dict.fromkeys(part.kind for part in parts)
        takes = [own for own, _ in kinds]
        columns = list(zip(*takes, strict=True)) or [()] * len(machine.resources)
        self.grain = [math.gcd(*column) or 1 for column in columns]
        self.wanted = [r for r, column in enumerate(columns) if any(column)]
        self.kinds = [self.in_grains(kind) for kind in takes]
        grains = {own: self.in_grains(own) for own in {*instance.free}}
        self.free = [grains[own] for own in instance.free]
        room = {own: tuple(holds(own, k) > 0 for k in self.kinds) for own in {*self.free}}
        self._fits = fits = [room[own] for own in self.free]
        if may := [(k, hosts) for k, (_, hosts) in enumerate(kinds) if hosts is not None]:
            for host, own in enumerate(fits):
                barred = {k for k, hosts in may if host not in hosts}
                fits[host] = tuple(has and k not in barred for k, has in enumerate(own))
        self._usable = [any(own) for own in fits]
        last = machine.num_levels - 1
        pooled = all(last not in part.named for part in parts)
        self._pools = self._alike(fits) if pooled else []
        self.families: dict[str, IntArray] = {}
        self._number()
        levels = {level for part in parts for level in part.named}
        alone = sum(self._usable) > sum(len(pool) for pool in self._pools)
        self._cut_levels = sorted(levels | ({last} if alone else set()))
        self._cut()
        self._busy: dict[object, frozenset[int]] = {}
        self.apart: dict[tuple[int, str], int] = {}
        """By level and name the row of the first domain of the level."""
        for level, name in sorted({key for part in parts for key in part.apart}):
            self.apart[level, name] = sum(map(len, self.families.values()))
            ones = np.ones(len(machine.domain_names[level]), dtype=np.int64)
            self.families[f"apart:{level}:{name}"] = ones

    def in_grains(self, amounts: tuple[int, ...]) -> tuple[int, ...]:
        """Return amounts of all resources in grains, rounded down."""
        return tuple(n // grain for n, grain in zip(amounts, self.grain, strict=True))

    def _alike(self, fits: list[tuple[bool, ...]]) -> list[tuple[int, ...]]:
        """Return the pools in the order of their first hosts."""
        found: dict[tuple[int, tuple[bool, ...]], list[int]] = {}
        pairs = [(a, b) for k, a in enumerate(self.kinds) for b in self.kinds[k:]]
        two = {
            free: any(
                all(x + y <= have for x, y, have in zip(a, b, free, strict=True)) for a, b in pairs
            )
            for free in {*self.free}
        }
        for host, free in enumerate(self.free):
            if self._usable[host] and not two[free]:
                above = int(self.instance.machine.leaf_of[host])
                found.setdefault((above, fits[host]), []).append(host)
        return sorted(tuple(hosts) for hosts in found.values())

    def _number(self) -> None:
        """Number the rows of hosts and pools, and put the places at the bottom of domains."""
        machine = self.instance.machine
        pooled = {host for pool in self._pools for host in pool}
        rows: list[dict[int | None, int]] = [{} for _ in range(machine.num_hosts)]
        at = 0
        for r in self.wanted:
            held = [
                free[r] if usable and host not in pooled else 0
                for host, (free, usable) in enumerate(zip(self.free, self._usable, strict=True))
            ]
            self.families[f"hosts:{machine.resources[r]}"] = np.array(held, dtype=np.int64)
            for host in range(machine.num_hosts):
                rows[host][r] = at + host
            at += machine.num_hosts
        sizes = [len(pool) for pool in self._pools]
        self.families["pools"] = np.array(sizes, dtype=np.int64)
        self.coverable = at + len(sizes)
        places = [Place(pool, {None: at + k}) for k, pool in enumerate(self._pools)]
        alone = [h for h in range(machine.num_hosts) if self._usable[h] and h not in pooled]
        self.places = [*places, *(Place((host,), rows[host]) for host in alone)]
        self.top = self._domain(-1, 0, self.places)

    def _domain(self, level: int, number: int, places: list[Place]) -> Domain:
        """Return a domain of some places, with the domains that these are in below it."""
        machine = self.instance.machine
        below = level + 1
        if below >= machine.num_levels - 1:
            pools = [place for place in places if place.is_pool]
            hosts = [place for place in places if not place.is_pool]
            inside = [Domain(below, p.hosts[0], (), (p,)) for p in hosts]
            return Domain(level, number, tuple(inside), tuple(pools))
        groups: dict[int, list[Place]] = {}
        for place in places:
            groups.setdefault(int(machine.domain_of[below, place.hosts[0]]), []).append(place)
        inside = [self._domain(below, n, own) for n, own in sorted(groups.items())]
        return Domain(level, number, tuple(inside), ())

    def _cut(self) -> None:
        machine = self.instance.machine
        first, size = {}, 0
        for level in self._cut_levels:
            first[level] = size
            size += len(machine.domain_names[level])
        domains = self._of_levels(self.top)
        at = self.coverable
        for r in (*self.wanted, None):
            # with a colon less than what is of a resource, whatever that is called
            name = "rounded" if r is None else f"rounded:{machine.resources[r]}"
            wholes = [(domain, self._has(domain, r)) for domain in domains]
            for k in KS:
                capacities = np.zeros(size, dtype=np.int64)
                for domain, whole in wholes:
                    if k < whole:
                        number = first[domain.level] + domain.number
                        capacities[number] = k
                        domain.cuts.append((r, k, at + number))
                        domain.whole[r] = whole
                self.families[f"{name}:{k}"] = capacities
                at += size

    def _of_levels(self, domain: Domain) -> list[Domain]:
        own = [domain] if domain.level in self._cut_levels else []
        return own + [found for one in domain.inside for found in self._of_levels(one)]

    def _has(self, domain: Domain, resource: int | None) -> int:
        """Return what a domain has together, 0 if it has both pools and other hosts."""
        places = domain.all_places()
        if any(place.is_pool for place in places) and not all(place.is_pool for place in places):
            return 0
        if resource is None:
            return sum(len(place.hosts) for place in places if place.is_pool)
        return sum(self.free[p.hosts[0]][resource] for p in places if not p.is_pool)

    @cached_property
    def alike(self) -> dict[int, int]:
        """A number for every place, by its first host: that of places that differ in rows alone."""
        numbers: dict[object, int] = {}
        found = {}
        for place in self.places:
            host = place.hosts[0]
            free = self.instance.free[host], self.free[host]
            key = place.is_pool, len(place.hosts), free, self._fits[host]
            found[host] = numbers.setdefault(key, len(numbers))
        return found

    def busy(self, asked: Asked) -> frozenset[int]:
        """Return the domains of the level that a request has alone in which jobs run by then."""
        key = asked.alone, frozenset(self.instance.times(asked))
        if key not in self._busy:
            of = self.instance.machine.domain_of[asked.alone]
            self._busy[key] = frozenset(int(of[host]) for host in self.instance.busy_for(asked))
        return self._busy[key]

    @cached_property
    def room(self) -> int:
        """How many units of a kind a host holds at most."""
        every = {free for free, usable in zip(self.free, self._usable, strict=True) if usable}
        return max((holds(free, kind) for free in every for kind in self.kinds), default=0)

    @cached_property
    def capacities(self) -> IntArray:
        """The capacity of every row, by number."""
        return np.concatenate([*self.families.values()])
