"""A snapshot of a dragonfly as the checker reads it (docs/proofs/dragonfly.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from topoplace.certify.candidates import candidates
from topoplace.certify.hierarchy.instance import Instance, read_instance
from topoplace.certify.report import RefusedError, require_none
from topoplace.certify.sets import hosts_of
from topoplace.certify.value import require_value
from topoplace.machine.hostlist import NodeLists
from topoplace.result.dragonfly import DragonflyModel, network_of
from topoplace.snapshot.schema import (
    ON_TORI,
    Communication,
    HierarchyModel,
    HostsModel,
    Request,
    RunningJob,
    Snapshot,
)


@dataclass(frozen=True)
class Reading:
    """What is free, what is a host of which router, and between which groups links are in use.

    Attributes
    ----------
    inside
        The snapshot on a hierarchy; its hosts are routers, or single nodes.
    per_host, per_group
        Nodes of a host and of a group.
    free
        The nodes that requests may have.
    taken
        Pairs of groups, the lower one first, in both of which a running job has nodes.
    silent
        The jobs that use no links.
    """

    inside: Instance
    per_host: int
    per_group: int
    num_groups: int
    free: frozenset[int]
    taken: frozenset[tuple[int, int]]
    silent: frozenset[str]

    def pairs(self, nodes: Iterable[int]) -> set[tuple[int, int]]:
        """Return the pairs of groups in both of which some nodes are."""
        groups = sorted({node // self.per_group for node in nodes})
        return {(g, h) for g in groups for h in groups if g < h}


def read_dragonfly(snapshot: Snapshot) -> Reading:
    """Return the checker's view of a snapshot; raise `RefusedError` if it contradicts itself."""
    model = snapshot.on(DragonflyModel, "a dragonfly")
    require_value(snapshot)
    network, _ = network_of(model), model.node_names
    each, num, lists = model.nodes, model.num_nodes, NodeLists(model.num_nodes)

    def nodes_of(text: str) -> frozenset[int]:
        return frozenset(lists.numbers(text, num, "nodes").tolist())

    left = set(range(num)) - nodes_of(model.missing)
    held: list[tuple[RunningJob, frozenset[int]]] = []
    for job in snapshot.running:
        require_none(job, "prism", "patterns", "takes")
        nodes = nodes_of(job.nodes)
        if not nodes or not nodes <= left:
            raise RefusedError(f"{job.id} runs on no nodes, missing ones, or those of another job")
        left -= nodes
        held.append((job, nodes))
    free = frozenset(left - nodes_of(snapshot.down))
    every = frozenset(range(num))
    sets = {name: nodes_of(text) for name, text in snapshot.sets.items()}
    for one in snapshot.queue:
        never = ("node_class", "shapes", "region", "patterns", "takes", "parts", "contiguous")
        require_none(one, *never, *ON_TORI)
    named: list[frozenset[int]] = []
    for one in candidates(snapshot):
        texts = [one.eligible, *(one.one_of or ())]
        named += [hosts_of(text, sets, every) for text in texts if text is not None]
        named += [nodes_of(one.excluded)] if one.excluded is not None else []
    whole = all(
        len(inside) % each == 0
        and all(count == each for count in _per_router(inside, each).values())
        for inside in {*named}
    )
    per_host = each if whole else 1
    used = Counter(node // per_host for node in free.union(*(nodes for _, nodes in held)))
    hosts = []
    for host in range(num // per_host):
        router = host * per_host // each
        path = [f"g{router // network.per_group}"] + ([] if whole else [f"r{router}"])
        hosts.append(HostsModel(hosts=f"h{host}", domains=path, capacity={"slots": used[host]}))
    running = []
    for job, nodes in held:
        counts = Counter(node // per_host for node in nodes)
        for size in sorted({*counts.values()}):
            own = [host for host, count in counts.items() if count == size]
            piece = {"id": f"{job.id} {size}", "nodes": _listed(own), "takes": {"slots": size}}
            running.append(job.model_copy(update=piece))

    def asked(one: Request) -> Request:
        if one.excluded is None:
            return one
        return one.model_copy(
            update={"excluded": _listed(n // per_host for n in nodes_of(one.excluded))}
        )

    machine = HierarchyModel(
        kind="hierarchy",
        name=model.name,
        levels=["group", "router"] if whole else ["group", "router", "node"],
        hosts=hosts,
    )
    update: dict[str, Any] = {
        "machine": machine,
        "down": "",
        "running": running,
        "queue": [asked(one) for one in snapshot.queue],
        "sets": {name: _listed(n // per_host for n in own) for name, own in sets.items()},
    }
    per_group = network.per_group * each
    jobs: list[RunningJob | Request] = [*snapshot.running, *snapshot.queue]
    silent = frozenset(job.id for job in jobs if job.communication is Communication.NONE)
    inside = read_instance(snapshot.model_copy(update=update))
    found = Reading(inside, per_host, per_group, model.groups, free, frozenset(), silent)
    talking = [found.pairs(nodes) for job, nodes in held if job.id not in silent]
    return replace(found, taken=frozenset[tuple[int, int]]().union(*talking))


def _per_router(nodes: Iterable[int], each: int) -> Counter[int]:
    return Counter(node // each for node in nodes)


def _listed(hosts: Iterable[int]) -> str:
    return ",".join(f"h{host}" for host in sorted({*hosts}))
