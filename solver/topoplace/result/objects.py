"""The result of mapping objects (``topoplace.result/3`` with ``"problem": "objects"``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from topoplace.result.base import Level, Result
from topoplace.result.mapping import Bisection, LinkLoad, MappingCertificate, MappingFigures
from topoplace.result.packed import Packed
from topoplace.snapshot.objects import ObjectsInstance
from topoplace.snapshot.schema import Model, Task

DENOMINATOR = 1 << 8
"""A certificate of shares divides the bytes of every pair into so many parts."""

ENUMERATION_WORK = 1 << 34
"""Most steps of an enumeration, times the squares of the numbers of objects and of their places."""


class SharesCertificate(Model):
    """Every object by itself, its partners around it as close as the caps allow.

    See docs/proofs/objects.md, "Shares". The bytes of a pair count at its two ends.
    """

    kind: Literal["shares"] = "shares"
    shares: Packed = Field(
        description="of every pair, ascending by its lower object, then its higher one: how many "
        "256ths of its bytes count at the lower one"
    )


class ObjectCutsCertificate(Bisection):
    """What any cut of the machine costs (docs/proofs/objects.md, "Cuts")."""

    kind: Literal["object-cuts"] = "object-cuts"


class EnumerationCertificate(Model):
    """All ways to put the objects on nodes, one after the other, as far as they may be cheap.

    See docs/proofs/objects.md, "Enumeration": the checker goes through them itself.
    """

    kind: Literal["enumeration"] = "enumeration"
    order: list[Task] = Field(description="objects in the order in which they are placed")


class SpreadCertificate(Model):
    """Somebody has the average load, the largest object, or two of the largest ones."""

    kind: Literal["spread"] = "spread"


ObjectsCertificate = Annotated[
    SharesCertificate
    | ObjectCutsCertificate
    | EnumerationCertificate
    | SpreadCertificate
    | MappingCertificate,
    Field(discriminator="kind"),
]
"""Those of a mapping of tasks are for objects of load 1 (docs/proofs/objects.md, "Tasks")."""


class ObjectsLevel(Level[int, ObjectsCertificate]):
    """A level: ``hop-bytes``, then ``largest-load`` of a node; both are minimised."""

    sense: Literal["min"] = "min"


class ObjectsFigures(MappingFigures):
    """What a mapping of objects costs, recomputed by the checker.

    The largest load is that of a node, with pooled caps that of a router for each of its usable
    nodes, rounded up; `used_nodes` have objects.
    """

    largest_load: int
    used_nodes: int


class ObjectsSolution(Model):
    """The node of every object, and what that costs."""

    nodes: list[Annotated[int, Field(ge=0)]]
    figures: ObjectsFigures


class ObjectsResult(Result[ObjectsLevel, ObjectsSolution, ObjectsInstance]):
    """One mapping of the objects of one instance."""

    problem: Literal["objects"]
    link_load: LinkLoad | None = Field(default=None, description="null if nothing is proven")
    notes: list[str] = Field(
        default_factory=list, description="how the mapping came about, for people"
    )
