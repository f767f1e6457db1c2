"""A validated snapshot of a hierarchy as arrays: the one form in which solvers see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from topoplace.errors import Faults, InputError, blamed_on, number_of, unknown_name
from topoplace.kinds import State
from topoplace.machine.hierarchy import Hierarchy, build_hierarchy, hierarchy_of_switches
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.snapshot.schema import (
    MAX_SIZE,
    Communication,
    HierarchyModel,
    HostsModel,
    Part,
    Request,
    RunningJob,
    Segment,
    Snapshot,
    TreeModel,
)
from topoplace.snapshot.state import (
    Queued,
    checked_queue,
    checked_snapshot,
    machine_of,
    numbers_of,
    require_none,
)
from topoplace.snapshot.tree_state import prepare_tree, tree_of
from topoplace.types import BoolArray, IntArray

NO_LEVEL_NAMES = ("nodes", "balance", "stranded")
"""What levels of a machine may not be called: levels of the objective are."""

_TORUS_OR_TREE = ("node_class", "shapes", "region", "patterns", "tasks", "segment")
_LevelOf = Callable[[str, str], int]

_LEVELS_OF_PARTS = ("required", "preferred", "exclusive", "balance")
_OF_PARTS = ("takes", "segments", "spread", *_LEVELS_OF_PARTS)


@dataclass(frozen=True)
class PartState:
    """A part of a request, its levels as numbers.

    Attributes
    ----------
    name
        Of the part; None if the request has no parts.
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


@dataclass(frozen=True)
class HierarchyRequest(Queued):
    """A queued request."""

    parts: tuple[PartState, ...]

    @property
    def exclusive(self) -> int | None:
        """Level whose domains it shares with nobody, or None."""
        return self.parts[0].exclusive


@dataclass(frozen=True)
class HierarchyState(State):
    """What a snapshot of a hierarchy says, checked and turned into arrays.

    Attributes
    ----------
    free
        What is left on every host, 0 where it is down, shape ``(num_hosts, num_resources)``.
    occupied
        Whether a running job holds some of the host, shape ``(num_hosts,)``.
    """

    kind: ClassVar[str] = "hierarchy"

    snapshot: Snapshot
    machine: Hierarchy
    free: IntArray
    occupied: BoolArray
    requests: tuple[HierarchyRequest, ...]


def hierarchy_of(model: HierarchyModel | TreeModel) -> Hierarchy:
    """Return the machine a model describes, a switch tree read as a hierarchy.

    Raises
    ------
    InputError
        For a level or a host named twice, or hosts that are not in one domain of every level; of
        a tree for what makes none, or has no levels (`hierarchy_of_switches`).
    """
    if isinstance(model, TreeModel):
        return hierarchy_of_switches(tree_of(model))
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


def _hosts_of(group: HostsModel, lists: NodeLists, num_domains: int, field: str) -> list[str]:
    if len(group.domains) != num_domains:
        expected = f"{number_of(num_domains, 'domain')}, one for each level above the hosts"
        raise InputError(expected, field=f"{field}.domains", found=str(len(group.domains)))
    names = lists.hosts(group.hosts, f"{field}.hosts")
    if not names:
        raise InputError("at least one host", field=f"{field}.hosts", value=group.hosts)
    return names


def prepare_hierarchy(snapshot: Snapshot) -> HierarchyState:
    """Check a snapshot of a hierarchy and return its arrays.

    A host may be down (draining) and hold running jobs. A snapshot of a switch tree is read as one
    of a hierarchy, and stays what it is; how its jobs communicate does not matter.

    Raises
    ------
    InputError
        With the field at fault, for anything the schema alone could not see.
    """
    if isinstance(snapshot.machine, TreeModel):
        return _prepare_switches(snapshot, snapshot.machine)
    model = machine_of(snapshot, HierarchyModel, "a hierarchy")
    with blamed_on(inside="machine"):
        machine = hierarchy_of(model)
    numbers = {name: idx for idx, name in enumerate(machine.host_names)}
    lists = NodeLists()
    free, occupied = machine.capacity.copy(), np.zeros(machine.num_hosts, dtype=bool)

    def hosts_of(text: str, field: str) -> IntArray:
        return numbers_of(lists.hosts(text, field), numbers, "host", field)

    def running_job(_: int, job: RunningJob, field: str) -> None:
        hosts = hosts_of(job.nodes, f"{field}.nodes")
        _take(job, machine, hosts, free, field)
        occupied[hosts] = True

    _, down, requests = checked_snapshot(
        snapshot,
        "a hierarchy",
        running_job,
        lambda text: hosts_of(text, "down"),
        lambda _, job, field: _request(job, machine, field),
    )
    free[down] = 0
    return HierarchyState(snapshot, machine, free, occupied, requests)


