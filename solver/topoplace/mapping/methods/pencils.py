"""Pencil placement with exact selection: the default method."""

from __future__ import annotations

from topoplace.mapping.outcome import MapOptions, MapOutcome
from topoplace.mapping.pencils.search import search_pencils
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.solve import register


@register("pencils", "best layout, window and routers of every pencil", needs_grid=True)
def map_pencils(problem: MappingProblem, options: MapOptions) -> MapOutcome:
    """Return a best pencil placement of all admissible layouts in all windows.

    Raises
    ------
    InputError
        If the grid has no admissible layout, or no window has room for one.
    """
    return search_pencils(problem, options)
