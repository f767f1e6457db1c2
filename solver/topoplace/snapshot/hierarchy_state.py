"""A validated snapshot of a hierarchy or switch tree as arrays, as solvers see it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from topoplace.errors import InputError, blamed_on, number_of, unknown_name
from topoplace.kinds import State
from topoplace.machine.hierarchy import Hierarchy, build_hierarchy, hierarchy_of_switches
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.machine.switches import switches_of
from topoplace.snapshot.free import require_free_level
from topoplace.snapshot.schema import (
    BY_SETS,
    MAX_SIZE,
    ON_HIERARCHIES,
    ON_TORI,
    Apart,
    Communication,
    HierarchyModel,
    HostsModel,
    MachineDocument,
    Part,
    PatternUse,
    Request,
    RunningJob,
    Segment,
    Snapshot,
    TreeModel,
)
from topoplace.snapshot.sets import HostOrder, HostSet, NodeSets
from topoplace.snapshot.state import (
    Queued,
    checked_snapshot,
    numbers_of,
    require_free,
    require_none,
)
from topoplace.snapshot.value import STARTED_LEVELS, require_value, value_of
from topoplace.types import BoolArray, IntArray

NO_LEVEL_NAMES = (*STARTED_LEVELS, "balance", "stranded")
"""What levels of a machine may not be called: levels of the objective are."""

MAX_LEAVES = 4096
"""Of switch trees: contention keeps a number for every pair of leaves."""

_ON_TORI = ("node_class", "shapes", "region", *sorted(ON_TORI))
_LevelOf = Callable[[str, str], int]

_LEVELS_OF_PARTS = ("required", "preferred", "exclusive", "balance")
_OF_PARTS = ("takes", "segments", "spread", "apart", *_LEVELS_OF_PARTS, "eligible", "excluded")
_NOT_CONTIGUOUS = ("segments", "exclusive", "spread", "balance")
_Keys = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class PartState:
    """A part of a request, its levels as numbers.

    Attributes
    ----------
    name
        The name of the part; None if the request has no parts.
    units, takes
        How many units, and what one takes of every resource, shape ``(num_resources,)``.
    segments
        Level and size, the smallest first: levels go up, and every size is a multiple of the one
        before.
    required, preferred, exclusive, balance
        Levels, or None.
    spread
        A level, and how many units a domain of it gets at most; or None.
    at_most
        A level, and how many of its domains get units at most; or None. Parts have none.
    group
        Number of its group; parts of a group are together.
    eligible
        The hosts it may have; None if it may have any. None of a domain in which a job runs that is
        apart from it.
    apart
        Levels and names: of requests with the same pair, one at most is in a domain of the level.
    order
        Of a request that is contiguous, the hosts in the order in which it gets some that follow
        each other, a unit on each; or None. Parts have none.
    """

    name: str | None
    units: int
    takes: tuple[int, ...]
    segments: tuple[tuple[int, int], ...]
    required: int | None = None
    preferred: int | None = None
    exclusive: int | None = None
    balance: int | None = None
    spread: tuple[int, int] | None = None
    at_most: tuple[int, int] | None = None
    group: int = 0
    eligible: HostSet | None = None
    apart: _Keys = ()
    order: HostOrder | None = None

    @property
    def kind(self) -> tuple[tuple[int, ...], HostSet | None]:
        """What units of parts have to share to fit the same hosts."""
        return self.takes, self.eligible


@dataclass(frozen=True)
class HierarchyRequest(Queued):
    """A queued request.

    On a switch tree it has the patterns of its communication, none if it is compute-intensive
    (docs/proofs/tree.md).

    Attributes
    ----------
    others
        The same parts with other eligible hosts: it is placed as `parts` say, or as one of these.
    without_gpus
        Its nodes times its priority, if it has no value.
    silent
        Whether its communication is ``none``.
    """

    parts: tuple[PartState, ...]
    patterns: tuple[PatternUse, ...] = ()
    others: tuple[tuple[PartState, ...], ...] = ()
    without_gpus: int = 0
    silent: bool = False

    @property
    def ways(self) -> tuple[tuple[PartState, ...], ...]:
        """Its parts, once for each of the sets of hosts of which it may have one."""
        return (self.parts, *self.others)

    @property
    def intensive(self) -> bool:
        """Whether it is communication-intensive."""
        return bool(self.patterns)

    @property
    def exclusive(self) -> int | None:
        """Level whose domains it shares with nobody, or None."""
        return self.parts[0].exclusive


@dataclass(frozen=True)
class HierarchyRunning:
    """A running job: its hosts, in the order of its list, and its kind.

    `intensive` jobs are communication-intensive (docs/proofs/tree.md).
    """

    id: str
    hosts: IntArray
    intensive: bool


@dataclass(frozen=True)
class HierarchyState(State):
    """What a snapshot of a hierarchy or switch tree says, checked and turned into arrays.

    Attributes
    ----------
    free
        What is left on every host, 0 where it is down, shape ``(num_hosts, num_resources)``.
    occupied
        Whether a running job holds some of the host, shape ``(num_hosts,)``.
    busy, comm
        L_busy and L_comm of Mishra 2020, section 4: hosts held by running jobs, and by
        communication-intensive ones, per leaf, shape ``(num_leaves,)``.
    kind
        ``allocation`` if contention counts, else ``hierarchy``.
    occupied_then
        As `occupied`, at a later time that the second half of the resources are of; or None.
    """

    snapshot: Snapshot
    machine: Hierarchy
    free: IntArray
    occupied: BoolArray
    busy: IntArray
    comm: IntArray
    running: tuple[HierarchyRunning, ...]
    requests: tuple[HierarchyRequest, ...]
    kind: str = "hierarchy"
    occupied_then: BoolArray | None = None

    @property
    def on_tree(self) -> bool:
        """Whether the machine is a switch tree."""
        return self.snapshot.written.has_contention


_last: tuple[MachineDocument | None, Hierarchy | None] = (None, None)
"""The machine read last: a model built in Python is checked step by step, each on the same one."""


def hierarchy_of(model: MachineDocument) -> Hierarchy:
    """Return the machine a model describes, a switch tree read as a hierarchy.

    Raises
    ------
    InputError
        For a level or a host named twice, or hosts that are not in one domain of every level; of
        a tree for what makes none, or has no levels (`hierarchy_of_switches`).
    """
    global _last  # noqa: PLW0603 - one entry
    known, machine = _last
    if known is not model or machine is None:
        machine = _hierarchy_of(model)
        _last = model, machine
    return machine


def _hierarchy_of(model: MachineDocument) -> Hierarchy:
    if isinstance(model, TreeModel):
        return _of_switches(model)
    model = model.only(HierarchyModel, "a hierarchy or tree")
    for idx, level in enumerate(model.levels):
        if level in model.levels[:idx]:
            raise InputError("each level once", field=f"levels[{idx}]", value=level)
        if level in NO_LEVEL_NAMES:
            expected = f"a level not called {' or '.join(NO_LEVEL_NAMES)}"
            raise InputError(expected, field=f"levels[{idx}]", value=level)
    if model.fabrics and len(model.levels) == 1:
        raise InputError("a level above the hosts", field="levels", found="fabrics of hosts")
    resources = sorted({name for group in model.hosts for name in group.capacity})
    hosts: list[tuple[str, Sequence[str], Sequence[int]]] = []
    known: set[str] = set()
    lists = NodeLists()
    for idx, group in enumerate(model.hosts):
        for name in _hosts_of(group, lists, len(model.levels) - 1, f"hosts[{idx}]"):
            if name in known:
                raise InputError("each host once", field=f"hosts[{idx}].hosts", value=name)
            known.add(name)
            hosts.append((name, group.domains, [group.capacity.get(r, 0) for r in resources]))
    blocks = model.block_sizes or ()
    return build_hierarchy(model.levels, resources, hosts, blocks, fabrics=model.fabrics)


def _of_switches(model: TreeModel) -> Hierarchy:
    leaves: list[tuple[str, list[str]]] = []
    uppers: list[tuple[str, list[str]]] = []
    lists = NodeLists()
    for switch in model.switches:
        field = f"switch {switch.name}"
        if (switch.nodes is None) == (switch.switches is None):
            found = "neither" if switch.nodes is None else "both"
            raise InputError("either nodes or switches", field=field, value=found)
        names = lists.hosts(switch.nodes or switch.switches or "", field)
        of_kind = uppers if switch.nodes is None else leaves
        of_kind.append((switch.name, names))
        if len(leaves) > MAX_LEAVES:
            raise InputError(f"at most {MAX_LEAVES} leaves", field=field)
    return hierarchy_of_switches(switches_of(leaves, uppers))


def _hosts_of(group: HostsModel, lists: NodeLists, num_domains: int, field: str) -> list[str]:
    if len(group.domains) != num_domains:
        expected = f"{number_of(num_domains, 'domain')}, one for each level above the hosts"
        raise InputError(expected, field=f"{field}.domains", found=str(len(group.domains)))
    names = lists.hosts(group.hosts, f"{field}.hosts")
    if not names:
        raise InputError("at least one host", field=f"{field}.hosts", value=group.hosts)
    return names


def prepare_hierarchy(snapshot: Snapshot) -> HierarchyState:
    """Check a snapshot of a hierarchy or switch tree of which domains count; return its arrays.

    A host may be down (draining) and hold running jobs. On a switch tree, jobs hold whole nodes.

    Raises
    ------
    InputError
        With the field at fault, for anything the schema alone could not see.
    """
    return _prepared(snapshot, "hierarchy")


def prepare_contention(snapshot: Snapshot) -> HierarchyState:
    """Check a snapshot of a switch tree on which contention counts; return its arrays.

    Raises
    ------
    InputError
        As of `prepare_hierarchy`, and for requests with rules of hierarchies.
    """
    return _prepared(snapshot, "allocation")


def _prepared(snapshot: Snapshot, kind: str) -> HierarchyState:
    model = snapshot.written
    with blamed_on(inside="machine"):
        machine = hierarchy_of(model)
    require_value(snapshot)
    require_free_level(snapshot, machine.levels if kind == "hierarchy" else ())
    on_tree = model.has_contention
    where, what = ("a tree", "node") if on_tree else ("a hierarchy", "host")
    numbers = machine.numbers
    lists = NodeLists()
    free, holder = machine.capacity.copy(), np.full(machine.num_hosts, -1, dtype=np.int64)

    def hosts_of(text: str, field: str) -> IntArray:
        return numbers_of(lists.hosts(text, field), numbers, what, field)

    def running_job(idx: int, job: RunningJob, field: str) -> HierarchyRunning:
        hosts = hosts_of(job.nodes, f"{field}.nodes")
        require_none(job, ("prism",), where, field)
        if not len(hosts):
            raise InputError(f"at least one {what}", field=f"{field}.nodes", value=job.nodes)
        if on_tree:
            require_shares(job.patterns or (), f"{field}.patterns")
            at = f"{field}.nodes"
            require_free(hosts, holder, snapshot.running, at, machine.host_names.__getitem__)
            free[hosts] = 0
        else:
            _take(job, machine, hosts, free, field)
        holder[hosts] = idx
        sets.close(_apart(job.apart or (), machine, field), hosts, machine)
        return HierarchyRunning(job.id, hosts, job.communication is not Communication.NONE)

    def request(_: int, one: Request, field: str) -> HierarchyRequest:
        require_none(
            one, _ON_TORI if on_tree else (*_ON_TORI, "patterns"), where, field, shown=True
        )
        if kind == "allocation":
            require_none(one, ON_HIERARCHIES | BY_SETS, "a tree by objective contention", field)
        if on_tree and one.nodes > machine.num_hosts:
            expected = f"no more nodes than the machine's {machine.num_hosts}"
            raise InputError(expected, field=f"{field}.nodes", value=one.nodes)
        require_shares(one.patterns or (), f"{field}.patterns")
        own = _request(one, machine, field, sets, value_of(one, snapshot.value))
        return own if own.value else replace(own, without_gpus=one.priority * one.nodes)

    sets = Sets(snapshot.sets, machine, hosts_of)
    running, down, requests = checked_snapshot(
        snapshot, where, running_job, lambda text: hosts_of(text, "down"), request
    )
    free[down] = 0
    for idx, (job, own) in enumerate(zip(snapshot.running, running, strict=True)):
        if job.exclusive is not None:
            level = _level_of(machine, job.exclusive, f"running[{idx}].exclusive")
            of = machine.domain_of[level]
            free[np.isin(of, of[own.hosts])] = 0
    return HierarchyState(
        snapshot,
        machine,
        free,
        holder >= 0,
        _per_leaf(machine, running),
        _per_leaf(machine, [job for job in running if job.intensive]),
        running,
        requests,
        kind,
    )


def _per_leaf(machine: Hierarchy, running: Sequence[HierarchyRunning]) -> IntArray:
    """Return how many hosts of every leaf some jobs hold, each host once."""
    held = np.zeros(machine.num_hosts, dtype=bool)
    for job in running:
        held[job.hosts] = True
    return np.bincount(machine.leaf_of[held], minlength=machine.num_leaves)


def require_shares(patterns: Sequence[PatternUse], field: str) -> None:
    """Raise `InputError` if the shares of a job's patterns add up to more than 100."""
    total = sum(use.share for use in patterns)
    if total > 100:
        raise InputError("shares that add up to 100 at most", field=field, value=total)


