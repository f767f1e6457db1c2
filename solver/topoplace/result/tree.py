"""The result of an allocation on a tree (``topoplace.result/1``, ``"problem": "allocation"``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from topoplace.result.base import Fraction, Level, Result
from topoplace.snapshot.schema import Model, Name, Snapshot

if TYPE_CHECKING:
    from topoplace.report.answer import Start

BoxMove = tuple[Literal["low", "high", "split", "close"], int, int]
"""What to do with the box at hand, the number of a step, and the number of a value."""


class CubeNeeds(Model):
    """Multipliers by which bad states of a cube need more of others than those can give.

    Attributes
    ----------
    sides
        Number of distances, number of the least key of the bad states, multiplier.
    """

    kind: Literal["needs"] = "needs"
    sides: list[tuple[int, int, int]]


class CubeEmpty(Model):
    """The states left cannot hold all ranks."""

    kind: Literal["empty"] = "empty"


class CubeBranch(Model):
    """No leaf more than assumed in a state, or one more."""

    kind: Literal["branch"] = "branch"
    state: int
    without: CubeTree
    more: CubeTree


CubeTree = Annotated[CubeNeeds | CubeEmpty | CubeBranch, Field(discriminator="kind")]


class CubeNogood(Model):
    """Thresholds of the distances of a cube, ascending, that are impossible, and why.

    See docs/proofs-tree.md, "Relaxation".
    """

    at: list[int]
    proof: CubeTree


class BoxProof(Model):
    """Moves that show that a request alone, with the running jobs, costs no less than `bound`.

    See docs/proofs-tree.md, "Certificates".

    Attributes
    ----------
    cube_nogoods
        Thresholds that the moves may take to be impossible.
    """

    request: Name
    bound: Fraction
    moves: list[BoxMove]
    cube_nogoods: list[CubeNogood] = Field(default_factory=list)


class DoublingSharesNogood(Model):
    """Thresholds of the steps that are impossible, and integers that show it.

    See docs/proofs-tree.md, "Certificates".

    Attributes
    ----------
    at
        Per step the number of its threshold.
    shares
        Of the active ranks before every step and at the end.
    cuts
        Step, number of the least key of the bad states, multipliers of senders and receivers.
    """

    at: list[int]
    shares: list[int]
    cuts: list[tuple[int, int, int, int]]


class DoublingShares(Model):
    """Multipliers, as those of a nogood, by which all leaves are worth too little."""

    kind: Literal["shares"] = "shares"
    shares: list[int]
    cuts: list[tuple[int, int, int, int]]


class DoublingBranch(Model):
    """No leaf more than assumed in a state, or one more."""

    kind: Literal["branch"] = "branch"
    state: int
    without: DoublingTree
    more: DoublingTree


DoublingTree = Annotated[DoublingShares | DoublingBranch, Field(discriminator="kind")]


class DoublingTreeNogood(Model):
    """Thresholds that are impossible in whole numbers of leaves, and why: branches."""

    at: list[int]
    proof: DoublingTree


DoublingNogood = DoublingSharesNogood | DoublingTreeNogood


class DoublingProof(Model):
    """Impossible thresholds that show the same of a request whose only pattern is `binomial`."""

    request: Name
    bound: Fraction
    nogoods: list[DoublingNogood]


class LinePrices(Model):
    """Prices at which the lines of a grid cost more than leaves are worth.

    Attributes
    ----------
    cells, segments
        Per dimension, of every state.
    wholes
        What a segment with all ranks of its leaf costs on top; none if absent.
    """

    kind: Literal["prices"] = "prices"
    cells: list[list[int]]
    segments: list[list[int]]
    wholes: list[list[int]] | None = None


class LineEmpty(Model):
    """The states left cannot hold all ranks."""

    kind: Literal["empty"] = "empty"


class LineBranch(Model):
    """No leaf more than assumed in a state, or one more."""

    kind: Literal["branch"] = "branch"
    state: int
    without: LineTree
    more: LineTree


LineTree = Annotated[LinePrices | LineEmpty | LineBranch, Field(discriminator="kind")]


class LineNogood(Model):
    """Thresholds of the dimensions of a grid that are impossible, and why.

    See docs/proofs-tree.md, "Grids" and "Certificates".
    """

    at: list[int]
    proof: LineTree


class LineProof(Model):
    """Impossible thresholds that show the same of a request whose only pattern is a grid."""

    request: Name
    bound: Fraction
    line_nogoods: list[LineNogood]


class BoxesCertificate(Model):
    """The cost is at least what the requests of the cheapest choice as good cost alone."""

    kind: Literal["boxes"] = "boxes"
    proofs: list[BoxProof | DoublingProof | LineProof]


class AllStartCertificate(Model):
    """No more nodes can start than all requests want."""

    kind: Literal["all-start"] = "all-start"


class CountingCertificate(Model):
    """No more nodes can start than the free nodes hold: the checker solves the knapsack itself."""

    kind: Literal["counting"] = "counting"


class DomainsCertificate(Model):
    """Prices that bound what domains hold, leaves that switches connect.

    See docs/proofs-tree.md, "Certificates". All integers are `scale` times the true value.

    Attributes
    ----------
    prices
        What a start costs, one per request of the queue.
    node_price
        What a free node costs.
    """

    kind: Literal["domains"] = "domains"
    scale: Annotated[int, Field(ge=1, le=10**9)]
    prices: list[Annotated[int, Field(ge=0)]]
    node_price: Annotated[int, Field(ge=0)]


TreeCertificate = Annotated[
    BoxesCertificate | AllStartCertificate | CountingCertificate | DomainsCertificate,
    Field(discriminator="kind"),
]


class TreeLevel(Level[Fraction, TreeCertificate]):
    """A level of the objective: ``nodes`` started (max, an integer), then ``cost`` (min).

    `bound` of the cost holds among the allocations that start as many priority-weighted nodes.
    """

    name: Literal["nodes", "cost"]


class Allocation(Model):
    """A request that starts: the node of every rank in rank order, and its cost by eq. (6)."""

    request: Name
    nodes: list[str]
    cost: Fraction


class TreeSolution(Model):
    """Which requests start and where; total cost in the state in which all of them run."""

    allocations: list[Allocation]
    cost: Fraction


class AllocationResult(Result[TreeLevel, TreeSolution, Snapshot]):
    """One solve of one snapshot of a tree machine."""

    problem: Literal["allocation"]

    @property
    def placements(self) -> list[Start]:
        """The requests that start: nodes, hosts, and prism or cost."""
        from topoplace.report.answer import starts_of  # noqa: PLC0415 - only when asked

        return starts_of(self)
