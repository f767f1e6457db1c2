"""A snapshot of a dragonfly as the checker reads it (docs/proofs/dragonfly.md)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields

from topoplace.certify.candidates import candidates
from topoplace.certify.hierarchy.instance import Instance, kept_to, read_instance
from topoplace.certify.report import require_none
from topoplace.certify.sets import NodeSets
from topoplace.certify.value import require_value
from topoplace.result.dragonfly import FOREIGN, DragonflyModel, network_of
from topoplace.snapshot.schema import Communication, Snapshot

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class DragonflyInstance(Instance):
    """What is free, what is a host of which router, and between which groups links are in use.

    Attributes
    ----------
    per_host, per_group
        Nodes of a host and of a group.
    open
        The nodes that requests may have.
    taken
        Pairs of groups, the lower one first, in both of which a running job has nodes.
    """

    per_host: int
    per_group: int
    num_groups: int
    open: frozenset[int]
    taken: frozenset[Pair]


def read_dragonfly(snapshot: Snapshot) -> DragonflyInstance:
    """Return the checker's view of a snapshot; raise `RefusedError` if it contradicts itself."""
    model = snapshot.on(DragonflyModel, "a dragonfly")
    require_value(snapshot)
    network, _ = network_of(model), model.node_names
    each, num, sets = model.nodes, model.num_nodes, NodeSets(snapshot, model.num_nodes)
    foreign = ("prism", "patterns", "takes")
    held, free = sets.held_and_free(snapshot, *foreign, missing=model.missing)
    for one in snapshot.queue:
        require_none(one, *FOREIGN)
    may = {one.id: sets.of(one) for one in candidates(snapshot)}
    parts = {own: Counter(node // each for node in own) for every in may.values() for own in every}
    whole = all(count == each for own in parts.values() for count in own.values())
    per_host = each if whole else 1
    used = Counter(node // per_host for node in free.union(*held))
    running, taken, per_group = [], set[Pair](), network.per_group * each
    for job, nodes in zip(snapshot.running, held, strict=True):
        if job.communication is not Communication.NONE:
            taken |= pairs_of(nodes, per_group)
        counts = Counter(node // per_host for node in nodes)
        for size in sorted({*counts.values()}):
            own = ",".join(f"h{host}" for host, count in sorted(counts.items()) if count == size)
            piece = {"id": f"{job.id} {size}", "nodes": own, "takes": {"slots": size}}
            running.append(job.model_copy(update=piece))
    anywhere = dict.fromkeys(("eligible", "excluded", "one_of"))
    queue = [one.model_copy(update=anywhere) for one in snapshot.queue]
    machine = model.on_levels([used[host] for host in range(num // per_host)])
    written = {"machine": machine, "running": running, "queue": queue, "sets": {}, "down": ""}
    inside = read_instance(snapshot.model_copy(update=written))
    hosts = {own: frozenset(node // per_host for node in own) for own in parts}
    every = frozenset(range(num // per_host))
    asks = ((asked, [hosts[own] for own in may[asked.id]]) for asked in inside.queue)
    kept = tuple(kept_to(asked, own, every) for asked, own in asks)
    return DragonflyInstance(
        **{one.name: getattr(inside, one.name) for one in fields(Instance)} | {"queue": kept},
        per_host=per_host,
        per_group=per_group,
        num_groups=model.groups,
        open=free,
        taken=frozenset(taken),
    )


def pairs_of(nodes: Iterable[int], per_group: int) -> set[Pair]:
    """Return the pairs of groups in both of which some nodes are."""
    groups = sorted({node // per_group for node in nodes})
    return {*itertools.combinations(groups, 2)}
