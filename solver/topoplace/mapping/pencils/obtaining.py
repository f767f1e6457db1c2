"""Which layouts some nodes have room for, where, and why not the others (Enos 2014, IV.B and G).

Layouts have numbers: their places in the list of all layouts of a grid, the best first, staggered
ones among them. `topoplace layouts` prints these numbers, `topoplace map --layout` takes one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.mapping.layouts import Layout
from topoplace.mapping.layouts.candidates import RankedLayout, one_per_prism, rank_layouts
from topoplace.mapping.pencils.search import layout_model, nodes_of
from topoplace.mapping.pencils.space import WindowTables, admissible_layouts, window_at
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import LayoutModel
from topoplace.types import IntArray


class Obtained(NamedTuple):
    """Where a layout lies: its window, and the node of every task."""

    model: LayoutModel
    nodes: IntArray


def numbered_layouts(problem: MappingProblem, max_depth: int | None = None) -> list[RankedLayout]:
    """Return all layouts of the problem's grid that its usable routers might hold, best first.

    Raises `InputError` if there is none.
    """
    assert problem.grid is not None
    found = admissible_layouts(problem, max_depth)
    ranked = rank_layouts(found, problem.grid, problem.torus, problem.tasks_per_node)
    return one_per_prism(ranked)


def layout_of(problem: MappingProblem, number: int, max_depth: int | None = None) -> Layout:
    """Return the layout of a number, from 1; `InputError` if there is no such number."""
    ranked = numbered_layouts(problem, max_depth)
    if not 1 <= number <= len(ranked):
        expected = f"the number of a layout, 1 to {len(ranked)}"
        raise InputError(expected, field="--layout", value=number)
    return ranked[number - 1].layout


def tables_of(problem: MappingProblem) -> WindowTables:
    """Return the tables of windows along the last dimension."""
    return WindowTables(problem.torus, problem.whole_routers, problem.torus.num_dims - 1)


def obtained(
    problem: MappingProblem, layout: Layout, tables: WindowTables, max_depth: int | None = None
) -> Obtained | str:
    """Return where a layout lies: in the first of the shallowest windows; or why nowhere.

    Each level of a pencil goes to the first usable router, as Topaware selects them.
    """
    torus, pencil = problem.torus, problem.torus.num_dims - 1
    levels = layout.extents[pencil]
    deepest = min(torus.shape[pencil], max_depth or torus.shape[pencil])
    for depth in range(levels, deepest + 1):
        begins = np.flatnonzero(tables.fits(layout.extents, depth))
        if len(begins):
            origin = torus.coords(int(begins[0]))
            window = window_at(torus, problem.whole_routers, layout.extents, pencil, origin, depth)
            nodes = nodes_of(problem, layout, pencil, window, window.earliest)
            return Obtained(layout_model(layout, pencil, origin, depth), nodes)
    lacking = tables.lacking(layout.extents, deepest)
    pencils = int(np.prod([n for d, n in enumerate(layout.extents) if d != pencil]))
    best = pencils - int(lacking.min(initial=pencils))
    return (
        f"at most {best} of {number_of(pencils, 'pencil')} have "
        f"{number_of(levels, 'usable router')} in a depth of {deepest}"
    )
