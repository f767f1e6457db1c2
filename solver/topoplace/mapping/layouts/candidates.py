"""The layouts of a grid that a machine admits, and their costs."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine import Torus, bisection_bandwidth, bisection_per_node
from topoplace.mapping.graph import VirtualGrid
from topoplace.mapping.layouts.layout import (
    Layout,
    Metrics,
    Path,
    layer_order,
    line_cells,
    metrics_of,
)
from topoplace.snapshot.geometry import Geometry
from topoplace.types import IntArray

# ---- Bytes between the routers of a layout with nothing unusable, without listing the tasks ------


def off_router_bytes(layouts: Sequence[Layout], grid: VirtualGrid) -> list[int]:
    """Return for every layout the bytes of all messages between tasks of different cells."""

    @functools.cache
    def counts(dim: int, step: int, size: int) -> tuple[int, int]:
        """Return the neighbours at a step along a dimension, and those in the same part."""
        length, at = grid.shape[dim], np.arange(grid.shape[dim])
        to = at + step
        if grid.periodic[dim]:
            to %= length
        inside = (to >= 0) & (to < length)
        return int(inside.sum()), int((inside & (at // size == to // size)).sum())

    @functools.cache
    def total(sizes: tuple[int, ...]) -> int:
        between = 0
        for offset, size in grid.offsets:
            pairs = [
                counts(d, step, n) for d, (step, n) in enumerate(zip(offset, sizes, strict=True))
            ]
            between += size * (math.prod(p for p, _ in pairs) - math.prod(s for _, s in pairs))
        return between

    dims = range(grid.num_dims)
    return [
        total(tuple(layout.partitions_of(d, grid.shape[d]) for d in dims)) for layout in layouts
    ]


def ideal_hop_bytes(layout: Layout, grid: VirtualGrid, torus: Torus) -> int:
    """Return the hop-bytes of a layout laid onto adjacent routers, all of them usable.

    Equal to `off_router_bytes` when every logical neighbour is one hop away. Tasks with the same
    step along every single virtual dimension are counted together: counts have an axis per entry of
    `Layout.plane_dims`, and steps, which are per machine dimension, broadcast to them.
    """
    total = 0
    two_way: dict[tuple[int, ...], int] = {}
    for offset, size in grid.offsets:  # those of -v go the same way as those of v, back and forth
        key = max(offset, tuple(-step for step in offset))
        two_way[key] = two_way.get(key, 0) + size
    first, stack, path = layout.plane_dims[0], layout.layer_dim, layout.path
    order = np.asarray(layout.layer_order or [0], dtype=np.int64)
    order = order.reshape([layout.tiles[i] for i in layout.plane_dims])
    for offset, size in two_way.items():
        beside = 1  # positions in the dimension that lies whole on every router
        if layout.whole is not None:
            open_end = offset[layout.whole] != 0 and not grid.periodic[layout.whole]
            beside = grid.shape[layout.whole] - open_end
        alike = []
        laid = [(layout.axes[i], layout.partitions[i], layout.lines[i]) for i in layout.plane_dims]
        if path is not None:  # a tile for each router of a block
            laid.append((path.dim, path.partitions, 1))
        for d, n, line in laid:
            alike.append(_alike_steps(grid.shape[d], grid.periodic[d], n, line, offset[d]))
        change, tile, next_tile, count = (np.ix_(*parts) for parts in zip(*alike, strict=True))
        steps = dict(zip(layout.plane_dims, change, strict=False))
        if path is not None:
            along = path.routers()[next_tile[-1]] - path.routers()[tile[-1]]
            steps = {
                i: path.block[i] * steps.get(i, 0) + along[..., i] for i in range(len(path.block))
            }
        if stack is not None:
            layer, next_layer = order[tile], order[next_tile]
            steps[stack] = next_layer - layer
            if layout.stagger:
                steps[first] = steps[first] + next_layer % 2 - layer % 2
        for dim, step in steps.items():
            hops = np.abs(step)
            if torus.wrap[dim]:
                hops = np.minimum(hops, torus.shape[dim] - hops)
            total += size * beside * int((functools.reduce(np.multiply, count) * hops).sum())
    return total


@functools.lru_cache(maxsize=1 << 14)
def _alike_steps(
    size: int, periodic: bool, partitions: int, logical: int, step: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return cells moved, tiles before and after, and counts of alike steps in one dimension."""
    positions = np.arange(size, dtype=np.int64)
    if not periodic:
        positions = positions[(positions + step >= 0) & (positions + step < size)]
    here, tile = line_cells(positions, partitions, logical)
    there, next_tile = line_cells((positions + step) % size, partitions, logical)
    alike, count = np.unique(np.stack([there - here, tile, next_tile]), axis=1, return_counts=True)
    return alike[0], alike[1], alike[2], count.astype(np.int64)


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
    fourth); a grid of two dimensions may also be folded into layers (IV.E). Where a region has no
    such layout of a grid of three or four dimensions, one dimension goes along a path through
    blocks of routers (`path_layouts`), which no paper describes. Two rules are
    narrower than the text of the paper and needed for its lists:

    - layers are stacked along a shortest dimension of the region (as "because it is the shortest
      dimension" in IV.E), and no supertile is empty;
    - dimensions of the grid that can be exchanged without a change (`alike_dims`) are: 32x32x32
      has one layout of N = 3x4x4, not two.

    Layers are ordered for the `rings` that the region fills, by default none. If `balanced`,
    layouts whose cells differ in size are left out (Enos 2014 IV.F); `stagger` adds the staggered
    variants of folded layouts that fit.
    """
    if grid.num_dims > len(region) + 1:
        expected = (
            f"at most {number_of(len(region) + 1, 'dimension')} on {len(region)} of the machine"
        )
        raise InputError(expected, field="grid", value=grid.shape)
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
    listed = [*direct_layouts(grid, room), *folded_layouts(grid, room, stagger)]
    for layout in listed or path_layouts(grid, room):
        if balanced and not layout.is_balanced(grid.shape):
            continue
        key = (
            tuple(-1 if axis < 0 else alike[axis] for axis in layout.axes),
            None if layout.whole is None else alike[layout.whole],
            layout.logical,
            layout.partitions,
            layout.folds,
            layout.stagger,
            layout.path and (alike[layout.path.dim], layout.path.partitions, layout.path.block),
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
    """The limits of a layout: least and most tasks of a router, nodes, the region."""

    fewest: int
    most: int
    nodes: int
    region: tuple[int, ...]
    rings: tuple[bool, ...]


def direct_layouts(grid: VirtualGrid, room: Room) -> Iterator[Layout]:
    """Yield the layouts that are not folded; a dimension too many lies whole on every router."""
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


def path_layouts(grid: VirtualGrid, room: Room) -> Iterator[Layout]:
    """Yield the layouts of a grid with one dimension along a path through blocks of routers.

    The other dimensions, but one if there are four, lie on dimensions of the machine, where blocks
    take the place of routers: neighbours there are as many hops apart as a block is wide, those on
    the path one. No block could be narrower.
    """
    dims = range(grid.num_dims)
    if not 3 <= grid.num_dims <= len(room.region) + 1 or len(room.region) < 3:
        return
    wholes: Sequence[int | None] = dims[::-1] if grid.num_dims > len(room.region) else [None]
    for whole, along in itertools.product(wholes, dims[::-1]):
        if along == whole:
            continue
        kept = [d for d in dims if d not in (whole, along)]
        inside = 1 if whole is None else grid.shape[whole]
        for places in _placements(len(room.region), len(kept)):
            limits = [(grid.shape[d], room.region[i]) for d, i in zip(kept, places, strict=True)]
            limits.append((grid.shape[along], math.prod(room.region)))
            for cell in _partitions(limits, room, inside):
                *sides, cells = [-(-size // n) for (size, _), n in zip(limits, cell, strict=True)]
                flat = _placed(
                    room, kept, places, sides, cell[:-1], whole, inside, (along, cell[-1])
                )
                widest = [most // n for most, n in zip(room.region, flat.logical, strict=True)]
                for block in _blocks(widest, cells):
                    logical = tuple(n * b for n, b in zip(flat.logical, block, strict=True))
                    yield replace(flat, logical=logical, path=Path(along, cell[-1], block))


def _blocks(widest: Sequence[int], cells: int) -> Iterator[tuple[int, ...]]:
    """Yield the blocks of at least so many routers that could not be narrower anywhere."""
    for block in itertools.product(*(range(1, n + 1) for n in widest)):
        volume = math.prod(block)
        if volume >= cells and all(volume // n * (n - 1) < cells for n in block):
            yield block


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
    path: tuple[int, int] | None = None,
) -> Layout:
    """Return a layout with the virtual dimensions `kept` on the machine dimensions `places`.

    `path` has the dimension of the path, and its partitions.
    """
    axes, logical, partitions = ([fill] * len(room.region) for fill in (-1, 1, 1))
    for d, i, side, n in zip(kept, places, sides, cell, strict=True):
        axes[i], logical[i], partitions[i] = d, side, n
    counts = dict(zip(kept, cell, strict=True))
    if whole is not None:
        counts[whole] = inside
    if path is not None:
        counts |= [path]
    # the one with most partitions, the first of several: so every `splitdim` in Fiedler 2014
    even = [d for d in sorted(counts) if room.nodes > 1 and counts[d] % room.nodes == 0]
    return Layout(
        tuple(axes),
        tuple(logical),
        tuple(partitions),
        math.prod(cell) * inside * (1 if path is None else path[1]),
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
    """Return all choices of a machine dimension for each virtual one, even permutations first.

    Of two that give the same prism Fiedler 2014 prints these.
    """

    def key(places: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        inversions = sum(a > b for a, b in itertools.combinations(places, 2))
        return inversions % 2, places

    return sorted(itertools.permutations(range(num_dims), chosen), key=key)


# ---- Layouts in order of quality, and the geometry request that asks for them --------------------

PartitionKey = tuple[object, ...]


@dataclass(frozen=True)
class RankedLayout:
    """A layout with its quality.

    Bisection bandwidth (in the unit of `Torus.bandwidth`, and per node) and bytes are those of its
    prism with nothing unusable. It is `turned` if the same partitions have a larger bisection
    bandwidth in another orientation; `partition` is their key, the same in every orientation.
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
    between = off_router_bytes(layouts, grid)
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
            sent,
            ideal_hop_bytes(layout, grid, torus),
            width < widest[key],
            key,
        )
        for layout, key, width, sent in zip(layouts, keys, widths, between, strict=True)
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
    """Return the first of all layouts with the same partitions and prism, as Fiedler 2014 does."""
    found: dict[PartitionKey, RankedLayout] = {}
    for entry in ranked:
        found.setdefault((entry.partition, entry.layout.extents), entry)
    return list(found.values())


