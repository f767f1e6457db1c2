"""Boxes of a virtual grid, prisms of usable routers to put them on, and nodes for their tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism, Torus
from topoplace.mapping.graph import IntArray
from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.problem import MappingProblem

INVALID = -1
"""Cost of extents that cannot be used."""


def cut_bytes(grid: VirtualGrid) -> list[int]:
    """Return per virtual dimension the bytes that cross one plane between neighbouring tasks."""
    return [
        sum(
            size
            * math.prod(
                n - 1 if step and not wraps else n
                for d, (n, wraps, step) in enumerate(
                    zip(grid.shape, grid.periodic, offset, strict=True)
                )
                if d != dim
            )
            for offset, size in grid.offsets
            if offset[dim]
        )
        for dim in range(grid.num_dims)
    ]


def part_of_tasks(grid: VirtualGrid, counts: Sequence[int]) -> IntArray:
    """Return which part every task is in when each dimension is cut into so many equal parts.

    Where a dimension does not divide, some parts have one row more than others (Bhatele 2008,
    section 3). Shape ``(num_tasks, num_dims)``.
    """
    parts: IntArray = grid.coordinates() * np.asarray(counts) // np.asarray(grid.shape)
    return parts


def spread_over_nodes(problem: MappingProblem, routers: IntArray) -> IntArray:
    """Return a node for every task, given its router: each router's tasks evenly on its nodes.

    Parameters
    ----------
    problem
        The instance; no router may get more tasks than its capacity.
    routers
        Router of every task, shape ``(num_tasks,)``.
    """
    num_routers = problem.machine.num_routers
    count = np.bincount(routers, minlength=num_routers)
    assert (count <= problem.capacity).all()
    usable = np.bincount(problem.routers_of(problem.nodes), minlength=num_routers)
    order = np.argsort(routers, kind="stable")
    at = routers[order]
    rank = np.arange(len(at)) - (np.cumsum(count) - count)[at]
    nodes = np.empty(len(at), dtype=np.int64)
    nodes[order] = problem.nodes[(np.cumsum(usable) - usable)[at] + rank * usable[at] // count[at]]
    return nodes


def usable_origins(
    torus: Torus, usable: NDArray[np.bool_], extents: Sequence[int]
) -> NDArray[np.bool_]:
    """Tell for every router whether the prism that starts there has usable routers only.

    `usable` and the result have the shape of the machine.
    """
    fits = usable
    for d, (n, extent, wraps) in enumerate(zip(torus.shape, extents, torus.wrap, strict=True)):
        reached = 1
        while reached < extent:
            step = min(reached, extent - reached)
            fits = fits & np.roll(fits, -step, axis=d)
            reached += step
        if not wraps and extent > 1:
            fits = fits.copy()
            np.moveaxis(fits, d, 0)[n - extent + 1 :] = False
    return fits


def cheapest_prism(problem: MappingProblem, costs: Sequence[IntArray]) -> tuple[int, Prism] | None:
    """Find the cheapest extents for which a prism of wholly usable routers exists.

    Parameters
    ----------
    problem
        The instance.
    costs
        One array per way to use a prism: the cost at index ``extents - 1`` (one index per
        dimension of the machine), or `INVALID`.

    Returns
    -------
    tuple or None
        Index of the way, and the first prism with those extents; None if there is none.
    """
    flat = np.concatenate([cost.ravel() for cost in costs])
    first = np.cumsum([0] + [cost.size for cost in costs])
    valid = np.flatnonzero(flat != INVALID)
    usable = problem.whole_routers.reshape(problem.torus.shape)
    # a prism that contains one that does not fit does not fit either
    impossible = np.zeros(problem.torus.shape, dtype=bool)
    for entry in valid[np.argsort(flat[valid], kind="stable")].tolist():
        way = int(np.searchsorted(first, entry, side="right")) - 1
        index = np.unravel_index(entry - first[way], costs[way].shape)
        if impossible[index]:
            continue
        extents = tuple(int(i) + 1 for i in index)
        fits = usable_origins(problem.torus, usable, extents)
        if fits.any():
            return way, Prism(problem.torus.coords(int(fits.argmax())), extents)
        impossible[tuple(slice(int(i), None) for i in index)] = True
    return None


def cut_hops(torus: Torus, dim: int, periodic: bool, most: int) -> IntArray:
    """Return the hops over all cuts of a row of tasks laid on 1, 2, ... routers of a dimension.

    Entry ``e - 1`` counts e - 1 links between neighbouring parts and, if the row is periodic,
    the way from the last part back to the first; `INVALID` for more than `most` parts.
    """
    n = torus.shape[dim]
    links = np.arange(n, dtype=np.int64)
    back = np.minimum(links, n - links) if torus.wrap[dim] else links
    hops = links + back if periodic else links
    return np.where(links < most, hops, INVALID)
