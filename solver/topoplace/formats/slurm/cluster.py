"""A Slurm cluster at one moment: topology, node states and jobs as a snapshot."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from topoplace.errors import InputError, number_of
from topoplace.formats.declared import MAX_VALUE, left_out, of_request
from topoplace.formats.slurm.blocks import BLOCK, asked_of_blocks
from topoplace.formats.slurm.config import SlurmConfig
from topoplace.formats.slurm.features import Constraint, Form, constraint_of
from topoplace.formats.slurm.fields import SHARED_NODES, UNSAID
from topoplace.formats.slurm.jobs import SlurmJobs, Wants
from topoplace.formats.slurm.nodes import NodeUse, SlurmNode, SlurmPartition
from topoplace.formats.slurm.reservations import (
    Later,
    Reserved,
    SlurmReservation,
    reserved_in,
)
from topoplace.formats.slurm.sharing import (
    CPUS,
    Sharing,
    given_elsewhere,
    gres_needed,
    sharing_of,
    tasks_of_node,
)
from topoplace.formats.slurm.topology import SlurmMachine, SlurmTopology
from topoplace.machine.hierarchy import LEAF
from topoplace.machine.hostlist import expand_host_list, format_host_list, format_node_set
from topoplace.snapshot.held import (
    CONTRACT,
    FOR_NOW,
    NOT_SEEN,
    ORDER,
    PLANS,
    PREEMPTION,
    PREFERENCE,
    RESERVATION_END,
    RESERVATION_LATER,
    RESERVATIONS,
    WINDOW,
)
from topoplace.snapshot.hierarchy_state import hierarchy_of, prepare_hierarchy
from topoplace.snapshot.running import Began, as_asked
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    Communication,
    HierarchyModel,
    LeftOut,
    Part,
    Request,
    RunningJob,
    Segment,
    Snapshot,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.state import MAX_SEGMENTS, prepare

_OF_TREES: dict[str, Any] = {"patterns": None, "communication": Communication.STRICT}


@dataclass(frozen=True)
class SlurmCluster:
    """What Slurm's tools print of a cluster besides its topology; None for what is not given.

    Attributes
    ----------
    topology
        The topology, or those that are the machine; None if partitions cannot have another.
    """

    nodes: Mapping[str, SlurmNode] | None = None
    jobs: SlurmJobs = field(default_factory=SlurmJobs)
    partitions: Mapping[str, SlurmPartition] | None = None
    reservations: Mapping[str, SlurmReservation] | None = None
    topology: SlurmTopology | None = None
    config: SlurmConfig = field(default_factory=SlurmConfig)


def snapshot_of_slurm(
    machine: SlurmMachine, cluster: SlurmCluster, name: str
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return a checked snapshot, and notes for a person on what was left out or closed.

    Down are the nodes that are closed, those the node states do not tell of, and those that have a
    job which the listing does not name (of another user, or gone since). Reservations hold theirs
    until they end (`reservations`); without a known end, and on a torus, they are down. A node that
    several jobs share is held by the first of them. Jobs larger than the machine, and nodes that
    are on no switch, are left out. Without node states all nodes are open.

    On blocks, a request of segments has these, and so has one on a torus with placements, where a
    request that no placement has the size of, or of whose segments, and which Slurm therefore never
    starts, is left out. Requests with options that are not modelled are held.
    """
    names, jobs = _names_of(machine), cluster.jobs
    there = set(names)
    queue = _queue_on(machine, jobs, len(names))
    queue = replace(queue, fitting=_by_tier(queue.fitting, cluster))
    by_sets = not any(request.patterns for request in queue.fitting)
    sharing, why_not = None, ""
    if by_sets and not isinstance(machine, TorusModel):
        found = _sharing(machine, cluster, names)
        sharing, why_not = (None, found) if isinstance(found, str) else (found, "")
    before = [_turn(request, cluster) for request in queue.fitting]
    listed = [
        job.model_copy(update={"turn": bisect.bisect(before, _turn(job, cluster))})
        for job in (jobs.running if before else ())
    ]
    running, num_shared = _apart(listed or jobs.running, there, cluster, alone=sharing is None)
    with_job = {host for _, hosts in running for host in hosts}
    if sharing is not None:
        given = [one for job, _ in running for one in jobs.held[job.id]]
        with_job -= {*given_elsewhere(sharing.capacity, cluster.nodes or {}, given)}
    now = None if isinstance(machine, TorusModel) else jobs.now
    reserved = reserved_in(cluster.reservations or {}, cluster.nodes, now).on(there)
    told = _told(names, cluster.nodes, reserved)
    groups: dict[str, list[str]] = {
        "closed": [n for n in names if told.get(n) is NodeUse.CLOSED],
        "closed, reserved": [
            n for n in names if n in reserved.down and told.get(n) is not NodeUse.CLOSED
        ],
        "closed, with a job that is not listed": [
            n for n in names if told.get(n) is NodeUse.HELD and n not in with_job
        ],
        "closed, their state not told": [n for n in names if n not in told],
    }
    down = {node for group in groups.values() for node in group}
    holds = _Holds(
        machine,
        cluster,
        names,
        by_sets=by_sets,
        sharing=sharing,
        why_not=why_not,
        reserved=reserved,
    )
    held = [
        *(one for request in queue.fitting for one in holds.of(request)),
        *(
            one
            for one in jobs.left_out
            if one.request in {r.id for r in queue.fitting} and not holds.models(one)
        ),
        *queue.held,
    ]
    if len(queue.fitting) > 1:
        held += _of_plans(cluster, sharing)
    held += _for_audits(machine, cluster, queue.fitting, names)
    if queue.fitting and jobs.unseen:
        held.append(LeftOut(option=NOT_SEEN, value=", ".join(jobs.unseen)))
    if reserved.unknown and queue.fitting:
        held.append(LeftOut(option=RESERVATION_END, value="; ".join(reserved.unknown)[:MAX_VALUE]))
    met = [
        one.about for one in reserved.later.values() if any(map(holds.may_meet(one), queue.fitting))
    ]
    if met:
        held.append(LeftOut(option=RESERVATION_LATER, value=f"of {'; '.join(met)}"[:MAX_VALUE]))
    several = sum(map(holds.has_several_tiers, queue.fitting))
    if several:
        text = f"{number_of(several, 'job')} for partitions of several"
        held.append(LeftOut(option="tier", value=text))
    document = _document(machine, sharing)
    begun = _begun(machine, cluster, len(names), holds)
    snapshot = Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=name,
        machine=document,
        down=_node_set(machine, (node for node in names if node in down)),
        running=reserved.running(
            _entries(machine, document, running, begun, sharing),
            None if sharing is None else sharing.capacity,
            down,
        ),
        queue=[holds.with_sets(request) for request in queue.fitting],
        sets=dict(sorted(holds.sets.items())),
        window=cluster.config.seconds if queue.fitting else None,
        left_out=held,
        source="a Slurm topology, node states and job list",
    )
    _require_sound(snapshot)
    elsewhere = sum(there.isdisjoint(expand_host_list(job.nodes)) for job in jobs.running)
    counts: dict[str, int | str] = {
        "jobs left out, running on no switch": elsewhere,
        **{f"nodes {why}": len(group) for why, group in groups.items()},
        "nodes reserved for a time": len(reserved.until.keys() - down),
        "nodes left out, on no switch": len(told.keys() - there),
        "nodes shared by several jobs, each held by the first": num_shared,
        **queue.left_out,
    }
    notes = [f"{number_of(len(running), 'job')} running, {len(queue.fitting)} queued"]
    notes += [f"{what}: {count}" for what, count in counts.items() if count]
    notes += _not_understood(cluster, queue.fitting, sharing)
    return snapshot, (*notes, *jobs.notes)


