"""A snapshot of a hierarchy or switch tree as the checker sees it, and the rules of a place."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace.certify.candidates import candidates
from topoplace.certify.hierarchy.switches import machine_of_switches
from topoplace.certify.report import RefusedError, require_none
from topoplace.certify.sets import Hosts, hosts_of
from topoplace.certify.value import require_value, value_of
from topoplace.errors import number_of, plural_of
from topoplace.machine.hierarchy import Hierarchy, build_hierarchy
from topoplace.machine.hostlist import NodeLists
from topoplace.snapshot.schema import (
    MAX_SIZE,
    ON_TORI,
    Apart,
    Communication,
    HierarchyModel,
    MachineDocument,
    Order,
    Part,
    PatternUse,
    Request,
    Segment,
    Snapshot,
    TreeModel,
)

_NO_LEVELS = "nodes", "without_gpus", "balance", "stranded"

Keys = tuple[tuple[int, str], ...]
"""Levels and names: of jobs with one of them, no two share a domain of the level."""


@dataclass(frozen=True)
class Wanted:
    """A part of a request: units, what one takes, and rules with their levels as numbers.

    Attributes
    ----------
    multiples
        Level and size of segments.
    eligible
        The hosts it may have; None for all.
    apart
        Levels and names: it shares no domain of the level with others of the name.
    order
        Hosts in the order in which those that it has follow each other, each with one unit, if it
        is contiguous.
    """

    units: int
    takes: tuple[int, ...]
    multiples: tuple[tuple[int, int], ...]
    required: int | None
    exclusive: int | None
    balance: int | None
    spread: tuple[int, int] | None
    group: str
    at_most: tuple[int, int] | None = None
    eligible: Hosts | None = None
    apart: Keys = ()
    order: tuple[int, ...] | None = None

    @property
    def kind(self) -> tuple[tuple[int, ...], Hosts | None]:
        """What units of parts share that fit the same hosts."""
        return self.takes, self.eligible

    @property
    def named(self) -> set[int]:
        """The levels that its rules are about."""
        found = {self.required, self.exclusive, self.balance, *(lv for lv, _ in self.multiples)}
        found |= {pair[0] for pair in (self.spread, self.at_most) if pair is not None}
        found |= {level for level, _ in self.apart}
        return {level for level in found if level is not None}


@dataclass(frozen=True)
class Asked:
    """A request; `patterns` is empty on hierarchies, and if it is compute-intensive.

    `without` is its value on the level of requests without GPUs, where these count.
    `others` are the same parts with other eligible hosts: it may be placed as one of these, too.
    The communication of one that is `silent` is ``none``.
    """

    id: str
    nodes: int
    value: int
    parts: tuple[Wanted, ...]
    part_names: tuple[str | None, ...]
    patterns: tuple[PatternUse, ...]
    without: int = 0
    others: tuple[tuple[Wanted, ...], ...] = ()
    silent: bool = False

    @property
    def ways(self) -> tuple[tuple[Wanted, ...], ...]:
        """Its parts, by set of hosts of which it may have one."""
        return (self.parts, *self.others)

    @property
    def alone(self) -> int | None:
        """Level whose domains it shares with nobody."""
        return self.parts[0].exclusive


@dataclass(frozen=True)
class Instance:
    """What is free on every host by resource, who waits, and where somebody runs.

    `comm` are the hosts of every leaf that communication-intensive jobs hold, on a switch tree. If
    there is a later time, that of the second half of the resources, `busy_then` is as `busy` then.
    """

    machine: Hierarchy
    free: tuple[tuple[int, ...], ...]
    busy: frozenset[int]
    comm: tuple[int, ...]
    queue: tuple[Asked, ...]
    num_running: int
    busy_then: frozenset[int] | None = None
    free_domains: tuple[int, Mapping[int, frozenset[int]]] | None = None
    """Where free domains count, their level, and the hosts of each that is free."""

    def times(self, asked: Asked) -> set[int]:
        """Return at which times a request takes something: 0 is now, 1 later."""
        num = len(self.machine.resources) // (1 if self.busy_then is None else 2)
        return {r // num for part in asked.parts for r, amount in enumerate(part.takes) if amount}

    def resources_at(self, asked: Asked) -> set[int]:
        """Return the resources of the times of a request: those of a domain that it has alone."""
        num = len(self.machine.resources) // (1 if self.busy_then is None else 2)
        return {r for time in self.times(asked) for r in range(time * num, (time + 1) * num)}

    def busy_for(self, asked: Asked) -> set[int]:
        """Return the hosts on which a job runs at some time of a request."""
        by_time = dict(enumerate((self.busy, self.busy_then or frozenset())))
        return {host for time in self.times(asked) for host in by_time[time]}

    @property
    def numbers(self) -> dict[str, int]:
        """The hosts by name."""
        return {name: host for host, name in enumerate(self.machine.host_names)}

    @cached_property
    def is_balanced(self) -> bool:
        """Whether a part asks for balance."""
        return any(part.balance is not None for asked in self.queue for part in asked.parts)

    @cached_property
    def is_mixed(self) -> bool:
        """Whether GPUs count, and a request has none."""
        return any(asked.without for asked in self.queue)

    @property
    def levels(self) -> list[tuple[str, str]]:
        """Name and sense of the levels of the objective."""
        balance = [("balance", "max")] if self.is_balanced else []
        counted = self.machine.levels[1:] if self.machine.fabrics else self.machine.levels
        domains = [(name, "min") for name in counted]
        without = [("without_gpus", "max")] if self.is_mixed else []
        left = [] if self.free_domains is None else [(self.free_name, "max")]
        return [("nodes", "max"), *without, *left, *domains, *balance, ("stranded", "min")]

    @property
    def free_name(self) -> str:
        """What the level of free domains is called."""
        assert self.free_domains is not None
        return f"free_{plural_of(self.machine.levels[self.free_domains[0]])}"

    def num_free(self, used: Set[int]) -> int:
        """Return how many of the free domains have none of some hosts."""
        assert self.free_domains is not None
        return sum(not used & hosts for hosts in self.free_domains[1].values())


Place = Sequence[Mapping[int, int]]
"""Where a request is: by part, the units on each host."""


def read_instance(snapshot: Snapshot) -> Instance:
    """Return the checker's view of a snapshot.

    Raises
    ------
    RefusedError
        If it contradicts itself.
    """
    machine = machine_of(snapshot.written)
    on_switches = snapshot.written.has_contention
    numbers = {name: host for host, name in enumerate(machine.host_names)}
    whole: list[list[int]] = machine.capacity.tolist()
    free, nothing = [*whole], [0] * len(machine.resources)
    ids = Counter([job.id for job in snapshot.running] + [one.id for one in snapshot.queue])
    if any(count > 1 for count in ids.values()):
        raise RefusedError("an id is used twice")
    busy: set[int] = set()
    comm, leaf_of = [0] * machine.num_leaves, machine.leaf_of.tolist()
    lists = NodeLists()
    sets = Sets(snapshot.sets, machine, numbers)
    alone: set[tuple[int, int]] = set()
    for job in snapshot.running:
        names = lists.hosts(job.nodes)
        require_none(job, "prism", *(() if on_switches else ("patterns",)))
        hosts = _run(job.id, names, numbers)
        part = None if job.takes is None or on_switches else _amounts(job.takes, machine)
        for host in hosts:  # on a tree, whole nodes
            held = whole[host] if part is None else part
            if free[host] is held:
                free[host] = nothing
                continue
            free[host] = [have - own for have, own in zip(free[host], held, strict=True)]
            if min(free[host]) < 0:
                raise RefusedError(f"running jobs hold more than {machine.host_names[host]} has")
        busy |= hosts
        for level, name in _apart(job.apart or (), machine, job.id):
            of = machine.domain_of[level]
            near = {int(of[host]) for host in hosts}
            inside = {host for host in range(machine.num_hosts) if int(of[host]) in near}
            sets.taken[level, name] = sets.taken.get((level, name), frozenset()) | inside
        for host in hosts if job.communication is not Communication.NONE else ():
            comm[leaf_of[host]] += 1
        if job.exclusive is not None:
            level = _level(machine, job.exclusive, job.id)
            alone |= {(level, int(machine.domain_of[level][host])) for host in hosts}
    for level, domain in alone:
        for host in np.flatnonzero(machine.domain_of[level] == domain).tolist():
            free[host] = nothing
    down = lists.hosts(snapshot.down, "down")
    if snapshot.regions or len({*down}) < len(down) or not {*down} <= numbers.keys():
        raise RefusedError("regions, or a host that is down twice, or is none")
    for name in down:
        free[numbers[name]] = nothing
    waiting = candidates(snapshot)
    require_value(snapshot)
    queue = tuple(
        own if one.one_of is None else sets.ways(own, one.one_of)
        for one in waiting
        for own in (
            _asked(one, machine, sets, value_of(one, snapshot.value), on_switches=on_switches),
        )
    )
    rows = tuple(tuple(own) for own in free)
    taken = busy | {numbers[name] for name in down}
    return Instance(
        machine,
        rows,
        frozenset(busy),
        tuple(comm),
        queue,
        len(snapshot.running),
        free_domains=_free_domains(snapshot, machine, taken, queue),
    )


def _free_domains(
    snapshot: Snapshot, machine: Hierarchy, taken: Set[int], queue: Sequence[Asked]
) -> tuple[int, dict[int, frozenset[int]]] | None:
    """Return the level of which free domains count, and those without a host that is taken."""
    if snapshot.free is None:
        return None
    if snapshot.order is not Order.VALUE:
        raise RefusedError("free domains count, and requests start in an order")
    level = _level(machine, snapshot.free, "free domains")
    if any(asked.alone is not None and asked.alone < level for asked in queue):
        raise RefusedError("free domains count, and a request has one above them for itself")
    hosts: dict[int, set[int]] = {}
    for host, domain in enumerate(machine.domain_of[level].tolist()):
        hosts.setdefault(domain, set()).add(host)
    whole = {d: frozenset(own) for d, own in sorted(hosts.items()) if not own & taken}
    return level, whole


def with_later(snapshot: Snapshot, instance: Instance, at: int | None, alone: str) -> Instance:
    """Return an instance with every resource twice: now, and at a time at which one is placed.

    The request `alone` takes what it wants then alone, and others do so if they last longer. `at`
    are seconds from now, None for the time at which all have ended that have an end.
    """
    lasting = [
        job for job in snapshot.running if job.ends is None or (at is not None and job.ends > at)
    ]
    then = read_instance(snapshot.model_copy(update={"running": lasting}))
    walltime = {request.id: request.walltime for request in snapshot.queue}

    def twice(asked: Asked, part: Wanted) -> Wanted:
        nothing, ends = (0,) * len(part.takes), walltime[asked.id]
        keys = tuple((level, f"{name} then") for level, name in part.apart)
        if asked.id == alone:
            return replace(part, takes=nothing + part.takes, apart=keys)
        if ends is None or (at is not None and max(1, ends) > at):
            both = tuple(sorted(part.apart + keys))
            return replace(part, takes=part.takes * 2, apart=both)
        return replace(part, takes=part.takes + nothing)

    queue = []
    for now, later in zip(instance.queue, then.queue, strict=True):
        asked = later if now.id == alone else now
        first, *others = (tuple(twice(asked, p) for p in way) for way in asked.ways)
        queue.append(replace(asked, parts=first, others=tuple(others)))
    machine = replace(
        instance.machine,
        resources=(*instance.machine.resources, *(f"{r} then" for r in instance.machine.resources)),
        capacity=np.hstack([instance.machine.capacity] * 2),
    )
    free = tuple(now + later for now, later in zip(instance.free, then.free, strict=True))
    return replace(instance, machine=machine, free=free, queue=tuple(queue), busy_then=then.busy)


def machine_of(model: MachineDocument) -> Hierarchy:
    """Return the machine that a document describes, hosts in the order in which it names them."""
    if isinstance(model, TreeModel):
        return machine_of_switches(model)
    model = model.only(HierarchyModel, "a hierarchy or tree")
    if model.fabrics and len(model.levels) == 1:
        raise RefusedError("fabrics without a level of hosts below")
    resources = sorted({name for group in model.hosts for name in group.capacity})
    hosts: list[tuple[str, Sequence[str], Sequence[int]]] = []
    lists = NodeLists()
    for group in model.hosts:
        amounts = [group.capacity.get(name, 0) for name in resources]
        if len(group.domains) != len(model.levels) - 1:
            raise RefusedError(f"{group.hosts} are not in a domain of every level")
        names = lists.hosts(group.hosts, "hosts")
        hosts += [(name, group.domains, amounts) for name in names]
    names = [name for name, _, _ in hosts]
    if len({*names}) < len(names) or len({*model.levels, *_NO_LEVELS}) < len(_NO_LEVELS) + len(
        model.levels
    ):
        raise RefusedError("a host or a level twice, or a level called as those of objectives are")
    blocks = model.block_sizes or ()
    return build_hierarchy(model.levels, resources, hosts, blocks, fabrics=model.fabrics)


def _run(job: str, names: list[str], numbers: Mapping[str, int]) -> set[int]:
    """Return the hosts on which a job runs."""
    if not names or len({*names}) < len(names) or not {*names} <= numbers.keys():
        raise RefusedError(f"{job} runs on no hosts, a host twice, or others than there are")
    return {numbers[name] for name in names}


def _amounts(takes: Mapping[str, int], machine: Hierarchy) -> tuple[int, ...]:
    if not takes.keys() <= {*machine.resources}:
        raise RefusedError(f"{', '.join(takes)}: not all of them resources of the machine")
    return tuple(takes.get(name, 0) for name in machine.resources)


class Sets:
    """The named sets of hosts of a snapshot; a domain is one, by its path, unless it is one."""

    def __init__(
        self, sets: Mapping[str, str], machine: Hierarchy, numbers: Mapping[str, int]
    ) -> None:
        self._numbers, self._every, self._machine = numbers, frozenset(numbers.values()), machine
        self._given = sets
        self._hosts_given = {name: self._hosts(text) for name, text in sets.items()}
        self._known: dict[tuple[str | None, str | None, Keys], Hosts | None] = {}
        self.taken: dict[tuple[int, str], Hosts] = {}
        """By level and name the hosts of domains in which such a job runs."""

    @cached_property
    def _sets(self) -> Mapping[str, Hosts]:
        found: dict[str, Hosts] = {}
        machine = self._machine
        for names, of in zip(machine.domain_names[:-1], machine.domain_of.tolist(), strict=False):
            inside: list[list[int]] = [[] for _ in names]
            for host, domain in enumerate(of):
                inside[domain].append(host)
            found |= dict(zip(names, map(frozenset, inside), strict=True))
        return found | self._hosts_given

    def _hosts(self, text: str) -> Hosts:
        names = NodeLists().hosts(text, "a set of hosts")
        if len({*names}) < len(names) or not {*names} <= self._numbers.keys():
            raise RefusedError("a set has a host twice, or one that is none")
        return frozenset(self._numbers[name] for name in names)

    def in_order(self, name: str) -> tuple[int, ...]:
        """Return the hosts of a set of the snapshot in the order of its list."""
        if name not in self._given:
            raise RefusedError(f"{name} is no set of the snapshot")
        return tuple(self._numbers[host] for host in NodeLists().hosts(self._given[name], name))

    def ways(self, asked: Asked, one_of: Sequence[str]) -> Asked:
        """Return a request that has all its hosts in one of several sets."""
        sets = [hosts_of(text, self._sets, self._every) for text in one_of]
        return kept_to(asked, sets, self._every)

    def of(self, part: Part, apart: Keys) -> Hosts | None:
        """Return the hosts that a part may have; None for all."""
        key = part.eligible, part.excluded, apart
        if key not in self._known:
            found = self._every
            if part.eligible is not None:
                found = hosts_of(part.eligible, self._sets, self._every)
            if part.excluded is not None:
                found -= self._hosts(part.excluded)
            found = found.difference(*(self.taken.get(one, ()) for one in apart))
            self._known[key] = None if found == self._every else found
        return self._known[key]


def kept_to(asked: Asked, sets: Iterable[Hosts], every: Hosts) -> Asked:
    """Return a request that has all its hosts in one of several sets."""
    found = []
    for here in sets:
        own = [here if p.eligible is None else here & p.eligible for p in asked.parts]
        pairs = zip(asked.parts, own, strict=True)
        found.append(tuple(replace(p, eligible=None if e == every else e) for p, e in pairs))
    return replace(asked, parts=found[0], others=tuple(found[1:]))


def _asked(
    request: Request,
    machine: Hierarchy,
    sets: Sets,
    values: tuple[int, int],
    *,
    on_switches: bool,
) -> Asked:
    nodes, (value, without) = request.nodes, values
    talks = request.communication is not Communication.NONE
    patterns = tuple(request.patterns or ()) if talks else ()
    require_none(request, "node_class", "shapes", "region", *ON_TORI)
    if not on_switches:
        require_none(request, "patterns")
    elif request.nodes > machine.num_hosts or sum(u.share for u in request.patterns or ()) > 100:
        raise RefusedError(f"{request.id} wants too many nodes or too large shares")
    if request.parts is None:
        if request.nodes > MAX_SIZE:
            raise RefusedError(f"{request.id} wants more than {MAX_SIZE} units")
        own = Part(
            id=request.id,
            nodes=request.nodes,
            takes={"slots": 1} if request.takes is None else request.takes,
            segments=request.segments or [],
            required=request.required,
            exclusive=request.exclusive,
            balance=request.balance,
            spread=request.spread,
            apart=request.apart or [],
            eligible=request.eligible,
            excluded=request.excluded,
        )
        wanted = _wanted(own, machine, sets, request.id)
        if request.at_most is not None:
            level = _level(machine, request.at_most.level, request.id)
            wanted = replace(wanted, at_most=(level, request.at_most.size))
        if request.contiguous is not None:
            if wanted.multiples or wanted.spread or wanted.exclusive is not None:
                raise RefusedError(f"{request.id}: contiguous, with rules that go with no order")
            if wanted.balance is not None:
                raise RefusedError(f"{request.id}: contiguous, and balanced")
            order = sets.in_order(request.contiguous)
            wanted = replace(wanted, order=order, spread=(machine.num_levels - 1, 1))
        alone = (wanted,), (None,), patterns, without
        return Asked(request.id, nodes, value, *alone, silent=not talks)
    own_rules = ("required", "preferred", "exclusive", "balance", "spread", "at_most", "apart")
    require_none(request, "takes", "segments", "eligible", "excluded", "contiguous", *own_rules)
    parts = [_wanted(part, machine, sets, request.id) for part in request.parts]
    names = [part.id for part in request.parts]
    if len({*names}) < len(names) or sum(part.units for part in parts) != request.nodes:
        raise RefusedError(f"{request.id}: a part twice, or not as many units as all parts have")
    for part in parts:
        together = {p.required for p in parts if p.group == part.group}
        shared = part.exclusive == parts[0].exclusive and part.apart == parts[0].apart
        if len(together) > 1 or not shared:
            raise RefusedError(f"{request.id}: parts that go together differ in their levels")
    several = tuple(parts), tuple(names), patterns, without
    return Asked(request.id, nodes, value, *several, silent=not talks)


def _level(machine: Hierarchy, name: str, request: str) -> int:
    if name not in machine.levels:
        raise RefusedError(f"{request}: {name} is no level of the machine")
    return machine.levels.index(name)


def _wanted(part: Part, machine: Hierarchy, sets: Sets, request: str) -> Wanted:
    def level(name: str | None) -> int | None:
        return None if name is None else _level(machine, name, request)

    def sized(segment: Segment) -> tuple[int, int]:
        return _level(machine, segment.level, request), segment.size

    multiples = sorted((sized(one) for one in part.segments), key=lambda pair: pair[1])
    sizes = [size for _, size in multiples]
    at = [lv for lv, _ in multiples]
    if any(b % a for a, b in itertools.pairwise([*sizes, part.nodes])):
        raise RefusedError(f"{request}: segments that do not go into each other")
    if any(a <= b for a, b in itertools.pairwise(at)):
        raise RefusedError(f"{request}: larger segments at no higher level")
    takes = _amounts(part.takes, machine)
    if not any(takes):
        raise RefusedError(f"{request}: units that take nothing")
    required = level(part.required)
    if required is None and machine.fabrics:
        required = 0  # nothing joins fabrics
    apart = _apart(part.apart, machine, request)
    return Wanted(
        part.nodes,
        takes,
        tuple(multiples),
        required,
        level(part.exclusive),
        level(part.balance),
        None if part.spread is None else sized(part.spread),
        f"={part.group}" if part.group is not None else f"of {part.id}",
        eligible=sets.of(part, apart),
        apart=apart,
    )


def _apart(given: Sequence[Apart], machine: Hierarchy, request: str) -> Keys:
    """Return levels and names, each pair once."""
    return tuple(sorted({(_level(machine, one.level, request), one.name) for one in given}))


# ---- The rules of a place ------------------------------------------------------------------------


def require_place(instance: Instance, asked: Asked, place: Place) -> None:
    """Raise unless a place keeps every rule that is about its request alone."""
    machine = instance.machine
    barred = [_barred(way, place) for way in asked.ways]
    if all(barred):
        name = machine.host_names[min(barred[0])]
        several = ", nor are all in another of its sets" if asked.others else ""
        raise RefusedError(f"{name} is none of the hosts it may have{several}")
    for part, units in zip(asked.parts, place, strict=True):
        if sum(units.values()) != part.units:
            raise RefusedError(f"{number_of(sum(units.values()), 'unit')} placed of {part.units}")
        for level, size in part.multiples:
            if any(n % size for n in per_domain(machine, level, units).values()):
                raise RefusedError(
                    f"a {machine.levels[level]} without a multiple of {number_of(size, 'unit')}"
                )
        if part.spread is not None:
            level, size = part.spread
            if max(per_domain(machine, level, units).values()) > size:
                raise RefusedError(
                    f"a {machine.levels[level]} with more than {number_of(size, 'unit')}"
                )
        if part.at_most is not None:
            level, most = part.at_most
            if len(per_domain(machine, level, units)) > most:
                raise RefusedError(f"more than {number_of(most, machine.levels[level])}")
        if part.order is not None and not _in_a_row(part.order, units):
            raise RefusedError("hosts that do not follow each other")
        if part.required is not None:
            beside = zip(asked.parts, place, strict=True)
            own = [host for p, held in beside if p.group == part.group for host in held]
            if len({int(machine.domain_of[part.required, host]) for host in own}) > 1:
                raise RefusedError(f"several {machine.levels[part.required]}, one is required")


def _in_a_row(order: Sequence[int], units: Mapping[int, int]) -> bool:
    """Return whether hosts follow each other in an order."""
    at = {host: k for k, host in enumerate(order)}
    places = sorted(at.get(host, -1) for host in units)
    return places[0] >= 0 and places[-1] - places[0] == len(places) - 1


def _barred(parts: Sequence[Wanted], place: Place) -> set[int]:
    """Return the hosts of a place that its parts may not have."""
    pairs = zip(parts, place, strict=True)
    own = ((part.eligible, units.keys()) for part, units in pairs)
    return {host for may, hosts in own if may is not None for host in hosts - may}


def require_room(instance: Instance, started: Sequence[tuple[Asked, Place]]) -> str:
    """Raise unless no host gives more than it has, and who wants a domain alone has it."""
    machine, taken = instance.machine, Counter[tuple[int, int]]()
    for asked, place in started:
        for part, units in zip(asked.parts, place, strict=True):
            for host, n in units.items():
                for r, amount in enumerate(part.takes):
                    taken[host, r] += n * amount
    for (host, r), amount in taken.items():
        if amount > instance.free[host][r]:
            name, what = machine.host_names[host], machine.resources[r]
            raise RefusedError(f"{amount} {what} of {name}, {instance.free[host][r]} are free")
    users = [{host for units in place for host in units} for _, place in started]
    for k, (asked, _) in enumerate(started):
        if asked.alone is None:
            continue
        of = machine.domain_of[asked.alone]
        own = {int(of[host]) for host in users[k]}
        times = instance.times(asked)
        others = set(instance.busy_for(asked)).union(
            *(
                users[j]
                for j, (other, _) in enumerate(started)
                if j != k and instance.times(other) & times
            )
        )
        if own & {int(of[host]) for host in others}:
            raise RefusedError(f"{asked.id} shares a {machine.levels[asked.alone]} it wants alone")
    inside: set[tuple[int, str, int]] = set()
    for k, (asked, _) in enumerate(started):
        for level, name in asked.parts[0].apart:
            near = {(level, name, int(machine.domain_of[level, host])) for host in users[k]}
            if near & inside:
                raise RefusedError(
                    f"{asked.id} shares a {machine.levels[level]} with others of {name}"
                )
            inside |= near
    return f"no host gives more than it has; {number_of(len(taken), 'amount')}"


def per_domain(machine: Hierarchy, level: int, units: Mapping[int, int]) -> Counter[int]:
    """Return the units in every domain of a level that has some."""
    found: Counter[int] = Counter()
    for host, n in units.items():
        found[int(machine.domain_of[level, host])] += n
    return found


def worth(instance: Instance, asked: Asked, place: Place) -> list[int]:
    """Return the value of a place on every level, as it is reported; of free domains 0."""
    machine = instance.machine
    groups = sorted({part.group for part in asked.parts})
    together = [
        {h for p, own in zip(asked.parts, place, strict=True) if p.group == group for h in own}
        for group in groups
    ]
    figures = [asked.value, asked.without] if instance.is_mixed else [asked.value]
    figures += [] if instance.free_domains is None else [0]
    for level in range(int(machine.fabrics), machine.num_levels):
        of = machine.domain_of[level]
        figures.append(sum(len({int(of[host]) for host in hosts}) for hosts in together))
    if instance.is_balanced:
        pairs = zip(asked.parts, place, strict=True)
        least = [
            min(per_domain(machine, p.balance, own).values())
            for p, own in pairs
            if p.balance is not None
        ]
        figures.append(sum(least))
    left = 0
    for part, own in zip(asked.parts, place, strict=True):
        left += sum(holds(instance.free[host], part.takes) - n for host, n in own.items())
    return [*figures, left]


def holds(free: Sequence[int], takes: Sequence[int]) -> int:
    """Return how many units fit into what is free."""
    return min(have // each for have, each in zip(free, takes, strict=True) if each)
