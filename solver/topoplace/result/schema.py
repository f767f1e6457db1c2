"""The result file (``topoplace.result/1``): what was asked, what was found, and the evidence.

Absent is null, never 0. A result holds its instance, so that `check`, `show` and `compare` need
nothing else.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from topoplace.snapshot.schema import Model, Name, NodeSet, PrismModel, Seconds, Snapshot

RESULT_SCHEMA: Literal["topoplace.result/1"] = "topoplace.result/1"


class Status(StrEnum):
    """What a solve established."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


class Proof(StrEnum):
    """What supports the bound: a `certificate` the checker verifies, or nothing."""

    CERTIFICATE = "certificate"
    SEARCH = "search"
    NONE = "none"


class Interference(StrEnum):
    """Which jobs may share links (DESIGN 4)."""

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


class Level(Model):
    """One level of the lexicographic objective.

    `objective` and `bound` are exact integers; `sense` says whether larger or smaller is better
    (certificates bound the maximum, of the negated objective where `sense` is min). A level's
    bound holds among the placements whose earlier levels are at least as good as reported.
    """

    name: Name
    sense: Literal["max", "min"]
    status: Annotated[Status, Field(strict=False)]
    objective: int | None
    bound: int | None
    gap: float | None
    proof: Annotated[Proof, Field(strict=False)]
    certificate: Certificate | None = None


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


class Limits(Model):
    """What bounded the solve."""

    time_limit: Seconds | None = None
    interference: Annotated[Interference, Field(strict=False)] = Interference.STRICT
    hit: bool = Field(default=False, description="whether the time limit ended the solve")


class Explanation(Model):
    """Why a request did not start."""

    request: Name
    reason: Literal["no-shape", "blocked", "outbid"]
    text: str
    prism: PrismModel | None = Field(default=None, description="the prism nearest to free")
    jobs: list[Name] = Field(default_factory=list, description="jobs that stand in it")
    nodes_to_free: int | None = Field(default=None, description="nodes those jobs hold in it")


class Result(Model):
    """One solve of one snapshot.

    `objective`, `bound`, `gap` and `proof` are the first level's; `status` is the first level's.
    """

    schema_version: Annotated[Literal["topoplace.result/1"], Field(alias="schema")]
    problem: Literal["placement"]
    method: Name
    status: Annotated[Status, Field(strict=False)]
    objective: int | None
    bound: int | None
    gap: float | None
    proof: Annotated[Proof, Field(strict=False)]
    seconds: Seconds
    limits: Limits
    seed: int | None
    versions: dict[str, str]
    levels: list[Level]
    solution: Solution | None
    explanations: list[Explanation] = Field(default_factory=list)
    instance: Snapshot


for _model in (StartBranch, CoverBranch, SharedLeaves, Level, Result):
    _model.model_rebuild()
