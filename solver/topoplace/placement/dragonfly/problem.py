"""A snapshot of a dragonfly as arrays, and read as a hierarchy of groups and routers.

Hosts of the hierarchy are routers, with a slot for each of their free nodes. If the nodes that some
request may have are only some of a router, hosts are the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from topoplace.errors import InputError, blamed_on
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.dragonfly import Dragonfly
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.placement.hierarchy.outcome import worth
from topoplace.placement.hierarchy.problem import HierarchyProblem, Started
from topoplace.result import Interference
from topoplace.result.dragonfly import (
    FOREIGN,
    DragonflyLevel,
    DragonflyModel,
    DragonflyResult,
    DragonflySolution,
    network_of,
)
from topoplace.result.placement import NodesPlacement
from topoplace.snapshot.hierarchy_state import (
    HierarchyRequest,
    HierarchyState,
    kept_to,
    prepare_hierarchy,
)
from topoplace.snapshot.machines import made
from topoplace.snapshot.schema import Communication, HierarchyModel, Request, Snapshot
from topoplace.snapshot.sets import NodeSets
from topoplace.snapshot.state import NumberedState, checked_nodes, require_none
from topoplace.snapshot.value import require_value
from topoplace.solving import Options
from topoplace.solving.solve import Frame
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True)
class DragonflyState(NumberedState):
    """What a snapshot of a dragonfly says.

    Attributes
    ----------
    inside
        The same snapshot on a hierarchy.
    host_of
        The host of every node there, shape ``(num_nodes,)``.
    """

    kind = "dragonfly"

    machine: Dragonfly
    inside: HierarchyState
    host_of: IntArray

    @property
    def requests(self) -> tuple[HierarchyRequest, ...]:
        """The requests that may start, in the order of the queue."""
        return self.inside.requests

    @cached_property
    def taken_pairs(self) -> BoolArray:
        """Pairs of groups whose links running jobs use, shape ``(num_groups, num_groups)``."""
        found = np.zeros((self.machine.num_groups,) * 2, dtype=bool)
        for job, nodes in zip(self.snapshot.running, self.held, strict=True):
            if job.communication is not Communication.NONE:
                groups = self.machine.groups_of(nodes)
                found[np.ix_(groups, groups)] = True
        return found


def prepare(snapshot: Snapshot) -> DragonflyState:
    """Check a snapshot of a dragonfly and return its arrays.

    Raises
    ------
    InputError
        With the field at fault, for anything the schema alone could not see.
    """
    model = snapshot.on(DragonflyModel, "a dragonfly")
    require_value(snapshot)
    closed = np.zeros(model.num_nodes, dtype=bool)
    with blamed_on(inside="machine"):
        machine, _ = network_of(model), model.node_names
        closed[parse_node_set(model.missing, len(closed), "missing")] = True
    num, lists = len(closed), NodeLists(len(closed))
    sets = NodeSets(snapshot.sets, num, lambda text, field: lists.numbers(text, num, field))

    def request(_: int, one: Request, field: str) -> list[BoolArray]:
        require_none(one, FOREIGN, "a dragonfly", field)
        return sets.of_request(one, field)

    foreign = ("prism", "patterns", "takes")
    held, free, masks = checked_nodes(snapshot, "a dragonfly", lists, closed, foreign, request)
    there = free.copy()
    there[[node for nodes in held for node in nodes.tolist()]] = True
    of_routers = (mask.reshape(-1, model.nodes) for own in masks for mask in own)
    per_host = model.nodes if all((m == m[:, :1]).all() for m in of_routers) else 1
    host_of = np.arange(num) // per_host
    slots = np.bincount(host_of[there], minlength=int(host_of[-1]) + 1)
    inside = prepare_hierarchy(_on_levels(snapshot, model.on_levels(slots.tolist()), held, host_of))
    pairs = zip(inside.requests, masks, strict=True)
    requests = tuple(kept_to(one, [mask[::per_host] for mask in own]) for one, own in pairs)
    inside = replace(inside, snapshot=snapshot, requests=requests)
    return DragonflyState(snapshot, free, held, machine, inside, host_of)


def _on_levels(
    snapshot: Snapshot, machine: HierarchyModel, held: Iterable[IntArray], host_of: IntArray
) -> Snapshot:
    """Return a snapshot as one of a hierarchy, without the sets that requests are kept to."""
    running = []
    for job, nodes in zip(snapshot.running, held, strict=True):
        own, counts = np.unique(host_of[nodes], return_counts=True)
        for count in np.unique(counts).tolist():
            hosts = format_host_list(f"h{host}" for host in own[counts == count].tolist())
            name = f"{job.id} {count}"  # no job's: names have no blanks
            update = {"id": name, "nodes": hosts, "takes": {"slots": count}}
            running.append(job.model_copy(update=update))
    plain = dict.fromkeys(("eligible", "excluded", "one_of", "planned"))
    queue = [one.model_copy(update=plain) for one in snapshot.queue]
    written = {"machine": machine, "running": running, "queue": queue, "sets": {}, "down": ""}
    return snapshot.model_copy(update=written)


@dataclass(frozen=True)
class DragonflyProblem(HierarchyProblem):
    """A snapshot as a hierarchy, and the rule for the links of its dragonfly."""

    dragonfly: DragonflyState
    rule: Interference
    kind: ClassVar[str] = "dragonfly"

    @property
    def beside(self) -> dict[str, dict[str, Any]]:
        """The model of links, with its data."""
        pairs = np.argwhere(np.triu(self.dragonfly.taken_pairs, 1)) + 1
        talks = [self.uses_links(request) for request in self.requests]
        return {"lib/dragonfly_links": {"talks": talks, "taken_pairs": pairs.tolist()}}

    def uses_links(self, request: HierarchyRequest) -> bool:
        """Return whether the links of a request may be no one else's."""
        return self.rule is Interference.STRICT and not request.silent


