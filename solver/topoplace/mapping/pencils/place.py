"""From a selection to the node of every task."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.graph import IntArray
from topoplace.mapping.layouts import Layout, cells, node_slots
from topoplace.mapping.pencils.window import PencilWindow
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import LayoutModel


def nodes_of(
    problem: MappingProblem,
    layout: Layout,
    pencil: int,
    window: PencilWindow,
    selection: IntArray,
) -> IntArray:
    """Return the node of every task, given the position of every level of every pencil."""
    assert problem.grid is not None
    at = cells(layout, problem.grid)
    across = [d for d in range(len(layout.extents)) if d != pencil]
    pencils = np.zeros(len(at), dtype=np.int64)
    for d in across:
        pencils = pencils * layout.extents[d] + at[:, d]
    routers = window.routers_of(selection)[pencils, at[:, pencil]]
    return routers * problem.torus.nodes_per_router + node_slots(layout, problem.grid)


def layout_model(layout: Layout, pencil: int, origin: tuple[int, ...], depth: int) -> LayoutModel:
    """Return the layout and its window as results show them."""
    return LayoutModel(
        axes=list(layout.axes),
        logical=list(layout.logical),
        partitions=list(layout.partitions),
        whole=layout.whole,
        folds=list(layout.folds),
        layer_order=list(layout.layer_order),
        stagger=layout.stagger,
        pencil=pencil,
        origin=list(origin),
        depth=depth,
    )
