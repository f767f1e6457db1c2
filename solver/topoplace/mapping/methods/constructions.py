"""Mappings made in one go from the shape of a grid, or of a graph part by part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from topoplace import clock
from topoplace.errors import InputError, number_of
from topoplace.machine import Prism
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import VirtualGrid
from topoplace.mapping.growing import grow_mapping
from topoplace.mapping.halving import halve_mapping
from topoplace.mapping.layouts import rank_layouts
from topoplace.mapping.mapped import Keeper, outcome_of
from topoplace.mapping.objects.search import halved
from topoplace.mapping.pencils.obtaining import layout_of, obtained, tables_of
from topoplace.mapping.pencils.search import layout_model, nodes_of, search_pencils
from topoplace.mapping.pencils.space import (
    WindowTables,
    admissible_layouts,
    deepening,
    no_room,
    window_at,
)
from topoplace.mapping.positions import symmetric
from topoplace.mapping.problem import MappingProblem, spread_over_nodes
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray

# ---- The grid laid over a prism of usable routers, in equal boxes and perhaps folded -------------

INVALID = -1
"""Cost of extents that cannot be used."""

Way = tuple[tuple[int, ...], ...]
"""How a grid lies on a machine: for each virtual dimension the machine dimension that it goes
along, and where it is folded a second one, along which the layers of its folds are stacked."""


@register("mapping", "blocks", needs_grid=True)
def map_blocks(problem: MappingProblem, options: Options) -> Outcome:
    """Cut the grid into equal boxes and lay them over a prism (Bhatele 2008, section 3).

    Every virtual dimension goes along one dimension of the machine, one part per router. Of all
    assignments of dimensions and all prisms of wholly usable routers it takes those of least
    hop-bytes.

    Raises `InputError` if the grid has more dimensions than the machine, or no prism of usable
    routers has room.
    """
    grid, torus = problem.grid, problem.torus
    assert grid is not None
    if grid.num_dims > torus.num_dims:
        expected = (
            f"a grid of at most the machine's {number_of(torus.num_dims, 'dimension')} for "
            "blocks; pencils "
            "map others"
        )
        raise InputError(expected, field="shape", value=list(grid.shape))
    return _on_prism(problem, _block_ways(grid.num_dims, torus.num_dims), "equal blocks of")


@register("mapping", "fold-2d", needs_grid=True)
def map_fold_2d(problem: MappingProblem, options: Options) -> Outcome:
    """Fold a 2D grid onto a prism of usable routers (Bhatele 2008, section 3).

    One dimension of the grid goes along one of the machine; the other is split between the two
    others, its direction reversed from layer to layer so that parts on both sides of a fold are
    one hop apart. Of all foldings and prisms it takes those of least hop-bytes.

    Raises `InputError` if the grid has not two dimensions, the machine fewer than three, or no
    prism of usable routers has room.
    """
    grid, torus = problem.grid, problem.torus
    assert grid is not None
    if grid.num_dims != 2:
        raise InputError("a grid of two dimensions to fold", field="shape", value=list(grid.shape))
    if torus.num_dims < 3:
        raise InputError(
            "a machine of at least three dimensions to fold onto", field="machine", value=torus.text
        )
    return _on_prism(problem, _fold_ways(torus.num_dims), "the folds of")


def _block_ways(grid_dims: int, machine_dims: int) -> list[Way]:
    places = itertools.permutations(range(machine_dims), grid_dims)
    return [tuple((d,) for d in dims) for dims in places]


def _fold_ways(machine_dims: int) -> list[Way]:
    places = list(itertools.permutations(range(machine_dims), 3))
    ways: list[Way] = [((along, layers), (flat,)) for flat, along, layers in places]
    return ways + [((flat,), (along, layers)) for flat, along, layers in places]


def ways_by_extents(problem: MappingProblem) -> Iterator[tuple[Way, IntArray]]:
    """Yield the ways of blocks and of folds, with their hop-bytes in full prisms.

    By the extents less 1, or `INVALID`; a dimension that a way does not use has one entry.
    """
    grid, torus = problem.grid, problem.torus
    assert grid is not None
    ways = _block_ways(grid.num_dims, torus.num_dims)
    if grid.num_dims == 2 and torus.num_dims >= 3:
        ways += _fold_ways(torus.num_dims)
    for way in ways:
        yield way, _costs(problem, way)


def _on_prism(problem: MappingProblem, ways: Sequence[Way], what: str) -> Outcome:
    """Return the grid laid the cheapest way over a prism of wholly usable routers."""
    grid, torus = problem.grid, problem.torus
    assert grid is not None
    found = _cheapest_prism(problem, [_costs(problem, way) for way in ways])
    if found is None:
        raise InputError(
            f"a full prism of usable routers with room for {what} the grid; pencils work around "
            "unusable routers",
            field="nodes",
        )
    cells = cells_on_prism(grid, ways[found[0]], found[1].extents)
    place = (cells + np.asarray(found[1].origin)) % np.asarray(torus.shape)
    return outcome_of(spread_over_nodes(problem, place @ np.asarray(torus.strides)))


def cells_on_prism(
    grid: VirtualGrid, way: Way, extents: tuple[int, ...], reverse: bool = True
) -> IntArray:
    """Return the place of every task in the prism, shape ``(num_tasks, machine dimensions)``.

    Without `reverse` every layer starts again at the same side: the grid is cut into layers,
    which is how the hop counts of Bhatele 2008, Table 4, come out.
    """
    parts = part_of_tasks(grid, [math.prod(extents[d] for d in dims) for dims in way])
    cells = np.zeros((grid.num_tasks, len(extents)), dtype=np.int64)
    for part, (along, *stack) in zip(parts.T, way, strict=True):
        layer, at = np.divmod(part, extents[along])
        turned = reverse & (layer % 2 == 1)
        cells[:, along] = np.where(turned, extents[along] - 1 - at, at)
        for d in stack:
            cells[:, d] = layer
    return cells


def _costs(problem: MappingProblem, way: Way) -> IntArray:
    """Return the hop-bytes on a prism by its extents less 1, or `INVALID`.

    A cut between neighbouring parts takes one hop. In a periodic dimension an even number of
    layers ends above its start, an odd one at the far side.
    """
    grid, torus = problem.grid, problem.torus
    assert grid is not None

    def steps(d: int) -> IntArray:
        """Return 0, 1, ... along an axis of extents."""
        axis = [-1 if e == d else 1 for e in range(torus.num_dims)]
        return np.arange(torus.shape[d], dtype=np.int64).reshape(axis)

    def away(d: int) -> IntArray:
        return np.minimum(steps(d), torus.shape[d] - steps(d)) if torus.wrap[d] else steps(d)

    total, largest, valid = np.zeros(1, np.int64), np.ones(1, np.int64), np.ones(1, bool)
    for n, periodic, price, (along, *stack) in zip(
        grid.shape, grid.periodic, cut_bytes(grid), way, strict=True
    ):
        high, up = (steps(stack[0]) + 1, away(stack[0])) if stack else (np.ones(1, int), 0)
        num_parts = (steps(along) + 1) * high
        hops = num_parts - 1
        if periodic:
            hops = hops + up + high % 2 * away(along)
        total = total + price * hops
        largest = largest * -(-n // num_parts)
        valid = valid & (num_parts <= n)
    room = problem.tasks_per_node * torus.nodes_per_router
    return np.where(valid & (largest <= room), total, INVALID)


def _cheapest_prism(problem: MappingProblem, costs: Sequence[IntArray]) -> tuple[int, Prism] | None:
    """Return the way and the first prism of usable routers of least cost; None if there is none.

    `costs` has one array per way, indexed by the extents less 1 in every machine dimension.
    """
    flat = np.concatenate([cost.ravel() for cost in costs])
    first = np.cumsum([0] + [cost.size for cost in costs])
    valid = np.flatnonzero(flat != INVALID)
    tables = WindowTables(problem.torus, problem.whole_routers, problem.torus.num_dims - 1)
    # if a prism does not fit, larger ones around it do not fit either
    impossible = np.zeros(problem.torus.shape, dtype=bool)
    for entry in valid[np.argsort(flat[valid], kind="stable")].tolist():
        way = int(np.searchsorted(first, entry, side="right")) - 1
        index = np.unravel_index(entry - first[way], costs[way].shape)
        if impossible[index]:
            continue
        extents = tuple(int(i) + 1 for i in index)
        fits = tables.fits(extents, extents[-1])
        if fits.any():
            return way, Prism(problem.torus.coords(int(fits.argmax())), extents)
        impossible[tuple(slice(int(i), None) for i in index)] = True
    return None


# ---- Equal boxes of the grid, on random nodes: keeps neighbours together, ignores the topology ---


def cut_bytes(grid: VirtualGrid) -> list[int]:
    """Return per virtual dimension the bytes that cross one plane between neighbouring tasks."""
    sent = np.zeros(grid.num_dims, dtype=object)
    for offset, size in grid.offsets:
        sides = [
            n - 1 if step and not wraps else n
            for n, wraps, step in zip(grid.shape, grid.periodic, offset, strict=True)
        ]
        for d in np.flatnonzero(offset):
            sent[d] += size * math.prod(sides[:d] + sides[d + 1 :])
    return sent.tolist()


def part_of_tasks(grid: VirtualGrid, counts: Sequence[int]) -> IntArray:
    """Return the part of every task when each dimension is cut into a number of equal parts.

    If a dimension does not divide, some parts have one row more than others (Bhatele 2008, section
    3). Shape ``(num_tasks, num_dims)``.
    """
    parts: IntArray = grid.coordinates() * np.asarray(counts) // np.asarray(grid.shape)
    return parts


@register("mapping", "random-blocks", needs_grid=True)
def map_random_blocks(problem: MappingProblem, options: Options) -> Outcome:
    """Put equal boxes of the grid on random nodes (Bhatele 2008, section 3: "RD").

    The boxes are those with the fewest bytes between them.

    Raises `InputError` if no cut into equal boxes fits the nodes.
    """
    grid = problem.grid
    assert grid is not None
    counts = _fewest_bytes_between(problem)
    parts = part_of_tasks(grid, counts)
    box = np.ravel_multi_index(tuple(parts.T), counts)
    rng = np.random.default_rng(options.seed)
    return outcome_of(rng.choice(problem.nodes, size=math.prod(counts), replace=False)[box])


def _fewest_bytes_between(problem: MappingProblem) -> tuple[int, ...]:
    """Return the parts per dimension of the best cut, one box per node."""
    grid, limit = problem.grid, problem.tasks_per_node
    assert grid is not None
    # more parts than the fewest for a given longest side only add cuts
    choices = [sorted({-(-n // side) for side in range(1, n + 1)}) for n in grid.shape]
    prices = cut_bytes(grid)

    def between(counts: tuple[int, ...]) -> int:
        return sum(
            price * (count - 1 + (wraps and count > 1))
            for price, count, wraps in zip(prices, counts, grid.periodic, strict=True)
        )

    fitting = [
        counts
        for counts in itertools.product(*choices)
        if math.prod(counts) <= len(problem.nodes)
        and math.prod(-(-n // c) for n, c in zip(grid.shape, counts, strict=True)) <= limit
    ]
    if not fitting:
        expected = (
            "a grid that can be cut into at most "
            f"{number_of(len(problem.nodes), 'equal box')} of at most "
            f"{number_of(limit, 'task')}"
        )
        raise InputError(expected, field="shape", value=list(grid.shape))
    return min(fitting, key=between)


# ---- Topaware: the best-ranked layout, and the leftmost usable routers of every pencil -----------


@register("mapping", "topaware", needs_grid=True)
def map_topaware(problem: MappingProblem, options: Options) -> Outcome:
    """Lay the best-ranked layout that fits into the first window it fits (Enos 2014 IV.B).

    Layouts and window depths are those of `search_pencils`; windows are scanned in order of the
    routers they begin at. With the number of a layout this one alone is laid, into the first of
    the shallowest windows (`pencils.obtaining`).

    Raises `InputError` if the grid has no admissible layout, or no window has room for one.
    """
    assert problem.grid is not None
    torus, pencil = problem.torus, problem.torus.num_dims - 1
    if options.layout is not None:
        layout = layout_of(problem, options.layout, options.max_depth)
        there = obtained(problem, layout, tables_of(problem), options.max_depth)
        if isinstance(there, str):
            raise InputError("a layout that there is room for", field="--layout", found=there)
        return outcome_of(there.nodes, there.model)
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
            nodes = nodes_of(problem, layout, pencil, window, window.earliest)
            return outcome_of(nodes, layout_model(layout, pencil, origin, depth))
    raise no_room(problem)


register("mapping", "pencils", needs_grid=True)(search_pencils)


@register("mapping", "greedy")
def map_greedy(problem: MappingProblem, options: Options) -> Outcome:
    """Place task after task, the one with the most bytes to placed ones next (`grow_mapping`)."""
    return outcome_of(spread_over_nodes(problem, grow_mapping(symmetric(problem))))


TRIALS = 4
"""Bisections tried, each with other random matchings."""


@register("mapping", "bisection", takes=("tasks", "objects"))
def map_bisection(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best of some recursive bisections (`halve_mapping`), of objects one by loads."""
    if not problem.of_tasks:
        keeper = Keeper(problem, options)
        keeper.offer_cells(halved(problem, options.seed, keeper.deadline), "bisection")
        return keeper.outcome
    proxy, stop = symmetric(problem), clock.deadline(options.time_limit)
    found: list[IntArray] = []
    for seed in range(options.seed * TRIALS, (options.seed + 1) * TRIALS):
        if not found or clock.now() < stop:
            found.append(spread_over_nodes(problem, halve_mapping(proxy, seed=seed, stop=stop)))
    best = min(found, key=lambda nodes: hop_bytes(problem, nodes))
    return outcome_of(best, hit=clock.now() >= stop)