def geometry_request(ranked: Sequence[RankedLayout], torus: Torus) -> str:
    """Return the request for the first layout's prism and others of as many nodes.

    ``10x5x10:maxz=12/20x5x5:maxz=6/5x5x20:maxz=24``: in order of quality, with room for unusable
    routers along the last dimension. Fiedler 2014 asks for "a few greater than the minimum". Its
    three examples are a fifth more, rounded up. The same is used here, up to the size of the
    machine. Turned prisms are left out unless the first is one. Without layouts it is empty.
    """
    kinds = [(entry.layout.num_nodes, entry.turned) for entry in ranked]
    asked = [e.layout.extents for e, kind in zip(ranked, kinds, strict=True) if kind == kinds[0]]
    shapes = []
    for extents in dict.fromkeys(asked):
        depth = min(extents[-1] + -(-extents[-1] // 5), torus.shape[-1])
        shapes.append(Geometry(extents, depth if depth > extents[-1] else None))
    return "/".join(shape.text for shape in shapes)


def _partition_key(layout: Layout, alike: Sequence[int]) -> PartitionKey:
    """Return what a layout does to the virtual grid, in any orientation on the machine."""
    sides = sorted(
        (alike[layout.axes[i]], layout.partitions[i], layout.tiles[i]) for i in layout.plane_dims
    )
    whole = None if layout.whole is None else alike[layout.whole]
    path = layout.path and (alike[layout.path.dim], layout.path.partitions)
    return (*sides, whole, layout.stagger, path)