def _take(job: RunningJob, machine: Hierarchy, hosts: IntArray, free: IntArray, field: str) -> None:
    """Take what a running job holds from what is free."""
    require_none(job, ("patterns",), "a hierarchy", field)
    takes = machine.capacity[hosts]
    if job.takes is not None:
        takes = np.array([_amounts(job.takes, machine, f"{field}.takes")])
    short = (free[hosts] < takes).any(axis=1)
    if short.any():
        host = int(hosts[short][0])
        left = ", ".join(map("{}={}".format, machine.resources, free[host]))
        expected = (
            f"no more than other running jobs leave of host {machine.host_names[host]}, {left}"
        )
        at = "nodes" if job.takes is None else "takes"
        raise InputError(expected, field=f"{field}.{at}", value=getattr(job, at))
    free[hosts] -= takes


def _amounts(takes: Mapping[str, int], machine: Hierarchy, field: str) -> tuple[int, ...]:
    for name in takes:
        if name not in machine.resources:
            raise unknown_name(name, machine.resources, field=field)
    return tuple(takes.get(name, 0) for name in machine.resources)


class _Domains(Mapping[str, BoolArray]):
    """The hosts of every domain above them, by its name with its path, such as ``b1/r2``."""

    def __init__(self, machine: Hierarchy) -> None:
        above = [*zip(machine.domain_names, machine.domain_of, strict=True)][:-1]
        self._at = {name: (of, k) for names, of in above for k, name in enumerate(names)}

    def __getitem__(self, name: str) -> BoolArray:
        of, number = self._at[name]
        return np.asarray(of == number)

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


