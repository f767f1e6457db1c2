"""What levels cost each other (``topoplace.frontier/1``): their best placements, and the proof.

A point is a placement that no other one known equals or surpasses on all levels traded. A step is
a claim about all placements. Where points and steps leave room for others is an open box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from topoplace.result.several import Point, Several
from topoplace.snapshot.schema import Model, Name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRONTIER_SCHEMA: Literal["topoplace.frontier/1"] = "topoplace.frontier/1"


class OpenBox(Model):
    """Where another point may be: between two values on every level traded, these included."""

    worst: list[int | None] = Field(description="null where there is no limit")
    best: list[int | None] = Field(description="null where nothing is proven")


class Frontier(Several):
    """The trade-off between two or three levels of the placements of a snapshot."""

    schema_version: Annotated[Literal["topoplace.frontier/1"], Field(alias="schema")]
    traded: Annotated[list[Name], Field(min_length=2)]
    complete: bool = Field(description="whether no box is open")
    points: list[Point] = Field(description="the best on the first first")
    open: list[OpenBox]

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
