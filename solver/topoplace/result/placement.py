"""The result of a placement on a torus (``topoplace.result/3``, ``"problem": "placement"``)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from topoplace.result.base import Limits, Result
from topoplace.result.certificate import PackingLevel
from topoplace.snapshot.schema import Model, Name, NodeSet, PrismModel, Snapshot


class Interference(StrEnum):
    """Which jobs may share links (docs/proofs.md, "The problem")."""

    STRICT = "strict"
    TOLERANT = "tolerant"
    OFF = "off"


class PlacementLevel(PackingLevel):
    """A level: ``nodes`` started (max), ``shape`` (max), ``fragmentation`` (min)."""


class Placement(Model):
    """A request that starts: its nodes, and its prism unless the method scatters nodes."""

    request: Name
    prism: PrismModel | None
    nodes: NodeSet


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


class PlacementResult(Result[PlacementLevel, Solution, Snapshot]):
    """One solve of one snapshot of a torus or mesh."""

    problem: Literal["placement"]
    limits: PlacementLimits
    explanations: list[Explanation] = Field(default_factory=list)