def _of_plans(cluster: SlurmCluster, sharing: Sharing | None) -> Iterator[LeftOut]:
    """Yield what is not modelled of the order in which Slurm starts jobs, and of its plans."""
    yield LeftOut(option=ORDER, value="of Slurm's priorities")
    value = "of each job that waits, as Slurm's backfill makes them, not of the first alone"
    yield LeftOut(option=RESERVATIONS, value=value)
    if cluster.config.window is None:
        seconds = f"{cluster.config.seconds:,} s for reservations"
        value = f"of {seconds}, Slurm's default (bf_window of slurm.conf is not seen)"
        yield LeftOut(option=WINDOW, value=value)
    if sharing is not None:
        value = "of whole nodes, as Slurm's backfill makes them even where jobs share nodes"
        yield LeftOut(option=PLANS, value=value)


def _not_understood(
    cluster: SlurmCluster, queue: Sequence[Request], sharing: Sharing | None
) -> Iterator[str]:
    """Yield notes on what is odd of nodes, and on whether jobs are given memory."""
    odd = [f"{name} {one.odd}" for name, one in (cluster.nodes or {}).items() if one.odd]
    if odd:
        yield f"not understood of nodes (a state so counts as down): {_counted(odd)}"
    wants = [cluster.jobs.wants[request.id] for request in queue]
    wanted = any(one.memory or one.memory_per_cpu for one in wants)
    if sharing is not None and not sharing.sees_memory and wanted:
        yield (
            "not seen: whether jobs are given memory (SelectTypeParameters of slurm.conf); "
            "placed as if they are"
        )


def _entries(
    machine: SlurmMachine,
    document: TreeModel | HierarchyModel | TorusModel | str,
    running: Iterable[tuple[RunningJob, Sequence[str]]],
    begun: Mapping[str, Began],
    sharing: Sharing | None,
) -> list[RunningJob]:
    """Return jobs that run with what they hold, and what they asked for."""
    flat = None if isinstance(document, TorusModel | str) else hierarchy_of(document)
    found = []
    for job, hosts in running:
        own = [_running_on(machine, job, hosts)]
        if sharing is not None:
            own = sharing.running(job.model_copy(update=_OF_TREES), begun[job.id].asked)
        found += as_asked(job.id, own, begun[job.id], flat)
    return found


def _begun(
    machine: SlurmMachine, cluster: SlurmCluster, num_nodes: int, holds: _Holds
) -> dict[str, Began]:
    """Return by job that runs what it asked for, as if it waited, and the tier of its partition."""
    jobs, tiers = cluster.jobs, {name: one.tier for name, one in (cluster.partitions or {}).items()}
    asked = _queue_on(machine, replace(jobs, queue=jobs.begun), num_nodes)
    of = holds.among(jobs.begun)
    fitting = {request.id: request for request in asked.fitting}
    left_out: dict[str, list[LeftOut]] = {job.id: [] for job in jobs.running}
    for one in (*(x for r in asked.fitting for x in of.of(r)), *jobs.left_out, *asked.held):
        if one.request in left_out and not (one.request in fitting and of.models(one)):
            left_out[one.request].append(one.model_copy(update={"request": None}))
    return {
        name: Began(
            of.with_sets(fitting[name]) if name in fitting else None,
            own,
            next((tiers[p] for p in jobs.wants[name].partitions if p in tiers), None),
        )
        for name, own in left_out.items()
    }


def _for_audits(
    machine: SlurmMachine, cluster: SlurmCluster, queue: Sequence[Request], names: Sequence[str]
) -> Iterator[LeftOut]:
    """Yield what audits have to know: what Slurm prefers, and who is preempted, for example."""
    rows = [one.id for one in queue if cluster.jobs.wants[one.id].contiguous]
    wanted = [*_preferred(cluster, queue, names)]
    if rows and _knows_rows(machine):
        wanted.append(f"of nodes in a row, whatever their switches, for job {', '.join(rows)}")
    preferred = ", ".join(wanted)
    if queue and preferred:
        yield LeftOut(option=PREFERENCE, value=preferred[:MAX_VALUE])
    free = sum(one.segments is None and one.parts is None and one.nodes > 1 for one in queue)
    if free and BLOCK in machine.domain_levels:
        value = f"of Slurm for {number_of(free, 'job')} without segments (--contract slurm-block)"
        yield LeftOut(option=CONTRACT, value=value)
    for one in queue:
        own = cluster.jobs.wants[one.id]
        if own.switches > 0 and own.switches_for_now:
            yield LeftOut(option=FOR_NOW, value=one.id)
    each = (cluster.partitions or {}).items()
    preempted = [f"{name} ({one.preempts})" for name, one in each if one.preempts]
    if queue and preempted:
        value = f"of jobs of partition {', '.join(preempted)}"
        yield LeftOut(option=PREEMPTION, value=value[:MAX_VALUE])


