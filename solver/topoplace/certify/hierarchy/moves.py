"""Running jobs of hierarchies and trees that may move (docs/proofs/hierarchy.md, "Moves")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from topoplace.certify.hierarchy.check import place_of, require_nodes
from topoplace.certify.hierarchy.instance import (
    Asked,
    Place,
    Wanted,
    holds,
    machine_of,
    read_instance,
    require_place,
    require_room,
)
from topoplace.certify.hierarchy.oracle import HierarchyOracle, Step, apart_rows, flat_prices
from topoplace.certify.hierarchy.rows import Domain, Rows
from topoplace.certify.moves import Ground, Instance, may_change
from topoplace.certify.packing import Covers, Prices
from topoplace.certify.report import RefusedError
from topoplace.errors import number_of
from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import NodeLists
from topoplace.result import Interference
from topoplace.result.placement import HierarchyPlacement
from topoplace.snapshot.schema import Apart, KeepShape, Part, Request, RunningJob, Snapshot
from topoplace.types import IntArray

_MOST_KINDS = 4
"""Different amounts on hosts that a job may have of which nothing says what it asked for."""

At = tuple[int, int]
"""A domain by level and number; of a pool or host the last level, and the first host."""


@dataclass(frozen=True)
class _Mover:
    """A job as a request, and its units now, as documents would have them."""

    request: Request
    place: Place


@dataclass(frozen=True)
class _Pair:
    """A part of a request, a mover, and a domain with the units that fit beside the mover."""

    request: str
    part: int
    mover: str
    at: At
    limit: int


class HierarchyGround(Ground):
    """Jobs as units on hosts."""

    def __init__(
        self,
        snapshot: Snapshot,
        wanted: Sequence[Request],
        document: Instance,
        interference: Interference,
    ) -> None:
        if document.keep_shape is KeepShape.SAME or interference is not Interference.STRICT:
            raise RefusedError("a shape or a rule that only tori have")
        read_instance(snapshot)  # raises if it contradicts itself
        found = _movers(snapshot, document)
        self._names = [mover.request.id for mover in found]
        replaced = _replaced(snapshot, document)
        gone = {*self._names, *(mover.request.id for mover in replaced)}
        stay = [job for job in snapshot.running if (job.gang or job.id) not in gone]
        wanted = [*wanted, *(mover.request for mover in replaced)]
        queue = [*(mover.request for mover in found), *wanted]
        self._kept = {mover.request.id: mover.place for mover in replaced}
        update = {"running": stay, "queue": queue, "left_out": []}
        self._instance = read_instance(snapshot.model_copy(update=update))
        self._asked = {asked.id: asked for asked in self._instance.queue}
        self._table = Rows(self._instance)
        machine = self._instance.machine
        self.text = f"{number_of(machine.num_hosts, 'host')} in {' > '.join(machine.levels)}"
        self.num_running = len({job.gang or job.id for job in snapshot.running})
        self.movers = {name: self._asked[name].nodes for name in self._names}
        self.present = {mover.request.id: mover.place for mover in found}
        self.wanted = {r.id: self._asked[r.id].value for r in wanted}
        self.rows, self.coverable = self._table.families, self._table.coverable
        self._oracle = HierarchyOracle(self._table, self._instance.queue)
        self._numbers = {asked.id: q for q, asked in enumerate(self._instance.queue)}
        self._pairs = _pairs_of(self._table, self.present, self._asked, [*self.wanted])
        self.num_pairs = len(self._pairs)
        self._lists = NodeLists()

    def placed(self, placement: Any) -> Place:
        """Return where a mover or request is."""
        if not isinstance(placement, HierarchyPlacement):
            raise RefusedError("a place of another machine")
        asked, numbers = self._asked[placement.request], self._instance.numbers
        place = place_of(asked, placement, numbers, self._lists)
        require_place(self._instance, asked, place)
        require_nodes(placement, place, numbers)
        for units, kept in zip(place, self._kept.get(placement.request, ()), strict=False):
            if any(units.get(host, 0) < n for host, n in kept.items()):
                raise RefusedError(f"{placement.request} loses units on hosts that are up")
        return place

    def require_together(self, places: Sequence[tuple[str, Place]]) -> None:
        """Raise unless no host gives more than it has, and domains are shared as they may be."""
        require_room(self._instance, [(self._asked[name], place) for name, place in places])

    def _taken(self, name: str) -> Counter[int]:
        """Return the amounts that a mover takes where it is, by row."""
        found: Counter[int] = Counter()
        asked, place = self._asked[name], self.present[name]
        takes = [self._table.in_grains(part.takes) for part in asked.parts]

        def amount(units: Sequence[int], resource: int | None) -> int:
            each = [1 if resource is None else take[resource] for take in takes]
            return sum(n * own for n, own in zip(units, each, strict=True))

        def inside(domain: Domain, *, counts: bool) -> list[int]:
            alone = domain.level == asked.alone
            units = [0] * len(takes)
            for below in domain.inside:
                more = inside(below, counts=counts and not alone)
                units = [a + b for a, b in zip(units, more, strict=True)]
            for one in domain.places:
                own = [sum(part.get(host, 0) for host in one.hosts) for part in place]
                units = [a + b for a, b in zip(units, own, strict=True)]
                for resource, row in one.rows.items() if counts and not alone else ():
                    found[row] += amount(own, resource)
            if any(units):
                found.update(dict.fromkeys(apart_rows(self._table, asked, domain), 1))
            if alone and any(units):
                rows = domain.all_rows({None, *self._instance.resources_at(asked)})
                found.update({row: int(self._table.capacities[row]) for row in rows})
            elif counts and not alone:
                for resource, k, row in domain.cuts:
                    taken, whole = amount(units, resource), domain.whole[resource]
                    found[row] += max(0, -(-taken * (k + 1) // whole) - 1)
            return units

        inside(self._table.top, counts=True)
        return +found

    def staying(self, name: str) -> tuple[Mapping[int, int], set[int]]:
        """Return what a mover takes of hosts and pools, and its pairs."""
        held = {row: n for row, n in self._taken(name).items() if row < self.coverable}
        return held, {k for k, pair in enumerate(self._pairs) if pair.mover == name}

    def paid_staying(self, name: str, prices: Prices) -> int:
        """Return what a mover pays for its rows where it is."""
        flat = flat_prices(self._table, prices)
        return sum(int(flat[row]) * n for row, n in self._taken(name).items())

    def least(
        self, names: Mapping[str, tuple[Covers, Covers]], prices: Prices, pairs: IntArray
    ) -> dict[str, int | None]:
        """Return what jobs pay in their cheapest places, by the tables of domains."""
        steps, covers, nowhere = {}, {}, []
        for name, (of_rows, of_pairs) in names.items():
            q = self._numbers[name]
            own: dict[At, list[Step]] = defaultdict(list)
            mine = set()
            for k, pair in enumerate(self._pairs):
                if pair.request != name:
                    continue
                mine.add(k)
                if pairs[k]:
                    own[pair.at].append(Step(pair.part, pair.limit, int(pairs[k])))
                for named, more in ((of_pairs.inside, True), (of_pairs.outside, False)):
                    if k in named:
                        own[pair.at].append(Step(pair.part, pair.limit, 0, more))
            for p, at, n in self._keeps(name):
                own[at].append(Step(p, n - 1, 0, True))
            if of_pairs.inside <= mine:
                covers[q], steps[q] = of_rows, {at: tuple(some) for at, some in own.items()}
            else:
                nowhere.append(name)
        free = Prices(prices.rows, prices.total, (0,))
        gains = replace(self._oracle, steps=steps).best(free, covers)
        found: dict[str, int | None] = dict.fromkeys(nowhere)
        for name in names.keys() - {*nowhere}:
            gain = gains[self._numbers[name]]
            found[name] = None if gain is None else -gain
        return found

    def _keeps(self, name: str) -> list[tuple[int, At, int]]:
        """Return by part and pool or host the units that a replaced job keeps."""
        last = self._instance.machine.num_levels - 1
        found: Counter[tuple[int, At]] = Counter()
        for p, kept in enumerate(self._kept.get(name, ())):
            for place in self._table.places:
                units = sum(kept.get(host, 0) for host in place.hosts)
                if units:
                    found[p, (last, place.hosts[0])] = units
        return [(p, at, n) for (p, at), n in found.items()]


# ---- Who may move --------------------------------------------------------------------------------


def _movers(snapshot: Snapshot, document: Instance) -> list[_Mover]:
    """Return the jobs that may move or end, in the order of the snapshot."""
    machine, lists = machine_of(snapshot.written), NodeLists()
    numbers = {name: host for host, name in enumerate(machine.host_names)}
    down = {numbers[name] for name in lists.hosts(snapshot.down, "down")}
    entries: dict[str, list[RunningJob]] = {}
    for job in snapshot.running:
        entries.setdefault(job.gang or job.id, []).append(job)
    held = {
        name: [
            (numbers[host], _amounts(job, machine, numbers[host]))
            for job in jobs
            for host in lists.hosts(job.nodes, "nodes")
        ]
        for name, jobs in entries.items()
    }
    found, changes = [], may_change(document)
    for name, jobs in entries.items():
        mover = _mover(name, jobs, held[name], machine, document.keep_shape)
        hosts = {host for host, _ in held[name]}
        if mover is not None and changes(name) and not hosts & down:
            found.append(mover)
    update = {"running": [], "queue": [mover.request for mover in found], "left_out": []}
    alone = {asked.id: asked for asked in read_instance(snapshot.model_copy(update=update)).queue}
    keys = {
        name: {(one.level, one.name) for job in jobs for one in job.apart or ()}
        for name, jobs in entries.items()
    }

    def may_stay(mover: _Mover) -> bool:
        name = mover.request.id
        asked = alone[name]
        if not any(_in_set(way, mover.place) for way in asked.ways):
            return False
        for other in entries:
            if other != name:
                levels = {machine.levels.index(level) for level, _ in keys[name] & keys[other]}
                for level in levels | ({asked.alone} - {None}):
                    assert level is not None
                    of = machine.domain_of[level].tolist()
                    if {of[h] for h, _ in held[name]} & {of[h] for h, _ in held[other]}:
                        return False
        return True

    return [mover for mover in found if may_stay(mover)]


def _replaced(snapshot: Snapshot, document: Instance) -> list[_Mover]:
    """Return the jobs that get hosts for those that are down, with the units that they keep."""
    machine, lists = machine_of(snapshot.written), NodeLists()
    numbers = {name: host for host, name in enumerate(machine.host_names)}
    down = {numbers[name] for name in lists.hosts(snapshot.down, "down")}
    found = []
    for name in getattr(document, "replace", ()):
        jobs = [job for job in snapshot.running if (job.gang or job.id) == name]
        held = [
            (numbers[host], _amounts(job, machine, numbers[host]))
            for job in jobs
            for host in lists.hosts(job.nodes, "nodes")
        ]
        mover = _mover(name, jobs, held, machine, document.keep_shape)
        if mover is None or not {host for host, _ in held} & down:
            raise RefusedError(f"{name} is no job with units on hosts that are down")
        place = [{h: n for h, n in units.items() if h not in down} for units in mover.place]
        found.append(_Mover(mover.request, place))
    return found


def _in_set(parts: Sequence[Wanted], place: Place) -> bool:
    pairs = zip(parts, place, strict=True)
    return all(part.eligible is None or units.keys() <= part.eligible for part, units in pairs)


def _amounts(job: RunningJob, machine: Hierarchy, host: int) -> tuple[int, ...]:
    """Return what a job holds of every resource on a host."""
    if job.takes is None:
        return tuple(int(n) for n in machine.capacity[host])
    return tuple(job.takes.get(name, 0) for name in machine.resources)


def _mover(
    name: str,
    jobs: Sequence[RunningJob],
    held: Sequence[tuple[int, tuple[int, ...]]],
    machine: Hierarchy,
    keep: KeepShape,
) -> _Mover | None:
    """Return a job as a request; None if nothing says what it asked for, and there are no units."""
    told = [job.asked for job in jobs if job.asked is not None]
    request = told[0] if told else _by_hosts(name, held, machine, keep)
    if request is None:
        return None
    pairs = {(one.level, one.name) for job in jobs for one in job.apart or ()}
    apart = [Apart(level=level, name=own) for level, own in sorted(pairs)]
    rules: dict[str, object] = {"apart": apart or None}
    for job in jobs:
        rules |= {} if job.exclusive is None else {"exclusive": job.exclusive}
    if request.parts is None:
        request = request.model_copy(update={"id": name} | rules)
    else:
        parts = [part.model_copy(update=rules | {"apart": apart}) for part in request.parts]
        request = request.model_copy(update={"id": name, "parts": parts})
    place: list[dict[int, int]] = [{} for _ in _parts(request)]
    for host, amounts in held:
        part, units = _unit(request, place, amounts, machine, name)
        place[part][host] = place[part].get(host, 0) + units
    wants = [part.nodes for part in _parts(request)]
    if [sum(units.values()) for units in place] != wants:
        raise RefusedError(f"{name} does not hold what it asked for")
    return _Mover(request, place)


def _parts(request: Request) -> Sequence[Part | Request]:
    return [request] if request.parts is None else request.parts


def _unit(
    request: Request,
    place: Sequence[Mapping[int, int]],
    amounts: Sequence[int],
    machine: Hierarchy,
    name: str,
) -> tuple[int, int]:
    """Return the part of which some amounts are fewest units, the first of these, and how many."""
    found: list[tuple[int, int]] = []
    for p, part in enumerate(_parts(request)):
        takes = {"slots": 1} if part.takes is None else part.takes
        each = [takes.get(resource, 0) for resource in machine.resources]
        units = max((have // n for have, n in zip(amounts, each, strict=True) if n), default=0)
        fits = units and [n * units for n in each] == [*amounts]
        if fits and units + sum(place[p].values()) <= part.nodes:
            found.append((units, p))
    if found:
        units, p = min(found)
        return p, units
    raise RefusedError(f"{name} holds what are no units that it asked for")


def _by_hosts(
    name: str, held: Sequence[tuple[int, tuple[int, ...]]], machine: Hierarchy, keep: KeepShape
) -> Request | None:
    """Return a request for a unit on each host of a job, in one domain as these are."""
    kinds = list(dict.fromkeys(amounts for _, amounts in held))
    if len(kinds) > _MOST_KINDS or any(not any(amounts) for amounts in kinds):
        return None
    together = [
        level
        for level, of in zip(machine.levels, machine.domain_of.tolist(), strict=True)
        if len({of[host] for host, _ in held}) == 1
    ]
    within = together[-1] if together and len(held) > 1 and keep is KeepShape.AS_GOOD else None
    takes = [{r: n for r, n in zip(machine.resources, own, strict=True) if n} for own in kinds]
    if len(kinds) == 1:
        return Request(id=name, nodes=len(held), takes=takes[0], required=within)
    sizes = Counter(amounts for _, amounts in held)
    parts = [
        Part(id=str(k), nodes=sizes[own], takes=takes[k], required=within, group="all")
        for k, own in enumerate(kinds)
    ]
    return Request(id=name, nodes=len(held), parts=parts)


# ---- Pairs ---------------------------------------------------------------------------------------


def _pairs_of(
    table: Rows, present: Mapping[str, Place], asked: Mapping[str, Asked], wanted: Sequence[str]
) -> list[_Pair]:
    """Return the pairs by request, part, mover, level and number."""
    last = table.instance.machine.num_levels - 1
    found = []
    for name in wanted:
        for p, part in enumerate(asked[name].parts):
            ways = [way[p] for way in asked[name].ways]
            for mover, place in present.items():
                held: dict[int, list[int]] = {}
                for own, units in zip(asked[mover].parts, place, strict=True):
                    grains = table.in_grains(own.takes)
                    for host, n in units.items():
                        have = held.get(host, [0] * len(grains))
                        held[host] = [a + n * b for a, b in zip(have, grains, strict=True)]
                own_pairs: list[tuple[At, int]] = []
                _walk(table, table.top, ways, held, asked[name].alone, part.units, own_pairs, last)
                found += [_Pair(name, p, mover, at, limit) for at, limit in sorted(own_pairs)]
    return found


def _walk(
    table: Rows,
    domain: Domain,
    ways: Sequence[Wanted],
    held: Mapping[int, Sequence[int]],
    alone: int | None,
    units: int,
    found: list[tuple[At, int]],
    last: int,
    above: tuple[int, int] | None = None,
) -> None:
    """Add the domains in which fewer units fit beside a mover, except those like the one above."""
    figures = _figures(table, domain, ways, held, alone)
    if figures is None:
        return
    most, beside = figures
    if beside < min(most, units) and figures != above:
        found.append(((domain.level, domain.number), beside))
    for below in domain.inside:
        _walk(table, below, ways, held, alone, units, found, last, figures)
    for place in domain.places if domain.level != last else ():
        pool = Domain(last, place.hosts[0], (), (place,))
        _walk(table, pool, ways, held, alone, units, found, last, figures)


def _figures(
    table: Rows,
    domain: Domain,
    ways: Sequence[Wanted],
    held: Mapping[int, Sequence[int]],
    alone: int | None,
) -> tuple[int, int] | None:
    """Return how many units fit in a domain, and beside a mover; None if that is not there."""
    places = domain.all_places()
    if not any(host in held for place in places for host in place.hosts):
        return None
    by_way = []
    for way in ways:
        takes = table.in_grains(way.takes)
        most = beside = 0
        for place in places:
            first = place.hosts[0]
            if way.eligible is not None and first not in way.eligible:
                continue
            if not (fit := holds(table.free[first], takes)):
                continue
            if place.is_pool:
                most += len(place.hosts)
                beside += sum(host not in held for host in place.hosts)
                continue
            most += fit
            nothing = (0,) * len(takes)
            own = held.get(first, nothing)
            beside += holds([a - b for a, b in zip(table.free[first], own, strict=True)], takes)
        by_way.append((most, beside))
    most = max(own for own, _ in by_way)
    beside = max(own for _, own in by_way)
    return most, 0 if domain.level == alone else beside
