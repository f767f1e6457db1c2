"""The documents of fat trees whose jobs own their links: the machine, and results on it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from topoplace.machine.fattree import FatTree
from topoplace.result.certificate import PackingLevel, PackingResult
from topoplace.result.placement import NodesPlacement
from topoplace.snapshot.schema import MachineDocument, Model, Name, NodeSet, Snapshot, optional

Ports = Annotated[int, Field(ge=1, le=128)]


class FatTreeModel(MachineDocument):
    """A fat tree of two or three levels, of which every job owns the links that it uses.

    Each leaf has a link to every switch of its pod, and switch i of each pod to every spine of
    plane i, except the `missing` ones. Without `spines` the switches are at the top.
    """

    sparse: ClassVar[dict[str, Any]] = {"spines": 0, "missing": "", "owned": {}}

    kind: Literal["fattree"]
    name: Name
    pods: Annotated[
        list[Annotated[list[Ports], Field(min_length=1, max_length=128)]],
        Field(min_length=1, max_length=256),
    ] = Field(description="by pod, the nodes on each of its leaves")
    switches: Ports = Field(description="switches of a pod")
    spines: Annotated[int, Field(ge=0, le=128)] = Field(
        default=0, description="spines of a plane; 0 in a tree of two levels"
    )
    missing: NodeSet = Field(default="", description="links that are not there, or are down")
    owned: dict[Name, NodeSet] = Field(
        default_factory=dict, description="the links of running jobs that have several leaves"
    )
    source: str | None = optional("where the figures come from")

    @property
    def num_nodes(self) -> int:
        """How many nodes it has."""
        return sum(map(sum, self.pods))

    @property
    def tree(self) -> FatTree:
        """The tree itself."""
        return FatTree(tuple(map(tuple, self.pods)), self.switches, self.spines)


class FatTreePlacement(NodesPlacement):
    """A request that starts: its nodes, and the links that it owns."""

    links: NodeSet = ""


class FatTreeSolution(Model):
    """What starts."""

    placements: list[FatTreePlacement]


class FatTreeLevel(PackingLevel):
    """A level: ``nodes`` started (max), ``links`` that the started jobs own (min)."""


class FatTreeResult(PackingResult[FatTreeLevel, FatTreeSolution, Snapshot]):
    """One solve of one snapshot of a fat tree."""

    problem: Literal["fattree"]
