"""The result of a placement on a torus (``topoplace.result/2``, ``"problem": "placement"``)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from topoplace.result.base import Level, Limits, Result
from topoplace.snapshot.schema import Model, Name, NodeSet, PrismModel, Snapshot

if TYPE_CHECKING:
    from topoplace.report.answer import Start


class Interference(StrEnum):
    """Which jobs may share links (docs/proofs.md, "The problem")."""

    STRICT = "strict"
    TOLERANT = "tolerant"
    OFF = "off"


class LinkPrices(Model):
    """Prices of the links of one price row family, as parallel lists.

    `request` is null for the rows that bound all strict jobs on a link, or the id of the
    tolerant request that may not share the link with strict jobs.
    """

    request: Name | None = None
    links: list[int]
    prices: list[int]


class Leaf(Model):
    """A leaf of a certificate: integer prices that bound every placement of its subproblem.

    All integers are `scale` times the true value. `router_prices` has one entry per router.
    `multipliers` has one entry per earlier level. See docs/proofs.md.
    """

    kind: Literal["leaf"] = "leaf"
    scale: Annotated[int, Field(ge=1, le=10**9)]
    router_prices: str = Field(description="run lengths: 'price' or 'price*count', spaces between")
    link_prices: list[LinkPrices] = Field(default_factory=list)
    multipliers: list[int] = Field(default_factory=list)


class StartBranch(Model):
    """A branch on whether a request starts."""

    kind: Literal["start"] = "start"
    request: Name
    out: CertificateNode
    into: CertificateNode


class CoverBranch(Model):
    """A branch on whether the prism of a request that starts covers a router.

    Of requests that are `alike` and have been split alike so far, one covers it or none does.
    """

    kind: Literal["cover"] = "cover"
    request: Name
    router: Annotated[int, Field(ge=0)]
    inside: CertificateNode
    outside: CertificateNode


class LeafRef(Model):
    """Number `leaf` of those that the certificate shares, all its prices `times / over`-fold."""

    kind: Literal["ref"] = "ref"
    leaf: Annotated[int, Field(ge=0)]
    times: Annotated[int, Field(ge=0)] = 1
    over: Annotated[int, Field(ge=1)] = 1


class SharedLeaves(Model):
    """A whole certificate whose tree may refer to leaves by number, each as often as it likes.

    Each request of a group of `alike` ones counts as needing only the fewest nodes of the group.
    """

    kind: Literal["shared"] = "shared"
    alike: list[list[Name]] = Field(default_factory=list)
    leaves: list[Leaf]
    tree: CertificateNode


CertificateNode = Annotated[Leaf | LeafRef | StartBranch | CoverBranch, Field(discriminator="kind")]
WholeTree = Annotated[
    Leaf | LeafRef | SharedLeaves | StartBranch | CoverBranch, Field(discriminator="kind")
]
"""A tree, or leaves that it shares and the tree. Without them, it may refer to none."""


class Part(Model):
    """Some requests of the queue, and what bounds the placements of these alone."""

    requests: list[Name]
    certificate: WholeTree


class Parts(Model):
    """The queue in parts, each request in one; the bound is the sum of theirs."""

    kind: Literal["parts"] = "parts"
    parts: list[Part]


Certificate = Annotated[
    Leaf | LeafRef | SharedLeaves | StartBranch | CoverBranch | Parts, Field(discriminator="kind")
]
"""One tree, or one for each part of the queue."""


DEEPEST = 150
"""Branches on a path of a certificate: readers of JSON give up at some 200 levels."""


class PlacementLevel(Level[int, Certificate]):
    """A level of a placement.

    Certificates bound the maximum, of the negated objective where `sense` is min.
    """


class Placement(Model):
    """A request that starts: its nodes, and its prism unless the method scatters nodes."""

    request: Name
    prism: PrismModel | None
    nodes: NodeSet


class SharedLink(Model):
    """A link used by jobs that the interference rule keeps apart."""

    link: int
    jobs: list[Name]


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

    @property
    def placements(self) -> list[Start]:
        """The requests that start: nodes, hosts, and prism or cost."""
        from topoplace.report.answer import starts_of  # noqa: PLC0415 - only when asked

        return starts_of(self)


for _model in (StartBranch, CoverBranch, SharedLeaves, PlacementLevel, PlacementResult):
    _model.model_rebuild()
