"""What levels cost each other (``topoplace.frontier/1``): their best placements, and the proof.

A point is a placement that no other one known equals or surpasses on all levels traded. A step is
a claim about all placements. Where points and steps leave room for others is an open box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from topoplace.result.base import Kept, Limits
from topoplace.result.certificate import Certificate
from topoplace.result.cubes import CubesSolution
from topoplace.result.hierarchy import HierarchySolution
from topoplace.result.placement import PlacementLimits, Solution
from topoplace.snapshot.schema import Model, Name, Seconds, Snapshot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRONTIER_SCHEMA: Literal["topoplace.frontier/1"] = "topoplace.frontier/1"


class FrontierLevel(Model):
    """A level of the problem."""

    name: Name
    sense: Literal["max", "min"]


class FrontierPoint(Model):
    """A placement, and what it is worth on every level of the problem."""

    values: list[int]
    solution: Solution | HierarchySolution | CubesSolution


class FrontierStep(Model):
    """No placement that is as good as required on the levels before surpasses a bound on one."""

    required: list[int | None] = Field(
        description="one per level before, at least (max) or at most (min) this; null for anything"
    )
    level: Name
    bound: int
    certificate: Certificate


class OpenBox(Model):
    """Where another point may be: between two values on every level traded, these included."""

    worst: list[int | None] = Field(description="null where there is no limit")
    best: list[int | None] = Field(description="null where nothing is proven")


class Frontier(Kept):
    """The trade-off between two or three levels of the placements of a snapshot."""

    schema_version: Annotated[Literal["topoplace.frontier/1"], Field(alias="schema")]
    problem: Literal["placement", "hierarchy", "cubes"]
    method: Name
    levels: list[FrontierLevel] = Field(description="of the problem")
    traded: Annotated[list[Name], Field(min_length=2)]
    complete: bool = Field(description="whether no box is open")
    seconds: Seconds
    limits: Limits | PlacementLimits
    seed: int | None
    versions: dict[str, str]
    points: list[FrontierPoint] = Field(description="the best on the first first")
    steps: list[FrontierStep]
    open: list[OpenBox]
    instance: Snapshot

    def plot(self, ax: Axes | None = None, *, dark: bool = False) -> Axes:
        """Draw the points, and what may be between them, into `ax` or a new figure of pyplot."""
        from topoplace.report.frontier import draw  # noqa: PLC0415 - heavy

        if ax is None:
            import matplotlib.pyplot as plt  # noqa: PLC0415 - heavy

            return draw(self, plt.figure().add_subplot(), dark=dark)
        return draw(self, ax, dark=dark)

    def __repr__(self) -> str:
        from topoplace.report.frontier import summary  # noqa: PLC0415 - only when asked

        return summary(self)

    __str__ = __repr__
