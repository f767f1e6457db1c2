"""Tasks in the order of their numbers, of curves, or at random: the baselines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from topoplace.errors import InputError
from topoplace.machine import Prism, Torus
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray, VirtualGrid
from topoplace.mapping.local_search import Guest, guest_arrays
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.positions import fill, positions
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register

# ---- Hilbert's curve in any dimension (Skilling 2004, "Programming the Hilbert curve") -----------


def hilbert_order(coordinates: IntArray) -> IntArray:
    """Return points in the order in which Hilbert's curve visits them.

    Parameters
    ----------
    coordinates
        Not negative, shape ``(num_points, num_dims)``. The curve is that of the smallest cube
        with sides 2^k that holds all points; on a full cube each step is one hop.
    """
    if not coordinates.size:
        return np.arange(len(coordinates))
    bits = int(coordinates.max()).bit_length()
    words = _transposed(coordinates.T.copy(), bits)
    # the index reads bit after bit over all words, the highest first; lexsort's last key leads
    planes = [word >> bit & 1 for bit in range(bits) for word in words[::-1]]
    return np.lexsort(planes) if planes else np.arange(len(coordinates))


def _transposed(words: IntArray, bits: int) -> IntArray:
    """Turn coordinates (one row per dimension) into Hilbert indices in transposed form."""
    num_dims = len(words)
    for bit in range(bits - 1, 0, -1):
        low = (1 << bit) - 1
        for d in range(num_dims):
            inverts = (words[d] >> bit & 1).astype(bool)
            swapped = np.where(inverts, 0, (words[0] ^ words[d]) & low)
            words[0] = np.where(inverts, words[0] ^ low, words[0] ^ swapped)
            words[d] ^= swapped
    for d in range(1, num_dims):
        words[d] ^= words[d - 1]
    turned = np.zeros_like(words[0])
    for bit in range(bits - 1, 0, -1):
        turned ^= np.where(words[-1] >> bit & 1, (1 << bit) - 1, 0)
    words ^= turned
    return words


# ---- Boxes of a virtual grid, prisms of usable routers to put them on, and nodes for their tasks -

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


# ---- A mapping made elsewhere --------------------------------------------------------------------


@register("mapping", "given", "a mapping made elsewhere, only evaluated and bounded")
def given(problem: MappingProblem, options: Options) -> Outcome:
    """Return the mapping that the options start from."""
    if options.start is None:
        raise InputError("a mapping made elsewhere (--mapping)", field="method", value="given")
    return outcome_of(options.start)


# ---- The default (SMP) order: consecutive ranks fill node after node -----------------------------


@register("mapping", "default", "consecutive tasks fill node after node (SMP order)")
def map_default(problem: MappingProblem, options: Options) -> Outcome:
    """Put task i on the usable node number ``i // tasks_per_node`` (Enos 2014 IV.B, "default")."""
    del options
    tasks = np.arange(problem.num_tasks, dtype=np.int64)
    return outcome_of(problem.nodes[tasks // problem.tasks_per_node])


# ---- Round robin: tasks dealt out one by one -----------------------------------------------------


@register("mapping", "round-robin", "tasks dealt out one by one to as many nodes as are needed")
def map_round_robin(problem: MappingProblem, options: Options) -> Outcome:
    """Put task i on node ``i % m`` of the first m nodes, as few as hold all tasks.

    The round robin of Bhatele 2008, section 3, on a node list.
    """
    del options
    needed = -(-problem.num_tasks // problem.tasks_per_node)
    tasks = np.arange(problem.num_tasks, dtype=np.int64)
    return outcome_of(problem.nodes[tasks % needed])


# ---- Cray's ``grid_order``: ranks listed cell by cell, so that a node gets a cell of the grid ----


@register(
    "mapping",
    "grid-order",
    "cells of the grid, in grid order, fill node after node",
    needs_grid=True,
)
def map_grid_order(problem: MappingProblem, options: Options) -> Outcome:
    """Fill the nodes with the tasks in grid order (Fiedler 2014, "Examples: 2D Virtual topology").

    A node gets whole cells only, as many as it has room for, if the nodes suffice for that and a
    cell fits on a node; else the order fills every node to the last place.

    Raises
    ------
    InputError
        If the cell does not fit the grid.
    """
    assert problem.grid is not None
    shape, limit = problem.grid.shape, problem.tasks_per_node
    cell = options.cell or most_cubic_cell(shape, limit)
    order = tasks_in_grid_order(shape, cell, options.column_major)
    volume = math.prod(cell)
    together = limit // volume * volume or limit
    if -(-problem.num_tasks // together) > len(problem.nodes):
        together = limit
    nodes = np.empty(problem.num_tasks, dtype=np.int64)
    nodes[order] = problem.nodes[np.arange(problem.num_tasks) // together]
    return outcome_of(nodes)


def most_cubic_cell(shape: Sequence[int], tasks_per_node: int) -> tuple[int, ...]:
    """Return the cell of at most `tasks_per_node` tasks with the least surface per task.

    Its sides divide those of the grid; ties go to the larger cell.
    """
    sides = [[c for c in range(1, min(n, tasks_per_node) + 1) if n % c == 0] for n in shape]
    cells = (c for c in itertools.product(*sides) if math.prod(c) <= tasks_per_node)
    return min(cells, key=lambda c: (sum(Fraction(1, side) for side in c), -math.prod(c)))


def grid_order(shape: Sequence[int], cell: Sequence[int], column_major: bool = False) -> IntArray:
    """Return the ranks in the order ``grid_order -c cell -g shape`` lists them.

    Row-major (``-R``), ranks, cells and ranks within a cell all go with the last dimension
    fastest; column-major (``-C``), all with the first one fastest. Where the cell does not divide
    the grid, the cells at its end are cut off.

    Raises
    ------
    InputError
        If the cell has another number of dimensions than the grid, or a side outside 1..side of
        the grid.
    """
    if len(cell) != len(shape) or any(not 1 <= c <= n for c, n in zip(cell, shape, strict=False)):
        raise InputError(
            f"{len(shape)} sides from 1 to the grid's, {'x'.join(map(str, shape))}",
            field="cell",
            value="x".join(map(str, cell)),
        )
    if column_major:
        return grid_order(shape[::-1], cell[::-1])
    at = np.indices(shape, dtype=np.int64).reshape(len(shape), -1)
    sides = np.asarray(cell)[:, None]
    # the ranks come row-major, and a stable sort keeps them so inside every cell
    return np.lexsort((at // sides)[::-1])


def tasks_in_grid_order(shape: Sequence[int], cell: Sequence[int], column_major: bool) -> IntArray:
    """Return our (always row-major) task numbers in the order of `grid_order`."""
    ranks = grid_order(shape, cell, column_major)
    if not column_major:
        return ranks
    tasks: IntArray = np.arange(math.prod(shape), dtype=np.int64).reshape(shape).ravel(order="F")
    return tasks[ranks]


# ---- Equal boxes of the grid on random nodes: keeps neighbours together, ignores the topology ----


@register("mapping", "random-blocks", "equal boxes of the grid on random nodes", needs_grid=True)
def map_random_blocks(problem: MappingProblem, options: Options) -> Outcome:
    """Put equal boxes of the grid on random nodes (Bhatele 2008, section 3: "RD").

    The boxes are those with the fewest bytes between them.

    Raises
    ------
    InputError
        If no cut into equal boxes fits the nodes.
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
        raise InputError(
            f"a grid that can be cut into at most {len(problem.nodes)} equal boxes of at most "
            f"{limit} tasks",
            field="shape",
            value=list(grid.shape),
        )
    return min(fitting, key=between)


# ---- Tasks along Hilbert's curve through the machine ---------------------------------------------


@register("mapping", "hilbert", "tasks in the best of three orders along Hilbert's curve")
def map_hilbert(problem: MappingProblem, options: Options) -> Outcome:
    """Fill the usable routers in the order of Hilbert's curve (`hilbert_order`).

    Tasks come in rank order, in reverse Cuthill-McKee order, or by a depth-first search along
    the heaviest messages; the best is kept.
    """
    del options
    usable = np.flatnonzero(problem.capacity)
    curve = usable[hilbert_order(positions(problem.machine)[0][usable])]
    found = (
        spread_over_nodes(problem, fill(problem, tasks, curve)) for tasks in _task_orders(problem)
    )
    return outcome_of(min(found, key=lambda nodes: hop_bytes(problem, nodes)))


def _task_orders(problem: MappingProblem) -> Iterator[IntArray]:
    yield np.arange(problem.num_tasks)
    guest = guest_arrays(problem.graph)
    size = (problem.num_tasks, problem.num_tasks)
    rows = csr_array((np.ones(len(guest.other)), guest.other, guest.first), shape=size)
    yield np.asarray(reverse_cuthill_mckee(rows, symmetric_mode=True), dtype=np.int64)
    yield _depth_first(guest)


def _depth_first(guest: Guest) -> IntArray:
    """Return tasks in the order of a depth-first search that takes heavy messages first."""
    num_tasks = len(guest.first) - 1
    owners = np.repeat(np.arange(num_tasks), np.diff(guest.first))
    # ascending, so that the heaviest partner is pushed last and taken first
    partners = guest.other[np.lexsort((guest.weight, owners))].tolist()
    first = guest.first.tolist()
    seen = [False] * num_tasks
    order = []
    for root in range(num_tasks):
        stack = [root]
        while stack:
            task = stack.pop()
            if not seen[task]:
                seen[task] = True
                order.append(task)
                stack.extend(t for t in partners[first[task] : first[task + 1]] if not seen[t])
    return np.asarray(order, dtype=np.int64)
