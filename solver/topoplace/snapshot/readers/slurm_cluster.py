"""A Slurm cluster at one moment: topology, node states and jobs as a snapshot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topoplace.errors import InputError, number_of
from topoplace.machine.hostlist import expand_host_list, format_host_list, format_node_set
from topoplace.snapshot.hierarchy_state import hierarchy_of, prepare_hierarchy
from topoplace.snapshot.readers.slurm import NodeUse
from topoplace.snapshot.readers.slurm_blocks import BLOCK, asked_of_blocks
from topoplace.snapshot.readers.slurm_jobs import SlurmJobs
from topoplace.snapshot.readers.slurm_torus import NamedTorus
from topoplace.snapshot.readers.slurm_yaml import SlurmMachine
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    Communication,
    Request,
    RunningJob,
    Snapshot,
    TreeModel,
)
from topoplace.snapshot.state import MAX_SEGMENTS, prepare
from topoplace.snapshot.tree_state import prepare_tree, tree_of

NO_JOBS = SlurmJobs((), (), 0)

_OF_BLOCKS = ("segments", "exclusive")  # what only machines of blocks have
_OF_TREES: dict[str, Any] = {"patterns": None, "communication": Communication.STRICT}


def snapshot_of_slurm(
    machine: SlurmMachine, uses: dict[str, NodeUse] | None, jobs: SlurmJobs, name: str
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return a checked snapshot, and notes for a person on what was left out or closed.

    Down are the nodes that are closed, those the node states do not tell of, and those that have
    a job which the listing does not name (of another user, or gone since). Jobs larger than the
    machine, and nodes that are on no switch, are left out. Without `uses` all nodes are open.

    On blocks, a request of segments has these, and so has one on a torus with placements, where a
    request that no placement has the size of, or of whose segments, and which Slurm therefore never
    starts, is left out.
    """
    names = _names_of(machine)
    there = set(names)
    with_job = _with_job(jobs, there)
    told = dict.fromkeys(names, NodeUse.OPEN) if uses is None else uses
    groups: dict[str, list[str]] = {
        "closed": [n for n in names if told.get(n) is NodeUse.CLOSED],
        "closed, with a job that is not listed": [
            n for n in names if told.get(n) is NodeUse.HELD and n not in with_job
        ],
        "closed, their state not told": [n for n in names if n not in told],
    }
    down = {node for group in groups.values() for node in group}
    queue = _queue_on(machine, jobs.queue, len(names))
    snapshot = Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=name,
        machine=machine.machine if isinstance(machine, NamedTorus) else machine,
        down=_node_set(machine, (node for node in names if node in down)),
        running=[_running_on(machine, job) for job in jobs.running],
        queue=list(queue.fitting),
        source="a Slurm topology, node states and job list",
    )
    _require_sound(snapshot)
    counts = {
        **{f"nodes {why}": len(group) for why, group in groups.items()},
        "nodes left out, on no switch": len(told.keys() - there),
        "jobs left out, on hold": jobs.num_held,
        **queue.left_out,
    }
    notes = [f"{number_of(len(jobs.running), 'job')} running, {len(queue.fitting)} queued"]
    return snapshot, (*notes, *(f"{what}: {count}" for what, count in counts.items() if count))


def _names_of(machine: SlurmMachine) -> tuple[str, ...]:
    if isinstance(machine, TreeModel):
        return tree_of(machine).node_names
    if isinstance(machine, NamedTorus):
        return tuple(name for name in machine.node_names if name is not None)
    return hierarchy_of(machine).host_names


def _with_job(jobs: SlurmJobs, there: set[str]) -> set[str]:
    """Return the nodes of running jobs, which have to be on the machine."""
    found: set[str] = set()
    for job in jobs.running:
        hosts = expand_host_list(job.nodes)
        if not there.issuperset(hosts):
            stray = next(node for node in hosts if node not in there)
            raise InputError("nodes on a switch", field=f"job {job.id}", value=stray)
        found.update(hosts)
    return found


def _node_set(machine: SlurmMachine, names: Iterable[str]) -> str:
    """Return nodes as the machine writes them: by name, on a torus by number."""
    if not isinstance(machine, NamedTorus):
        return format_host_list(names)
    wanted = set(names)
    return format_node_set(k for k, name in enumerate(machine.node_names) if name in wanted)


def _running_on(machine: SlurmMachine, job: RunningJob) -> RunningJob:
    if isinstance(machine, TreeModel):
        return job
    nodes = _node_set(machine, expand_host_list(job.nodes))
    return job.model_copy(update={"nodes": nodes, **_OF_TREES})


def _require_sound(snapshot: Snapshot) -> None:
    check: dict[str, Any] = {"tree": prepare_tree, "hierarchy": prepare_hierarchy}
    kind = snapshot.machine if isinstance(snapshot.machine, str) else snapshot.machine.kind
    check.get(kind, prepare)(snapshot)


# ---- The queue, as far as the machine has what its jobs ask for ----------------------------------


@dataclass(frozen=True)
class _Queue:
    fitting: tuple[Request, ...]
    left_out: Mapping[str, int]


def _queue_on(machine: SlurmMachine, queue: Sequence[Request], num_nodes: int) -> _Queue:
    fitting = [request for request in queue if request.nodes <= num_nodes]
    left_out = {"jobs left out, larger than the machine": len(queue) - len(fitting)}
    has_blocks = not isinstance(machine, NamedTorus | TreeModel) and BLOCK in machine.levels
    if isinstance(machine, NamedTorus) and machine.machine.anchored:
        fitting = [_in_prisms(request) for request in fitting]
    if not has_blocks:
        asking = [one for one in fitting if any(getattr(one, name) for name in _OF_BLOCKS)]
        left_out["jobs whose segments or exclusive blocks were left out"] = len(asking)
        fitting = [one.model_copy(update=dict.fromkeys(_OF_BLOCKS)) for one in fitting]
    if isinstance(machine, TreeModel):
        return _Queue(tuple(fitting), left_out)
    fitting = [request.model_copy(update=_OF_TREES) for request in fitting]
    if isinstance(machine, NamedTorus):
        anchored = machine.machine.anchored or ()
        sizes = {math.prod(one.dims) for one in anchored}
        shaped = [
            one
            for one in fitting
            if not anchored or ((one.segment or one.nodes) in sizes and not _is_uneven(one))
        ]
        left_out["jobs left out, of a size without placement"] = len(fitting) - len(shaped)
        return _Queue(tuple(shaped), left_out)
    if has_blocks:
        fitting = [
            one.model_copy(update=asked_of_blocks(one.nodes, _segment(one), one.exclusive))
            for one in fitting
        ]
    return _Queue(tuple(fitting), left_out)


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
