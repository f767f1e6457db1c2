"""Which task is where in a product, and which pairs of tasks are partners there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.mapping.recognition.factors import ALL, LINE, NONE, RING, Factor
from topoplace.types import IntArray

Half = tuple[int, int, int]
"""A line of two: its least bytes, the step from the lowest task to its partner, and its number."""


@dataclass(frozen=True)
class Arrangement:
    """Tasks in an array.

    Attributes
    ----------
    shape, links
        Tasks along every dimension, and how they are linked: ``line``, ``ring``, ``all``, ``none``.
    tasks
        The task of every cell, cells in row-major order.
    """

    shape: tuple[int, ...]
    links: tuple[str, ...]
    tasks: IntArray

    @property
    def num_dims(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_grid(self) -> bool:
        """Whether it is a Cartesian grid."""
        return set(self.links) <= {LINE, RING}

    @cached_property
    def is_row_major(self) -> bool:
        """Whether tasks are numbered row-major, the last dimension fastest."""
        return bool((self.tasks == np.arange(len(self.tasks))).all())

    def pairs(self, dim: int) -> tuple[IntArray, IntArray]:
        """Return the pairs of partners along a dimension, each once, lower cells first."""
        size, link = self.shape[dim], self.links[dim]
        lines = np.moveaxis(self.tasks.reshape(self.shape), dim, 0).reshape(size, -1)
        low, high = _steps(size, link)
        return lines[low].ravel(), lines[high].ravel()

    def diagonal_pairs(self, moves: int) -> tuple[IntArray, IntArray]:
        """Return the neighbours in a grid that differ in `moves` dimensions, each pair once."""
        cells = np.stack(np.unravel_index(np.arange(len(self.tasks)), self.shape), axis=1)
        sizes, rings = np.array(self.shape), np.array([link == RING for link in self.links])
        found: list[tuple[IntArray, IntArray]] = [(self.tasks[:0], self.tasks[:0])]
        for offset in itertools.product((1, 0, -1), repeat=self.num_dims):
            if sum(map(abs, offset)) != moves or next(filter(None, offset)) < 0:
                continue
            to = cells + offset
            inside = ((to == to % sizes) | rings).all(axis=1)
            to = np.ravel_multi_index(tuple((to[inside] % sizes).T), self.shape)
            found.append((self.tasks[inside], self.tasks[to]))
        low, high = (np.concatenate(part) for part in zip(*found, strict=True))
        return low, high


def _steps(size: int, link: str) -> tuple[IntArray, IntArray]:
    """Return the positions of partners in a line, a ring or an all-to-all."""
    places = np.arange(size)
    if link == NONE:
        return places[:0], places[:0]
    if link == ALL:
        low, high = np.triu_indices(size, 1)
        return low.astype(np.int64), high.astype(np.int64)
    return (places[:-1], places[1:]) if link == LINE else (places, (places + 1) % size)


# ---- From factors to arrangements: which lines of two are rings of four, and how dimensions lie --


def arrangements_of(
    factors: Sequence[Factor], tasks: IntArray, least: Sequence[int]
) -> Iterator[Arrangement]:
    """Yield the possible arrangements of factors, where vertices represent these tasks.

    `least` are the least bytes along every factor. A ring of four is two lines of two, and so is a
    grid of 2x2: such lines are left alone, or paired where that makes a row-major numbering, where
    they have the same bytes, or all in order of their bytes. If there are all-to-alls, dimensions
    of two or three tasks count as these.
    """
    if any(factor.link == ALL for factor in factors):
        if all(factor.link == ALL or factor.size <= 3 for factor in factors):
            factors = [Factor(ALL, factor.size, factor.position) for factor in factors]
        yield _laid(factors, tasks)
        return
    first = int(tasks.argmin())
    halves = []
    for d, factor in enumerate(factors):
        if factor.size == 2:
            beside = _lines_through(factors, d, first, tasks)[1 - factor.position[first]]
            halves.append((least[d], int(beside - tasks[first]), d))
    others = [factor for factor in factors if factor.size > 2]
    for pairs in _ways_to_pair(sorted(halves)):
        alone = {d for _, _, d in halves} - {d for pair in pairs for d in pair}
        rings = [_ring_of(factors[a], factors[b]) for a, b in pairs]
        yield _laid([*others, *rings, *(factors[d] for d in sorted(alone))], tasks)


def _ways_to_pair(halves: Sequence[Half]) -> list[tuple[tuple[int, int], ...]]:
    """Return ways to make rings of four of some lines of two, which are in order of their bytes.

    The ways are: no pairs, the lines that are one and three steps away from the first task in a
    row-major numbering, those of the same bytes, and all.
    """
    of_bytes = [[d for _, _, d in own] for _, own in itertools.groupby(halves, lambda h: h[0])]
    ways = {
        (),
        tuple((a, b) for _, step, a in halves for _, wide, b in halves if wide == 3 * step),
        tuple(pair for own in of_bytes for pair in zip(own[::2], own[1::2], strict=False)),
        tuple((a, b) for (_, _, a), (_, _, b) in zip(halves[::2], halves[1::2], strict=False)),
    }
    return sorted(way for way in ways if len({d for pair in way for d in pair}) == 2 * len(way))


def _ring_of(first: Factor, second: Factor) -> Factor:
    """Return two lines of two as a ring of four, whose first step is the first line."""
    turn = first.position + second.position
    return Factor(RING, 4, np.where(second.position > first.position, 3, turn))


def _laid(factors: Sequence[Factor], tasks: IntArray) -> Arrangement:
    """Return the arrangement row-major by task number if possible, else by size, largest first.

    The lowest task comes first if possible; rings start there and go on to the lower partner.
    """
    first = int(tasks.argmin())
    turned = [_turned(factors, d, first, tasks) for d in range(len(factors))]
    strides = [_lines_through(turned, d, first, tasks)[1] for d in range(len(turned))]
    by_number = [turned[d] for d in sorted(range(len(turned)), key=lambda d: -strides[d])]
    laid = _in_order(by_number, tasks)
    if (np.diff(laid.tasks) > 0).all():
        return laid
    return _in_order(sorted(by_number, key=lambda factor: (-factor.size, factor.link)), tasks)


def _in_order(factors: Sequence[Factor], tasks: IntArray) -> Arrangement:
    shape = tuple(factor.size for factor in factors)
    cells = np.ravel_multi_index(tuple(factor.position for factor in factors), shape)
    placed = np.empty(math.prod(shape), dtype=np.int64)
    placed[cells] = tasks
    return Arrangement(shape, tuple(factor.link for factor in factors), placed)


def _lines_through(factors: Sequence[Factor], dim: int, vertex: int, tasks: IntArray) -> IntArray:
    """Return the tasks on the line of a vertex along a dimension, by their position."""
    same = np.ones(len(tasks), dtype=bool)
    for d, factor in enumerate(factors):
        if d != dim:
            same &= factor.position == factor.position[vertex]
    found = np.empty(factors[dim].size, dtype=np.int64)
    found[factors[dim].position[same]] = tasks[same]
    return found


def _turned(factors: Sequence[Factor], dim: int, first: int, tasks: IntArray) -> Factor:
    """Return a factor whose positions begin as near as possible to the first vertex."""
    factor = factors[dim]
    size, at = factor.size, int(factor.position[first])
    line = _lines_through(factors, dim, first, tasks)
    if factor.link == LINE:
        position = size - 1 - factor.position if 2 * at > size - 1 else factor.position
    elif factor.link == RING:
        position = (factor.position - at) % size
        if line[(at + 1) % size] > line[at - 1]:
            position = -position % size
    else:
        rank = np.empty(size, dtype=np.int64)
        rank[np.argsort(line)] = np.arange(size)
        position = rank[factor.position]
    return Factor(factor.link, size, position)


def copies_of(parts: Sequence[Arrangement]) -> Arrangement | None:
    """Return arrangements of one kind as one, whose first dimension is their number; else None."""
    if len({(part.shape, part.links) for part in parts}) > 1:
        return None
    ordered = sorted(parts, key=lambda part: int(part.tasks.min()))
    tasks = np.concatenate([part.tasks for part in ordered])
    return Arrangement((len(parts), *parts[0].shape), (NONE, *parts[0].links), tasks)
