"""Placements at the optimum of the first levels (``topoplace.optima/1``); whether they are all.

What tells placements apart is who starts, or on which prism, or on which nodes; requests that are
equal may exchange their places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from topoplace.result.several import Several, Step
from topoplace.snapshot.schema import Name, Snapshot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from topoplace.result.cubes import CubesResult
    from topoplace.result.hierarchy import HierarchyResult
    from topoplace.result.placement import PlacementResult

OPTIMA_SCHEMA: Literal["topoplace.optima/1"] = "topoplace.optima/1"


class Optima(Several):
    """Placements of a snapshot that are as good as each other, and as any other one."""

    schema_version: Annotated[Literal["topoplace.optima/1"], Field(alias="schema")]
    problem: Literal["placement", "hierarchy", "cubes"]
    instance: Snapshot
    chosen: Annotated[list[Name], Field(min_length=1)] = Field(
        description="the first levels, which count; of the others anything will do"
    )
    distinct: Literal["started", "prisms", "nodes"]
    equal: list[list[Name]] = Field(description="requests that may exchange their places")
    asked: Annotated[int, Field(ge=1)]
    rest: Step | None = Field(description="of all placements but the points")

    def result(self, number: int = 0) -> PlacementResult | HierarchyResult | CubesResult:
        """Return a placement as a result of its own, with the proof that no other one is better.

        It can be checked, shown, drawn, and mapped to as any other.
        """
        from topoplace.report.optima import result_of  # noqa: PLC0415 - only when asked

        found: PlacementResult | HierarchyResult | CubesResult = result_of(self, number)
        return found

    def plot(self, ax: Axes | None = None, *, dark: bool = False) -> Axes:
        """Draw the first placement into `ax`, or into a new figure of pyplot; see `result`."""
        return self.result().plot(ax, dark=dark)

    def __repr__(self) -> str:
        from topoplace.report.optima import summary  # noqa: PLC0415 - only when asked

        return summary(self)

    __str__ = __repr__
