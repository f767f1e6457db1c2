"""The result of a placement on a pod of cubes (``topoplace.result/4``, ``"problem": "cubes"``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from topoplace.result.certificate import PackingLevel, PackingResult
from topoplace.snapshot.schema import Coordinate, Model, Name, NodeSet, PrismModel, Snapshot


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
