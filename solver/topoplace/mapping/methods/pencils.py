"""Pencil placement with exact selection: the default method for grids."""

from __future__ import annotations

from dataclasses import replace

from topoplace.mapping.pencils.search import search_pencils
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register

DEFAULT_SECONDS = 30.0
"""Time limit where none is given: where no window is nearly free of holes, the search is long."""


@register("mapping", "pencils", "best layout, window and routers of every pencil", needs_grid=True)
def map_pencils(problem: MappingProblem, options: Options) -> Outcome:
    """Return a best pencil placement of all admissible layouts in all windows.

    Raises
    ------
    InputError
        If the grid has no admissible layout, or no window has room for one.
    """
    if options.time_limit is None:
        options = replace(options, time_limit=DEFAULT_SECONDS)
    return search_pencils(problem, options)
