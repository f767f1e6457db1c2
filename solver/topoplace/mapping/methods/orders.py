"""Tasks in the order of their numbers, of curves, or at random: the baselines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from topoplace.errors import InputError, number_of
from topoplace.machine.node_orders import nodes_in_order
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import Rows
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.positions import fill, positions
from topoplace.mapping.problem import MappingProblem, spread_over_nodes
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray

# ---- Hilbert's curve in any dimension (Skilling 2004, "Programming the Hilbert curve") -----------


def hilbert_order(coordinates: IntArray) -> IntArray:
    """Return points, their coordinates in rows, in the order in which Hilbert's curve visits them.

    The curve is that of the smallest cube with sides 2^k that holds all points, none of them
    negative; on a full cube each step is one hop.
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


@register("mapping", "given", takes=("tasks", "moves"))
def given(problem: MappingProblem, options: Options) -> Outcome:
    """Return the mapping that the options start from, or that before any moves."""
    start = problem.before if options.start is None else options.start
    if start is None:
        raise InputError("a mapping made elsewhere (--mapping)", field="method", value="given")
    return outcome_of(start)


@register("mapping", "default")
def map_default(problem: MappingProblem, options: Options) -> Outcome:
    """Put task i on the usable node number ``i // tasks_per_node`` (Enos 2014 IV.B, "default")."""
    return outcome_of(
        listed(problem, options)[np.arange(problem.num_tasks) // problem.tasks_per_node]
    )


@register("mapping", "round-robin")
def map_round_robin(problem: MappingProblem, options: Options) -> Outcome:
    """Put task i on node ``i % m`` of the first m nodes, as few as hold all tasks.

    The round robin of Bhatele 2008, section 3, on a node list.
    """
    needed = -(-problem.num_tasks // problem.tasks_per_node)
    tasks = np.arange(problem.num_tasks, dtype=np.int64)
    return outcome_of(listed(problem, options)[tasks % needed])


def listed(problem: MappingProblem, options: Options) -> IntArray:
    """Return the nodes in the order in which they are filled."""
    if options.node_order is None:
        return problem.nodes
    return nodes_in_order(problem.torus, options.node_order, problem.nodes)


# ---- Cray's ``grid_order``: ranks listed cell by cell, so that a node gets a cell of the grid ----


@register(
    "mapping",
    "grid-order",
    needs_grid=True,
)
def map_grid_order(problem: MappingProblem, options: Options) -> Outcome:
    """Fill the nodes with the tasks in grid order (Fiedler 2014, "Examples: 2D Virtual topology").

    A node gets only whole cells, as many as it can hold, if there are enough nodes for that and a
    cell fits on a node; otherwise the order fills every node completely.

    Raises `InputError` if the cell does not fit the grid.
    """
    assert problem.grid is not None
    shape, limit = problem.grid.shape, problem.tasks_per_node
    cell = options.cell or most_cubic_cell(shape, limit)
    order = grid_order(shape, cell, options.column_major)
    if options.column_major:  # our numbers of tasks are always row-major
        order = np.arange(problem.num_tasks).reshape(shape).ravel(order="F")[order]
    volume = math.prod(cell)
    together = limit // volume * volume or limit
    if -(-problem.num_tasks // together) > len(problem.nodes):
        together = limit
    nodes = np.empty(problem.num_tasks, dtype=np.int64)
    nodes[order] = listed(problem, options)[np.arange(problem.num_tasks) // together]
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

    Raises `InputError` if the cell has another number of dimensions than the grid, or a side that
    is not from 1 to the grid's.
    """
    if len(cell) != len(shape) or any(not 1 <= c <= n for c, n in zip(cell, shape, strict=False)):
        expected = (
            f"{number_of(len(shape), 'side')} from 1 to the grid's, {'x'.join(map(str, shape))}"
        )
        raise InputError(expected, field="cell", value="x".join(map(str, cell)))
    if column_major:
        return grid_order(shape[::-1], cell[::-1])
    at = np.indices(shape, dtype=np.int64).reshape(len(shape), -1)
    sides = np.asarray(cell)[:, None]
    # the ranks come row-major, and a stable sort keeps them so inside every cell
    return np.lexsort((at // sides)[::-1])


# ---- Tasks along Hilbert's curve through the machine ---------------------------------------------


@register("mapping", "hilbert")
def map_hilbert(problem: MappingProblem, options: Options) -> Outcome:
    """Fill the usable routers in the order of Hilbert's curve (`hilbert_order`), or of domains.

    Tasks come in rank order, in reverse Cuthill-McKee order, or by a depth-first search along
    the heaviest messages; the best is kept.
    """
    usable = np.flatnonzero(problem.capacity)
    points = positions(problem.machine)[0][usable]
    if problem.machine.levels is not None:
        curve = usable[np.lexsort(points.T[::-1])]  # domain by domain
    else:
        curve = usable[hilbert_order(points)]
    found = (
        spread_over_nodes(problem, fill(problem, tasks, curve)) for tasks in _task_orders(problem)
    )
    return outcome_of(min(found, key=lambda nodes: hop_bytes(problem, nodes)))


def _task_orders(problem: MappingProblem) -> Iterator[IntArray]:
    yield np.arange(problem.num_tasks)
    guest = problem.graph.exchanged
    size = (problem.num_tasks, problem.num_tasks)
    rows = csr_array((np.ones(len(guest.other)), guest.other, guest.first), shape=size)
    yield np.asarray(reverse_cuthill_mckee(rows, symmetric_mode=True), dtype=np.int64)
    yield _depth_first(guest)


def _depth_first(guest: Rows) -> IntArray:
    """Return tasks in the order of a depth-first search that takes heavy messages first."""
    # ascending, so that the heaviest partner is pushed last and taken first
    partners = guest.other[np.lexsort((guest.weight, guest.owner))].tolist()
    first = guest.first.tolist()
    seen = [False] * guest.size
    order = []
    for root in range(guest.size):
        stack = [root]
        while stack:
            task = stack.pop()
            if not seen[task]:
                seen[task] = True
                order.append(task)
                stack.extend(t for t in partners[first[task] : first[task + 1]] if not seen[t])
    return np.asarray(order, dtype=np.int64)
