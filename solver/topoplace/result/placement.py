"""The result of a placement on a torus (``topoplace.result/4``, ``"problem": "placement"``)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from topoplace.result.base import Limits
from topoplace.result.certificate import (
    Certificate,
    CoverBranch,
    Leaf,
    LeafRef,
    PackingResult,
    Parts,
    RequiredLevel,
    SharedLeaves,
    StartBranch,
)
from topoplace.result.mapping import MappingCertificate
from topoplace.snapshot.schema import Extents, Model, Name, NodeSet, PrismModel, Snapshot


class Interference(StrEnum):
    """Which jobs may share links (docs/proofs/placement.md, "The problem")."""

    STRICT = "strict"
    TOLERANT = "tolerant"
    OFF = "off"


class MappingBound(Model):
    """What an application costs at least in prisms that fit inside some extents.

    The certificate is of the mapping of its tasks to all nodes of an idle prism of these extents.
    Dimensions that are rings, or lines, of one size may be exchanged.
    """

    request: Name = Field(description="one of the requests that have the application")
    extents: Extents
    certificate: MappingCertificate


class HopBytesCertificate(Model):
    """A certificate of a packing in which a candidate costs as much as mappings prove of it."""

    kind: Literal["hop-bytes"] = "hop-bytes"
    mappings: list[MappingBound]
    packing: Certificate


PlacementCertificate = Annotated[
    Leaf | LeafRef | SharedLeaves | StartBranch | CoverBranch | Parts | HopBytesCertificate,
    Field(discriminator="kind"),
]


class PlacementLevel(RequiredLevel[PlacementCertificate]):
    """A level: ``nodes`` started (max), ``shape`` (max), ``fragmentation`` (min).

    Where applications are mapped, these are ``nodes``, then ``hop-bytes`` (min).
    """


class TaskMapping(Model):
    """The node of every task of a job, and the bytes x hops of its messages."""

    nodes: list[Annotated[int, Field(ge=0)]]
    hop_bytes: Annotated[int, Field(ge=0)]


class Placement(Model):
    """A request that starts: its nodes, and its prism unless the method scatters nodes.

    One in segments has `other_prisms`, too, in ascending order of origins.
    """

    request: Name
    prism: PrismModel | None
    other_prisms: list[PrismModel] | None = Field(default=None, description="of further segments")
    nodes: NodeSet
    mapping: TaskMapping | None = Field(default=None, description="on level ``hop-bytes``")

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        every: dict[str, Any] = write(self)
        for name in ("other_prisms", "mapping"):
            if getattr(self, name) is None:
                del every[name]
        return every


class Solution(Model):
    """Which requests start, where, and the links they share against the rule."""

    placements: list[Placement]
    num_shared_links: int = Field(description="links that break the interference rule")
    conforming: bool = Field(description="every job has a prism and no link breaks the rule")


class PlacementLimits(Limits):
    """What bounded the solve, and the rule under which it was done."""

    interference: Annotated[Interference, Field(strict=False)] = Interference.STRICT


class Explanation(Model):
    """Why a request did not start."""

    request: Name
    reason: Literal["no-shape", "blocked", "outbid"]
    text: str
    prism: PrismModel | None = Field(default=None, description="the prism nearest to free")
    jobs: list[Name] = Field(default_factory=list, description="jobs that stand in it")
    nodes_to_free: int | None = Field(default=None, description="nodes those jobs hold in it")


class PlacementResult(PackingResult[PlacementLevel, Solution, Snapshot]):
    """One solve of one snapshot of a torus or mesh."""

    problem: Literal["placement"]
    limits: PlacementLimits
    explanations: list[Explanation] = Field(default_factory=list)