def _knows_rows(machine: SlurmMachine) -> bool:
    """Return whether Slurm keeps to ``--contiguous``: not on blocks, rings and toruses."""
    return not isinstance(machine, TorusModel) and BLOCK not in machine.domain_levels


def _preferred(
    cluster: SlurmCluster, queue: Sequence[Request], names: Sequence[str]
) -> Iterator[str]:
    """Yield what Slurm prefers to few switches."""
    nodes = cluster.nodes or {}
    weights = {nodes[name].weight for name in names if name in nodes} - {None}
    if len(weights) > 1:
        yield f"of nodes by {len(weights)} weights"
    every, wants = (cluster.partitions or {}).items(), cluster.jobs.wants
    least = [name for name, one in every if one.least_loaded]
    if least:
        yield f"of the least loaded nodes of partition {', '.join(least)}"
    own = [f"{one.id} of {wants[one.id].prefers}" for one in queue if wants[one.id].prefers]
    if own:
        yield f"of job {', '.join(own)}"


def _sharing(
    machine: TreeModel | HierarchyModel, cluster: SlurmCluster, names: Sequence[str]
) -> Sharing | str | None:
    """Return how jobs share nodes, None if none does; or why that is not modelled."""
    for name, one in (cluster.partitions or {}).items():
        if one.oversubscribes and cluster.jobs.sharing:
            return f"several jobs may have a CPU of partition {name} (OverSubscribe)"
    if cluster.jobs.select and cluster.jobs.sharing:
        return f"whole sockets or boards (select_type of job_resources: {cluster.jobs.select})"
    known = cluster.config.has_memory
    return sharing_of(machine, cluster.nodes, cluster.jobs, names, has_memory=known)


def _document(
    machine: SlurmMachine, sharing: Sharing | None
) -> TreeModel | HierarchyModel | TorusModel | str:
    """Return the machine of the snapshot: with what nodes have, if jobs share them."""
    if sharing is not None:
        return sharing.machine
    return machine


def _by_tier(queue: Sequence[Request], cluster: SlurmCluster) -> tuple[Request, ...]:
    """Return the queue with requests of higher tiers of partitions first."""
    if cluster.partitions:
        queue = [r.model_copy(update={"rank": -_turn(r, cluster)[0]}) for r in queue]
    return tuple(sorted(queue, key=lambda request: _turn(request, cluster)))


def _turn(job: Request | RunningJob, cluster: SlurmCluster) -> tuple[int, int, tuple[int, ...]]:
    """Return the sort key of the queue: by tier of the partitions, then by priority and id."""
    tiers = {name: one.tier for name, one in (cluster.partitions or {}).items()}
    own = max((tiers.get(name, 1) for name in cluster.jobs.wants[job.id].partitions), default=1)
    return (-own, *cluster.jobs.turns[job.id])


def _leaf_level(machine: SlurmMachine) -> str | None:
    """Return the level of leaf switches; None on machines without switches."""
    if isinstance(machine, TorusModel) or not machine.has_contention:
        return None
    return LEAF if LEAF in hierarchy_of(machine).levels else None


def _names_of(machine: SlurmMachine) -> tuple[str, ...]:
    if isinstance(machine, TorusModel):
        return tuple(filter(None, machine.node_names))
    return hierarchy_of(machine).host_names


def _told(
    names: Sequence[str], nodes: Mapping[str, SlurmNode] | None, reserved: Reserved
) -> dict[str, NodeUse]:
    """Return what is known of nodes: without any states all are open."""
    if nodes is None:
        return dict.fromkeys(names, NodeUse.OPEN)
    return {
        name: node.unreserved if name in reserved.until else node.use
        for name, node in nodes.items()
    }


def _apart(
    jobs: Iterable[RunningJob], there: set[str], cluster: SlurmCluster, *, alone: bool
) -> tuple[list[tuple[RunningJob, list[str]]], int]:
    """Return jobs with their nodes, and how many nodes others share with them.

    If each has its nodes `alone`, a job all of whose nodes an earlier one has is left out, and so
    are idle nodes of one that is suspended, unless it keeps memory there. So are nodes of the
    cluster that the topology does not have: another topology may have them.
    """
    found, taken, shared = [], set[str](), set[str]()
    known, suspended = cluster.nodes or {}, cluster.jobs.suspended if alone else ()
    idle = {n for n, own in known.items() if own.unreserved is NodeUse.OPEN and not own.memory_held}
    for job in jobs:
        hosts = [h for h in expand_host_list(job.nodes) if job.id not in suspended or h not in idle]
        stray = next((node for node in hosts if node not in there and node not in known), None)
        if stray is not None:
            raise InputError("nodes on a switch", field=f"job {job.id}", value=stray)
        hosts = [host for host in hosts if host in there]
        own = [host for host in hosts if host not in taken or not alone]
        shared |= {host for host in hosts if host in taken}
        taken.update(own)
        if own:
            found.append((job, own))
    return found, len(shared) if alone else 0


def _node_set(machine: SlurmMachine, names: Iterable[str]) -> str:
    """Return nodes as the machine writes them: by name, on a torus by number."""
    if not isinstance(machine, TorusModel):
        return format_host_list(names)
    wanted = set(names)
    return format_node_set(k for k, name in enumerate(machine.node_names) if name in wanted)


def _running_on(machine: SlurmMachine, job: RunningJob, hosts: Sequence[str]) -> RunningJob:
    own = {} if machine.has_contention else _OF_TREES
    return job.model_copy(update={"nodes": _node_set(machine, hosts), **own})


def _require_sound(snapshot: Snapshot) -> None:
    check: dict[str, Any] = {"tree": prepare_hierarchy, "hierarchy": prepare_hierarchy}
    kind = snapshot.machine if isinstance(snapshot.machine, str) else snapshot.machine.kind
    check.get(kind, prepare)(snapshot)


# ---- The queue, as far as the machine has what its jobs ask for ----------------------------------


