"""The result of an allocation on a tree (``topoplace.result/4``, ``"problem": "allocation"``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from topoplace.result.base import WAITS, Fraction, Level, Result
from topoplace.result.certificate import Certificate
from topoplace.snapshot.schema import Model, Name, Snapshot


class Empty(Model):
    """The states left cannot hold all ranks."""

    kind: Literal["empty"] = "empty"


class Needs(Model):
    """Multipliers by which bad states of a cube or a ring need more of others than those can give.

    Attributes
    ----------
    sides
        Number of distances, number of the least key of the bad states, multiplier.
    """

    kind: Literal["needs"] = "needs"
    sides: list[tuple[int, int, int]]


class BinomialShares(Model):
    """Multipliers by which all leaves of a binomial tree are worth too little.

    Attributes
    ----------
    shares
        Multipliers of the active ranks before every step and at the end.
    cuts
        Step, number of the least key of the bad states, multipliers of senders and receivers.
    """

    kind: Literal["shares"] = "shares"
    shares: list[int]
    cuts: list[tuple[int, int, int, int]]


class LinePrices(Model):
    """Prices at which the lines of a grid cost more than leaves are worth.

    Attributes
    ----------
    cells, segments
        Per dimension, of every state.
    """

    kind: Literal["prices"] = "prices"
    cells: list[list[int]]
    segments: list[list[int]]


class StateBranch(Model):
    """No leaf more than assumed in a state, or one more."""

    kind: Literal["branch"] = "branch"
    state: int
    without: ThresholdTree
    more: ThresholdTree


ThresholdTree = Annotated[
    Empty | Needs | BinomialShares | LinePrices | StateBranch, Field(discriminator="kind")
]


class ThresholdNogood(Model):
    """Thresholds of the steps, by number, that are impossible, and why."""

    at: list[int]
    proof: ThresholdTree


class ThresholdProof(Model):
    """Impossible thresholds that show that a request alone costs no less than `bound`.

    The running jobs are there. See docs/proofs/tree.md, "Certificates".
    """

    request: Name
    bound: Fraction
    nogoods: list[ThresholdNogood]


class ThresholdsCertificate(Model):
    """The cost is at least what the requests of the cheapest choice as good cost alone."""

    kind: Literal["thresholds"] = "thresholds"
    proofs: list[ThresholdProof]


TreeCertificate = Annotated[ThresholdsCertificate | Certificate, Field(discriminator="kind")]


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
    waits: dict[Name, str] | None = WAITS
