"""The best candidate of a request at prices (docs/proofs/hierarchy.md)."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from topoplace.certify.hierarchy.instance import Asked, Instance, Wanted, holds
from topoplace.certify.hierarchy.rows import Domain, Place, Rows
from topoplace.certify.integers import require_room
from topoplace.certify.packing import ANYWHERE, Covers, Prices
from topoplace.certify.report import RefusedError
from topoplace.types import IntArray

NEVER = 1 << 61
_MOST_STATES = 1 << 22
"""Most states of a table; a request that needs more is refused. 4 million take 32 MB."""

_MOST_WORK, _STEP = 300_000_000_000, 1 << 10
"""Most additions for a document, some minutes; and how many a step in Python counts as."""


_AT_ONCE, _SMALL, _FEW = 1 << 16, 1 << 11, 24
"""Additions that numpy makes in one call, where tables are small and have more than a few terms."""


class Work:
    """What a document may still cost: its certificates are checked with one of these."""

    def __init__(self) -> None:
        self.left = _MOST_WORK

    def spend(self, steps: int, additions: int = 0) -> None:
        """Take steps in Python, each with a number of additions, from what is left."""
        self.left -= steps * (_STEP + additions)
        if self.left < 0:
            raise RefusedError(f"more than {_MOST_WORK} additions for the document")


@dataclass(frozen=True)
class Step:
    """A price for more units of a part than a limit; or whether there must be more, or must not."""

    part: int
    limit: int
    price: int
    more: bool | None = None


Steps = Mapping[tuple[int, int], tuple[Step, ...]]
"""Steps by level and number of a domain, at the bottom those of a pool's or place's first host."""


@dataclass(frozen=True)
class HierarchyOracle:
    """Requests on a hierarchy, as `certify.packing` asks for them."""

    table: Rows
    requests: tuple[Asked, ...]
    work: Work = field(default_factory=Work, compare=False)
    steps: Mapping[int, Steps] = field(default_factory=dict, compare=False)
    """By request what it pays in domains, pools and hosts besides, or may not have there."""

    @property
    def rows(self) -> Mapping[str, IntArray]:
        """Capacities by family."""
        return self.table.families

    @property
    def coverable(self) -> int:
        """How many rows branches may name: those of hosts and pools."""
        return self.table.coverable

    @cached_property
    def largest(self) -> Sequence[int]:
        """By level, a limit of the absolute value of a candidate."""
        instance = self.table.instance
        units = max((sum(p.units for p in asked.parts) for asked in self.requests), default=0)
        most = [units] * len(instance.levels)
        most[0] = max((asked.value for asked in self.requests), default=0)
        if instance.is_mixed:
            most[1] = max((asked.without for asked in self.requests), default=0)
        most[-1] = units * self.table.room
        if instance.free_domains is not None:
            most[instance.levels.index((instance.free_name, "max"))] = 1
        return most

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether two requests ask for the same."""
        first, second = self.requests[one], self.requests[other]
        ways = ({*map(_rules, asked.ways)} for asked in (first, second))
        return first.without == second.without and next(ways) == next(ways)

    def among(self, chosen: Sequence[tuple[int, int]]) -> HierarchyOracle:
        """Return an oracle of some requests alone."""
        pairs = ((self.requests[q], self.requests[o]) for q, o in chosen)
        some = (replace(own, parts=other.parts, others=other.others) for own, other in pairs)
        return replace(self, requests=tuple(some))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return the most that each request gains."""
        flat = flat_prices(self.table, prices)
        instance = self.table.instance
        names = [name for name, _ in instance.levels]
        factors = dict(zip(names, prices.factors, strict=False))
        looks: dict[object, _Looks] = {}
        known: dict[object, _Table] = {}
        found: dict[int, int | None] = {}
        together: dict[object, list[tuple[int, tuple[Wanted, ...]]]] = {}
        capacities = self.table.capacities
        for q, covers in wanted.items():
            if any(not capacities[row] for row in covers.inside):
                found[q] = None
            else:
                own_steps = q if self.steps.get(q) else None
                for way in self.requests[q].ways:
                    rules = _but_for_units(way), covers, own_steps
                    together.setdefault(rules, []).append((q, way))
        for own in together.values():
            if own[0][1][0].order is not None:
                for q, (part,) in own:
                    gains = [found.get(q), self._in_a_row(q, part, wanted[q], flat, factors)]
                    found[q] = max((gain for gain in gains if gain is not None), default=None)
                continue
            sizes = {tuple(part.units for part in way) for _, way in own}
            q, largest = max(own, key=lambda pair: tuple(part.units for part in pair[1]))
            asked = replace(self.requests[q], parts=largest)
            times = frozenset(instance.times(asked))
            covers, steps = wanted[q], self.steps.get(q, {})
            key = covers, asked.alone, asked.parts[0].apart, times, q if steps else None
            if key not in looks:
                top = self.table.top
                looks[key] = _looks(self.table, asked, flat, covers, steps, self.work, top)
            walk = _Walk(self.table, asked, flat, factors, covers, self.work, looks[key], known)
            costs = _cheapest(walk, sizes)
            for q, way in own:
                cost = costs[tuple(part.units for part in way)]
                gains = [found.get(q), None if cost is None else self._value(q, factors) - cost]
                found[q] = max((gain for gain in gains if gain is not None), default=None)
        return found

    def _value(self, q: int, factors: Mapping[str, int]) -> int:
        """Return what a request that starts gains on the levels that are no costs of its place."""
        asked = self.requests[q]
        return factors["nodes"] * asked.value + factors.get("without_gpus", 0) * asked.without

    def _in_a_row(
        self, q: int, part: Wanted, covers: Covers, prices: IntArray, factors: Mapping[str, int]
    ) -> int | None:
        """Return the most that a request gains that is contiguous: each of its places alone.

        A place has one unit on each of its hosts, so it is the only one on a machine of these.
        """
        free, order, n = self.table.instance.free, part.order or (), part.units
        may = [
            holds(free[host], part.takes) > 0 and (part.eligible is None or host in part.eligible)
            for host in order
        ]
        asked, steps = replace(self.requests[q], parts=(part,), others=()), self.steps.get(q, {})
        best: int | None = None
        for first in range(len(order) - n + 1):
            hosts = frozenset(order[first : first + n])
            top = _part_of(self.table.top, hosts) if all(may[first : first + n]) else None
            if top is None:
                continue
            rows = {row for place in top.all_places() for row in place.rows.values()}
            inside = {(-1, 0)} | {
                (level, int(of[host]))
                for level, of in enumerate(self.table.instance.machine.domain_of)
                for host in hosts
            }
            must = (at for at, own in steps.items() if any(step.more for step in own))
            if not covers.inside <= rows or not inside.issuperset(must):
                continue
            looks = _looks(self.table, asked, prices, covers, steps, self.work, top)
            walk = _Walk(self.table, asked, prices, factors, covers, self.work, looks, {})
            cost = _cheapest(walk, [(n,)])[n,]
            if cost is not None and (best is None or self._value(q, factors) - cost > best):
                best = self._value(q, factors) - cost
        return best


def _rules(parts: Sequence[Wanted]) -> tuple[Wanted, ...]:
    """Return parts with their groups renamed by order."""
    order = list(dict.fromkeys(part.group for part in parts))
    return tuple(replace(part, group=str(order.index(part.group))) for part in parts)


def _but_for_units(parts: Sequence[Wanted]) -> tuple[Wanted, ...]:
    """Return what requests share whose costs are in one table, that of the largest of them.

    They may differ in the units of their largest part: no rule depends on these, except that one
    domain holds all units of several parts.
    """
    rules = list(_rules(parts))
    if rules[0].order is not None:
        return tuple(rules)
    if len(rules) == 1 or all(part.required is None for part in rules):
        largest = max(range(len(rules)), key=lambda p: rules[p].units)
        rules[largest] = replace(rules[largest], units=0)
    return tuple(rules)


def _part_of(domain: Domain, hosts: frozenset[int]) -> Domain | None:
    """Return a domain with some of its hosts alone; None if it has none of them."""
    inside = tuple(one for own in domain.inside if (one := _part_of(own, hosts)) is not None)
    places = tuple(place for place in domain.places if hosts.issuperset(place.hosts))
    return replace(domain, inside=inside, places=places) if inside or places else None


def flat_prices(table: Rows, prices: Prices) -> IntArray:
    """Return the price of every row by number."""
    parts = [
        prices.rows.get(family, np.zeros(len(held), dtype=np.int64))
        for family, held in table.families.items()
    ]
    return np.concatenate(parts)


def _cheapest(walk: _Walk, sizes: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], int | None]:
    """Return by numbers of units the least cost of a candidate, its gain by balance taken off."""
    gain = walk.factors.get("balance", 0)
    ways = [
        range(1, part.units + 1) if gain and part.balance is not None else (0,)
        for part in walk.parts
    ]
    best: dict[tuple[int, ...], int | None] = dict.fromkeys(sizes)
    for least in itertools.product(*ways):
        walk.least = least
        table = walk.machine()
        for units, known in best.items():
            cost = int(table[units].min())
            if cost < NEVER:
                cost -= gain * sum(least)
                best[units] = cost if known is None else min(known, cost)
    return best


_Table = tuple[IntArray, tuple[tuple[int, ...], bytes]]
"""A table, and its shape and content."""


@dataclass(frozen=True)
class _Look:
    """One of the places or domains that look the same at prices: tables of these are equal.

    Attributes
    ----------
    key
        Of a domain, all that its table depends on but what is inside.
    inside
        Of a domain, numbers of earlier looks, and how often each is inside.
    cuts
        Of a domain, the resource, `k` and the price of its rounded rows that have a price.
    paid
        Of a domain that a request would have for itself, see `_whole_domain`.
    """

    of: Place | Domain
    key: object = None
    inside: tuple[tuple[int, int], ...] = ()
    cuts: tuple[tuple[int | None, int, int], ...] = ()
    paid: tuple[int, bool, bool] | None = None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class _Looks:
    """The looks of places and domains, the whole machine last, and the places among them.

    Attributes
    ----------
    places
        The looks that are places, with their numbers.
    free, prices
        By place and resource what is free, in grains, and the price of its row. The last column of
        the prices is that of a pool.
    pool
        By place the hosts of a pool, or 0.
    """

    every: Sequence[_Look]
    places: Sequence[tuple[int, Place]]
    free: IntArray
    prices: IntArray
    pool: IntArray

    @classmethod
    def of(cls, table: Rows, every: Sequence[_Look], prices: Sequence[int]) -> _Looks:
        """Return looks with what their places have."""
        at = [(k, look.of) for k, look in enumerate(every) if isinstance(look.of, Place)]
        places, num = [place for _, place in at], len(table.grain)
        own = np.zeros((len(places), num + 1), dtype=np.int64)
        for k, place in enumerate(places):
            for resource, row in place.rows.items():
                own[k, num if resource is None else resource] = prices[row]
        free = np.array([table.free[place.hosts[0]] for place in places], dtype=np.int64)
        pool = [len(place.hosts) if place.is_pool else 0 for place in places]
        return cls(every, at, free.reshape(-1, num), own, np.array(pool, dtype=np.int64))


def _looks(
    table: Rows,
    asked: Asked,
    prices: IntArray,
    covers: Covers,
    steps: Steps,
    work: Work,
    top: Domain,
) -> _Looks:
    """Return the looks of places and domains, the whole machine last.

    They are the same for all requests that are alone on a level, and apart from others, as this.
    """
    price: list[int] = prices.tolist()
    numbers: dict[object, int] = {}
    found: list[_Look] = []
    last = table.instance.machine.num_levels - 1

    def number(key: object, look: _Look) -> int:
        if (at := numbers.setdefault(key, len(found))) == len(found):
            found.append(look)
        return at

    def of_place(place: Place) -> int:
        rows = place.rows.values()
        named = None
        if covers != ANYWHERE:
            named = tuple((r in covers.inside, r in covers.outside) for r in rows)
        # a host that is no pool is a domain, which has the steps
        own = steps.get((last, place.hosts[0]), ()) if place.is_pool else ()
        key = table.alike[place.hosts[0]], named, tuple([price[row] for row in rows]), own
        return number(key, _Look(place, len(found), steps=own))

    def of_domain(domain: Domain) -> int:
        inside: dict[int, int] = {}
        for one in itertools.chain(map(of_domain, domain.inside), map(of_place, domain.places)):
            inside[one] = inside.get(one, 0) + 1
        work.spend(1, len(inside))
        alone = domain.level == asked.alone
        paid = _whole_domain(table, asked, domain, prices, covers) if alone else None
        apart = sum(price[row] for row in apart_rows(table, asked, domain))
        own = steps.get((domain.level, domain.number), ())
        cuts = tuple((resource, k, price[row]) for resource, k, row in domain.cuts if price[row])
        key = domain.level, tuple(domain.whole.items()), cuts, paid, apart, own
        look = _Look(domain, key, tuple(inside.items()), cuts, paid, own)
        return number((*key, frozenset(inside.items())), look)

    of_domain(top)
    return _Looks.of(table, found, price)


def apart_rows(table: Rows, asked: Asked, domain: Domain) -> Iterator[int]:
    """Yield the rows of which a request takes one if it is in a domain."""
    for level, name in asked.parts[0].apart:
        if level == domain.level:
            yield table.apart[level, name] + domain.number


def _whole_domain(
    table: Rows, asked: Asked, domain: Domain, prices: IntArray, covers: Covers
) -> tuple[int, bool, bool]:
    """Return the price of all of a domain, whether it must stay empty, and must be used."""
    instance = table.instance
    rows = domain.all_rows({None, *instance.resources_at(asked)})
    held = {row for row in rows if table.capacities[row]}
    taken = domain.number in table.busy(asked) or bool(held & covers.outside)
    return int(prices[rows] @ table.capacities[rows]), taken, bool(held & covers.inside)


class _Walk:
    """Walks from the hosts up, for a request at prices, and a least load by part."""

    def __init__(
        self,
        table: Rows,
        asked: Asked,
        prices: IntArray,
        factors: Mapping[str, int],
        covers: Covers,
        work: Work,
        looks: _Looks,
        known: dict[object, _Table],
    ) -> None:
        self._looks, self._known = looks, known
        self.table, self.asked, self.parts = table, asked, asked.parts
        self.least: Sequence[int] = ()
        self._spend = work.spend
        # above this level, all units of a request in one part are in one of the domains inside
        level = self.parts[0].required if len(self.parts) == 1 else None
        self._together = -2 if level is None else level
        self.instance: Instance = table.instance
        self.prices, self.factors, self.covers = prices, factors, covers
        self._indices: dict[tuple[int, ...], IntArray] = {}
        # of this level and those above, tables depend on the least load
        self._evened = max((p.balance for p in self.parts if p.balance is not None), default=-2)
        limits = [part.at_most for part in self.parts if part.at_most is not None]
        self.counted, most = limits[0] if limits else (-2, 0)
        # the last axis counts the domains used of a level with an upper limit
        self.shape = (*(part.units + 1 for part in self.parts), most + 1)
        require_room(math.prod(self.shape), "the states of a request", _MOST_STATES)
        self.takes = [table.in_grains(part.takes) for part in self.parts]
        machine = self.instance.machine
        self.of_level = [factors.get(name, 0) for name in machine.levels]
        groups: dict[str, list[int]] = {}
        for p, part in enumerate(self.parts):
            groups.setdefault(part.group, []).append(p)
        self._groups = [*groups.values()]
        self._tables: list[IntArray] = []
        self._many: dict[tuple[int, int], IntArray] = {}
        self._numbers: dict[object, int] = {}  # of tables, by what they depend on and by content

    def machine(self) -> IntArray:
        """Return the table of the whole machine."""
        numbers = [-1] * len(self._looks.every)
        for (at, _), number in zip(self._looks.places, self._of_places(), strict=True):
            numbers[at] = number
        for at, look in enumerate(self._looks.every):
            if isinstance(look.of, Place):
                continue
            inside: dict[int, int] = {}
            for other, count in look.inside:
                number = numbers[other]
                inside[number] = inside.get(number, 0) + count
            least = self.least if look.of.level <= self._evened else ()
            key = look.key, least, frozenset(inside.items())
            if key not in self._numbers:
                table = _stepped(self._of_inside(look, look.of, inside), look.steps)
                self._numbers[key] = self._numbered(table, (table.shape, table.tobytes()))
            numbers[at] = self._numbers[key]
        return self._tables[numbers[-1]]

    def _numbered(self, table: IntArray, content: tuple[tuple[int, ...], bytes]) -> int:
        """Return the number of a table; those that are equal share one."""
        number = self._numbers.setdefault(content, len(self._tables))
        if number == len(self._tables):
            self._tables.append(table)
        return number

    # ---- the bottom: tables of hosts and pools, the domain of a host not yet paid

    def _of_places(self) -> Iterator[int]:
        """Yield the numbers of the tables of all places.

        What some units cost is linear in their numbers, apart from the room that parts leave which
        have any; with these figures a table is made once for all requests.
        """
        looks, covers, alone = self._looks, self.covers, self.asked.alone is not None
        pairs = zip(self.parts, self.takes, strict=True)
        columns = [zip(*self._figures(part, takes), strict=True) for part, takes in pairs]
        depends = len(columns) > 1 or covers != ANYWHERE
        for (at, place), *own in zip(looks.places, *columns, strict=True):
            key: object = own[0]
            if depends:  # on what else the host has, and whether it is named
                rows = tuple(
                    (
                        resource,
                        self.table.capacities[row],
                        row in covers.inside,
                        row in covers.outside,
                    )
                    for resource, row in place.rows.items()
                )
                key = tuple(own), tuple(self.takes), rows, alone
            if key not in self._known:
                table = self._place(place, own)
                self._known[key] = table, (table.shape, table.tobytes())
            table, content = self._known[key]
            if steps := looks.every[at].steps:
                table = _stepped(table, steps)
                content = table.shape, table.tobytes()
            yield self._numbered(table, content)

    def _figures(
        self, part: Wanted, takes: Sequence[int]
    ) -> tuple[list[int], list[int], list[int]]:
        """Return by place most units of a part, what each costs, and the room before them."""
        looks, used = self._looks, [r for r, amount in enumerate(takes) if amount]
        amounts = np.array(takes, dtype=np.int64)
        room = (looks.free[:, used] // amounts[used]).min(axis=1)
        is_pool, stranded = looks.pool > 0, self.factors.get("stranded", 0)
        most = np.minimum(np.where(is_pool, looks.pool * (room > 0), room), part.units)
        if part.eligible is not None:
            may = [place.hosts[0] in part.eligible for _, place in looks.places]
            most *= np.array(may, dtype=bool)
        each = np.where(is_pool, self.of_level[-1], -stranded)  # a host and no room, or its room
        if self.asked.alone is None:
            each += looks.prices @ np.array([*takes, 1], dtype=np.int64)
        left = np.where(is_pool, 0, stranded * room)
        # where there are no units, these figures may be too large, and do not matter
        return most.tolist(), (each * (most > 0)).tolist(), (left * (most > 0)).tolist()

    def _place(self, place: Place, figures: Sequence[tuple[int, int, int]]) -> IntArray:
        """Return the table of a place, from the figures of each part."""
        most, each, room = zip(*figures, strict=True)
        table = np.full([*(n + 1 for n in most), 1], NEVER, dtype=np.int64)
        self._spend(table.size)
        rows = [
            (row, [1 if resource is None else take[resource] for take in self.takes])
            for resource, row in place.rows.items()
        ]
        for units in itertools.product(*(range(n + 1) for n in most)):
            if self._may_be_at(rows, units):
                costs = zip(units, each, room, strict=True)
                table[(*units, 0)] = sum(n * cost + left for n, cost, left in costs if n)
        return table

    def _may_be_at(self, rows: Sequence[tuple[int, list[int]]], units: tuple[int, ...]) -> bool:
        """Return whether some units may be on a host or in a pool, and all that must be there."""
        covers, alone = self.covers, self.asked.alone is not None
        for row, each in rows:
            taken = sum(map(operator.mul, units, each))
            if taken > self.table.capacities[row]:
                return False
            if not alone and row in (covers.outside if taken else covers.inside):
                return False
        return True

    # ---- domains

    def _of_inside(self, look: _Look, domain: Domain, inside: Mapping[int, int]) -> IntArray:
        """Return the table of a domain; those equal inside are joined by doubling."""
        if domain.level < self._together:
            table = self._in_one(inside)
        else:
            table = np.zeros((1,) * len(self.shape), dtype=np.int64)
            for number, count in inside.items():
                if not _is_nothing(self._tables[number]):
                    table = self._joined(table, self._several(number, count))
        if domain.level < 0:
            whole = np.full(self.shape, NEVER, dtype=np.int64)
            whole[tuple(slice(n) for n in table.shape)] = table
            return whole
        return self._as_domain(look, domain, table)

    def _in_one(self, inside: Mapping[int, int]) -> IntArray:
        """Return the least cost where one of the domains inside has all units, the others none."""
        tables = [(self._tables[number], count) for number, count in inside.items()]
        empty = [int(table.flat[0]) for table, _ in tables]
        must = sum(count for (_, count), cost in zip(tables, empty, strict=True) if cost >= NEVER)
        paid = sum(cost * n for (_, n), cost in zip(tables, empty, strict=True) if cost < NEVER)
        sizes = zip(*(table.shape for table, _ in tables), strict=True)
        found = np.full([*map(max, sizes)] or (1,) * len(self.shape), NEVER, dtype=np.int64)
        if not tables:
            found[...] = 0
        for (table, _), cost in zip(tables, empty, strict=True):
            if must == (cost >= NEVER):  # no other domain must have units
                self._spend(1, table.size)
                into = found[tuple(map(slice, table.shape))]
                rest = paid - (cost if cost < NEVER else 0)
                np.minimum(into, table + rest, out=into)
        return found

    def _several(self, number: int, count: int) -> IntArray:
        """Return the table of several domains or places with one of the tables."""
        if count == 1:
            return self._tables[number]
        if (number, count) not in self._many:
            half = self._several(number, count // 2)
            twice = self._joined(half, half)
            odd = self._joined(twice, self._tables[number]) if count % 2 else twice
            self._many[number, count] = odd
        return self._many[number, count]

    def _joined(self, first: IntArray, second: IntArray) -> IntArray:
        if first.size == 1:
            first, second = second, first
        if _is_nothing(second):
            return first
        if second.size == 1:
            return np.asarray(np.minimum(first + second.flat[0], NEVER))
        steps, others = (int(np.count_nonzero(table < NEVER)) for table in (second, first))
        if others < steps:
            first, second, steps = second, first, others
        self._spend(steps, first.size)
        return joined(first, second, self.shape)

    def _as_domain(self, look: _Look, domain: Domain, table: IntArray) -> IntArray:
        """Add what a domain costs, and strike out what breaks a rule in it."""
        paid = look.paid
        if table.size == 1 and not (paid and paid[2]):  # without units nothing is paid or broken
            return table
        if domain.level == self.counted:
            table = _counted(table)
        self._spend(10, table.size)  # passes over it
        table = table.copy()
        units = self._units(table.shape)
        for part, own, least in zip(self.parts, units, self.least, strict=True):
            for level, size in part.multiples:
                if level == domain.level:
                    table[own % size > 0] = NEVER
            if part.spread is not None and part.spread[0] == domain.level:
                table[own > part.spread[1]] = NEVER
            if part.balance == domain.level:
                table[(own > 0) & (own < least)] = NEVER
        self._in_groups(domain.level, units, table)
        apart = sum(int(self.prices[row]) for row in apart_rows(self.table, self.asked, domain))
        if apart:
            table[units.any(axis=0)] += apart
        if look.cuts and (self.asked.alone is None or domain.level < self.asked.alone):
            table += self._cuts(look, domain, units)
        if paid is not None:
            self._alone(paid, units, table)
        return np.minimum(table, NEVER)

    def _in_groups(self, level: int, units: IntArray, table: IntArray) -> None:
        """Let each group of parts pay for a domain of a level, and be in it as a whole or not."""
        cost, several = self.of_level[level], len(self.parts) > 1
        for members in self._groups:
            whole = several and self.parts[members[0]].required == level
            if not cost and not whole:
                continue
            some = np.any([units[p] > 0 for p in members], axis=0)
            if whole:
                full = np.all([units[p] == self.parts[p].units for p in members], axis=0)
                table[some & ~full] = NEVER
            table[some] += cost

    def _units(self, shape: tuple[int, ...]) -> IntArray:
        """Return the units of each part by entry of a table."""
        if shape not in self._indices:
            self._indices[shape] = np.indices(shape)[:-1]
        return self._indices[shape]

    def _cuts(self, look: _Look, domain: Domain, units: IntArray) -> IntArray:
        paid = np.zeros(units.shape[1:], dtype=np.int64)
        for resource, k, price in look.cuts:
            each = [1 if resource is None else take[resource] for take in self.takes]
            taken = np.tensordot(np.array(each), units, axes=1)
            paid += price * np.maximum(0, -(-taken * (k + 1) // domain.whole[resource]) - 1)
        return paid

    def _alone(self, paid: tuple[int, bool, bool], units: IntArray, table: IntArray) -> None:
        """Let a request that wants a domain for itself pay for all of it."""
        used = units.any(axis=0)
        price, taken, named = paid
        table[used] += price
        if taken:
            table[used] = NEVER
        if named:
            table[~used] = NEVER


def _is_nothing(table: IntArray) -> bool:
    """Whether a table is of no units alone, which cost nothing: it changes no other one."""
    return table.size == 1 and not table.flat[0]


def _stepped(table: IntArray, steps: Sequence[Step]) -> IntArray:
    """Return a table with what steps cost, or strike out."""
    if not steps:
        return table
    table, units = table.copy(), np.indices(table.shape)
    for step in steps:
        more = units[step.part] > step.limit
        if step.more is not None:
            table[more != step.more] = NEVER
        else:
            table[more] += step.price
    return np.minimum(table, NEVER)


def _counted(table: IntArray) -> IntArray:
    """Return the table of a domain that is counted if it has units."""
    found = np.full((*table.shape[:-1], 2), NEVER, dtype=np.int64)
    nobody = (0,) * (table.ndim - 1)
    found[..., 1] = table[..., 0]
    found[(*nobody, 0)], found[(*nobody, 1)] = table[(*nobody, 0)], NEVER
    return found


def joined(first: IntArray, second: IntArray, most: tuple[int, ...]) -> IntArray:
    """Return the least cost of units split among two, up to a shape."""
    shape = [min(a + b - 1, n) for a, b, n in zip(first.shape, second.shape, most, strict=True)]
    if second.size <= _FEW and math.prod(shape) == max(shape):
        return _joined_line(first.ravel(), second.ravel().tolist(), max(shape)).reshape(shape)
    found = np.full(shape, NEVER, dtype=np.int64)
    terms = np.argwhere(second < NEVER)
    if found.size > _SMALL or len(terms) <= _FEW:
        for at in terms.tolist():
            rooms = [min(a, n - k) for a, n, k in zip(first.shape, shape, at, strict=True)]
            if min(rooms) > 0:
                into = found[tuple(slice(k, k + n) for k, n in zip(at, rooms, strict=True))]
                np.minimum(into, first[tuple(map(slice, rooms))] + second[tuple(at)], out=into)
        return found
    # small tables: many terms at once, each with the first table shifted by its units
    before = [size - 1 for size in second.shape]
    around = np.full([n + k for n, k in zip(shape, before, strict=True)], NEVER, dtype=np.int64)
    kept = first[tuple(map(slice, shape))]
    around[tuple(slice(k, k + a) for k, a in zip(before, kept.shape, strict=True))] = kept
    shifted = sliding_window_view(around, shape)
    num = max(1, _AT_ONCE // found.size)
    for some in (terms[k : k + num] for k in range(0, len(terms), num)):
        costs = second[tuple(some.T)].reshape(-1, *(1,) * len(shape))
        sums = shifted[tuple((np.array(before) - some).T)] + costs
        np.minimum(found, sums.min(axis=0), out=found)
    return found


def _joined_line(first: IntArray, second: Sequence[int], length: int) -> IntArray:
    """Return what `joined` does of tables with one axis, the second a short one."""
    found = np.full(length, NEVER, dtype=np.int64)
    for units, cost in enumerate(second[:length]):
        if cost < NEVER:
            into = found[units : units + len(first)]
            np.minimum(into, first[: len(into)] + cost, out=into)
    return found
