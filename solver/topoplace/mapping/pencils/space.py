"""The layouts and window depths that pencil placements are searched over."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.layouts import Layout, enumerate_layouts
from topoplace.mapping.pencils.window import BoolArray
from topoplace.mapping.problem import MappingProblem


def admissible_layouts(problem: MappingProblem, max_depth: int | None = None) -> list[Layout]:
    """Return every layout of the problem's grid that its usable routers might hold.

    Parameters
    ----------
    problem
        The instance; its application is a grid.
    max_depth
        Largest extent along the last dimension.

    Raises
    ------
    InputError
        If there is none.
    """
    assert problem.grid is not None
    torus = problem.torus
    region = usable_extents(problem.whole_routers.reshape(torus.shape), torus.wrap)
    if max_depth is not None:
        region = (*region[:-1], min(region[-1], max_depth))
    layouts: list[Layout] = []
    if min(region):
        layouts = enumerate_layouts(
            problem.grid,
            problem.tasks_per_node,
            torus.nodes_per_router,
            region,
            rings=[w and n == e for w, n, e in zip(torus.wrap, torus.shape, region, strict=True)],
            stagger=True,
        )
    if not layouts:
        raise InputError(
            f"a grid with a layout on {'x'.join(map(str, region))} usable routers of "
            f"{problem.tasks_per_node * torus.nodes_per_router} tasks",
            field="shape",
            value=list(problem.grid.shape),
        )
    return layouts


def usable_extents(whole: BoolArray, wrap: tuple[bool, ...]) -> tuple[int, ...]:
    """Return the largest extents of a window whose every slice holds a usable router.

    Parameters
    ----------
    whole
        Usable routers, of the machine's shape.
    wrap
        Whether each dimension closes to a ring.

    Notes
    -----
    Along the pencils only the slices that hold one are counted, as a window may leave out others.
    """
    extents = []
    for d, wraps in enumerate(wrap):
        some = np.asarray(np.moveaxis(whole, d, 0).reshape(whole.shape[d], -1).any(axis=1))
        extents.append(int(some.sum()) if d == whole.ndim - 1 else _longest_run(some, wraps))
    return tuple(extents)


def _longest_run(some: BoolArray, wraps: bool) -> int:
    gaps = np.flatnonzero(~some)
    if not len(gaps):
        return len(some)
    before, after = (gaps[-1] - len(some), gaps[0] + len(some)) if wraps else (-1, len(some))
    return int(np.diff([before, *gaps, after]).max()) - 1


def deepening(
    layouts: list[Layout], pencil: int, extent: int, max_depth: int | None
) -> Iterator[list[int]]:
    """Yield the window depths to search, one per layout, each list deeper than the one before.

    A deeper window holds the shallower ones of the same origin, so one list is enough unless no
    window of it is feasible. It begins at a fifth more positions than levels, and ends at
    `extent`; with `max_depth` that is the only depth.
    """
    levels = [layout.extents[pencil] for layout in layouts]
    if max_depth is not None:
        yield [max(k, min(extent, max_depth)) for k in levels]
        return
    factor = 1
    while True:
        depths = [min(extent, k + factor * max(1, -(-k // 5))) for k in levels]
        yield depths
        if min(depths) == extent:
            return
        factor *= 2


def no_room(problem: MappingProblem) -> InputError:
    """Return the error for a problem of which no window has room for a layout."""
    return InputError(
        "nodes whose routers have room for a pencil layout of the grid",
        field="nodes",
        value=f"{int(problem.whole_routers.sum())} usable routers",
    )
