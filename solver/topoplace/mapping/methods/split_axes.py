"""Grids and training jobs on tori: every logical axis over parts of physical axes.

A physical axis of 16 routers may be one of 4 fast ones and one of 4 slow ones, and these may belong
to two logical axes, as with `allow_split_physical_axes` of JAX.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.problem import MappingProblem, spread_over_nodes
from topoplace.snapshot.schema import ParallelismApplication
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray

MOST_PARTS = 5
"""Parts of one logical axis whose orders are all tried."""

MOST_SPLITS = 1 << 20
"""Ways to divide a physical axis, and to divide all of them."""


class Axis(NamedTuple):
    """A logical axis: its tasks, who talks along it, and the bytes of a pair."""

    size: int
    pattern: str
    bytes: int


class Part(NamedTuple):
    """A digit of a physical axis: every `stride`-th of its positions, `size` of them."""

    dim: int
    stride: int
    size: int


class Ring(NamedTuple):
    """A physical axis: its positions, and whether the last one is next to the first."""

    size: int
    closes: bool
    step: int
    """Hops from one position to the next: none between the places of a router."""


@register("mapping", "split-axes")
def map_split_axes(problem: MappingProblem, options: Options) -> Outcome:
    """Lay logical axes over products of parts of physical axes, at least cost.

    All ways to divide the axes of the torus, the places of a router as one more, are enumerated as
    far as there is time, and for every logical axis all orders of its parts, each forwards or to
    and fro. Diagonal messages are left out of the cost.

    Raises
    ------
    InputError
        If the machine is no torus or mesh, the application no grid or training job, the tasks do
        not fill a box of routers evenly, or there are too many ways.
    """
    axes, (rings, origin) = axes_of(problem), _box(problem)
    best: tuple[int, tuple[tuple[Part, ...], ...]] | None = None
    stop, hit = clock.deadline(options.time_limit), False
    walks = cache(lambda axis, parts: _best_walk(rings, axis, parts))
    for parts in _divisions([axis.size for axis in axes], rings):
        if clock.now() >= stop:
            hit = True
            break
        cost = sum(
            walks(axis, own)[0] * (problem.num_tasks // axis.size)
            for axis, own in zip(axes, parts, strict=True)
        )
        if best is None or cost < best[0]:
            best = cost, parts
    if best is None and hit:
        return outcome_of(None, hit=True)
    if best is None:
        expected = "a grid whose axes are products of parts of the machine's"
        raise InputError(expected, field="application")
    at = np.zeros((problem.num_tasks, len(rings)), dtype=np.int64)
    every = np.unravel_index(np.arange(problem.num_tasks), [axis.size for axis in axes])
    for axis, own, index in zip(axes, best[1], every, strict=True):
        at += walks(axis, own)[1][index]
    routers = (at[:, :-1] + origin) @ np.array(problem.torus.strides)
    return outcome_of(spread_over_nodes(problem, routers), hit=hit)


def axes_of(problem: MappingProblem) -> list[Axis]:
    """Return the logical axes of a grid or training job; `InputError` for other applications."""
    application, grid = problem.instance.application, problem.grid
    if isinstance(application, ParallelismApplication):
        return [
            Axis(own.size, own.pattern, own.bytes * (1 if own.pattern == "ring" else 2))
            for own in application.axes
        ]
    if grid is None:
        raise InputError("a grid or a training job", field="application", found="a graph")
    sums = [
        sum(size for offset, size in grid.offsets if offset[d] and np.count_nonzero(offset) == 1)
        for d in range(grid.num_dims)
    ]
    patterns = ["ring" if wraps else "line" for wraps in grid.periodic]
    return [Axis(*own) for own in zip(grid.shape, patterns, sums, strict=True)]


def _box(problem: MappingProblem) -> tuple[list[Ring], IntArray]:
    """Return the physical axes of the routers to fill, the last one in them, and where they begin.

    `InputError` if these are no box, or the tasks do not fill them evenly.
    """
    torus, usable = problem.torus, np.flatnonzero(problem.capacity)
    at = torus.coordinates[usable]
    low, sizes = at.min(axis=0), at.max(axis=0) - at.min(axis=0) + 1
    each, left = divmod(problem.num_tasks, len(usable))
    if math.prod(sizes.tolist()) > len(usable) or left or each > problem.capacity[usable].min():
        raise InputError("as many tasks on every router of a box", field="nodes")
    rings = [
        Ring(size, wraps and size == whole, 1)
        for size, whole, wraps in zip(sizes.tolist(), torus.shape, torus.wrap, strict=True)
    ]
    return [*rings, Ring(each, False, 0)], low


def _divisions(
    sizes: Sequence[int], rings: Sequence[Ring]
) -> Iterator[tuple[tuple[Part, ...], ...]]:
    """Yield the parts of every logical axis, in all ways to divide the physical ones."""
    options = [list(_of_ring(dim, ring.size, len(sizes))) for dim, ring in enumerate(rings)]
    if math.prod(map(len, options)) > MOST_SPLITS * 64:
        raise InputError("fewer ways to divide the axes", field="application")
    parts: list[list[Part]] = [[] for _ in sizes]

    def divided(dim: int, left: tuple[int, ...]) -> Iterator[tuple[tuple[Part, ...], ...]]:
        if dim == len(rings):
            yield tuple(map(tuple, parts))
            return
        for option in options[dim]:
            rest = list(left)
            for axis, part in option:
                rest[axis] = rest[axis] // part.size if rest[axis] % part.size == 0 else 0
            if all(rest):
                for axis, part in option:
                    parts[axis].append(part)
                yield from divided(dim + 1, tuple(rest))
                for axis, _ in option:
                    parts[axis].pop()

    total = math.prod(ring.size for ring in rings)
    assert total == math.prod(sizes), "the tasks fill the box"
    yield from divided(0, tuple(sizes))


def _of_ring(
    dim: int, size: int, num_axes: int, stride: int = 1, last: int = -1
) -> Iterator[tuple[tuple[int, Part], ...]]:
    """Yield the ways to divide a physical axis into digits, the fast one first, each of an axis.

    Two digits in a row are never of one logical axis: together they are one.
    """
    if size == 1:
        yield ()
        return
    for part in range(2, size + 1):
        if size % part == 0:
            for axis in range(num_axes):
                if axis != last:
                    for rest in _of_ring(dim, size // part, num_axes, stride * part, axis):
                        yield ((axis, Part(dim, stride, part)), *rest)


def _best_walk(rings: Sequence[Ring], axis: Axis, parts: tuple[Part, ...]) -> tuple[int, IntArray]:
    """Return the least cost of a logical axis over its parts, and the positions along it."""
    best: tuple[int, IntArray] | None = None
    orders = itertools.permutations(parts) if len(parts) <= MOST_PARTS else [parts]
    for order in orders:
        for back in itertools.product((False, True), repeat=max(0, len(order) - 1)):
            at = _walk(len(rings), order, back)
            cost = _cost(rings, axis, at)
            if best is None or cost < best[0]:
                best = cost, at
    assert best is not None
    return best


def _walk(num_dims: int, order: Sequence[Part], back: Sequence[bool]) -> IntArray:
    """Return the positions along an axis whose parts are digits, the slowest first.

    A digit that goes to and fro turns round whenever a slower one moves.
    """
    size = math.prod(part.size for part in order)
    index, at = np.arange(size), np.zeros((size, num_dims), dtype=np.int64)
    below = size
    for k, part in enumerate(order):
        slower = index // below
        below //= part.size
        digit = index // below % part.size
        if k and back[k - 1]:
            digit = np.where(slower % 2, part.size - 1 - digit, digit)
        at[:, part.dim] += part.stride * digit
    return at


def _cost(rings: Sequence[Ring], axis: Axis, at: IntArray) -> int:
    """Return the bytes x hops of one line of tasks along an axis."""
    ends = [(at[:-1], at[1:])]
    if axis.pattern == "ring":
        ends.append((at[-1:], at[:1]))
    elif axis.pattern == "all":
        ends = [(at[:-k], at[k:]) for k in range(1, len(at))]
    total = 0
    for one, other in ends:
        apart = np.abs(one - other)
        for dim, ring in enumerate(rings):
            away = np.minimum(apart[:, dim], ring.size - apart[:, dim])
            total += ring.step * int((away if ring.closes else apart[:, dim]).sum())
    return axis.bytes * total