class Sets(NodeSets):
    """The named sets of hosts of a snapshot and its domains, and what requests may have by them."""

    def __init__(
        self, sets: Mapping[str, str], machine: Hierarchy, hosts_of: Callable[[str, str], IntArray]
    ) -> None:
        super().__init__(sets, machine.num_hosts, hosts_of)
        self._given = {name: HostOrder(hosts_of(t, f"sets.{name}")) for name, t in sets.items()}
        self._masks = ChainMap(self._masks, _Domains(machine))  # type: ignore[arg-type]
        self._known: dict[tuple[str | None, str | None, _Keys], HostSet | None] = {}
        self._closed: dict[tuple[int, str], BoolArray] = {}

    def close(self, apart: _Keys, hosts: IntArray, machine: Hierarchy) -> None:
        """Keep what is apart from a running job out of the domains that it is in."""
        for key in apart:
            of = machine.domain_of[key[0]]
            mask = self._closed.setdefault(key, np.zeros(machine.num_hosts, dtype=bool))
            mask |= np.isin(of, of[hosts])

    def order(self, name: str, field: str) -> HostOrder:
        """Return the hosts of a set of the snapshot in the order of its list."""
        if name not in self._given:
            raise unknown_name(name, self._given, field=field)
        return self._given[name]

    def eligible(self, part: Part, apart: _Keys, field: str) -> HostSet | None:
        """Return the hosts that a part may have; None for all."""
        key = part.eligible, part.excluded, apart
        if key not in self._known:
            mask = self.allowed(part.eligible, part.excluded, field)
            for one in apart:
                mask &= ~self._closed.get(one, np.False_)
            self._known[key] = None if mask.all() else HostSet(mask)
        return self._known[key]


