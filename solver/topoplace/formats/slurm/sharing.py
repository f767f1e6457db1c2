"""Jobs that share nodes: what nodes have, what running jobs hold, what requests take.

A node has CPUs, memory, GRES, and places for jobs (`PLACES`), as many on each node: a job takes one
for each of its CPUs there, and a job of whole nodes takes all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topoplace.errors import number_of
from topoplace.formats.slurm.jobs import Held, SlurmJobs, Wants
from topoplace.formats.slurm.nodes import NodeUse, SlurmNode, gres_of
from topoplace.machine.hierarchy import PLACES
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.snapshot.hierarchy_state import hierarchy_of, hierarchy_written
from topoplace.snapshot.schema import (
    HierarchyModel,
    HostsModel,
    MachineDocument,
    Request,
    RunningJob,
    Segment,
)

CPUS, MEMORY = "cpus", "memory"

Takes = dict[str, int]


@dataclass(frozen=True)
class Sharing:
    """A machine whose nodes several jobs may have parts of.

    Attributes
    ----------
    capacity
        What every node has, by resource.
    places
        The places for jobs of a node.
    has_memory
        Whether jobs are given memory, too: not if running jobs hold some and no node gives any.
    sees_memory
        Whether that is seen: in slurm.conf, or as running jobs hold some.
    """

    machine: HierarchyModel
    capacity: Mapping[str, Takes]
    places: int
    has_memory: bool
    sees_memory: bool
    _held: Mapping[str, tuple[Held, ...]]
    _sharing: frozenset[str]

    def running(self, job: RunningJob, asked: Request | None) -> list[RunningJob]:
        """Return a running job with what it holds: an entry for each amount that nodes give.

        One that `asked` for whole nodes holds all their places, which is as good as all they have.
        """
        whole = asked is not None and asked.takes == self.whole["takes"]
        of_takes: dict[tuple[tuple[str, int], ...], list[str]] = {}
        for one in (own for own in self._held[job.id] if own.node in self.capacity):
            takes = self._takes(one, job.id in self._sharing)
            if whole and takes.get(PLACES) == self.places:
                takes = self.whole["takes"]
            of_takes.setdefault(tuple(sorted(takes.items())), []).append(one.node)
        return [
            job.model_copy(update={"nodes": format_host_list(nodes), "takes": dict(takes)})
            for takes, nodes in of_takes.items()
        ]

    def _takes(self, held: Held, shares: bool) -> Takes:
        capacity = self.capacity[held.node]
        found = {name: n for name, n in held.gres.items() if name in capacity}
        found |= {CPUS: held.cpus, MEMORY: held.memory if self.has_memory else 0}
        found = {name: min(n, capacity.get(name, 0)) for name, n in found.items() if n}
        places = held.cpus if shares else self.places
        return found | ({PLACES: places} if held.cpus else {})  # a suspended job leaves its nodes

    def asked(
        self, wants: Wants, num_nodes: int, among: Iterable[str], *, whole: bool
    ) -> dict[str, Any] | str:
        """Return the fields of a request that say what it takes; or why that is not modelled.

        A job of whole nodes takes all places of each of them. One with a fixed number of nodes has
        a unit on each; one of tasks alone has a unit for each task, on any nodes, and so has one of
        two nodes on which they may be in any numbers. GRES that are not modelled are left out.

        Parameters
        ----------
        among
            The nodes that it may have.
        """
        tasks = number_of(max(1, wants.tasks), "task")
        sizes = {num_nodes, wants.least_nodes or num_nodes}
        if wants.most_nodes and sizes != {wants.most_nodes}:
            most = number_of(wants.most_nodes, "node")
            return f"{min(sizes)} to {most}, and Slurm takes as many as it can"
        if whole:
            return self.whole if _is_fixed(wants, num_nodes) else f"{tasks} on whole nodes"
        if wants.all_memory or (wants.no_memory and self.has_memory and self.sees_memory):
            return "all memory of its nodes"
        fewer = 0 < wants.cpus_in_all < wants.tasks * wants.cpus_per_task
        if not wants.tasks or (fewer and not wants.tasks_per_node):
            return f"{tasks} on fewer CPUs" if wants.tasks else "its tasks, which are not said"
        if _is_fixed(wants, num_nodes):
            return self._on_nodes(wants, num_nodes, among)
        return self._by_task(wants) if wants.least_nodes == 1 else f"{tasks}, and the fewest nodes"

    @property
    def _counted(self) -> set[str]:
        """What jobs take of nodes."""
        return {name for amounts in self.capacity.values() for name in amounts}

    @property
    def whole(self) -> dict[str, Any]:
        """The fields of a request of whole nodes."""
        return {"takes": {PLACES: self.places}}

    def gres(self, wants: Wants, num_nodes: int, among: Iterable[str]) -> Takes | str:
        """Return the GRES of a unit of a job that shares nodes; or why they are not modelled."""
        if None in (gres_of(wants.cpus_per_gres), gres_of(wants.memory_per_gres)):
            return _NO_FORM
        each = self._tasks_of_node(wants, num_nodes, among)
        if not _is_fixed(wants, num_nodes) or each is None:
            if wants.gres or wants.gres_per_job or wants.tasks_per_gres:
                return "for tasks on nodes in any numbers"
            found = gres_of(wants.gres_per_task)
            return _NO_FORM if found is None else found
        needed = gres_needed(wants, num_nodes, each)
        if isinstance(needed, str):
            return needed
        if any(least != even for least, even in needed.values()):
            return f"on {number_of(num_nodes, 'node')}, in any numbers"
        return {name: least for name, (least, _) in needed.items()}

    def _on_nodes(self, wants: Wants, num_nodes: int, among: Iterable[str]) -> dict[str, Any] | str:
        """Return what a job of a fixed number of nodes takes."""
        each = self._tasks_of_node(wants, num_nodes, among)
        if each is not None:
            return self._by_node(wants, num_nodes, each, among)
        if num_nodes != 2 or wants.switches:
            tasks, nodes = number_of(wants.tasks, "task"), number_of(num_nodes, "node")
            return f"{tasks} on {nodes}, in any numbers"
        found = self._by_task(wants)
        if isinstance(found, dict):
            limits = {"at_most": 2, "spread": wants.tasks - 1}  # so it has no fewer than two
            level = self.machine.levels[-1]
            found |= {what: Segment(size=n, level=level) for what, n in limits.items()}
        return found

    def _by_task(self, wants: Wants) -> dict[str, Any] | str:
        tasks = number_of(wants.tasks, "task")
        if wants.memory or wants.tasks_per_node or wants.cpus > max(1, wants.cpus_per_task):
            return f"{tasks}, and what each node needs"
        takes = self._amounts(wants, 1, gres_of(wants.gres_per_task) or {})
        if wants.cpus_in_all > wants.tasks * takes[CPUS]:
            return f"{tasks}, and {wants.cpus_in_all} CPUs"
        return {"nodes": wants.tasks, "takes": takes}

    def _by_node(
        self, wants: Wants, num_nodes: int, tasks: int, among: Iterable[str]
    ) -> dict[str, Any] | str:
        gres = self.gres(wants, num_nodes, among)
        least = max(wants.cpus, wants.cpus_in_all if num_nodes == 1 else 0)
        takes = self._amounts(wants, tasks, gres if isinstance(gres, dict) else {}, least)
        if wants.cpus_in_all > num_nodes * takes[CPUS]:
            cpus, nodes = number_of(wants.cpus_in_all, "CPU"), number_of(num_nodes, "node")
            return f"{cpus} on {nodes}, in any numbers"
        spread = Segment(size=1, level=self.machine.levels[-1]) if num_nodes > 1 else None
        return {"takes": takes, "spread": spread}

    def _amounts(self, wants: Wants, tasks: int, gres: Takes, least: int = 0) -> Takes:
        """Return what a unit of a number of tasks takes, with its GRES and the fewest CPUs."""
        cpus = max(tasks * max(1, wants.cpus_per_task), least, _by_gres(wants.cpus_per_gres, gres))
        memory = _by_gres(wants.memory_per_gres, gres) or wants.memory
        memory = (memory or wants.memory_per_cpu * cpus) if self.has_memory else 0
        own = {name: n for name, n in gres.items() if name in self._counted}
        return {CPUS: cpus, PLACES: cpus, **own, **({MEMORY: memory} if memory else {})}

    def _tasks_of_node(self, wants: Wants, num_nodes: int, among: Iterable[str]) -> int | None:
        """Return how many tasks each node gets; None if they may be in any numbers.

        They may not if no node has room for more than its share.
        """
        each = tasks_of_node(wants, num_nodes)
        if each is not None or wants.tasks_per_node:
            return each
        task = {**(gres_of(wants.gres_per_task) or {}), CPUS: max(1, wants.cpus_per_task)}
        own = {name: n for name, n in task.items() if n and name in self._counted}
        room = (
            min(self.capacity[node].get(name, 0) // n for name, n in own.items()) for node in among
        )
        most = max(room, default=0)
        return most if wants.tasks == most * num_nodes else None


_UNCOUNTED = ":no_consume"
"""Ends GRES of which every job has what the node has."""

_NO_FORM = "of no form that is read"


def _is_fixed(wants: Wants, num_nodes: int) -> bool:
    """Return whether a job that has not several sizes has a fixed number of nodes."""
    return wants.most_nodes == num_nodes or (max(1, wants.tasks) == 1 and num_nodes == 1)


def tasks_of_node(wants: Wants, num_nodes: int) -> int | None:
    """Return how many tasks each node of a job gets; None if they may be in any numbers."""
    tasks = max(1, wants.tasks)
    if wants.tasks_per_node:
        even = wants.tasks_per_node * num_nodes == tasks or not wants.tasks
        return wants.tasks_per_node if even else None
    if num_nodes == 1:
        return tasks
    return 1 if tasks == num_nodes else None


def _by_gres(text: str, gres: Takes) -> int:
    """Return what GRES need, where each of a name needs as much as a text says."""
    return sum(n * gres.get(name, 0) for name, n in (gres_of(text) or {}).items())


def gres_needed(
    wants: Wants, num_nodes: int, tasks: int | None
) -> dict[str, tuple[int, int]] | str:
    """Return by name the GRES that each node of a job needs; or why that is not known.

    The first number is the least that a node has to have, the second is enough if all have it:
    nodes with less will do only if others have more. Every node has some of the GRES of a job or
    of a task (sbatch(1), ``--gpus``).

    Parameters
    ----------
    tasks
        Those of each node; None if they may be in any numbers.
    """
    every = (wants.gres, wants.gres_per_task, wants.gres_per_job)
    node, task, job = (gres_of(text) for text in every)
    if node is None or task is None or job is None:
        return _NO_FORM
    if job and wants.most_nodes != num_nodes:
        return "of the job, on any number of nodes"
    if wants.tasks_per_gres and num_nodes > 1:
        return "by its tasks, on several nodes"
    fewest, even = (tasks, tasks) if tasks else (1, -(-max(1, wants.tasks) // num_nodes))
    found = {name: (n, n) for name, n in node.items()}
    others = [(name, (n * fewest, n * even)) for name, n in task.items()]
    if wants.tasks_per_gres:
        number = -(-wants.tasks // wants.tasks_per_gres)
        others.append(("gpu", (number, number)))
    for name, n in job.items():
        share = (n if num_nodes == 1 else 1, -(-n // num_nodes))
        same = found.get(name) or dict(others).get(name, share)
        others.append((name, same if same[0] * num_nodes == n else share))
    for name, pair in others:
        if found.setdefault(name, pair) != pair:
            return f"{name} in several ways"
    return found


def sharing_of(
    machine: MachineDocument,
    nodes: Mapping[str, SlurmNode] | None,
    jobs: SlurmJobs,
    names: Sequence[str],
    *,
    has_memory: bool | None = None,
) -> Sharing | str | None:
    """Return how jobs share nodes, if some may; None if none does, or why that is not modelled.

    What every node has and what every running job holds of it has to be known, and a core has one
    thread.

    Parameters
    ----------
    has_memory
        Whether jobs are given memory, if slurm.conf says so.
    """
    if not jobs.sharing:
        return None
    if nodes is None:
        return "what nodes have is not known (--nodes)"
    lacking = next((name for name in names if name not in nodes), None)
    if lacking is not None:
        return f"what {lacking} has is not known"
    capacity = {name: _capacity(name, nodes[name]) for name in names}
    why = next((found for found in capacity.values() if isinstance(found, str)), None)
    if why is not None:
        return why
    own = {name: amounts for name, amounts in capacity.items() if not isinstance(amounts, str)}
    mixed = _mixed(own)
    own = {
        host: {g: n for g, n in each.items() if ":" not in g or g.partition(":")[0] in mixed}
        for host, each in own.items()
    }
    there = frozenset(names)
    on_these = [j for j in jobs.running if there.intersection(expand_host_list(j.nodes))]
    unknown = next(filter(None, (_unknown_of(job, jobs, mixed) for job in on_these)), "")
    if unknown:
        return unknown
    held = {job.id: jobs.held[job.id] for job in on_these}
    places = max(amounts[CPUS] for amounts in own.values())
    own = {name: {**amounts, PLACES: places} for name, amounts in own.items()}
    memory = sum(one.memory for each in held.values() for one in each)
    given = any(nodes[name].memory_held for name in names)
    written = _with_capacity(machine, own)
    sees = has_memory is not None or bool(memory)
    gives = has_memory if has_memory is not None else not memory or given
    return Sharing(written, own, places, gives, sees, held, jobs.sharing)


def _capacity(name: str, node: SlurmNode) -> Takes | str:
    """Return what a node has; or why that is not known, or not modelled."""
    if not node.cpus or node.memory is None or node.gres is None or node.threads is None:
        return f"CPUs, memory, GRES or threads of {name} are not said"
    if node.threads != 1:
        threads = number_of(node.threads, "thread")
        return (
            f"{name} has {number_of(node.cpus, 'CPU')} on {number_of(node.cores or 0, 'core')} of "
            f"{threads}: jobs count CPUs, and Slurm gives whole cores"
        )
    free = {own.removesuffix(_UNCOUNTED) for own in node.gres if own.endswith(_UNCOUNTED)}
    gres = {own: n for own, n in node.gres.items() if own.partition(":")[0] not in free}
    return {CPUS: node.cpus, MEMORY: node.memory, **gres}


def _mixed(capacity: Mapping[str, Takes]) -> set[str]:
    """Return the GRES of which some node has several types: there, types count apart as well.

    Jobs that name a type and jobs that do not fit together if each type and the sum have room.
    """
    types = [Counter(g.partition(":")[0] for g in own if ":" in g) for own in capacity.values()]
    return {name for counts in types for name, count in counts.items() if count > 1}


def _unknown_of(job: RunningJob, jobs: SlurmJobs, mixed: Iterable[str]) -> str:
    """Return what is not known of what a running job holds; nothing if all is."""
    held = jobs.held.get(job.id, ())
    if {one.node for one in held} != {*expand_host_list(job.nodes)}:
        return f"what job {job.id} has of its nodes is not known (squeue --json)"
    for name in mixed:
        for one in held:
            typed = (n for own, n in one.gres.items() if own.startswith(f"{name}:"))
            if one.gres.get(name, 0) != sum(typed):
                return f"of which types the {name} of job {job.id} are is not known"
    return ""


def _with_capacity(machine: MachineDocument, capacity: Mapping[str, Takes]) -> HierarchyModel:
    """Return a machine as a hierarchy whose hosts have these amounts."""
    written = hierarchy_written(machine)
    read = hierarchy_of(written)
    groups: dict[tuple[tuple[str, ...], tuple[tuple[str, int], ...]], list[str]] = {}
    for name, *path in zip(read.host_names, *read.paths, strict=True):
        amounts = tuple(sorted(capacity[name].items()))
        groups.setdefault((tuple(path), amounts), []).append(name)
    hosts = [
        HostsModel(hosts=format_host_list(own), domains=list(path), capacity=dict(amounts))
        for (path, amounts), own in groups.items()
    ]
    return written.model_copy(update={"hosts": hosts})


def given_elsewhere(
    capacity: Mapping[str, Takes], nodes: Mapping[str, SlurmNode], held: Iterable[Held]
) -> list[str]:
    """Return the nodes that give more CPUs than the jobs listed hold: others, not listed, do."""
    listed = Counter[str]()
    for one in held:
        listed[one.node] += one.cpus
    return [
        name
        for name in capacity
        if nodes[name].unreserved is not NodeUse.CLOSED
        and (nodes[name].cpus_held or 0) > listed[name]
    ]
