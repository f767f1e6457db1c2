"""The layouts of a grid that a machine admits, and what they cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import Torus, bisection_bandwidth, bisection_per_node
from topoplace.mapping.graph import VirtualGrid
from topoplace.mapping.layouts.layout import Layout, Metrics, layer_order, line_cells, metrics_of
from topoplace.snapshot.geometry import Geometry
from topoplace.types import IntArray

# ---- Bytes between the routers of a layout with nothing unusable, without listing the tasks ------
# Everything is a sum over positions along single virtual dimensions: messages of one offset that
# move alike in each dimension are counted together.


@dataclass(frozen=True)
class _Moves:
    """Steps along one virtual dimension that are alike, and how many positions make each.

    `change` is the step in cells, before stagger; `tile`, `next_tile` are the supertiles;
    `num_positions` is the sum of `count`.
    """

    change: IntArray
    tile: IntArray
    next_tile: IntArray
    count: IntArray
    num_positions: int


def off_router_bytes(layout: Layout, grid: VirtualGrid) -> int:
    """Return the bytes of all messages between tasks of different cells."""
    total = 0
    for offset, size in _two_way(grid).items():
        moves = _all_moves(layout, grid, offset)
        stay = (m.count[(m.change == 0) & (m.tile == m.next_tile)].sum() for m in moves)
        leave = math.prod(m.num_positions for m in moves) - math.prod(map(int, stay))
        total += size * _beside(layout, grid, offset) * leave
    return total


def ideal_hop_bytes(layout: Layout, grid: VirtualGrid, torus: Torus) -> int:
    """Return the hop-bytes of a layout laid onto adjacent routers, all of them usable.

    Equal to `off_router_bytes` when every logical neighbour is one hop away.
    """
    hops_of = _folded_hops if layout.layer_order else _direct_hops
    return sum(
        size
        * _beside(layout, grid, offset)
        * hops_of(layout, torus, _all_moves(layout, grid, offset))
        for offset, size in _two_way(grid).items()
    )


def _two_way(grid: VirtualGrid) -> dict[tuple[int, ...], int]:
    """Return the bytes per offset, those of -v added to v: both go the same way, back and forth."""
    total: dict[tuple[int, ...], int] = {}
    for offset, size in grid.offsets:
        key = max(offset, tuple(-step for step in offset))
        total[key] = total.get(key, 0) + size
    return total


def _beside(layout: Layout, grid: VirtualGrid, offset: tuple[int, ...]) -> int:
    """Return the positions in the dimension that lies whole on a router, 1 if none does."""
    if layout.whole is None:
        return 1
    ends = offset[layout.whole] != 0 and not grid.periodic[layout.whole]
    return grid.shape[layout.whole] - ends


def _all_moves(layout: Layout, grid: VirtualGrid, offset: tuple[int, ...]) -> list[_Moves]:
    """Return the moves of one offset along every dimension in `Layout.plane_dims`."""
    return [
        _moves(
            grid.shape[layout.axes[i]],
            grid.periodic[layout.axes[i]],
            layout.partitions[i],
            layout.logical[i],
            offset[layout.axes[i]],
        )
        for i in layout.plane_dims
    ]


@lru_cache(maxsize=1 << 14)
def _moves(size: int, periodic: bool, partitions: int, logical: int, step: int) -> _Moves:
    """Return the moves by `step` along one virtual dimension."""
    positions = np.arange(size, dtype=np.int64)
    if not periodic:
        positions = positions[(positions + step >= 0) & (positions + step < size)]
    here, tile = line_cells(positions, partitions, logical)
    there, next_tile = line_cells((positions + step) % size, partitions, logical)
    alike, count = np.unique(np.stack([there - here, tile, next_tile]), axis=1, return_counts=True)
    return _Moves(alike[0], alike[1], alike[2], count.astype(np.int64), len(positions))


def _direct_hops(layout: Layout, torus: Torus, moves: list[_Moves]) -> int:
    """Return the hops of all messages that make one move in each dimension."""
    if not all(m.num_positions for m in moves):
        return 0
    messages = math.prod(m.num_positions for m in moves)
    return sum(
        int(m.count @ _hops(torus, i, m.change)) * (messages // m.num_positions)
        for i, m in zip(layout.plane_dims, moves, strict=True)
    )


def _folded_hops(layout: Layout, torus: Torus, moves: list[_Moves]) -> int:
    """Return the hops of all messages that make one move in each in-plane dimension."""
    (first, second), stack = layout.plane_dims, layout.layer_dim
    assert stack is not None
    a, b = moves
    order = np.asarray(layout.layer_order, dtype=np.int64).reshape(
        layout.tiles[first], layout.tiles[second]
    )
    layer = order[a.tile[:, None], b.tile]
    next_layer = order[a.next_tile[:, None], b.next_tile]
    change = np.broadcast_to(a.change[:, None], layer.shape)
    if layout.stagger:
        change = change + next_layer % 2 - layer % 2
    hops = (
        _hops(torus, first, change)
        + _hops(torus, second, b.change)
        + _hops(torus, stack, next_layer - layer)
    )
    return int(a.count @ hops @ b.count)


def _hops(torus: Torus, dim: int, change: IntArray) -> IntArray:
    """Return the hops of steps along one machine dimension."""
    steps: IntArray = np.abs(change)
    return np.minimum(steps, torus.shape[dim] - steps) if torus.wrap[dim] else steps


# ---- Every admissible layout of a virtual grid in a region (Enos 2014 IV) --------------


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


# ---- The layouts of a virtual grid one by one: direct, one dimension whole, and folded -----------


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


# ---- Layouts in order of quality, and the geometry request that asks for them --------------------

PartitionKey = tuple[object, ...]


@dataclass(frozen=True)
class RankedLayout:
    """A layout with what speaks for it.

    Attributes
    ----------
    layout, metrics
        The layout and its metrics (Fiedler 2014).
    balanced
        Whether all logical routers get the same number of tasks.
    bisection, bisection_per_node
        Bisection bandwidth of the prism needed with nothing unusable, in the unit of
        `Torus.bandwidth`, and its share per node of the prism.
    off_router_bytes
        Bytes between different cells.
    ideal_hop_bytes
        Hop-bytes with nothing unusable.
    turned
        Whether the same partitions have a larger bisection bandwidth in another orientation.
    partition
        Key of the partitions per virtual dimension, the same in every orientation.
    """

    layout: Layout
    metrics: Metrics
    balanced: bool
    bisection: Fraction
    bisection_per_node: Fraction
    off_router_bytes: int
    ideal_hop_bytes: int
    turned: bool
    partition: PartitionKey


def rank_layouts(
    layouts: Sequence[Layout], grid: VirtualGrid, torus: Torus, tasks_per_node: int
) -> list[RankedLayout]:
    """Return the layouts, best first.

    Those in the best orientation of their partitions come before all `turned` ones (Fiedler 2014
    lists 10x5x10 only, not 10x10x5, whose bisection is half as large); then by `qual_metric`,
    bisection bandwidth per node, ideal hop-bytes, and the longer extent on the faster links.
    Layouts that tie keep their order.
    """
    alike = alike_dims(grid)
    keys = [_partition_key(layout, alike) for layout in layouts]
    widths = [bisection_bandwidth(torus, layout.extents) for layout in layouts]
    widest: dict[PartitionKey, Fraction] = {}
    for key, width in zip(keys, widths, strict=True):
        widest[key] = max(width, widest.get(key, width))
    ranked = [
        RankedLayout(
            layout,
            metrics_of(layout, grid, tasks_per_node),
            layout.is_balanced(grid.shape),
            width,
            bisection_per_node(torus, layout.extents),
            off_router_bytes(layout, grid),
            ideal_hop_bytes(layout, grid, torus),
            width < widest[key],
            key,
        )
        for layout, key, width in zip(layouts, keys, widths, strict=True)
    ]
    fast_first = sorted(range(torus.num_dims), key=lambda d: -torus.bandwidth[d])

    def order(entry: RankedLayout) -> tuple[object, ...]:
        return (
            entry.turned,
            -entry.metrics.product,
            -entry.bisection_per_node,
            entry.ideal_hop_bytes,
            [-entry.layout.extents[d] for d in fast_first],
        )

    return sorted(ranked, key=order)


def one_per_prism(ranked: Iterable[RankedLayout]) -> list[RankedLayout]:
    """Return the first of all layouts with the same partitions and the same prism.

    They differ in which virtual dimension lies on which of two equal extents; Fiedler 2014 lists
    one of them.
    """
    found: dict[PartitionKey, RankedLayout] = {}
    for entry in ranked:
        found.setdefault((entry.partition, entry.layout.extents), entry)
    return list(found.values())


def geometry_request(ranked: Sequence[RankedLayout], torus: Torus) -> str:
    """Return the request for the first layout's prism and others of as many nodes.

    ``10x5x10:maxz=12/20x5x5:maxz=6/5x5x20:maxz=24``: in order of quality, with room for unusable
    routers along the last dimension. Fiedler 2014 asks for "a few greater than the minimum"; its
    three examples are a fifth more, rounded up, which is what is asked for here, at most the
    machine. Turned prisms are left out unless the first is one. Empty without layouts.
    """
    shapes: dict[tuple[int, ...], Geometry] = {}
    for entry in ranked:
        extents = entry.layout.extents
        alike = (entry.layout.num_nodes, entry.turned) == (
            ranked[0].layout.num_nodes,
            ranked[0].turned,
        )
        if alike and extents not in shapes:
            depth = min(extents[-1] + -(-extents[-1] // 5), torus.shape[-1])
            shapes[extents] = Geometry(extents, depth if depth > extents[-1] else None)
    return "/".join(shape.text for shape in shapes.values())


def _partition_key(layout: Layout, alike: Sequence[int]) -> PartitionKey:
    """Return what a layout does to the virtual grid, whichever way it lies on the machine."""
    sides = sorted(
        (alike[layout.axes[i]], layout.partitions[i], layout.tiles[i]) for i in layout.plane_dims
    )
    whole = None if layout.whole is None else alike[layout.whole]
    return (*sides, whole, layout.stagger)