def kept_to(request: HierarchyRequest, masks: Iterable[BoolArray]) -> HierarchyRequest:
    """Return a request that has all its hosts in one of several sets, each different way once."""
    found: dict[tuple[PartState, ...], None] = {}
    for mask in masks:
        own = (mask if p.eligible is None else mask & p.eligible.mask for p in request.parts)
        sets = (None if here.all() else HostSet(here) for here in own)
        pairs = zip(request.parts, sets, strict=True)
        found[tuple(replace(part, eligible=here) for part, here in pairs)] = None
    first, *others = found
    return replace(request, parts=first, others=tuple(others))


def _request(
    request: Request, machine: Hierarchy, field: str, sets: Sets, value: int
) -> HierarchyRequest:
    if request.parts is None:
        if request.nodes > MAX_SIZE:
            expected = f"at most {MAX_SIZE} units"
            raise InputError(expected, field=f"{field}.nodes", value=request.nodes)
        given = {name: getattr(request, name) for name in _OF_PARTS}
        given = {name: value for name, value in given.items() if value is not None}
        own = Part(id=request.id, nodes=request.nodes, **given)
        part = _part(own, machine, None, 0, field, sets)
        if request.at_most is not None:
            level = _level_of(machine, request.at_most.level, f"{field}.at_most.level")
            part = replace(part, at_most=(level, request.at_most.size))
        if request.contiguous is not None:
            for name in _NOT_CONTIGUOUS:
                if getattr(request, name):
                    expected = f"no {name} of a request that is contiguous"
                    raise InputError(expected, field=f"{field}.{name}")
            order = sets.order(request.contiguous, f"{field}.contiguous")
            part = replace(part, order=order, spread=(machine.num_levels - 1, 1))
        parts: tuple[PartState, ...] = (part,)
    else:
        parts = _parts(request, request.parts, machine, field, sets)
    silent = request.communication is Communication.NONE
    patterns = () if silent else tuple(request.patterns or ())
    found = HierarchyRequest(request.id, request.nodes, value, parts, patterns, silent=silent)
    if not request.one_of:
        return found
    texts = enumerate(request.one_of)
    return kept_to(found, [sets.named(text, f"{field}.one_of[{idx}]") for idx, text in texts])


