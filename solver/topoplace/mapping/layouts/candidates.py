"""The layouts of a virtual grid one by one: direct, one dimension whole, and folded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.layouts.folds import layer_order
from topoplace.mapping.layouts.layout import Layout


@dataclass(frozen=True)
class Room:
    """What a layout has to fit: tasks of a router at least and at most, nodes, the region."""

    fewest: int
    most: int
    nodes: int
    region: tuple[int, ...]
    rings: tuple[bool, ...]


def direct_layouts(grid: VirtualGrid, room: Room) -> Iterator[Layout]:
    """Yield the layouts that are not folded; one dimension is whole if there is one too many."""
    dims = range(grid.num_dims)
    wholes: Sequence[int | None] = dims[::-1] if grid.num_dims > len(room.region) else [None]
    for whole in wholes:
        kept = [d for d in dims if d != whole]
        inside = 1 if whole is None else grid.shape[whole]
        for places in _placements(len(room.region), len(kept)):
            limits = [(grid.shape[d], room.region[i]) for d, i in zip(kept, places, strict=True)]
            for cell in _partitions(limits, room, inside):
                sides = [-(-size // n) for (size, _), n in zip(limits, cell, strict=True)]
                yield _placed(room, kept, places, sides, cell, whole, inside)


def folded_layouts(grid: VirtualGrid, room: Room, stagger: bool) -> Iterator[Layout]:
    """Yield the layouts of a two-dimensional grid in two or more layers."""
    if grid.num_dims != 2 or len(room.region) < 3:
        return
    depth = min(room.region)
    for places in _placements(len(room.region), 2):
        stacks = [i for i, n in enumerate(room.region) if n == depth and i not in places]
        for tiles in itertools.product(range(1, depth + 1), repeat=2):
            if not (stacks and 1 < math.prod(tiles) <= depth):
                continue
            limits = [
                (-(-size // t), room.region[i])
                for size, t, i in zip(grid.shape, tiles, places, strict=True)
            ]
            for cell in _partitions(limits, room, 1):
                sides = [-(-size // n) for (size, _), n in zip(limits, cell, strict=True)]
                filled = [side * n * (t - 1) for side, n, t in zip(sides, cell, tiles, strict=True)]
                if any(tasks >= size for tasks, size in zip(filled, grid.shape, strict=True)):
                    continue  # the last supertile would be empty
                flat = _placed(room, (0, 1), places, sides, cell, None, 1)
                for stack in stacks:
                    layout = _stacked(grid, room, flat, stack, tiles)
                    yield layout
                    shifted = replace(layout, stagger=True)
                    extents = zip(shifted.extents, room.region, strict=True)
                    if stagger and all(n <= most for n, most in extents):
                        yield shifted


def _partitions(
    limits: Sequence[tuple[int, int]], room: Room, inside: int, chosen: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """Yield the admissible N, given tasks and routers per dimension and the tasks kept whole."""
    so_far = inside * math.prod(chosen)
    if len(chosen) == len(limits):
        shared = room.nodes == 1 or any(n % room.nodes == 0 for n in (inside, *chosen))
        if shared and so_far >= room.fewest and so_far <= room.most:
            yield chosen
        return
    size, extent = limits[len(chosen)]
    for n in range(-(-size // extent), min(size, room.most // so_far) + 1):
        yield from _partitions(limits, room, inside, (*chosen, n))


def _placed(
    room: Room,
    kept: Sequence[int],
    places: Sequence[int],
    sides: Sequence[int],
    cell: Sequence[int],
    whole: int | None,
    inside: int,
) -> Layout:
    """Return a layout with the virtual dimensions `kept` on the machine dimensions `places`.

    Of the dimensions that the nodes share evenly the one with most partitions is split, the
    first of several: so every `splitdim` printed in Fiedler 2014.
    """
    axes, logical, partitions = ([fill] * len(room.region) for fill in (-1, 1, 1))
    for d, i, side, n in zip(kept, places, sides, cell, strict=True):
        axes[i], logical[i], partitions[i] = d, side, n
    counts = dict(zip(kept, cell, strict=True))
    if whole is not None:
        counts[whole] = inside
    even = [d for d in sorted(counts) if room.nodes > 1 and counts[d] % room.nodes == 0]
    return Layout(
        tuple(axes),
        tuple(logical),
        tuple(partitions),
        math.prod(cell) * inside,
        whole,
        nodes_per_router=room.nodes,
        split=max(even, key=lambda d: counts[d], default=None),
    )


def _stacked(
    grid: VirtualGrid, room: Room, flat: Layout, stack: int, tiles: tuple[int, ...]
) -> Layout:
    """Return a flat layout folded into `tiles` per virtual dimension, along dimension `stack`."""
    first, second = (axis for axis in flat.axes if axis >= 0)
    across = [0, 0]  # bytes across all that is cut by one plane normal to a dimension
    for offset, size in grid.offsets:
        moved = [d for d in (0, 1) if offset[d]]
        if len(moved) == 1:
            across[moved[0]] += size * grid.shape[1 - moved[0]] * tiles[moved[0]]
    shared = math.gcd(*across) or 1
    layers = math.prod(tiles)
    order = layer_order(
        (tiles[first], tiles[second]),
        (across[first] // shared, across[second] // shared),
        (grid.periodic[first], grid.periodic[second]),
        room.rings[stack] and layers == room.region[stack],
    )
    return replace(
        flat,
        logical=tuple(layers if i == stack else n for i, n in enumerate(flat.logical)),
        folds=tuple(0 if axis < 0 else tiles[axis] - 1 for axis in flat.axes),
        layer_order=order,
    )


def _placements(num_dims: int, chosen: int) -> list[tuple[int, ...]]:
    """Return all choices of a machine dimension for each of `chosen` virtual dimensions.

    Even permutations come first: of two that give the same prism Fiedler 2014 prints these.
    """

    def key(places: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        inversions = sum(a > b for a, b in itertools.combinations(places, 2))
        return inversions % 2, places

    return sorted(itertools.permutations(range(num_dims), chosen), key=key)