@dataclass(frozen=True)
class _Queue:
    fitting: tuple[Request, ...]
    left_out: Mapping[str, str]
    held: tuple[LeftOut, ...] = ()


def _queue_on(machine: SlurmMachine, jobs: SlurmJobs, num_nodes: int) -> _Queue:
    queue, wants = jobs.queue, jobs.wants
    fitting = [request for request in queue if request.nodes <= num_nodes]
    large = [request.id for request in queue if request.nodes > num_nodes]
    left_out = {"jobs left out, larger than the machine": _counted(large)}
    has_blocks = BLOCK in machine.domain_levels
    if isinstance(machine, TorusModel) and machine.anchored:
        fitting = [_in_prisms(request) for request in fitting]
    held: list[LeftOut] = []
    if not has_blocks:
        held = [one for r in fitting for one in _of_blocks_alone(r, wants[r.id].place)]
        fitting = [
            one.model_copy(update=dict.fromkeys(("segments", "exclusive"))) for one in fitting
        ]
    if machine.has_contention:
        return _Queue(tuple(fitting), left_out, tuple(held))
    fitting = [request.model_copy(update=_OF_TREES) for request in fitting]
    if isinstance(machine, TorusModel):
        anchored = machine.anchored or ()
        sizes = {math.prod(one.dims) for one in anchored}
        shaped = [
            one
            for one in fitting
            if not anchored or ((one.segment or one.nodes) in sizes and not _is_uneven(one))
        ]
        names = {one.id for one in shaped}
        others = [one.id for one in fitting if one.id not in names]
        left_out["jobs left out, of a size without placement"] = _counted(others)
        return _Queue(tuple(shaped), left_out, tuple(x for x in held if x.request in names))
    if has_blocks:
        fitting = [
            one.model_copy(update=asked_of_blocks(one.nodes, _segment(one), one.exclusive))
            for one in fitting
        ]
    return _Queue(tuple(fitting), left_out, tuple(held))


def _counted(jobs: Sequence[str]) -> str:
    """Return the number of jobs and their names, not all if there are many; nothing if none."""
    more = ["..."] if len(jobs) > _MOST_NAMES else []
    return f"{len(jobs):,} ({', '.join([*jobs[:_MOST_NAMES], *more])})" if jobs else ""


def _of_blocks_alone(request: Request, place: str) -> Iterator[LeftOut]:
    """Yield what only machines of blocks have, where a request asks for it on another."""
    told = {
        "segment": f"{request.segments[0].size}, and no blocks" if request.segments else "",
        "exclusive": "topo, and no blocks" if request.exclusive else "",
    }
    for option, text in told.items():
        yield from of_request(request.id, [left_out(option, text, place)] if text else [])


# ---- Requests that are held for what nodes have, or are not known to have ------------------------


_PARTS = "jobs have parts of nodes, and the listing does not say which may (squeue --json does)"

_OF_NODES = ("cpus", "memory", "disk")
"""What a job may want of each of its nodes, as numbers."""

_MOST_NAMES = 8  # of jobs in a note
_MOST_WAYS = 16  # partitions that differ

IN_ORDER = "scontrol-show-nodes"
"""The name of the set of all nodes in the order in which Slurm lists them."""


