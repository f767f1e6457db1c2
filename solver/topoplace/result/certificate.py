"""The certificate of a packing: integer prices of rows at leaves, branches above them.

It knows rows, families of rows and requests, but no machine; what they are on a torus or mesh, and
why a certificate proves its bound, stands in docs/proofs/placement.md. `Packed` is how certificates
of mappings write many integers as one short text.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Annotated, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from topoplace.errors import InputError, number_of
from topoplace.result.base import WAITS, InstanceType, Level, LevelType, Result, SolutionType
from topoplace.snapshot.schema import Model, Name, NodeSet, PrismModel
from topoplace.types import IntArray

DEEPEST = 150
"""Branches on a path of a certificate: readers of JSON give up at some 200 levels."""


class Leaf(Model):
    """A leaf of a certificate: integer prices that bound every packing of its subproblem.

    All integers are `scale` times the true value. `prices` has, by family of rows, one entry per
    row of it; rows of a family that is absent cost nothing. `multipliers` has one entry per
    earlier level.
    """

    kind: Literal["leaf"] = "leaf"
    scale: Annotated[int, Field(ge=1, le=10**9)]
    prices: dict[str, str] = Field(
        default_factory=dict,
        description="run lengths: 'price' or 'price*count', spaces between",
    )
    multipliers: list[int] = Field(default_factory=list)


class StartBranch(Model):
    """A branch on whether a request starts."""

    kind: Literal["start"] = "start"
    request: Name
    out: CertificateNode
    into: CertificateNode


class CoverBranch(Model):
    """A branch on whether the candidate of a request that starts covers a row.

    Of requests that are `alike` and have been split alike so far, one covers it or none does.
    """

    kind: Literal["cover"] = "cover"
    request: Name
    row: Annotated[int, Field(ge=0)]
    inside: CertificateNode
    outside: CertificateNode


class LeafRef(Model):
    """Number `leaf` of those that the certificate shares, all its prices `times / over`-fold.

    On later levels only as it is.
    """

    kind: Literal["ref"] = "ref"
    leaf: Annotated[int, Field(ge=0)]
    times: Annotated[int, Field(ge=0)] = 1
    over: Annotated[int, Field(ge=1)] = 1


class SharedLeaves(Model):
    """A whole certificate whose tree may refer to leaves by number, each as often as it likes.

    Each request of a group of `alike` ones counts as needing only the fewest units of the group.
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
    """Some requests of the queue, and what bounds the packings of these alone."""

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

Evidence = TypeVar("Evidence")


class Share(Model):
    """A number of units on each of some hosts."""

    hosts: NodeSet
    units: Annotated[int, Field(ge=1)]


class PlacedPart(Model):
    """Where a part of a request is; `part` is null if the request has no parts."""

    part: Name | None = None
    shares: Annotated[list[Share], Field(min_length=1)]


class Together(Model):
    """Proof that a request cannot start alongside some that do: their values exceed a bound."""

    beside: list[Name] = Field(description="requests that start, and stand before it in the order")
    certificate: Certificate


class Wait(Together):
    """A request that waits, as it cannot start alongside those before it that do.

    With `ever` it could not, either, if every running job that has an end had ended, or, where
    reservations have a window, all that end within it.
    """

    request: Name
    ever: bool = False


class Before(Together):
    """Proof that a request cannot start `at` seconds from now."""

    at: Annotated[int, Field(ge=1)]


class Reserved(Model):
    """The first request that waits: the earliest time at which it can start, and where.

    `at` are seconds from now, by which running and started jobs end as their limits say. `now`
    proves that it cannot start at once, and `before` that it cannot before the last of them ends
    that does by then; null if none ends earlier.
    """

    request: Name
    at: Annotated[int, Field(ge=1)]
    parts: Annotated[list[PlacedPart], Field(min_length=1)]
    prism: PrismModel | None = Field(
        default=None, description="on a torus or mesh, and of a part of a cube"
    )
    other_prisms: list[PrismModel] | None = Field(default=None, description="of further segments")
    now: Together
    before: Before | None = None


