"""The results of placements (``topoplace.result/4``): on tori, pods and hierarchies, and of moves.

`problem` is ``placement``, ``cubes``, ``hierarchy`` or ``repack``; `tree` has allocations.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from topoplace.result.base import Level, Limits, Result
from topoplace.result.certificate import (
    Certificate,
    CoverBranch,
    InOrder,
    Leaf,
    LeafRef,
    PackingLevel,
    PackingResult,
    Parts,
    PlacedPart,
    RequiredLevel,
    SharedLeaves,
    StartBranch,
)
from topoplace.result.mapping import MappingCertificate
from topoplace.snapshot.schema import (
    Coordinate,
    Extents,
    Model,
    Name,
    NodeSet,
    PrismModel,
    RepackInstance,
    Snapshot,
)


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
    Leaf
    | LeafRef
    | SharedLeaves
    | StartBranch
    | CoverBranch
    | Parts
    | InOrder
    | HopBytesCertificate,
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

    A request in segments also has `other_prisms`, in ascending order of origins.
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


class NodesPlacement(Model):
    """A request that starts, and its nodes."""

    request: Name
    nodes: NodeSet


# ---- On a pod of cubes ---------------------------------------------------------------------------


class CubesLevel(PackingLevel):
    """A level: ``nodes`` started, or ``free_cubes`` left free as a whole; both are maximised."""


class CubesPlacement(Model):
    """A request that starts: its cubes, its nodes, and its prism if it is a part of one cube.

    The prism counts from the first chip of its cube. Whole cubes are listed ascending.
    """

    request: Name
    cubes: Annotated[list[Coordinate], Field(min_length=1)]
    prism: PrismModel | None = None
    nodes: NodeSet


class CubesSolution(Model):
    """Which requests start, and where."""

    placements: list[CubesPlacement]


class CubesResult(PackingResult[CubesLevel, CubesSolution, Snapshot]):
    """One solve of one snapshot of a pod of cubes."""

    problem: Literal["cubes"]


# ---- On a hierarchy or tree, in as few domains as possible ---------------------------------------


class HierarchyLevel(PackingLevel):
    """A level: ``nodes`` started (max), domains used by level of it, ``stranded`` (min)."""


class HierarchyPlacement(Model):
    """A request that starts."""

    request: Name
    nodes: NodeSet | None = Field(default=None, description="the hosts of all parts, each once")
    parts: Annotated[list[PlacedPart], Field(min_length=1)]


class HierarchySolution(Model):
    """Which requests start, and where."""

    placements: list[HierarchyPlacement]


class HierarchyResult(PackingResult[HierarchyLevel, HierarchySolution, Snapshot]):
    """One solve of one snapshot of a hierarchy."""

    problem: Literal["hierarchy"]


# ---- Which running jobs move so that others start ------------------------------------------------


class RepackLevel(Level[int, Certificate]):
    """A level: requests ``started``, spares used, what ends and moves cost, nodes of such jobs."""


class Action(StrEnum):
    """What happens to a job in a step."""

    END = "end"
    SUSPEND = "suspend"
    MOVE = "move"
    RESUME = "resume"
    START = "start"


class Step(Model):
    """A step of a plan: steps are carried out one after the other."""

    action: Annotated[Action, Field(strict=False)]
    job: Name


AnyPlacement = Placement | HierarchyPlacement | CubesPlacement


class RepackSolution(Model):
    """The jobs that move and the requests that start, with their places, and the steps.

    All other running jobs stay where they are.
    """

    moves: list[AnyPlacement] = Field(description="running jobs that move, by `request`")
    placements: list[AnyPlacement] = Field(description="requests that start")
    ended: list[Name] = Field(
        default_factory=list, description="running jobs that end, and spares that are used"
    )
    steps: list[Step]
    suspended: list[Name] = Field(
        description="jobs that are suspended, so that the others move through free space"
    )
    fewest_suspended: bool = Field(description="whether these moves need that many suspended")


class RepackResult(Result[RepackLevel, RepackSolution, RepackInstance]):
    """One solve of one snapshot."""

    problem: Literal["repack"]
    limits: PlacementLimits
