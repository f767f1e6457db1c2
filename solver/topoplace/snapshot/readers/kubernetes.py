"""A cluster of Kubernetes at one moment, as kubectl prints it, as a machine or a snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from topoplace.errors import number_of
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.snapshot.faults import faults_of
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.readers.kube_jobs import KubeJobs, Podset, jobs_of
from topoplace.snapshot.readers.kube_nodes import (
    HOSTNAME,
    KubeNode,
    domains_of,
    machine_of_nodes,
    nodes_of,
    tolerated,
)
from topoplace.snapshot.readers.kube_objects import read_kube_objects
from topoplace.snapshot.readers.tables import blamed_on, name_of
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    HierarchyModel,
    Part,
    Request,
    RunningJob,
    Snapshot,
)

_MOST_PARTS = 4


def read_kubernetes_machine(path: str | Path, topology: str | None = None) -> HierarchyModel:
    """Read the machine of what ``kubectl get topologies,nodes`` prints.

    See `read_kubernetes`.
    """
    objects = read_kube_objects(path)
    with blamed_on(path):
        nodes = nodes_of(objects)
        return machine_of_nodes(domains_of(objects, nodes, topology), nodes)


def read_kubernetes(
    path: str | Path, topology: str | None = None
) -> tuple[Snapshot, tuple[str, ...]]:
    """Read what ``kubectl get topologies,nodes,pods,jobs,workloads -A`` prints, JSON or YAML.

    Parameters
    ----------
    path
        A file of one list, or of several documents.
    topology
        The name of the Topology, where there are several.

    Returns
    -------
    tuple
        A checked snapshot, and notes for a person on what was left out or closed.

    Raises
    ------
    InputError
        With the file, the object and the field at fault.
    """
    objects = read_kube_objects(path)
    with blamed_on(path):
        nodes = nodes_of(objects)
        domains = domains_of(objects, nodes, topology)
        jobs = jobs_of(objects, [*domains.levels, HOSTNAME])
        machine = machine_of_nodes(domains, nodes, _asked(jobs))
        counts: Counter[str] = Counter()
        known = [node for node in nodes if node.name in domains.paths]
        counts["nodes left out, without the labels of all levels"] = len(nodes) - len(known)
        podsets = [podset for own in jobs.waiting.values() for podset in own.podsets]
        closed = _closed(known, podsets, counts)
        running = _running(jobs, machine, counts)
        queue = _queue(jobs, counts)
        snapshot = Snapshot(
            schema_version=SNAPSHOT_SCHEMA,
            name=name_of(path),
            machine=machine,
            down=format_host_list(closed),
            running=running,
            queue=queue,
            source=f"{domains.source}, nodes and pods",
        )
        prepare_hierarchy(snapshot)
    notes = [f"{number_of(len(running), 'job')} running, {len(queue)} queued"]
    return snapshot, (*notes, *(f"{what}: {count}" for what, count in counts.items() if count))


def _asked(jobs: KubeJobs) -> set[str]:
    held = {name for own in jobs.running.values() for takes in own.values() for name in takes}
    return held | {
        name for own in jobs.waiting.values() for podset in own.podsets for name in podset.takes
    }


def _closed(
    nodes: Iterable[KubeNode], podsets: Sequence[Podset], counts: Counter[str]
) -> list[str]:
    """Return the nodes to which no pod that waits may come."""
    closed = []
    for node in nodes:
        if not node.is_open:
            counts["nodes closed, not ready or unschedulable"] += 1
            closed.append(node.name)
        elif podsets and not any(tolerated(node.taints, one.tolerations) for one in podsets):
            counts["nodes closed, with taints that no job tolerates"] += 1
            closed.append(node.name)
    return closed


# ---- Running jobs --------------------------------------------------------------------------------


def _running(jobs: KubeJobs, machine: HierarchyModel, counts: Counter[str]) -> list[RunningJob]:
    """Return jobs by what their pods take: a job of ours for each amount that they take of a host.

    What they take beyond what a node has, as amounts are rounded, is cut.
    """
    left = {
        host: dict(group.capacity)
        for group in machine.hosts
        for host in expand_host_list(group.hosts)
    }
    found = []
    for job, own in jobs.running.items():
        hosts: dict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
        for host, takes in own.items():
            if host not in left:
                counts["jobs that run on nodes left out"] += 1
                continue
            amounts = {name: min(amount, left[host][name]) for name, amount in takes.items()}
            counts["amounts cut to what nodes have"] += amounts != takes
            for name, amount in amounts.items():
                left[host][name] -= amount
            hosts[tuple(sorted(amounts.items()))].append(host)
        for idx, (takes_of_host, names) in enumerate(hosts.items()):
            name = job if idx == 0 else f"{job[:120]}#{idx + 1}"
            nodes = format_host_list(names)
            found.append(RunningJob(id=name, nodes=nodes, takes=dict(takes_of_host)))
    return found


# ---- Requests ------------------------------------------------------------------------------------


def _queue(jobs: KubeJobs, counts: Counter[str]) -> list[Request]:
    """Return what waits and a snapshot can say, by descending priority and then by age."""
    queue = []
    waiting = sorted(jobs.waiting.items(), key=lambda job: (-job[1].priority, job[1].created))
    for job, own in waiting:
        runs_too = job in jobs.running
        request = _request(f"{job[:120]}#waits" if runs_too else job, own.podsets, counts)
        if request is not None:
            counts["jobs that run in part and wait in part"] += runs_too
            queue.append(request)
    return queue


def _request(job: str, podsets: Sequence[Podset], counts: Counter[str]) -> Request | None:
    """Return a request; None, and counted, if a snapshot cannot say it."""
    podsets = [podset for podset in podsets if podset.count]
    if not podsets:
        counts["jobs left out, without pods"] += 1
        return None
    if len(podsets) > _MOST_PARTS:
        counts[f"jobs left out, of more than {_MOST_PARTS} podsets"] += 1
        return None
    if any(_leaves_rest(podset) for podset in podsets):
        counts["jobs left out, of slices that do not divide their pods"] += 1
        return None
    counts["jobs whose node selectors were left out"] += any(p.is_selective for p in podsets)
    one = podsets[0]
    try:
        if len(podsets) == 1:
            return Request(id=job, nodes=one.count, takes=dict(one.takes), **one.asked)
        parts = [
            Part(id=own.name, nodes=own.count, takes=dict(own.takes), group=own.group, **own.asked)
            for own in podsets
        ]
        return Request(id=job, nodes=sum(part.nodes for part in parts), parts=parts)
    except ValidationError as error:
        raise faults_of(error, Request, {}).inside(f"job {job}") from None


def _leaves_rest(podset: Podset) -> bool:
    return any(podset.count % one.size for one in podset.asked.get("segments", ()))