def problem_of(state: DragonflyState, options: Options) -> DragonflyProblem:
    """Return the problem of placing the queue; `InputError` under the rule ``tolerant``."""
    if options.interference is Interference.TOLERANT:
        raise InputError("strict or off on a dragonfly", field="interference", value="tolerant")
    return DragonflyProblem(state.inside, state, options.interference)


def dragonfly_of(
    prefix: str, sizes: Sequence[int], after: Sequence[int] | None, spec: str
) -> DragonflyModel | None:
    """Return the dragonfly of a shorthand.

    ``dragonfly:9x4x2`` has 9 groups of 4 routers with 2 nodes, ``dragonfly:9x2x3x2`` groups of 2
    rows and 3 columns, ``dragonfly:9x4x2:4`` four global links on every router.
    """
    if len(sizes) not in (3, 4) or (after is not None and len(after) > 1):
        return None
    groups, *routers, nodes = sizes
    ports = None if after is None else after[0]
    fields = {"groups": groups, "routers": routers, "nodes": nodes, "global_ports": ports}
    model = made(DragonflyModel, "dragonfly:9x4x2", spec, fields, kind="dragonfly")
    network_of(model)
    return model


def _solution(problem: DragonflyProblem, started: Started) -> DragonflySolution:
    """Return the document of a placement: of every host the first nodes that are free."""
    left: dict[int, list[int]] = {}
    for node in np.flatnonzero(problem.dragonfly.free)[::-1].tolist():
        left.setdefault(int(problem.dragonfly.host_of[node]), []).append(node)
    placements = []
    for idx, [hosts] in sorted(started.items()):
        nodes = format_node_set(left[host].pop() for host, n in hosts.items() for _ in range(n))
        placements.append(NodesPlacement(request=problem.requests[idx].id, nodes=nodes))
    return DragonflySolution(placements=placements)


FRAME = Frame(
    worth,
    DragonflyResult,
    DragonflyLevel,
    _solution,
    rule=lambda problem: {"interference": problem.rule},
    decisive=lambda problem: 1,
)
