"""Where running jobs of hierarchies and switch trees may go: wherever what they asked for may be.

A gang, or a job that is in none, is a *mover* if it can be read as a request (`_as_request`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.errors import InputError
from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.packing.problem import Cover
from topoplace.placement.hierarchy.assignment import MOST_VARIABLES, Assignment
from topoplace.placement.hierarchy.layout import Layout, rooms_of
from topoplace.placement.hierarchy.outcome import parts_of
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking, Pricing
from topoplace.placement.hierarchy.plans import Plans
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed
from topoplace.placement.hierarchy.relocation import Relocation
from topoplace.placement.hierarchy.tables import FAR, MOST_PARTS, Steps, Uses
from topoplace.placement.repack.problem import (
    STAYS,
    Offer,
    RepackProblem,
    Seat,
    Site,
    Wishes,
    may_change,
)
from topoplace.result import Interference
from topoplace.result.placement import HierarchyPlacement
from topoplace.snapshot.hierarchy_state import HierarchyRequest, hierarchy_of, prepare_hierarchy
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.running import Held, amounts_of, held_by, job_name, restricted, units_of
from topoplace.snapshot.schema import (
    Apart,
    DefragmentInstance,
    KeepShape,
    Part,
    RepackInstance,
    Request,
    RunningJob,
    Snapshot,
)
from topoplace.types import IntArray


@dataclass(frozen=True, order=True)
class OnHosts:
    """An exact place: part, host and units; and the same on hosts and pools (`uses`)."""

    units: tuple[tuple[int, int, int], ...]
    uses: Uses

    def placed(self, num_parts: int) -> Placed:
        """Return by part the units on each host."""
        found: list[dict[int, int]] = [{} for _ in range(num_parts)]
        for part, host, units in self.units:
            found[part][host] = units
        return tuple(found)


@dataclass(frozen=True)
class _Mover:
    request: Request
    units: tuple[tuple[int, int, int], ...]


class HierarchyMoves(Site):
    """Running jobs and requests as units on hosts.

    A pair is of a part of a request, a mover and a domain, host or pool: units of the part that do
    not fit there beside the mover take it (docs/proofs/hierarchy.md, "Moves").
    """

    packing: HierarchyPacking
    own: Sequence[OnHosts]

    def __init__(
        self,
        snapshot: Snapshot,
        wanted: Sequence[Request],
        instance: RepackInstance | DefragmentInstance,
        interference: Interference,
    ) -> None:
        if instance.keep_shape is KeepShape.SAME:
            raise InputError("as-good or any on a hierarchy", field="keep_shape", value="same")
        movers, replaced = movers_of(snapshot, instance), replaced_of(snapshot, instance)
        names = {mover.request.id for mover in (*movers, *replaced)}
        update = {
            "running": [job for job in snapshot.running if job_name(job) not in names],
            "queue": [
                *(mover.request for mover in movers),
                *wanted,
                *(mover.request for mover in replaced),
            ],
            "left_out": [],
        }
        self.state = prepare_hierarchy(snapshot.model_copy(update=update))
        self.packing = HierarchyPacking(HierarchyProblem(self.state))
        self.names = self.packing.names
        self.requests = self.packing.requests
        self.nodes = [request.nodes for request in self.requests]
        self.values = [request.value for request in self.requests[len(movers) :]]
        self.own = [self._on_hosts(mover.units) for mover in movers]
        first, usable = len(self.names) - len(replaced), self.packing.layout.node_of_host
        for idx, own in enumerate(replaced):
            if any(host not in usable for _, host, _ in own.units):
                expected = "jobs on hosts that they may have"
                raise InputError(expected, field=f"replace[{idx}]", value=own.request.id)
        self.kept = {first + k: self._on_hosts(own.units) for k, own in enumerate(replaced)}
        self._pairs = _Pairs(self)
        self.num_pairs = len(self._pairs.limits)
        self._program: Relocation | None = None

    def _on_hosts(self, units: Sequence[tuple[int, int, int]]) -> OnHosts:
        uses: Counter[tuple[int, int]] = Counter()
        for part, host, number in units:
            uses[part, self.packing.layout.node_of_host[host]] += number
        return OnHosts(tuple(sorted(units)), tuple(sorted((*k, n) for k, n in uses.items())))

    def candidate(self, q: int, place: Uses | OnHosts) -> Candidate:
        """Return a place as a candidate."""
        return Candidate(q, place.uses if isinstance(place, OnHosts) else place)

    def pairs(self, q: int, place: Uses | OnHosts, *, stays: bool = False) -> IntArray:
        """Return the pairs of a mover that stays, or of a place that leaves no room for it."""
        if stays:
            return self._pairs.of_mover[q]
        own = self._pairs.of_request[q]
        if not len(own):
            return own
        units = np.zeros((len(self.packing.layout.nodes), MOST_PARTS), dtype=np.int64)
        for part, leaf, number in self.candidate(q, place).uses:
            units[[*self.packing.layout.chain[leaf], len(units) - 1], part] += number
        over = units[self._pairs.nodes[own], self._pairs.parts[own]] > self._pairs.limits[own]
        return np.asarray(own[over])

    def pairs_of(self, q: int, pair: int | None = None) -> list[tuple[int, int, int, int]]:
        """Return the pairs of a request: number, node, part, and units beside the mover."""
        own, of = self._pairs, self._pairs.of_request[q] if pair is None else np.array([pair])
        columns = (of, own.nodes[of], own.parts[of], own.limits[of])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def plans(
        self, problem: RepackProblem, costs: IntArray, deadline: float
    ) -> Iterator[list[Seat]]:
        """Yield solutions of an integer program, better ones later."""
        program = self.program(problem)
        if program is not None and program.is_complete:
            return program.seats(costs, deadline)
        if Assignment.num_variables(self.packing.layout, self.requests) > MOST_VARIABLES:
            return iter(())
        return Plans(self, problem, deadline).seats(costs, 0)

    def program(self, problem: RepackProblem) -> Relocation | None:
        """Return the linear program of all jobs, None if it is too large."""
        if self._program is None and Relocation.is_small(self):
            self._program = Relocation(self, problem)
        return self._program

    def work(self) -> float:
        """Return what a call takes."""
        return self.packing.work(0)

    def key(self, q: int) -> Hashable:
        """Return the kind of a mover; a request has pairs of its own."""
        return (q,) if q >= len(self.own) else self.packing.first_of_kind[q]

    def priced(self, rows: IntArray, pairs: IntArray) -> Callable[[int, int, Wishes], list[Offer]]:
        """Return what finds the cheapest place, by the dynamic program over domains."""
        pricing, covers_end = Pricing(self.packing, rows, (0,)), self.packing.num_covers

        def cheapest(q: int, number: int, wishes: Wishes) -> list[Offer]:
            covers = [Cover(q, row, inside) for row, inside in wishes if row < covers_end]
            named = {row - covers_end: inside for row, inside in wishes if row >= covers_end}
            steps = self._pairs.steps(q, pairs, named)
            found = None if steps is None else pricing.best(q, covers, steps)
            return [] if found is None else [(-found[0], found[1])]

        return cheapest

    def refuge(self, q: int, left: IntArray, avoided: IntArray) -> Uses | None:
        """Return the place for a job that takes least of what is to be avoided."""
        rest = HierarchyPacking(
            self.packing.hierarchy, self.packing.layout, left, [self.requests[q]]
        )
        steps = self._pairs.steps(q, np.zeros(self.num_pairs, dtype=np.int64), {})
        assert steps is not None
        found = Pricing(rest, avoided, (0,)).best(0, [], steps)
        return None if found is None else found[1]

    def exact(self, seats: Sequence[Seat]) -> list[OnHosts]:
        """Return places in which no host of a pool has two units."""
        found: list[OnHosts] = []
        kept = [self.kept.get(seat.request_idx, _NOWHERE) for seat in seats]
        used = {host for own in kept for _, host, _ in own.units}
        for seat in seats:
            place, mine = seat.place, self.kept.get(seat.request_idx, _NOWHERE).units
            if seat.way != STAYS and not isinstance(place, OnHosts):
                units = []
                for part, leaf, number in place:
                    node = self.packing.layout.nodes[leaf]
                    if node.pool is None:
                        units.append((part, node.hosts[0], number))
                    else:
                        own = [host for p, host, _ in mine if p == part and host in node.hosts]
                        free = [host for host in node.hosts if host not in used]
                        free = [*own, *free][:number]
                        units += [(part, host, 1) for host in free]
                        used.update(free)
                place = OnHosts(tuple(sorted(units)), place)
            used.update(host for _, host, _ in place.units)
            found.append(place)
        return found

    def placement(self, q: int, place: OnHosts) -> HierarchyPlacement:
        """Return a job in its place as documents have it."""
        return _placement(self.requests[q], self.state.machine, place.units)

    def taken(self, q: int, place: OnHosts) -> Mapping[Hashable, int]:
        """Return amounts of hosts, and domains that are not shared with some or with all others."""
        machine, request = self.state.machine, self.requests[q]
        found: Counter[Hashable] = Counter()
        for part, host, units in place.units:
            for r, amount in enumerate(request.parts[part].takes):
                if amount:
                    found[host, r] += units * amount
        hosts = sorted({host for _, host, _ in place.units})
        for level, name in request.parts[0].apart:
            for domain in {*machine.domain_of[level][hosts].tolist()}:
                found["apart", level, name, domain] = 1
        for level in self._alone_levels:
            alone = self._everybody if request.exclusive == level else 1
            for domain in {*machine.domain_of[level][hosts].tolist()}:
                found["alone", level, domain] = alone
        return found

    @cached_property
    def _alone_levels(self) -> set[int]:
        return {one.exclusive for one in self.requests if one.exclusive is not None}

    @property
    def _everybody(self) -> int:
        return 2 * len(self.names) + 1

    def left(self, of: Hashable) -> int:
        """Return what is free beside jobs that are no movers."""
        assert isinstance(of, tuple)
        if of[0] == "apart":
            return 1
        return self._everybody if of[0] == "alone" else int(self.state.free[of])


_NOWHERE = OnHosts((), ())


class _Pairs:
    """The pairs of requests and movers, by number.

    Attributes
    ----------
    nodes, parts, limits
        By pair the node of the layout, the part, and the units that fit beside the mover.
    of_request, of_mover
        The pairs of each.
    """

    def __init__(self, site: HierarchyMoves) -> None:
        layout, requests, num = site.packing.layout, site.requests, len(site.own)
        self._kept = site.kept
        self._losses = [_losses(site, place, site.requests[j]) for j, place in enumerate(site.own)]
        rooms = _rooms(layout)
        found: list[tuple[int, int, int]] = []
        self.of_request: list[IntArray] = [np.zeros(0, dtype=np.int64)] * len(requests)
        of_mover: list[list[int]] = [[] for _ in range(num)]
        order = [(node.level, node.domain) for node in layout.nodes]
        for q in range(num, len(requests)):
            first = len(found)
            for p, part in enumerate(requests[q].parts):
                kinds = [layout.kind_of[way[p].kind] for way in requests[q].ways]
                for j, losses in enumerate(self._losses):
                    own: dict[int, tuple[int, int]] = {}
                    for v in sorted(losses, key=order.__getitem__):
                        most = max(int(rooms[k][v]) for k in kinds)
                        beside = max(int(rooms[k][v] - losses[v][k]) for k in kinds)
                        if requests[q].exclusive == layout.nodes[v].level:
                            beside = 0
                        own[v] = most, beside
                        above = [*layout.chain[v], len(layout.nodes) - 1][1:2]
                        if beside < min(most, part.units) and not any(
                            own[a] == own[v] for a in above
                        ):
                            of_mover[j].append(len(found))
                            found.append((v, p, beside))
            self.of_request[q] = np.arange(first, len(found))
        self.of_mover = [np.array(own, dtype=np.int64) for own in of_mover]
        every = np.array(found, dtype=np.int64).reshape(-1, 3)
        self.nodes, self.parts, self.limits = every.T

    def steps(self, q: int, prices: IntArray, named: Mapping[int, bool]) -> Steps | None:
        """Return what pairs cost a request, and which it has to take; None if it has none of them.

        What it must not do costs too much.
        """
        own = self.of_request[q]
        mine = {*own.tolist()}
        if any(inside and pair not in mine for pair, inside in named.items()):
            return None
        paid = own[prices[own] > 0]
        forced = np.array([pair for pair in named if pair in mine], dtype=np.int64)
        inside = np.array([named[pair] for pair in forced.tolist()], dtype=bool)
        every = np.concatenate([paid, forced])
        # a job that is replaced keeps its units, so fewer there may not be
        keeps = np.array(self._kept.get(q, _NOWHERE).uses, dtype=np.int64).reshape(-1, 3)
        far = np.full(len(forced) + len(keeps), FAR, dtype=np.int64)
        below = [np.zeros(len(paid), dtype=bool), inside, np.ones(len(keeps), dtype=bool)]
        return Steps(
            (q, tuple(named.items())) if len(every) or len(keeps) else (),
            np.concatenate([self.nodes[every], keeps[:, 1]]),
            np.concatenate([self.parts[every], keeps[:, 0]]),
            np.concatenate([self.limits[every], keeps[:, 2] - 1]),
            np.concatenate([prices[paid], far]),
            np.concatenate(below),
        )


def _losses(site: HierarchyMoves, place: OnHosts, request: HierarchyRequest) -> dict[int, IntArray]:
    """Return by node how many units of each kind fit less if a mover is in a place."""
    layout = site.packing.layout
    held: dict[int, IntArray] = defaultdict(lambda: np.zeros_like(layout.grain))
    for part, host, units in place.units:
        held[host] = held[host] + np.array(request.parts[part].takes) // layout.grain * units
    found: dict[int, IntArray] = defaultdict(lambda: np.zeros(len(layout.kinds), dtype=np.int64))
    for host, amounts in held.items():
        leaf = layout.node_of_host[host]
        if layout.nodes[leaf].pool is None:
            loss = (
                layout.rooms[host] - rooms_of((layout.free[host] - amounts)[None], layout.kinds)[0]
            )
            loss = np.where(layout.rooms[host] > 0, loss, 0)
        else:
            loss = (layout.rooms[host] > 0).astype(np.int64)
        for v in (*layout.chain[leaf], len(layout.nodes) - 1):
            found[v] = found[v] + loss
    return found


def _rooms(layout: Layout) -> IntArray:
    """Return by kind and node how many units fit, shape ``(num_kinds, num_nodes)``."""
    found = np.zeros((len(layout.kinds), len(layout.nodes)), dtype=np.int64)
    for v, node in enumerate(layout.nodes):
        if node.pool is not None:
            found[:, v] = (layout.rooms[node.hosts[0]] > 0) * len(node.hosts)
        elif node.hosts:
            found[:, v] = layout.rooms[node.hosts[0]]
        else:
            found[:, v] = found[:, list(node.children)].sum(axis=1)
    return found


# ---- Who may move --------------------------------------------------------------------------------


def movers_of(snapshot: Snapshot, instance: RepackInstance | DefragmentInstance) -> list[_Mover]:
    """Return the jobs that may move or end, as requests, with the units that they have now.

    They are on no host that is down, or that they may not have, and share no domain that they have
    alone, or with jobs that they are apart from.
    """
    machine, lists = hierarchy_of(snapshot.written), NodeLists()
    jobs: dict[str, list[RunningJob]] = {}
    for job in snapshot.running:
        jobs.setdefault(job_name(job), []).append(job)
    down = {machine.numbers[name] for name in lists.hosts(snapshot.down, "down")}
    found, hosts_of, changes = [], {}, may_change(instance)
    for name, entries in jobs.items():
        held = [one for job in entries for one in held_by(job, machine, lists)]
        hosts_of[name] = {host for host, _ in held}
        mover = _mover(name, entries, held, machine, instance.keep_shape)
        if changes(name) and mover is not None and not hosts_of[name] & down:
            found.append(mover)
    alone = prepare_hierarchy(
        snapshot.model_copy(
            update={"running": [], "queue": [m.request for m in found], "left_out": []}
        )
    )
    return [
        mover
        for mover, request in zip(found, alone.requests, strict=True)
        if _keeps_rules(mover, request, jobs, hosts_of, machine)
    ]


def replaced_of(snapshot: Snapshot, instance: RepackInstance | DefragmentInstance) -> list[_Mover]:
    """Return the jobs that get other hosts for those that are down, with the units they keep.

    Raises
    ------
    InputError
        If one has no host that is down, or cannot be read as a request.
    """
    names = instance.replace if isinstance(instance, RepackInstance) else []
    machine, lists = hierarchy_of(snapshot.written), NodeLists()
    down = {machine.numbers[name] for name in lists.hosts(snapshot.down, "down")}
    found, stays = [], restricted(snapshot)
    for idx, name in enumerate(names):
        entries = [job for job in snapshot.running if job_name(job) == name]
        held = [one for job in entries for one in held_by(job, machine, lists)]
        mover = _mover(name, entries, held, machine, instance.keep_shape)
        if mover is None or name in stays or not {host for host, _ in held} & down:
            expected = "jobs with units on hosts that are down, whose rules are known"
            raise InputError(expected, field=f"replace[{idx}]", value=name)
        kept = tuple(own for own in mover.units if own[1] not in down)
        found.append(_Mover(mover.request, kept))
    return found


def _mover(
    name: str, entries: Sequence[RunningJob], held: Held, machine: Hierarchy, keep: KeepShape
) -> _Mover | None:
    """Return a job as a request, None if what it holds are no units."""
    apart = sorted({(one.level, one.name) for job in entries for one in job.apart or ()})
    keys = [Apart(level=level, name=key) for level, key in apart]
    asked = next((job.asked for job in entries if job.asked is not None), None)
    if asked is None:
        asked = _as_request(name, held, machine, keep)
        if asked is None:
            return None
    update: dict[str, object] = {"apart": keys or None}
    for job in entries:
        update |= {} if job.exclusive is None else {"exclusive": job.exclusive}
    if asked.parts is not None:
        own = update | {"apart": keys}
        update = {"parts": [part.model_copy(update=own) for part in asked.parts]}
    update["id"] = name
    request = asked.model_copy(update=update)
    return _Mover(request, units_of(name, request, held, machine))


def _as_request(name: str, held: Held, machine: Hierarchy, keep: KeepShape) -> Request | None:
    """Return a job of which nothing says what it asked for: a unit for each of its hosts.

    It stays within one domain of the lowest level at which it is in one.
    """
    counts = Counter(takes for _, takes in held)
    if len(counts) > MOST_PARTS or not all(map(any, counts)):
        return None
    hosts, required = [host for host, _ in held], None
    if keep is not KeepShape.ANY and len(hosts) > 1:
        for level, own in enumerate(machine.levels):
            if len(np.unique(machine.domain_of[level][hosts])) == 1:
                required = own
    if len(counts) == 1:
        takes = amounts_of(held[0][1], machine)
        return Request(id=name, nodes=len(held), takes=takes, required=required)
    parts = [
        Part(
            id=f"{k}",
            nodes=number,
            takes=amounts_of(takes, machine),
            required=required,
            group="all",
        )
        for k, (takes, number) in enumerate(counts.items())
    ]
    return Request(id=name, nodes=len(held), parts=parts)


def _keeps_rules(
    mover: _Mover,
    request: HierarchyRequest,
    jobs: Mapping[str, Sequence[RunningJob]],
    hosts_of: Mapping[str, set[int]],
    machine: Hierarchy,
) -> bool:
    """Return whether a job may have the hosts that it has."""

    def in_set(k: int) -> bool:
        own = ((request.ways[k][p].eligible, host) for p, host, _ in mover.units)
        return all(may is None or may.mask[host] for may, host in own)

    if not any(map(in_set, range(len(request.ways)))):
        return False
    mine = hosts_of[mover.request.id]
    for name, hosts in hosts_of.items():
        if name == mover.request.id:
            continue
        theirs = {(one.level, one.name) for job in jobs[name] for one in job.apart or ()}
        named = [(machine.levels[level], key) for level, key in request.parts[0].apart]
        levels = [machine.levels.index(level) for level, key in named if (level, key) in theirs]
        levels += [] if request.exclusive is None else [request.exclusive]
        for level in levels:
            of = machine.domain_of[level]
            if {*of[sorted(mine)].tolist()} & {*of[sorted(hosts)].tolist()}:
                return False
    return True


def _placement(
    request: HierarchyRequest, machine: Hierarchy, units: Sequence[tuple[int, int, int]]
) -> HierarchyPlacement:
    placed: Placed = tuple({h: n for p, h, n in units if p == k} for k in range(len(request.parts)))
    hosts = sorted({host for _, host, _ in units})
    return HierarchyPlacement(
        request=request.id,
        nodes=format_host_list(machine.host_names[host] for host in hosts),
        parts=parts_of(request, placed, machine.host_names),
    )


def shown(
    instance: RepackInstance | DefragmentInstance, names: set[str]
) -> tuple[list[HierarchyPlacement], list[Request]]:
    """Return where some jobs are, and what they ask for."""
    snapshot = resolve_machine(instance.snapshot)
    every = [*movers_of(snapshot, instance), *replaced_of(snapshot, instance)]
    movers = [m for m in every if m.request.id in names]
    update = {"running": [], "queue": [m.request for m in movers], "left_out": []}
    state = prepare_hierarchy(snapshot.model_copy(update=update))
    pairs = zip(movers, state.requests, strict=True)
    placed = [_placement(request, state.machine, mover.units) for mover, request in pairs]
    return placed, [mover.request for mover in movers]
