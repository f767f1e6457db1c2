"""Every admissible layout of a virtual grid in a region (Enos 2014 IV; DESIGN 5)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from topoplace.errors import InputError
from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.layouts.candidates import Room, direct_layouts, folded_layouts
from topoplace.mapping.layouts.layout import Layout


def enumerate_layouts(
    grid: VirtualGrid,
    tasks_per_node: int,
    nodes_per_router: int,
    region: Sequence[int],
    *,
    rings: Sequence[bool] | None = None,
    balanced: bool = False,
    stagger: bool = False,
) -> list[Layout]:
    """Return every admissible layout, without repetition, in order of enumeration.

    Admissible are partitions N per router with 0.75 r c <= product(N) <= r c, for c tasks per
    node and r nodes per router, one N divisible by r if r > 1 (the cell is split along it), and
    logical routers L, the least that hold the grid, within the region. A grid with one dimension
    more than the machine keeps one of them whole on every router (Enos 2014 IV.C, which takes the
    fourth); a grid of two dimensions may also be folded into layers (IV.E). Two rules are
    narrower than the text of the paper and needed for its lists:

    - layers are stacked along a shortest dimension of the region (as "because it is the shortest
      dimension" in IV.E), and no supertile is empty;
    - dimensions of the grid that can be exchanged without a change (`alike_dims`) are: 32x32x32
      has one layout of N = 3x4x4, not two.

    Parameters
    ----------
    grid
        The virtual grid, of at most one dimension more than the region.
    tasks_per_node, nodes_per_router
        c and r.
    region
        Extents of the region in routers.
    rings
        Whether the region fills a ring, per dimension; default nowhere. Layers are ordered for it.
    balanced
        Leave out layouts whose cells differ in size (Enos 2014 IV.F).
    stagger
        Add the staggered variants of folded layouts that fit.

    Raises
    ------
    InputError
        If the grid has too many dimensions, or a number is not positive.
    """
    if grid.num_dims > len(region) + 1:
        raise InputError(
            f"at most {len(region) + 1} dimensions on {len(region)} of the machine",
            field="grid",
            value=grid.shape,
        )
    for field, values in (
        ("tasks_per_node", [tasks_per_node]),
        ("nodes_per_router", [nodes_per_router]),
        ("region", region),
    ):
        if min(values) < 1:
            raise InputError("positive integers", field=field, value=values)
    most = tasks_per_node * nodes_per_router
    room = Room(
        -(-3 * most // 4),
        most,
        nodes_per_router,
        tuple(region),
        tuple(rings) if rings is not None else (False,) * len(region),
    )
    found: dict[tuple[object, ...], Layout] = {}
    alike = alike_dims(grid)
    for layout in itertools.chain(direct_layouts(grid, room), folded_layouts(grid, room, stagger)):
        if balanced and not layout.is_balanced(grid.shape):
            continue
        key = (
            tuple(-1 if axis < 0 else alike[axis] for axis in layout.axes),
            None if layout.whole is None else alike[layout.whole],
            layout.logical,
            layout.partitions,
            layout.folds,
            layout.stagger,
        )
        found.setdefault(key, layout)
    return list(found.values())


def alike_dims(grid: VirtualGrid) -> tuple[int, ...]:
    """Return for every virtual dimension the first one it can be exchanged with.

    Two dimensions are alike if exchanging them gives the same grid and the same messages.
    """
    kinds = dict(grid.offsets)

    def exchangeable(a: int, b: int) -> bool:
        turn = list(range(grid.num_dims))
        turn[a], turn[b] = b, a
        same = (grid.shape[a], grid.periodic[a]) == (grid.shape[b], grid.periodic[b])
        return same and all(
            kinds.get(tuple(offset[k] for k in turn)) == size for offset, size in kinds.items()
        )

    return tuple(next(a for a in range(b + 1) if exchangeable(a, b)) for b in range(grid.num_dims))
