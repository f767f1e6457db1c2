"""Cray's ``grid_order``: ranks listed cell by cell, so that a node gets a cell of the grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


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
