"""A snapshot of a dragonfly as arrays, and read as a hierarchy of groups and routers.

Hosts of the hierarchy are routers, with a slot for each of their free nodes. If a set of nodes that
some request may have holds only some nodes of a router, hosts are the nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from topoplace.errors import InputError, blamed_on
from topoplace.kinds import State
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.dragonfly import Dragonfly
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.placement.hierarchy.outcome import worth as worth_on_hierarchy
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.result import Interference
from topoplace.result.dragonfly import (
    LEVELS,
    DragonflyLevel,
    DragonflyModel,
    DragonflyPlacement,
    DragonflyResult,
    DragonflySolution,
    network_of,
)
from topoplace.snapshot.hierarchy_state import HierarchyRequest, HierarchyState, prepare_hierarchy
from topoplace.snapshot.schema import (
    ON_TORI,
    Communication,
    HierarchyModel,
    HostsModel,
    Request,
    RunningJob,
    Snapshot,
)
from topoplace.snapshot.sets import NodeSets
from topoplace.snapshot.state import checked_nodes, require_none
from topoplace.snapshot.value import require_value
from topoplace.solving import Options
from topoplace.solving.solve import Frame
from topoplace.types import BoolArray, IntArray

Started = Mapping[int, Any]
"""The started requests, by their number in the queue, as on a hierarchy (`HierarchyProblem`)."""

_NEVER = (
    *("node_class", "shapes", "region", "patterns", "takes", "parts", "contiguous"),
    *ON_TORI,
)


@dataclass(frozen=True)
class DragonflyState(State):
    """What a snapshot of a dragonfly says, checked and turned into arrays.

    Attributes
    ----------
    free
        Nodes that are there, up and held by nobody, shape ``(num_nodes,)``.
    held
        The nodes of every running job.
    inside
        The same snapshot on a hierarchy, whose last level has `hosts_of`.
    hosts_of
        The host of every node, shape ``(num_nodes,)``.
    """

    kind = "dragonfly"

    snapshot: Snapshot
    machine: Dragonfly
    free: BoolArray
    held: tuple[IntArray, ...]
    inside: HierarchyState
    host_of: IntArray

    @property
    def requests(self) -> tuple[HierarchyRequest, ...]:
        """The requests that may start, in the order of the queue."""
        return self.inside.requests

    @cached_property
    def silent(self) -> frozenset[str]:
        """The jobs that use no links."""
        jobs: list[RunningJob | Request] = [*self.snapshot.running, *self.snapshot.queue]
        return frozenset(job.id for job in jobs if job.communication is Communication.NONE)

    @cached_property
    def taken_pairs(self) -> BoolArray:
        """Pairs of groups whose links running jobs use, shape ``(num_groups, num_groups)``."""
        found = np.zeros((self.machine.num_groups,) * 2, dtype=bool)
        for job, nodes in zip(self.snapshot.running, self.held, strict=True):
            if job.id not in self.silent:
                groups = np.unique(nodes // self.machine.nodes_per_router // self.machine.per_group)
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
    with blamed_on(inside="machine"):
        machine = network_of(model)
        _ = model.node_names  # for its faults
        missing = parse_node_set(model.missing, machine.num_nodes, "missing")
    num, lists = machine.num_nodes, NodeLists(machine.num_nodes)
    closed = np.zeros(num, dtype=bool)
    closed[missing] = True
    sets = NodeSets(snapshot.sets, num, lambda text, field: lists.numbers(text, num, field))

    def request(idx: int, one: Request, field: str) -> list[BoolArray]:
        require_none(one, _NEVER, "a dragonfly", field)
        texts = [one.eligible, *(one.one_of or ())]
        own = [sets.named(text, field) for text in texts if text is not None]
        return [*own, sets.allowed(None, one.excluded, field)]

    held, free, asked = checked_nodes(
        snapshot, "a dragonfly", lists, closed, ("prism", "patterns", "takes"), request
    )
    there = free.copy()
    there[[node for nodes in held for node in nodes.tolist()]] = True
    of_routers = (m.reshape(-1, machine.nodes_per_router) for m in itertools.chain(*asked))
    whole = all((of_router == of_router[:, :1]).all() for of_router in of_routers)
    host_of = np.arange(num) // (machine.nodes_per_router if whole else 1)
    levels = _as_levels(snapshot, machine, there, held, host_of, whole=whole)
    return DragonflyState(snapshot, machine, free, held, prepare_hierarchy(levels), host_of)


def _as_levels(
    snapshot: Snapshot,
    machine: Dragonfly,
    there: BoolArray,
    held: Iterable[IntArray],
    host_of: IntArray,
    *,
    whole: bool,
) -> Snapshot:
    """Return a snapshot as that of a hierarchy; `there` are nodes that are free or held."""
    num_hosts = int(host_of[-1]) + 1
    slots = np.bincount(host_of[there], minlength=num_hosts)
    hosts = []
    for host in range(num_hosts):
        router = host if whole else host // machine.nodes_per_router
        path = [f"g{router // machine.per_group}", *([] if whole else [f"r{router}"])]
        capacity = {"slots": int(slots[host])}
        hosts.append(HostsModel(hosts=f"h{host}", domains=path, capacity=capacity))
    levels = [*LEVELS, *([] if whole else ["node"])]
    running = []
    for job, nodes in zip(snapshot.running, held, strict=True):
        own, counts = np.unique(host_of[nodes], return_counts=True)
        for count in np.unique(counts).tolist():
            update = {
                "id": f"{job.id} {count}",  # no job's: names have no blanks
                "nodes": _names(own[counts == count]),
                "takes": {"slots": count},
            }
            running.append(job.model_copy(update=update))

    def translated(text: str) -> str:
        nodes = parse_node_set(text, machine.num_nodes)
        return _names(np.unique(host_of[nodes]))

    queue = []
    for one in snapshot.queue:
        own_fields = {"excluded": one.excluded and translated(one.excluded), "planned": None}
        queue.append(one.model_copy(update=own_fields))
    named = {name: translated(text) for name, text in snapshot.sets.items()}
    model = HierarchyModel(kind="hierarchy", name=snapshot.written.name, levels=levels, hosts=hosts)
    written: dict[str, Any] = {"machine": model, "running": running, "queue": queue, "sets": named}
    return snapshot.model_copy(update={"down": "", **written})


def _names(hosts: IntArray) -> str:
    return format_host_list(f"h{host}" for host in hosts.tolist())


@dataclass(frozen=True)
class DragonflyProblem:
    """A snapshot under a rule, for which methods decide which nodes requests get."""

    state: DragonflyState
    rule: Interference
    kind: ClassVar[str] = "dragonfly"

    @cached_property
    def hierarchy(self) -> HierarchyProblem:
        """The same without links."""
        return HierarchyProblem(self.state.inside)

    @property
    def requests(self) -> tuple[HierarchyRequest, ...]:
        """The requests that may start, in the order of the queue."""
        return self.state.requests

    @property
    def levels(self) -> tuple[tuple[str, str], ...]:
        """Name and sense of every level of the objective."""
        return self.hierarchy.levels

    def uses_links(self, request: HierarchyRequest) -> bool:
        """Return whether the links of a request may be no one else's."""
        return self.rule is Interference.STRICT and request.id not in self.state.silent

    def nodes_of(self, started: Started) -> dict[int, list[int]]:
        """Return the nodes of started requests: of every host the first ones that are free."""
        left: dict[int, list[int]] = {}
        for node in np.flatnonzero(self.state.free)[::-1].tolist():
            left.setdefault(int(self.state.host_of[node]), []).append(node)
        return {
            idx: sorted(left[host].pop() for host, n in placed[0].items() for _ in range(n))
            for idx, placed in sorted(started.items())
        }


