"""What documents of several placements of one snapshot share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from topoplace.result.base import Kept, Limits
from topoplace.result.certificate import Certificate
from topoplace.result.cubes import CubesSolution
from topoplace.result.hierarchy import HierarchySolution
from topoplace.result.placement import PlacementLimits, Solution
from topoplace.result.repack import RepackSolution
from topoplace.snapshot.schema import DefragmentInstance, Model, Name, Seconds, Snapshot


class NamedLevel(Model):
    """A level of the problem."""

    name: Name
    sense: Literal["max", "min"]


class Point(Model):
    """A placement, and what it is worth on every level of the problem."""

    values: list[int]
    solution: Solution | HierarchySolution | CubesSolution | RepackSolution


class Step(Model):
    """No placement that is as good as required on the levels before surpasses a bound on one."""

    required: list[int | None] = Field(
        description="one per level before, at least (max) or at most (min) this; null for anything"
    )
    level: Name
    bound: int
    certificate: Certificate


class Several(Kept):
    """Several placements of a snapshot, and what is proven of all."""

    problem: Literal["placement", "hierarchy", "cubes", "repack"]
    method: Name
    levels: list[NamedLevel] = Field(description="of the problem")
    complete: bool
    seconds: Seconds
    limits: Limits | PlacementLimits
    seed: int | None
    versions: dict[str, str]
    points: list[Point]
    steps: list[Step]
    instance: Snapshot | DefragmentInstance