class InOrder(Model):
    """Proof of who starts in an order: each request that fits alongside those before it that do.

    A request that neither starts nor is in `waits`, nor `reserved`, is undecided.
    """

    kind: Literal["in-order"] = "in-order"
    waits: list[Wait]
    reserved: Reserved | None = Field(default=None, description="order `backfill`")


FirstOrLater = Annotated[
    Leaf | LeafRef | SharedLeaves | StartBranch | CoverBranch | Parts | InOrder,
    Field(discriminator="kind"),
]
"""The evidence of a level of a packing; `InOrder` on the first level, where there is an order."""


class RequiredLevel(Level[int, Evidence], Generic[Evidence]):
    """A level of which the user may require something.

    Certificates bound the maximum, of the negated objective where `sense` is min. A bound holds
    among the placements whose earlier levels are as good as reported, or as required.
    """

    required: int | None = Field(
        default=None,
        description="what the user set: at least (max) or at most (min) this, not the optimum",
    )


class PackingLevel(RequiredLevel[FirstOrLater]):
    """A level of a placement that is a packing."""


class Witness(Model, Generic[SolutionType]):
    """A placement that is no answer, and its value on every level.

    It is written where no answer was found, but levels before one of which something is required
    were solved. Bounds of later levels hold among the placements as good as it on these.
    """

    values: list[int]
    solution: SolutionType


class PackingResult(
    Result[LevelType, SolutionType, InstanceType], Generic[LevelType, SolutionType, InstanceType]
):
    """One solve of a packing."""

    witness: Witness[SolutionType] | None = Field(
        default=None, description="no answer, but what bounds rest on where there is none"
    )
    waits: dict[Name, str] | None = WAITS


def size_of(part: Model) -> int:
    """Return how many bytes a certificate, or a part of one, takes in a file."""
    return len(part.model_dump_json().encode())


for _model in (StartBranch, CoverBranch, SharedLeaves):
    _model.model_rebuild()


# ---- Many integers as a text: planes of bytes, deflated, in base 64 ------------------------------


class Packed(Model):
    """Integers x, each as the number 2x, or -2x - 1 if x is negative, of `width` bytes.

    The lowest bytes of all numbers come first, then the next ones, and so on; zlib deflates
    (RFC 1950) them, and base 64 (RFC 4648) makes a text of them.
    """

    width: Annotated[int, Field(ge=1, le=8)]
    text: str


def packed(numbers: IntArray) -> Packed:
    """Return integers as a document has them; their shape is not kept."""
    flat = numbers.astype(np.int64).ravel()
    folded = ((flat << 1) ^ (flat >> 63)).view(np.uint64)
    width = max(1, -(-int(folded.max(initial=0)).bit_length() // 8))
    planes = folded.astype("<u8").view(np.uint8).reshape(-1, 8).T[:width]
    deflated = zlib.compress(np.ascontiguousarray(planes).tobytes(), 9)
    return Packed(width=width, text=base64.b64encode(deflated).decode("ascii"))


def unpacked(document: Packed, count: int, field: str) -> IntArray:
    """Return the integers of a document; `InputError` unless there are `count` of them."""
    size, width = count * document.width, document.width
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(base64.b64decode(document.text, validate=True), size + 1)
    except (ValueError, binascii.Error, zlib.error):
        raise InputError("a deflated list in base 64", field=field) from None
    if len(found) != size or not inflating.eof:
        raise InputError(f"a list of {number_of(count, 'number')} of {width} bytes", field=field)
    planes: NDArray[np.uint8] = np.zeros((8, count), dtype=np.uint8)
    planes[:width] = np.frombuffer(found, dtype=np.uint8).reshape(width, count)
    folded = np.ascontiguousarray(planes.T).view("<u8").ravel().astype(np.uint64)
    halves = (folded >> np.uint64(1)).astype(np.int64)
    numbers: IntArray = halves ^ -(folded & np.uint64(1)).astype(np.int64)
    return numbers
