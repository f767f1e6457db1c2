"""The result of a placement on a hierarchy (``topoplace.result/4``, ``"problem": "hierarchy"``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from topoplace.result.certificate import PackingLevel, PackingResult
from topoplace.snapshot.schema import Model, Name, NodeSet, Snapshot


class HierarchyLevel(PackingLevel):
    """A level: ``nodes`` started (max), domains used by level of it, ``stranded`` (min)."""


class Share(Model):
    """So many units on each of some hosts."""

    hosts: NodeSet
    units: Annotated[int, Field(ge=1)]


class PlacedPart(Model):
    """Where a part of a request is; `part` is null if the request has no parts."""

    part: Name | None = None
    shares: Annotated[list[Share], Field(min_length=1)]


class HierarchyPlacement(Model):
    """A request that starts."""

    request: Name
    parts: Annotated[list[PlacedPart], Field(min_length=1)]


class HierarchySolution(Model):
    """Which requests start, and where."""

    placements: list[HierarchyPlacement]


class HierarchyResult(PackingResult[HierarchyLevel, HierarchySolution, Snapshot]):
    """One solve of one snapshot of a hierarchy."""

    problem: Literal["hierarchy"]
