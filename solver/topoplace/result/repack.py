"""Which running jobs move so that others start (``topoplace.result/4``, problem ``repack``)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from topoplace.result.base import Level, Result
from topoplace.result.certificate import Certificate
from topoplace.result.placement import Placement, PlacementLimits
from topoplace.snapshot.schema import Model, Name, RepackInstance


class RepackLevel(Level[int, Certificate]):
    """A level: requests ``started``, what the ``moves`` cost, nodes of the jobs that move."""


class Action(StrEnum):
    """What happens to a job in a step."""

    SUSPEND = "suspend"
    MOVE = "move"
    RESUME = "resume"
    START = "start"


class Step(Model):
    """A step of a plan: steps are carried out one after the other."""

    action: Annotated[Action, Field(strict=False)]
    job: Name


class RepackSolution(Model):
    """The jobs that move and the requests that start, with their places, and the steps.

    All other running jobs stay where they are.
    """

    moves: list[Placement] = Field(description="running jobs that move, by `request`")
    placements: list[Placement] = Field(description="requests that start")
    steps: list[Step]
    suspended: list[Name] = Field(
        description="jobs that are suspended, so that the others move through free space"
    )
    fewest_suspended: bool = Field(description="whether these moves need that many suspended")


class RepackResult(Result[RepackLevel, RepackSolution, RepackInstance]):
    """One solve of one snapshot."""

    problem: Literal["repack"]
    limits: PlacementLimits