class _Holds:
    """Says what holds a request of a cluster, and which nodes it may have.

    Parameters
    ----------
    names
        The nodes of the machine.
    by_sets
        Whether requests can be kept to sets of nodes: not where contention counts.
    sharing
        How jobs share nodes, if that is modelled.
    why_not
        Why it is not, if some may.
    reserved
        What reservations keep from requests.

    Attributes
    ----------
    sets
        The nodes of each partition and feature that a request names.
    """

    def __init__(
        self,
        machine: SlurmMachine,
        cluster: SlurmCluster,
        names: Sequence[str],
        *,
        by_sets: bool,
        sharing: Sharing | None,
        why_not: str,
        reserved: Reserved,
    ) -> None:
        self._why_not_shared = why_not
        self._of, self._cluster, self._by_sets = machine, cluster, by_sets
        self._leaf, self._sharing = _leaf_level(machine) if by_sets else None, sharing
        self.sets: dict[str, str] = {}
        self._machine = frozenset(names)
        nodes = cluster.nodes or {}
        self._own = [nodes[name] for name in names if name in nodes]
        self._complete = len(self._own) == len(names)
        self._says_features = all(node.features is not None for node in nodes.values())
        self._known: dict[tuple[str, str, int], frozenset[str] | None] = {}
        self._leasts: dict[str, int | None] = {}
        self._of_partition: dict[str, frozenset[str]] = {}
        parts = any(0 < (one.cpus_held or 0) < (one.cpus or 0) for one in self._own)
        self._may_share = parts and SHARED_NODES in cluster.jobs.unseen
        self._later = reserved.later
        held = {name for each in cluster.jobs.held.values() for one in each for name in one.gres}
        asked = " ".join(
            f"{one.gres} {one.gres_per_job} {one.gres_per_task}"
            for one in cluster.jobs.wants.values()
        )
        self._parts_of_gpus = bool(re.search(r"\b(shard|mps)\b", f"{asked} {' '.join(held)}"))

    def among(self, queue: Sequence[Request]) -> _Holds:
        """Return the same of other requests; sets are those of both."""
        other = copy(self)
        other._cluster = replace(
            self._cluster, jobs=replace(self._cluster.jobs, queue=tuple(queue))
        )
        return other

    def of(self, request: Request) -> Iterator[LeftOut]:
        """Yield what holds a request."""
        wants = self._cluster.jobs.wants[request.id]
        takes = self._takes(wants, request)
        shares = isinstance(takes, dict)
        of_nodes = self._of_nodes(wants, request.nodes)
        if isinstance(takes, dict) and CPUS in takes["takes"]:
            of_nodes = {"disk": of_nodes["disk"]}  # the rest is taken
        told = {
            "partition": self._partition(wants, request),
            "features": "" if self._features(wants, request) else wants.features,
            "excluded_nodes": "" if self._by_sets else wants.excluded,
            "required_nodes": "" if self._required(wants, request) else wants.required,
            "switches": self._switches(wants),
            "contiguous": self._why_not_contiguous(wants, request),
            "shared": ""
            if shares or self._takes_whole_nodes(wants)
            else self._why_whole(wants, request),
            "gres": "" if isinstance(gres := self._gres(wants, request), dict) else gres,
            **of_nodes,
            "reservation": ", ".join(self._reservations(wants, request)),
        }
        for option, text in told.items():
            if text:
                certain = option == "partition" and self._is_closed(wants, request)
                own = left_out(option, text, wants.place).model_copy(update={"certain": certain})
                yield from of_request(request.id, [own])

    def models(self, one: LeftOut) -> bool:
        """Return whether what a listing says of a job is modelled here all the same."""
        if one.request is None or one.option not in ("node_count", "reason"):
            return False
        request = next(r for r in self._cluster.jobs.queue if r.id == one.request)
        if one.option == "reason":  # its cause is the nodes' states, which are known
            named = one.value.startswith("ReqNodeNotAvail")
            known = self._cluster.nodes is not None and self._cluster.reservations is not None
            return named and known and not self._later
        return isinstance(self._takes(self._cluster.jobs.wants[request.id], request), dict)

    def _takes(self, wants: Wants, request: Request) -> dict[str, Any] | str | None:
        """Return what a request takes of nodes that jobs share; why not, or None if none do."""
        if self._sharing is None:
            return None
        known = [(self._cluster.partitions or {}).get(name) for name in wants.partitions]
        whole = self._takes_whole_nodes(wants) or not wants.shared
        if wants.shared == UNSAID and not whole:
            return UNSAID
        if wants.shared in ("user", "mcs") or (wants.shared == "oversubscribe" and None in known):
            return wants.shared
        if not whole and (why := _not_by_cpus(filter(None, known))):
            return why
        own = self._sharing.asked(wants, request.nodes, self._among(wants), whole=whole)
        limits = any(one is not None and (one.most_nodes or one.least_nodes > 1) for one in known)
        if isinstance(own, dict) and "nodes" in own and "at_most" not in own and limits:
            return f"{number_of(wants.tasks, 'task')}, and a partition that limits nodes"
        return own

    def _why_whole(self, wants: Wants, request: Request) -> str:
        """Return how a job shares nodes, where that is not modelled; nothing if it does not."""
        why = self._takes(wants, request)
        own = why if isinstance(why, str) else wants.shared
        if own and self._why_not_shared:
            own = f"{own}: {self._why_not_shared}"
        return own or (_PARTS if self._may_share else "")

    def _switches(self, wants: Wants) -> str:
        if not wants.switches:
            return ""
        if wants.switches < 0:
            return "it may have waited for them as long as it wants to"
        none = self._leaf is None or any(map(self._is_flat, wants.partitions))
        return f"{wants.switches}, and no leaf switches" if none else ""

    def _why_not_contiguous(self, wants: Wants, request: Request) -> str:
        """Return why it is not modelled that nodes follow each other; nothing if it is.

        Slurm takes them from a run of nodes that are free for the job, and looks at no switches;
        blocks, rings and toruses do not know the option.
        """
        if not wants.contiguous or not _knows_rows(self._of):
            return ""
        features, takes = self._features(wants, request), self._takes(wants, request)
        known = [(self._cluster.partitions or {}).get(name) for name in wants.partitions]
        order = [*(self._cluster.nodes or ())]
        inside = [k for k, name in enumerate(order) if name in self._machine]
        between = inside and len(inside) < inside[-1] - inside[0] + 1
        why_not = {
            "where contention counts": not self._by_sets,
            "and the order of scontrol show nodes is not given (--nodes)": not self._complete,
            "and nodes between those of the topology": between,
            "and nodes on no switch": not wants.partitions and len(inside) < len(order),
            "on several fabrics": self._by_sets and self._on_several_fabrics(wants),
            "with required nodes": wants.required,
            "with --switches": wants.switches,
            "with numbers of features": features is not None and features.form is Form.COUNTS,
            "with tasks on any nodes": isinstance(takes, dict) and "nodes" in takes,
            "in a partition with LLN": any(one is not None and one.least_loaded for one in known),
        }
        return next((f"nodes in a row, {why}" for why, is_so in why_not.items() if is_so), "")

    def _on_several_fabrics(self, wants: Wants) -> bool:
        """Return whether nodes of a partition of a request are on several fabrics."""
        machine = hierarchy_of(self._document)
        if not machine.fabrics:
            return False
        fabric = dict(zip(machine.host_names, machine.domain_of[0].tolist(), strict=True))
        every = [self._inside(name) for name in wants.partitions] or [self._machine]
        return any(len({fabric[name] for name in own}) > 1 for own in every)

    @property
    def _document(self) -> TreeModel | HierarchyModel:
        assert not isinstance(self._of, TorusModel)
        return self._of

    def _required(self, wants: Wants, request: Request) -> list[str] | None:
        """Return the nodes that a request has to have; None if that is not modelled."""
        if not wants.required:
            return []
        nodes = expand_host_list(wants.required, "required_nodes")
        fits = self._by_sets and self._machine.issuperset(nodes) and len(nodes) <= request.nodes
        own = self._takes(wants, request)
        if isinstance(own, dict) and "nodes" in own:  # units are tasks
            return None
        others = wants.switches or isinstance(self._of, TorusModel) or not _can_have_parts(request)
        return nodes if fits and not (others and len(nodes) < request.nodes) else None

    def has_several_tiers(self, request: Request) -> bool:
        """Return whether Slurm looks at a request more than once, between others."""
        wants = self._cluster.jobs.wants[request.id]
        wide = self._wide(wants, request)
        if wants.has_several_priorities and len(wide) > 1:
            return True
        every = self._cluster.partitions or {}
        return len({every[name].tier for name in wide if name in every}) > 1

    def _is_closed(self, wants: Wants, request: Request) -> bool:
        """Return whether no partition of a request lets it start, whatever is free."""
        return bool(wants.partitions) and all(
            self._closes(name, request) for name in wants.partitions
        )

    def _closes(self, partition: str, request: Request) -> bool:
        """Return whether a partition does not let a request start, whatever is free."""
        one = (self._cluster.partitions or {}).get(partition)
        return one is not None and self._limits("", one, request) not in ("", f" with {one.others}")

    def _nodes_in(self, partition: str) -> frozenset[str] | None:
        """Return the nodes of a partition; None if they are not known."""
        partitions, nodes = self._cluster.partitions, self._cluster.nodes
        if partitions is not None:
            return partitions[partition].nodes if partition in partitions else None
        if nodes is None or any(node.partitions is None for node in nodes.values()):
            return None
        return frozenset(n for n, node in nodes.items() if partition in (node.partitions or ()))

    def _partition(self, wants: Wants, request: Request) -> str:
        """Return why partitions keep a request from nodes; nothing if one of them does not."""
        if not self._by_sets:
            reasons = [self._why_not(name, request) for name in wants.partitions]
            return "" if "" in reasons else ", ".join(reasons)
        for name in wants.partitions if len(wants.partitions) > 1 else ():
            one = (self._cluster.partitions or {}).get(name)
            if one is not None and one.allows:
                return f"{name} with {one.allows}, one of {', '.join(wants.partitions)}"
        here = [n for n in wants.partitions if self._nodes_in(n) is None or self._inside(n)]
        some = (
            [name for name in here if not self._closes(name, request)] or here or wants.partitions
        )
        reasons = [self._why_not(name, request) for name in some]
        if any(reasons):
            return ", ".join(filter(None, reasons))
        differ = len(self._wide(wants, request)) > _MOST_WAYS
        return f"one of {', '.join(some)}" if differ else ""

    def _inside(self, partition: str) -> frozenset[str]:
        """Return the nodes of a partition that are on the machine, as far as they are known."""
        if partition not in self._of_partition:
            own = self._nodes_in(partition) or frozenset()
            self._of_partition[partition] = own & self._nodes_of_topology(partition)
        return self._of_partition[partition]

    def _wide(self, wants: Wants, request: Request) -> list[str]:
        """Return the partitions in which a request may start, each that is not in another."""
        nodes = {n: self._inside(n) for n in wants.partitions if not self._closes(n, request)}
        first = {own: name for name, own in reversed(nodes.items())}
        return [
            name
            for name, own in nodes.items()
            if own and first[own] == name and not any(own < other for other in nodes.values())
        ]

    def _features(self, wants: Wants, request: Request) -> Constraint | None:
        """Return what a request asks of features; None if it is nothing, or not modelled."""
        found = constraint_of(wants.features)
        if found is None or not self._by_sets or not self._complete or not self._says_features:
            return None
        if isinstance(self._of, TorusModel) and found.form is Form.COUNTS:
            return None
        return found if found.form is not Form.COUNTS or self._counts(found, request) else None

    def _having(self, feature: str) -> frozenset[str]:
        nodes = (self._cluster.nodes or {}).items()
        return frozenset(name for name, own in nodes if feature in (own.features or ()))

    def _named(self, feature: str) -> str:
        return self._set("feature", feature, self._having(feature))

    def _counts(self, constraint: Constraint, request: Request) -> bool:
        """Return whether numbers of nodes with features can be parts of a request.

        Slurm finds the nodes of one term after the other, and they differ. Parts of a request that
        shares nodes could meet on a node, unless their nodes have nothing in common.
        """
        wants = self._cluster.jobs.wants[request.id]
        takes, terms = self._takes(wants, request), constraint.terms
        rest = request.nodes - sum(term.count for term in terms)
        if rest == 0 and len(terms) == 1:
            return True
        if (
            wants.switches
            or wants.required
            or not _can_have_parts(request)
            or isinstance(takes, str)
        ):
            return False
        if takes is not None and CPUS in takes["takes"]:
            nodes = [term.nodes(self._having) & self._machine for term in terms]
            apart = sum(map(len, nodes)) == len(frozenset().union(*nodes))
            return rest == 0 and apart and "nodes" not in takes
        return rest == 0 or (rest > 0 and len(terms) == 1)

    def _among(self, wants: Wants) -> frozenset[str]:
        """Return the nodes of a request's partitions; all if they are not known."""
        return frozenset().union(*map(self._inside, wants.partitions)) or self._machine

    def _enough(self, wants: Wants, what: str) -> dict[str, frozenset[str]] | None:
        """Return by name the nodes that have what a request wants of each, where some have less.

        None if that is not modelled, or not known of all nodes.
        """
        least = getattr(wants, what)
        able = self._with(what, what, least)
        if able is None:
            return None
        found = {} if able >= self._machine else {f"{what}>={least}": able}
        return found if self._by_sets or not found else None

    def _with(self, what: str, name: str, least: int) -> frozenset[str] | None:
        """Return the nodes with so much of what a node has; None if it is not known of all."""
        if not least:
            return self._machine
        key = what, name, least
        if key not in self._known:
            has = {n: own.amount(what, name) for n, own in (self._cluster.nodes or {}).items()}
            enough = frozenset(node for node, amount in has.items() if (amount or 0) >= least)
            self._known[key] = enough if self._complete and None not in has.values() else None
        return self._known[key]

    def _gres(self, wants: Wants, request: Request) -> dict[str, frozenset[str]] | str:
        """Return by name the nodes with the GRES of a request, where some have less; or why not."""
        own, among, num_nodes = self._takes(wants, request), self._among(wants), request.nodes
        said = ",".join(filter(None, (wants.gres, wants.gres_per_job, wants.gres_per_task)))
        why = self._why_not_gpus(wants, own, said)
        if why:
            return f"{said} {why}"
        if self._sharing is not None and isinstance(own, dict) and CPUS in own["takes"]:
            each = self._sharing.gres(wants, num_nodes, among)
            needed = each if isinstance(each, str) else {name: (n, n) for name, n in each.items()}
        elif wants.cpus_per_gres or wants.memory_per_gres:
            needed = "and what each needs of whole nodes"
        else:
            needed = gres_needed(wants, num_nodes, tasks_of_node(wants, num_nodes))
        if isinstance(needed, str):
            return f"{said} {needed}".strip()
        found = {}
        for name, (least, even) in needed.items():
            able, enough = (self._with("gres", name, amount) for amount in (least, even))
            if able is None or enough is None:
                return said
            if (able - enough) & among:
                return f"{said} on {number_of(num_nodes, 'node')}, in any numbers"
            if not able >= self._machine:
                found[f"{name}>={least}"] = able
        return found if self._by_sets or not found else said

    def _why_not_gpus(self, wants: Wants, own: dict[str, Any] | str | None, said: str) -> str:
        """Return why the GPUs of a request are not modelled; nothing if they are, or it has none.

        Slurm gives a GPU either as a whole or in shards (or by MPS), which nodes count apart.
        """
        if self._parts_of_gpus and re.search(r"\b(gpu|shard|mps)\b", said):
            return "where GPUs are given in parts as well (shard, mps)"
        known = [(self._cluster.partitions or {}).get(name) for name in wants.partitions]
        given = [one.defaults for one in known if one is not None and one.defaults]
        shares = isinstance(own, dict) and CPUS in own["takes"]
        return f"with JobDefaults={given[0]}" if given and shares and "gpu" in said else ""

    def with_sets(self, request: Request) -> Request:
        """Return a request with the nodes that it may have, as far as that is modelled."""
        wants = self._cluster.jobs.wants[request.id]
        if not self._by_sets:
            return request
        own = self._takes(wants, request)
        fields = own if isinstance(own, dict) else {}
        if isinstance(own, str) and self._sharing is not None:  # held, and released as if whole
            fields = self._sharing.whole
        if wants.switches > 0 and self._leaf is not None and not self._switches(wants):
            fields = {**fields, "at_most": Segment(size=wants.switches, level=self._leaf)}
        knows = wants.contiguous and _knows_rows(self._of)
        if knows and not self._why_not_contiguous(wants, request):
            fields = {**fields, "contiguous": IN_ORDER, "spread": None}
            if IN_ORDER not in self.sets:
                listed = (name for name in self._cluster.nodes or () if name in self._machine)
                self.sets[IN_ORDER] = format_host_list(listed)
        ways, parts = self._ways(wants, request), self._parts(wants, request)
        terms = [*(ways if len(ways) == 1 else ()), *self._terms(wants, request, fields)]
        excluded = self._machine.intersection(expand_host_list(wants.excluded, "excluded_nodes"))
        fields = {
            **fields,
            "eligible": " & ".join(filter(None, terms)) or None,
            "excluded": _node_set(self._of, sorted(excluded)) or None,
            "one_of": ways if len(ways) > 1 else None,
        }
        return (
            _in_parts(request, fields, parts) if len(parts) > 1 else _with_fields(request, fields)
        )

    def _ways(self, wants: Wants, request: Request) -> list[str]:
        """Return expressions of which all nodes of a request have to match the same one."""
        wide = [] if self._partition(wants, request) else self._wide(wants, request)
        if wide and self._inside(wide[0]) == self._machine:
            wide = []
        found = [self._set("partition", name, self._inside(name)) for name in wide]
        features = self._features(wants, request)
        if features is None or features.form is not Form.SAME:
            return found
        named = [term.expression(self._named) for term in features.terms]
        return [f"{a} & {b}" for a in found for b in named] if found else named

    def _parts(self, wants: Wants, request: Request) -> list[tuple[str, int, str]]:
        """Return the parts of a request: the id of each, its nodes, and which it may have."""
        features, required = self._features(wants, request), self._required(wants, request)
        if required:
            own = self._set("nodes", format_host_list(sorted(required)), frozenset(required))
            parts, others = [("required", len(required), own)], f"!{own}"
        elif features is not None and features.form is Form.COUNTS:
            terms = enumerate(features.terms, start=1)
            parts = [(f"features{k}", own.count, own.expression(self._named)) for k, own in terms]
            others = ""
        else:
            return []
        rest = request.nodes - sum(num for _, num, _ in parts)
        return [*parts, ("others", rest, others)] if rest else parts

    def _terms(self, wants: Wants, request: Request, fields: Mapping[str, Any]) -> Iterator[str]:
        """Yield expressions all of which each node of a request has to match."""
        features = self._features(wants, request)
        if features is not None and features.form is Form.EACH:
            yield features.terms[0].expression(self._named)
        shares = CPUS in fields.get("takes", ())
        gres = self._gres(wants, request)
        needed = [self._enough(wants, what) for what in (("disk",) if shares else _OF_NODES)]
        for each in (*needed, gres if isinstance(gres, dict) else None):
            for name, nodes in (each or {}).items():
                yield self._set("with", name, nodes)
        for name, one in self._later.items():
            if one.meets(request.walltime) and self.may_meet(one)(request):
                yield f"!{self._set('reservation', name, one.nodes)}"
        parts = self._parts(wants, request)
        if len(parts) == 1:
            yield parts[0][2]

    def _set(self, kind: str, name: str, nodes: frozenset[str]) -> str:
        """Return the name of a set of nodes, which is kept."""
        own = f"{kind}:{name}"
        if own not in self.sets:
            self.sets[own] = _node_set(self._of, sorted(nodes & self._machine))
        return own

    def _why_not(self, name: str, request: Request) -> str:
        nodes = self._nodes_in(name)
        if nodes is None:
            return f"{name}, whose nodes are not known (--nodes or --partitions)"
        elsewhere = self._elsewhere(name)
        if elsewhere:
            return elsewhere
        inside = len(self._inside(name))
        if inside < len(self._machine) and not (self._by_sets and inside):
            return f"{name} with {inside:,} of the {number_of(len(self._machine), 'node')}"
        if len(nodes) > inside:
            return f"{name}, with {number_of(len(nodes) - inside, 'node')} on no switch"
        one = (self._cluster.partitions or {}).get(name)
        return "" if one is None else self._limits(name, one, request)

    def _elsewhere(self, name: str) -> str:
        """Return which other topology the jobs of a partition have; nothing if it is read."""
        one, here = (self._cluster.partitions or {}).get(name), self._cluster.topology
        own = "" if one is None else one.topology
        if here is None or not here.names or (own or here.default) in here.names:
            return ""
        other = f"topology {own}" if own else "the default topology"
        return f"{name} on {other}, not {' or '.join(here.names)}"

    def _nodes_of_topology(self, partition: str) -> frozenset[str]:
        """Return the nodes of the machine that are on the topology of a partition."""
        one, here = (self._cluster.partitions or {}).get(partition), self._cluster.topology
        own = (one.topology if one is not None else "") or (here.default if here else None)
        return self._machine if here is None or not own else here.nodes.get(own, self._machine)

    def _is_flat(self, partition: str) -> bool:
        """Return whether a partition has one of several topologies, and that has no switches."""
        one, here = (self._cluster.partitions or {}).get(partition), self._cluster.topology
        own = (one.topology if one is not None else "") or (here.default if here else None)
        return here is not None and own in here.flat

    def _limits(self, name: str, one: SlurmPartition, request: Request) -> str:
        """Return which limit of a partition of all nodes a request is beyond, or another one."""
        if one.state not in ("UP", "DRAIN"):  # which takes no new jobs, and starts those it has
            return f"{name} is {one.state}"
        if request.nodes < one.least_nodes or request.nodes > (one.most_nodes or request.nodes):
            limits = (("least", one.least_nodes), ("most", one.most_nodes))
            own = [f"at {which} {number_of(n, 'node')}" for which, n in limits if n]
            return f"{name} has jobs of {' and '.join(own)}"
        if one.most_seconds is not None and (request.walltime or 0) > one.most_seconds:
            return f"{name} has jobs of at most {one.most_seconds} s"
        return f"{name} with {one.others}" if one.others else ""

    def _takes_whole_nodes(self, wants: Wants) -> bool:
        own = [(self._cluster.partitions or {}).get(name) for name in wants.partitions]
        return bool(own) and all(one is not None and one.whole_nodes for one in own)

    def _of_nodes(self, wants: Wants, num_nodes: int) -> dict[str, str]:
        """Return what a request wants of a node that some node lacks, or may lack.

        Not what becomes a set of nodes.
        """
        lacks = {what: self._enough(wants, what) is None for what in _OF_NODES}
        cpus, share = wants.cpus if lacks["cpus"] else 0, -(-wants.cpus_in_all // num_nodes)
        if share > wants.cpus:  # of all nodes together: some may have fewer
            cpus = share
        if wants.left_free:
            threads = max((node.threads or 1 for node in self._own), default=1)
            cpus = max(1, wants.cpus, share) + wants.left_free * threads
        memory = [f"{wants.memory:,} MB"] if lacks["memory"] else []
        if wants.memory_per_cpu and not self._has_memory(wants.memory_per_cpu):
            memory.append(f"{wants.memory_per_cpu:,} MB per CPU")
        return {
            "cpus": f"{cpus:,} of a node" if cpus > max(1, self._least("cpus") or 0) else "",
            "memory": " and ".join(memory),
            "disk": f"{wants.disk:,} MB" if lacks["disk"] else "",
        }

    def _least(self, what: str) -> int | None:
        """Return the least that a node has; None if it is not known of every node."""
        if what not in self._leasts:
            found = [getattr(node, what) for node in self._own]
            least = None if not self._complete or None in found else min(found, default=0)
            self._leasts[what] = least
        return self._leasts[what]

    def _has_memory(self, per_cpu: int) -> bool:
        """Whether every node has so much memory for each of its CPUs."""
        if not self._complete or self._least("cpus") is None or self._least("memory") is None:
            return False
        return all((node.memory or 0) >= per_cpu * (node.cpus or 0) for node in self._own)

    def may_meet(self, later: Later) -> Callable[[Request], bool]:
        """Return whether a request may have nodes of a reservation that begins later."""

        def meets(request: Request) -> bool:
            wants = self._cluster.jobs.wants[request.id]
            out = expand_host_list(wants.excluded, "excluded_nodes")
            return bool(self._among(wants) & later.nodes - {*out})

        return meets

    def _reservations(self, wants: Wants, request: Request) -> Iterator[str]:
        """Yield the reservations to come that hold a request, as it may run when they begin."""
        for one in self._later.values():
            meets = one.meets(request.walltime)
            if self.may_meet(one)(request) and (meets is None or (meets and not self._by_sets)):
                yield one.about if request.walltime else f"{one.about}, and no time limit"


def _not_by_cpus(partitions: Iterable[SlurmPartition]) -> str:
    """Return why jobs of partitions may get more than their CPUs of a node; nothing if not."""
    for one in partitions:
        if one.whole_nodes:
            return "partitions of whole nodes and of shared ones"
        if one.select:
            return f"whole sockets (SelectTypeParameters={one.select})"
    return ""


_OF_PARTS = ("takes", "spread", "eligible", "excluded")


def _can_have_parts(request: Request) -> bool:
    """Return whether a request asks for nothing that would have to hold for its parts together."""
    return not (request.segments or request.exclusive or request.parts)


def _in_parts(
    request: Request, fields: Mapping[str, Any], parts: Iterable[tuple[str, int, str]]
) -> Request:
    """Return a request with parts: the id of each, its nodes, and which of those eligible."""
    own = {name: fields[name] for name in _OF_PARTS if fields.get(name)}
    found = []
    for name, num_nodes, term in parts:
        eligible = " & ".join(filter(None, (fields["eligible"], term)))
        limits = own | ({"eligible": eligible} if eligible else {})
        found.append(Part(id=name, nodes=num_nodes, group="job", **limits))
    return request.model_copy(update={"parts": found, "one_of": fields["one_of"]})


def _with_fields(request: Request, fields: Mapping[str, Any]) -> Request:
    """Return a request with fields; those of a request with parts, on blocks, are of its parts."""
    if request.parts is None:
        return request.model_copy(update=fields)
    own = {name: fields[name] for name in _OF_PARTS if fields.get(name)}
    parts = [part.model_copy(update=own) for part in request.parts]
    return request.model_copy(update={"parts": parts, "one_of": fields["one_of"]})


def _in_prisms(request: Request) -> Request:
    """Return a request of the prisms that Slurm's topology/torus3d would give it.

    It ignores a segment that is larger than the job.
    """
    segment = _segment(request)
    changed = None if segment is None or segment >= request.nodes else segment
    return request.model_copy(update={"segment": changed, "segments": None})


def _is_uneven(request: Request) -> bool:
    """Tell whether segments do not divide a request, or are too many, so that it is left out."""
    segment = request.segment
    return segment is not None and (
        request.nodes % segment > 0 or request.nodes > MAX_SEGMENTS * segment
    )


def _segment(request: Request) -> int | None:
    return request.segments[0].size if request.segments else None