def _parts(
    request: Request, parts: Sequence[Part], machine: Hierarchy, field: str, sets: Sets
) -> tuple[PartState, ...]:
    for name in (*_OF_PARTS, "at_most", "contiguous"):
        if getattr(request, name) is not None:
            where = "in the parts alone" if name in _OF_PARTS else "of requests without parts"
            raise InputError(f"{name} {where}", field=f"{field}.{name}")
    total = sum(part.nodes for part in parts)
    if total != request.nodes:
        expected = f"the {number_of(total, 'unit')} of its parts"
        raise InputError(expected, field=f"{field}.nodes", value=request.nodes)
    groups: dict[str, int] = {}
    found: list[PartState] = []
    for idx, part in enumerate(parts):
        own = f"{field}.parts[{idx}]"
        if part.id in {other.id for other in parts[:idx]}:
            raise InputError("each part once", field=f"{own}.id", value=part.id)
        key = f"group {part.group}" if part.group is not None else f"part {idx}"
        found.append(_part(part, machine, part.id, groups.setdefault(key, len(groups)), own, sets))
        wanted = {p.required for p in found if p.group == found[-1].group}
        if len(wanted) > 1:
            expected = "one required level for all parts of a group"
            raise InputError(expected, field=f"{own}.required", value=part.required)
        if found[-1].exclusive != found[0].exclusive:
            expected = "one exclusive level for all parts"
            raise InputError(expected, field=f"{own}.exclusive", value=part.exclusive)
        if found[-1].apart != found[0].apart:
            raise InputError("the same for all parts", field=f"{own}.apart", found="others")
    return tuple(found)


def _level_of(machine: Hierarchy, level: str, field: str) -> int:
    if level not in machine.levels:
        raise unknown_name(level, machine.levels, field=field)
    return machine.levels.index(level)


