"""Jobs that share nodes: what nodes have, what running jobs hold, what requests take.

A node has CPUs, memory, GRES, and places for jobs (`NODE`), as many on each node: a job takes one
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
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.snapshot.hierarchy_state import hierarchy_of, hierarchy_written
from topoplace.snapshot.schema import (
    HierarchyModel,
    HostsModel,
    MachineDocument,
    RunningJob,
    Segment,
)

CPUS, MEMORY, NODE = "cpus", "memory", "node"

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
    """

    machine: HierarchyModel
    capacity: Mapping[str, Takes]
    places: int
    has_memory: bool
    _held: Mapping[str, tuple[Held, ...]]
    _sharing: frozenset[str]

    def running(self, jobs: Iterable[RunningJob]) -> list[RunningJob]:
        """Return running jobs with what they hold: entries ``job/1``, .. where nodes differ."""
        found: list[RunningJob] = []
        for job in jobs:
            of_takes: dict[tuple[tuple[str, int], ...], list[str]] = {}
            for one in self._held[job.id]:
                takes = tuple(sorted(self._takes(one, job.id in self._sharing).items()))
                of_takes.setdefault(takes, []).append(one.node)
            for number, (takes, nodes) in enumerate(of_takes.items(), start=1):
                name = job.id if len(of_takes) == 1 else f"{job.id}/{number}"
                own = {"id": name, "nodes": format_host_list(nodes), "takes": dict(takes)}
                found.append(job.model_copy(update=own))
        return found

    def _takes(self, held: Held, shares: bool) -> Takes:
        capacity = self.capacity[held.node]
        found = {name: n for name, n in held.gres.items() if name in capacity}
        found |= {CPUS: held.cpus, MEMORY: held.memory if self.has_memory else 0}
        found = {name: min(n, capacity.get(name, 0)) for name, n in found.items() if n}
        places = held.cpus if shares else self.places
        return found | ({NODE: places} if held.cpus else {})  # a suspended job leaves its nodes

    def asked(self, wants: Wants, num_nodes: int, *, whole: bool) -> dict[str, Any] | str:
        """Return the fields of a request that say what it takes; or why that is not modelled.

        A job of whole nodes takes all places of each of them. One with a fixed number of nodes has
        a unit on each; one of tasks alone has a unit for each task, on any nodes.
        """
        gres, tasks = gres_of(wants.gres), max(1, wants.tasks)
        fixed = wants.most_nodes == num_nodes or (tasks == 1 and num_nodes == 1)
        if gres is None:
            return "its GRES are of no form that is read"
        if wants.most_nodes not in (0, num_nodes):
            return f"{num_nodes} to {number_of(wants.most_nodes, 'node')}"
        if wants.all_memory and not whole:
            return "all memory of its nodes"
        if whole:
            return self.whole if fixed else f"{number_of(tasks, 'task')} on whole nodes"
        own = {name: n for name, n in gres.items() if ":" not in name}
        return self._by_node(wants, num_nodes, own) if fixed else self._by_task(wants, own)

    @property
    def whole(self) -> dict[str, Any]:
        """The fields of a request of whole nodes."""
        return {"takes": {NODE: self.places}}

    def _by_task(self, wants: Wants, gres: Takes) -> dict[str, Any] | str:
        each, said = max(1, wants.cpus_per_task), number_of(wants.tasks, "task")
        if gres or wants.memory or wants.tasks_per_node or wants.cpus > each:
            return f"{said}, and what each node needs"
        if wants.least_nodes != 1:
            return f"{said}, and the fewest nodes that it wants"
        return {"nodes": wants.tasks, "takes": self._amounts(wants, each, {})}

    def _by_node(self, wants: Wants, num_nodes: int, gres: Takes) -> dict[str, Any] | str:
        tasks = self._tasks_of_node(wants, num_nodes, max(1, wants.tasks))
        if tasks is None:
            said = number_of(wants.tasks, "task")
            return f"{said} on {number_of(num_nodes, 'node')}, in any numbers"
        cpus = max(tasks * max(1, wants.cpus_per_task), wants.cpus)
        spread = Segment(size=1, level=self.machine.levels[-1]) if num_nodes > 1 else None
        return {"takes": self._amounts(wants, cpus, gres), "spread": spread}

    def _amounts(self, wants: Wants, cpus: int, gres: Takes) -> Takes:
        memory = (wants.memory or wants.memory_per_cpu * cpus) if self.has_memory else 0
        return {CPUS: cpus, NODE: cpus, **gres, **({MEMORY: memory} if memory else {})}

    @staticmethod
    def _tasks_of_node(wants: Wants, num_nodes: int, tasks: int) -> int | None:
        """Return how many tasks each node gets; None if they may be divided otherwise."""
        if wants.tasks_per_node:
            even = wants.tasks_per_node * num_nodes == tasks or not wants.tasks
            return wants.tasks_per_node if even else None
        if num_nodes == 1:
            return tasks
        return 1 if tasks == num_nodes else None


def sharing_of(
    machine: MachineDocument,
    nodes: Mapping[str, SlurmNode] | None,
    jobs: SlurmJobs,
    names: Sequence[str],
) -> Sharing | None:
    """Return how jobs share nodes, if some may; None if none does, or too little is known.

    What every node has and what every running job holds of it has to be known, a core has one
    thread, and a node one type of each GRES.
    """
    there = frozenset(names)
    if not jobs.sharing or nodes is None or not there <= nodes.keys():
        return None
    capacity = {name: _capacity(nodes[name]) for name in names}
    on_these = [j for j in jobs.running if there.intersection(expand_host_list(j.nodes))]
    known = all(
        job.id in jobs.held
        and {one.node for one in jobs.held[job.id]} == {*expand_host_list(job.nodes)}
        for job in on_these
    )
    if None in capacity.values() or not known:
        return None
    own = {name: amounts for name, amounts in capacity.items() if amounts is not None}
    held = {job.id: jobs.held[job.id] for job in on_these}
    places = max(amounts[CPUS] for amounts in own.values())
    own = {name: {**amounts, NODE: places} for name, amounts in own.items()}
    memory = sum(one.memory for each in held.values() for one in each)
    given = any(nodes[name].memory_held for name in names)
    written = _with_capacity(machine, own)
    return Sharing(written, own, places, not memory or given, held, jobs.sharing)


def _capacity(node: SlurmNode) -> Takes | None:
    """Return what a node has; None if that is not known, or cores have several threads."""
    if not node.cpus or node.memory is None or node.gres is None or node.threads != 1:
        return None
    types = Counter(name.partition(":")[0] for name in node.gres if ":" in name)
    if any(count > 1 for count in types.values()):
        return None
    gres = {name: n for name, n in node.gres.items() if ":" not in name}
    return {CPUS: node.cpus, MEMORY: node.memory, **gres}


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
        if nodes[name].use is not NodeUse.CLOSED and (nodes[name].cpus_held or 0) > listed[name]
    ]
