"""Topaware: the best-ranked layout, and the leftmost usable routers of every pencil."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.layouts import rank_layouts
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.pencils.leftmost import leftmost_selection
from topoplace.mapping.pencils.origins import WindowTables
from topoplace.mapping.pencils.place import layout_model, nodes_of
from topoplace.mapping.pencils.space import admissible_layouts, deepening, no_room
from topoplace.mapping.pencils.window import window_at
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


@register(
    "mapping", "topaware", "best-ranked layout, leftmost routers of every pencil", needs_grid=True
)
def map_topaware(problem: MappingProblem, options: Options) -> Outcome:
    """Lay the best-ranked layout that fits into the first window it fits (Enos 2014 IV.B).

    Layouts and window depths are those of `search_pencils`; windows are scanned in order of the
    routers they begin at.

    Raises
    ------
    InputError
        If the grid has no admissible layout, or no window has room for one.
    """
    assert problem.grid is not None
    torus, pencil = problem.torus, problem.torus.num_dims - 1
    found = admissible_layouts(problem, options.max_depth)
    ranked = rank_layouts(found, problem.grid, torus, problem.tasks_per_node)
    layouts = [entry.layout for entry in ranked]
    tables = WindowTables(torus, problem.whole_routers, pencil)
    for depths in deepening(layouts, pencil, torus.shape[pencil], options.max_depth):
        for layout, depth in zip(layouts, depths, strict=True):
            begins = np.flatnonzero(tables.fits(layout.extents, depth))
            if not len(begins):
                continue
            origin = torus.coords(int(begins[0]))
            window = window_at(torus, problem.whole_routers, layout.extents, pencil, origin, depth)
            nodes = nodes_of(problem, layout, pencil, window, leftmost_selection(window))
            return outcome_of(nodes, layout_model(layout, pencil, origin, depth))
    raise no_room(problem)