def _part(
    part: Part, machine: Hierarchy, name: str | None, group: int, field: str, sets: Sets
) -> PartState:
    level_of = partial(_level_of, machine)
    takes = _amounts(part.takes, machine, f"{field}.takes")
    if not any(takes):
        raise InputError("at least 1 of a resource", field=f"{field}.takes", value=part.takes)
    levels: dict[str, Any] = {
        which: None if level is None else level_of(level, f"{field}.{which}")
        for which in _LEVELS_OF_PARTS
        for level in (getattr(part, which),)
    }
    if machine.fabrics and levels["required"] is None:
        levels["required"] = 0  # one fabric: nothing joins several
    spread = None
    if part.spread is not None:
        spread = level_of(part.spread.level, f"{field}.spread.level"), part.spread.size
    segments = _segments(part, level_of, field)
    apart = _apart(part.apart, machine, field)
    return PartState(
        name,
        part.nodes,
        takes,
        segments,
        **levels,
        spread=spread,
        group=group,
        eligible=sets.eligible(part, apart, field),
        apart=apart,
    )


def _apart(given: Sequence[Apart], machine: Hierarchy, field: str) -> _Keys:
    """Return levels and names, each pair once, in their order."""
    keys = {
        (_level_of(machine, one.level, f"{field}.apart[{idx}].level"), one.name)
        for idx, one in enumerate(given)
    }
    return tuple(sorted(keys))


def _segments(part: Part, level_of: _LevelOf, field: str) -> tuple[tuple[int, int], ...]:
    """Return level and size of segments, the smallest first, after checking that they nest."""
    order = sorted(range(len(part.segments)), key=lambda k: part.segments[k].size)
    found: list[tuple[int, int]] = []
    for k in order:
        segment: Segment = part.segments[k]
        own = f"{field}.segments[{k}]"
        level = level_of(segment.level, f"{own}.level")
        if part.nodes % segment.size:
            expected = f"a divisor of the {number_of(part.nodes, 'unit')}"
            raise InputError(expected, field=f"{own}.size", value=segment.size)
        if found and segment.size % found[-1][1]:
            expected = f"a multiple of the smaller segment's {found[-1][1]}"
            raise InputError(expected, field=f"{own}.size", value=segment.size)
        if found and level >= found[-1][0]:
            expected = "a level above that of smaller segments"
            raise InputError(expected, field=f"{own}.level", value=segment.level)
        found.append((level, segment.size))
    return tuple(found)


# ---- Switch trees written out as hierarchies, whose documents audits work on ---------------------

_MAX_LEVELS = 16  # of a document of a hierarchy


def hierarchy_written(model: MachineDocument) -> HierarchyModel:
    """Return the hierarchy that a switch tree is read as, written out; a hierarchy as it is.

    Its levels are those of `topoplace.machine.hierarchy.hierarchy_of_switches`.

    Raises
    ------
    InputError
        If the switches have no levels, or too many.
    """
    if not model.has_contention:
        return model.only(HierarchyModel, "a hierarchy or tree")
    tree = model.only(TreeModel, "a tree")
    machine = hierarchy_of(tree)
    if machine.num_levels > _MAX_LEVELS:
        expected = f"at most {_MAX_LEVELS} levels of switches and nodes"
        raise InputError(expected, field="switches", found=str(machine.num_levels))
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *path in zip(machine.host_names, *machine.paths, strict=True):
        names.setdefault(tuple(path), []).append(name)
    return HierarchyModel(
        kind="hierarchy",
        name=tree.name,
        levels=list(machine.levels),
        hosts=[
            HostsModel(hosts=format_host_list(own), domains=list(path))
            for path, own in names.items()
        ],
        fabrics=machine.fabrics,
        source=tree.source,
    )


def on_switches(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of a switch tree as one of its hierarchy; others are returned as they are.

    Its machine is resolved (`topoplace.snapshot.machines.resolve_machine`). How jobs communicate
    has no form there, and is left out.

    Raises
    ------
    InputError
        As of `hierarchy_written`.
    """
    if not snapshot.written.has_contention:
        return snapshot
    plain = {"patterns": None, "communication": Communication.STRICT}
    return snapshot.model_copy(
        update={
            "machine": hierarchy_written(snapshot.written),
            "running": [job.model_copy(update=plain) for job in snapshot.running],
            "queue": [request.model_copy(update=plain) for request in snapshot.queue],
        }
    )
