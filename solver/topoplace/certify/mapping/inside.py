"""The inside bound psi of a virtual grid, in exact integers (docs/proofs-mapping.md, "Blocks")."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import ROOM, IntArray, require_room, times
from topoplace.certify.mapping.instance import Grid, Vector
from topoplace.certify.mapping.lines import Lines, lines_of
from topoplace.certify.report import RefusedError

MOST_WORK = 4_000_000_000
"""Additions for one dimension of a grid, some 20 seconds: larger certificates are refused."""

Exact = NDArray[Any]
"""Python integers of any size."""


def inside_bound(grid: Grid, limit: int) -> IntArray:
    """Return psi(s), in bytes, for s = 0..limit."""
    lines, unit = lines_of(grid)
    per_task = sum(line.size for line in lines)
    # no loss is above all bytes of the tasks, so that neither are sums of losses along the way
    require_room(2 * unit * per_task * max(limit, math.prod(grid.shape)), "the bytes inside blocks")
    sizes = np.arange(limit + 1, dtype=np.int64)
    psi = per_task * sizes - _axes(grid, lines, limit)
    dims = sum(n > 1 for n in grid.shape)
    for group in _groups([line for line in lines if line.moved > 1 and line.bounded]):
        psi -= _group_loss(group, limit, complete=len(group) == dims)
    psi[:2] = 0
    return times(psi, unit, "the bytes inside blocks")


def _axes(grid: Grid, lines: list[Lines], limit: int) -> IntArray:
    """Return the least loss along the axes: rings first, then layers of open dimensions."""
    size = {line.vector.index(1): line.size for line in lines if line.moved == 1}
    wide = [d for d, n in enumerate(grid.shape) if n > 1]
    rings = [d for d in wide if grid.periodic[d] and d in size]
    least = np.zeros(2, dtype=np.int64)
    for done, d in enumerate(rings, 1):
        part = [(grid.shape[e], size[e]) for e in rings[:done]]
        few = _stacked(least, size[d], grid.shape[d], min(limit, grid.shape[d] - 1))
        least = _closed(part, few, limit)
    tasks = math.prod(grid.shape[d] for d in rings)
    for d in wide:
        if d not in rings:
            tasks *= grid.shape[d]
            least = _stacked(least, size.get(d, 0), grid.shape[d], min(limit, tasks))
    return least


def _stacked(layer: IntArray, size: int, num_layers: int, limit: int) -> IntArray:
    """Return the least loss of sets in layers, none larger than one that pays for all."""
    least: IntArray = np.full(limit + 1, ROOM, dtype=np.int64)
    least[0] = 0
    cheapest = least.copy()
    for widest in range(1, min(len(layer) - 1, limit) + 1):
        if widest * limit > MOST_WORK:
            raise RefusedError(f"more than {MOST_WORK} additions for the tasks inside blocks")
        columns = np.full(-(-(limit + 1) // widest) * widest, ROOM, dtype=np.int64)
        columns[: limit + 1] = cheapest
        stack = columns.reshape(-1, widest)
        steps = times(np.arange(len(stack)), int(layer[widest]), "the loss of layers")[:, None]
        stack = np.minimum.accumulate(stack - steps, axis=0) + steps
        cheapest = np.minimum(stack.ravel()[: limit + 1], ROOM)
        reach = slice(widest, min(limit, widest * num_layers) + 1)
        least[reach] = np.minimum(least[reach], size * widest + cheapest[reach])
        if size * widest >= least.max():
            break
    return least


def _closed(rings: list[tuple[int, int]], few: IntArray, limit: int) -> IntArray:
    """Return the least loss on a torus grid (Bollobas and Leader 1991, with weights)."""
    tasks = math.prod(n for n, _ in rings)
    sets = np.arange(min(tasks, limit) + 1)
    smaller: Exact = np.minimum(sets, tasks - sets).astype(object)
    shares = []
    for count in range(1, len(rings) + 1):
        for chosen in itertools.combinations(rings, count):
            over = math.prod(n for n, _ in chosen)
            under = count**count * tasks * math.prod(w for _, w in chosen)
            shares.append(root_up(under * smaller ** (count - 1), over, count))
    least: IntArray = np.minimum.reduce(shares).astype(np.int64)
    least[smaller == 0] = 0
    without_whole = np.flatnonzero(smaller < len(few))
    known = few[smaller[without_whole].astype(np.int64)]
    least[without_whole] = np.maximum(least[without_whole], known)
    return least


def _groups(lines: list[Lines]) -> list[list[Lines]]:
    """Put each direction into the first group it is linearly independent of."""
    groups: list[list[Lines]] = []
    for line in lines:
        for group in groups:
            vectors = [*(other.vector for other in group), line.vector]
            if _full_rank(vectors):
                group.append(line)
                break
        else:
            groups.append([line])
    return groups


def _full_rank(vectors: list[Vector]) -> bool:
    """Tell whether vectors are independent: some minor of full size is not zero."""
    if len(vectors) > len(vectors[0]):
        return False
    columns = itertools.combinations(range(len(vectors[0])), len(vectors))
    return any(_determinant([[v[c] for c in chosen] for v in vectors]) for chosen in columns)


def _determinant(rows: list[list[int]]) -> int:
    if not rows:
        return 1
    return sum(
        (-1) ** c * entry * _determinant([row[:c] + row[c + 1 :] for row in rows[1:]])
        for c, entry in enumerate(rows[0])
        if entry
    )


def _group_loss(group: list[Lines], limit: int, *, complete: bool) -> IntArray:
    """Return the least loss along independent directions (Loomis and Whitney 1949)."""
    sets: Exact = np.arange(1, limit + 1).astype(object)
    prices: list[Exact] = [line.size * -(-sets // line.longest) for line in group]
    least: Exact = sum(prices, 0 * sets)
    for chosen in itertools.product((False, True), repeat=len(group) if complete else 0):
        free = sum(chosen)
        if not free:
            continue
        # root of every line's price multiplied, the fixed ones taken out
        product = sets ** (len(group) - 1) * math.prod(line.size for line in group)
        out: Exact = np.ones_like(sets)
        for price, is_free in zip(prices, chosen, strict=True):
            out = out if is_free else out * price
        value = root_up(free**free * product, out, free)
        valid = np.ones(len(sets), dtype=bool)
        for price, is_free in zip(prices, chosen, strict=True):
            if not is_free:
                value = value + price
                valid &= (price**free * out >= product).astype(bool)
        least = np.where(valid, np.maximum(least, value), least)
    return np.concatenate([[0], least]).astype(np.int64)


def root_up(numerator: Exact, denominator: Exact | int, power: int) -> Exact:
    """Return the least integers x with ``x ** power * denominator >= numerator``.

    Floating point guesses; integers decide.
    """
    ratio = (numerator / denominator).astype(float)
    x: Exact = np.asarray([int(v) for v in np.floor(ratio ** (1 / power))], dtype=object)
    too_small = (x**power * denominator < numerator).astype(bool)
    while too_small.any():
        x = x + too_small.astype(object) * 1
        too_small = (x**power * denominator < numerator).astype(bool)
    too_large = ((x > 0) & ((x - 1) ** power * denominator >= numerator)).astype(bool)
    while too_large.any():
        x = x - too_large.astype(object) * 1
        too_large = ((x > 0) & ((x - 1) ** power * denominator >= numerator)).astype(bool)
    return x