def _prepare_switches(snapshot: Snapshot, model: TreeModel) -> HierarchyState:
    """Check a snapshot of a switch tree and return its arrays as those of a hierarchy."""
    state = prepare_tree(snapshot, rules=True)
    with blamed_on(inside="machine"):
        machine = hierarchy_of(model)
    occupied = np.zeros(machine.num_hosts, dtype=bool)
    for job in state.running:
        occupied[job.nodes] = True
    faults = Faults()

    def request(_: int, job: Request, field: str) -> HierarchyRequest:
        return _request(job.model_copy(update={"patterns": None}), machine, field)

    requests = checked_queue(snapshot, set(), faults, request)
    faults.require_none()
    free = state.free.astype(np.int64)[:, None]
    return HierarchyState(snapshot, machine, free, occupied, requests)


def _take(job: RunningJob, machine: Hierarchy, hosts: IntArray, free: IntArray, field: str) -> None:
    """Take what a running job holds from what is free."""
    require_none(job, ("prism", "patterns"), "a hierarchy", field)
    if not len(hosts):
        raise InputError("at least one host", field=f"{field}.nodes", value=job.nodes)
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


def _request(request: Request, machine: Hierarchy, field: str) -> HierarchyRequest:
    require_none(request, _TORUS_OR_TREE, "a hierarchy", field, shown=True)
    if request.parts is None:
        if request.nodes > MAX_SIZE:
            expected = f"at most {MAX_SIZE} units"
            raise InputError(expected, field=f"{field}.nodes", value=request.nodes)
        given = {name: getattr(request, name) for name in _OF_PARTS}
        given = {name: value for name, value in given.items() if value is not None}
        own = Part(id=request.id, nodes=request.nodes, **given)
        part = _part(own, machine, None, 0, field)
        if request.at_most is not None:
            level = _level_of(machine, request.at_most.level, f"{field}.at_most.level")
            part = replace(part, at_most=(level, request.at_most.size))
        parts: tuple[PartState, ...] = (part,)
    else:
        parts = _parts(request, request.parts, machine, field)
    return HierarchyRequest(request.id, request.nodes, request.priority, parts)


def _parts(
    request: Request, parts: Sequence[Part], machine: Hierarchy, field: str
) -> tuple[PartState, ...]:
    for name in (*_OF_PARTS, "at_most"):
        if getattr(request, name) is not None:
            where = "of requests without parts" if name == "at_most" else "in the parts alone"
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
        found.append(_part(part, machine, part.id, groups.setdefault(key, len(groups)), own))
        wanted = {p.required for p in found if p.group == found[-1].group}
        if len(wanted) > 1:
            expected = "one required level for all parts of a group"
            raise InputError(expected, field=f"{own}.required", value=part.required)
        if found[-1].exclusive != found[0].exclusive:
            expected = "one exclusive level for all parts"
            raise InputError(expected, field=f"{own}.exclusive", value=part.exclusive)
    return tuple(found)


def _level_of(machine: Hierarchy, level: str, field: str) -> int:
    if level not in machine.levels:
        raise unknown_name(level, machine.levels, field=field)
    return machine.levels.index(level)


def _part(part: Part, machine: Hierarchy, name: str | None, group: int, field: str) -> PartState:
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
    return PartState(name, part.nodes, takes, segments, **levels, spread=spread, group=group)


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


def hierarchy_of_tree(model: TreeModel) -> HierarchyModel:
    """Return the hierarchy that a switch tree is read as, written out.

    Its levels are those of `topoplace.machine.hierarchy.hierarchy_of_switches`.

    Raises
    ------
    InputError
        If the switches have no levels, or too many.
    """
    machine = hierarchy_of(model)
    if machine.num_levels > _MAX_LEVELS:
        expected = f"at most {_MAX_LEVELS} levels of switches and nodes"
        raise InputError(expected, field="switches", found=str(machine.num_levels))
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *path in zip(machine.host_names, *machine.paths, strict=True):
        names.setdefault(tuple(path), []).append(name)
    return HierarchyModel(
        kind="hierarchy",
        name=model.name,
        levels=list(machine.levels),
        hosts=[
            HostsModel(hosts=format_host_list(own), domains=list(path))
            for path, own in names.items()
        ],
        fabrics=machine.fabrics,
        source=model.source,
    )


def on_switches(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of a switch tree as one of its hierarchy; others are returned as they are.

    Its machine is resolved (`topoplace.snapshot.machines.resolve_machine`). How jobs communicate
    has no form there, and is left out.

    Raises
    ------
    InputError
        As of `hierarchy_of_tree`.
    """
    if not isinstance(snapshot.machine, TreeModel):
        return snapshot
    plain = {"patterns": None, "communication": Communication.STRICT}
    return snapshot.model_copy(
        update={
            "machine": hierarchy_of_tree(snapshot.machine),
            "running": [job.model_copy(update=plain) for job in snapshot.running],
            "queue": [request.model_copy(update=plain) for request in snapshot.queue],
        }
    )
