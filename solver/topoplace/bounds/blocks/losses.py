"""Least messages that a set of tasks must lose: by layers, on rings, and by projections.

The *loss* of a set along a direction is its weight times the lines touched less the lines
held whole (docs/proofs-mapping.md, "Blocks"). Roots are taken in floating point and rounded
down by more than their error, so every figure is a valid lower bound.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from topoplace.bounds.blocks._kernels import add_layers
from topoplace.bounds.blocks.directions import Direction, Directions
from topoplace.mapping.graph import IntArray

GUARD = 1e-11


def axes_loss(directions: Directions, limit: int) -> IntArray:
    """Return lower bounds on the loss along the axes of 0..limit tasks.

    Rings come first, then the open dimensions as layers of what came before.
    """
    grid, weights = directions.grid, directions.axis_weights
    real = [d for d in range(grid.num_dims) if grid.shape[d] > 1]
    rings = [d for d in real if grid.periodic[d] and weights[d]]
    table = np.zeros(2, dtype=np.int64)
    tasks = 1
    for k, d in enumerate(rings):
        n = grid.shape[d]
        tasks *= n
        open_loss = add_layers(table, weights[d], n, min(n - 1, limit))
        used = [(grid.shape[e], weights[e]) for e in rings[: k + 1]]
        table = _ring_table(used, tasks, open_loss, limit)
    for d in real:
        if d not in rings:
            tasks *= grid.shape[d]
            table = add_layers(table, weights[d], grid.shape[d], min(tasks, limit))
    return table


def _ring_table(
    rings: list[tuple[int, int]], tasks: int, open_loss: IntArray, limit: int
) -> IntArray:
    """Bollobas and Leader 1991 with weights; fewer tasks than layers hold no line whole."""
    sizes = np.arange(min(tasks, limit) + 1, dtype=np.int64)
    lesser = np.minimum(sizes, tasks - sizes)
    least = np.full(len(sizes), np.inf)
    for r in range(1, len(rings) + 1):
        for chosen in itertools.combinations(rings, r):
            ratio = math.prod(w / n for n, w in chosen) * tasks
            least = np.minimum(least, r * (ratio * lesser.astype(float) ** (r - 1)) ** (1 / r))
    table = _up(least)
    table[lesser == 0] = 0
    for few in (sizes, tasks - sizes):
        is_few = few < len(open_loss)
        table[is_few] = np.maximum(table[is_few], open_loss[few[is_few]])
    return table


def diagonals_loss(directions: Directions, limit: int) -> IntArray:
    """Return lower bounds on the loss along all diagonals of 0..limit tasks."""
    total = np.zeros(limit + 1, dtype=np.int64)
    full = sum(n > 1 for n in directions.grid.shape)
    for group in directions.diagonal_groups:
        total += _projected(group, limit, whole=len(group) == full)
    return total


def _projected(group: tuple[Direction, ...], limit: int, *, whole: bool) -> IntArray:
    """Loomis and Whitney 1949 with lower limits on the lines touched.

    A limit may be put in its line's place wherever its price is at least the equal share of
    the lines left free; each such choice bounds the loss, so the largest counts.
    """
    sizes = np.arange(limit + 1, dtype=np.int64)
    lines = {v.vector: -(-sizes // v.length) for v in group}
    floors = sum((v.weight * lines[v.vector] for v in group), np.zeros_like(sizes))
    if not whole:
        return floors
    table = floors
    power = np.maximum(sizes, 1).astype(float) ** (len(group) - 1)
    for r in range(1, len(group) + 1):
        for free in itertools.combinations(group, r):
            fixed = [v for v in group if v not in free]
            product = power * math.prod(v.weight for v in free)
            for v in fixed:
                product /= np.maximum(lines[v.vector], 1)
            share = product ** (1 / r)
            holds = sizes > 0
            value = _up(r * share)
            for v in fixed:
                price = v.weight * lines[v.vector]
                holds &= price >= share * (1 + GUARD)
                value += price
            table = np.where(holds, np.maximum(table, value), table)
    return table


def _up(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> IntArray:
    """Round up what is more than rounding error above an integer."""
    return np.ceil(values * (1 - GUARD)).astype(np.int64)
