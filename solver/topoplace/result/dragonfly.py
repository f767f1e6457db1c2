"""The documents of dragonflies: the machine, and the results of placements on one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from topoplace.errors import InputError
from topoplace.machine.dragonfly import Dragonfly, arranged
from topoplace.machine.matrix import MAX_PLACES, MatrixMachine
from topoplace.result.certificate import PackingLevel, PackingResult
from topoplace.result.placement import NodesPlacement, PlacementLimits
from topoplace.snapshot.schema import (
    ON_TORI,
    HierarchyModel,
    HostsModel,
    MachineDocument,
    Model,
    Name,
    NodeSet,
    Size,
    Snapshot,
    optional,
)

MAX_GROUPS, MAX_ROUTERS, MAX_NODES, MAX_PORTS = 1 << 10, 1 << 14, 1 << 20, 1 << 21
"""Of the largest machine. Rows are as many as pairs of groups; ports are those of all groups."""

Router = Annotated[int, Field(ge=0, lt=MAX_ROUTERS)]
Ends = Annotated[list[Router], Field(min_length=2, max_length=2)]


class DragonflyModel(MachineDocument):
    """A dragonfly: groups of routers with the same number of nodes each.

    Routers are numbered group by group (row by row in a group), nodes router by router. Any two
    routers of a group are joined; of a group with rows and columns, those of a row and of a column.
    Any two groups are joined by a global link at least.
    """

    sparse: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(("global_ports", "links", "names")),
        "arrangement": "absolute",
        "missing": "",
    }
    nameless: ClassVar[str] = "missing"

    kind: Literal["dragonfly"]
    name: Name
    groups: Size
    routers: Annotated[list[Size], Field(min_length=1, max_length=2)] = Field(
        description="routers of a group; or rows, and columns"
    )
    nodes: Size = Field(description="nodes of a router")
    global_ports: Size | None = optional("global links of a router; by default as few as can be")
    arrangement: Literal["absolute", "relative", "circulant"] = Field(
        default="absolute", description="which groups the ports of a group lead to"
    )
    links: list[Ends] | None = optional(
        "the routers at both ends of every global link, instead of ports in an arrangement"
    )
    missing: NodeSet = Field(default="", description="numbers of nodes that are not there")
    names: NodeSet | None = optional(
        "what nodes are called, as a host list in the order of their numbers: all of them, or all "
        "but the missing ones"
    )
    source: str | None = optional("where the figures come from")

    @property
    def num_nodes(self) -> int:
        """How many nodes it has, the missing ones among them."""
        return self.groups * math.prod(self.routers) * self.nodes

    @property
    def domain_levels(self) -> tuple[str, ...]:
        """The names of its levels of domains, top first."""
        return LEVELS

    def matrix(self) -> MatrixMachine:
        """Return the distances of nodes: the links of a minimal route between their routers."""
        router = np.arange(self.num_nodes) // self.nodes
        if len(router) > MAX_PLACES:
            raise InputError(f"at most {MAX_PLACES} nodes", field="machine", value=len(router))
        return MatrixMachine(network_of(self).distances[np.ix_(router, router)])

    def on_levels(self, slots: Sequence[int]) -> HierarchyModel:
        """Return the hierarchy of groups and routers, whose hosts have some slots.

        Hosts are the routers, or the nodes if there are slots of so many: h0, h1, ..
        """
        size = math.prod(self.routers)
        each = len(slots) // (self.groups * size)
        levels = [*LEVELS, "node"][: 2 + (each > 1)]
        hosts = []
        for host, num in enumerate(slots):
            path = [f"g{host // each // size}", f"r{host // each}"][: len(levels) - 1]
            hosts.append(HostsModel(hosts=f"h{host}", domains=path, capacity={"slots": num}))
        return HierarchyModel(kind="hierarchy", name=self.name, levels=levels, hosts=hosts)


LEVELS = ("group", "router")
FOREIGN = (
    *("node_class", "shapes", "region", "patterns", "takes", "parts", "contiguous"),
    *ON_TORI,
)
"""Fields of requests that have no meaning on a dragonfly."""


def network_of(model: DragonflyModel) -> Dragonfly:
    """Return the network of a document.

    Raises
    ------
    InputError
        If it is too large, or two groups have no global link between them.
    """
    size = math.prod(model.routers)
    num = model.groups * size
    if model.groups > MAX_GROUPS or num > MAX_ROUTERS or model.num_nodes > MAX_NODES:
        expected = f"at most {MAX_GROUPS} groups, {MAX_ROUTERS} routers and {MAX_NODES} nodes"
        raise InputError(expected, field="groups", value=model.groups)
    if num * (model.global_ports or 0) > MAX_PORTS:
        expected = f"at most {MAX_PORTS} ports of all routers"
        raise InputError(expected, field="global_ports", value=model.global_ports)
    if model.links is not None and model.global_ports is not None:
        raise InputError("either global_ports or links", field="links", found="both")
    ports = model.global_ports or -(-(model.groups - 1) // size)
    ends = arranged(model.groups, size, ports, model.arrangement)
    if model.links is not None:
        ends = np.array(model.links, dtype=np.int64).reshape(-1, 2)
    return Dragonfly(model.groups, tuple(model.routers), model.nodes, ends)


class DragonflySolution(Model):
    """Which requests start, and where."""

    placements: list[NodesPlacement]


class DragonflyLevel(PackingLevel):
    """A level: ``nodes`` started (max), used ``group``s and ``router``s, ``stranded`` (min)."""


class DragonflyResult(PackingResult[DragonflyLevel, DragonflySolution, Snapshot]):
    """One solve of one snapshot of a dragonfly."""

    problem: Literal["dragonfly"]
    limits: PlacementLimits