def problem_of(state: DragonflyState, options: Options) -> DragonflyProblem:
    """Return the problem of placing the queue; `InputError` under the rule ``tolerant``."""
    if options.interference is Interference.TOLERANT:
        raise InputError("strict or off on a dragonfly", field="interference", value="tolerant")
    return DragonflyProblem(state, options.interference)


def dragonfly_of(
    prefix: str, sizes: Sequence[int], after: Sequence[int] | None, spec: str
) -> DragonflyModel | None:
    """Return the dragonfly of a shorthand.

    ``dragonfly:9x4x2`` has 9 groups of 4 routers with 2 nodes, ``dragonfly:9x2x3x2`` groups of 2
    rows and 3 columns, ``dragonfly:9x4x2:4`` four global links on every router.
    """
    if len(sizes) not in (3, 4) or min(sizes) < 1 or (after is not None and len(after) > 1):
        return None
    model = DragonflyModel(
        kind="dragonfly",
        name=spec.replace(":", "-"),
        groups=sizes[0],
        routers=list(sizes[1:-1]),
        nodes=sizes[-1],
        global_ports=after[0] if after else None,
    )
    network_of(model)
    return model


def worth(problem: DragonflyProblem, started: Started) -> list[int]:
    """Return the figures of the levels, as they are reported."""
    return worth_on_hierarchy(problem.hierarchy, started)


def _solution(problem: DragonflyProblem, started: Started) -> DragonflySolution:
    placements = [
        DragonflyPlacement(request=problem.requests[idx].id, nodes=format_node_set(nodes))
        for idx, nodes in problem.nodes_of(started).items()
    ]
    return DragonflySolution(placements=placements)


FRAME = Frame(
    worth,
    DragonflyResult,
    DragonflyLevel,
    _solution,
    rule=lambda problem: {"interference": problem.rule},
    decisive=lambda problem: 1,
)
