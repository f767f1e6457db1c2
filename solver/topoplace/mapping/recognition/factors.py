"""Cartesian products of lines, rings and complete graphs, factored in linear time.

Two edges at a vertex of a product belong to the same factor exactly if their far ends are adjacent
or have no other common neighbour; else they span one square. The edges of one vertex are sorted in
this way, and a breadth-first search from it gives all others their coordinates. The result is
verified edge by edge, so the theory has to find products, not to exclude other graphs. (Imrich and
Klavzar, Product graphs, 2000. A ring of four is a product itself, of two lines of two.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from topoplace.types import BoolArray, IntArray

LINE, RING, ALL, NONE = "line", "ring", "all", "none"
"""How the tasks along a dimension are linked; `NONE` is for copies that exchange nothing."""

MOST_FACTORS = 21
"""More do not fit: each has two tasks at least, and there are 2^21 tasks at most."""

MOST_EDGES_AT_ONE = 1 << 10
"""Vertices with more edges do not start the search."""

MOST_LEVELS = 1 << 14
"""Deeper searches would take too long, unless the graph is a line or a ring."""

MOST_SKELETON_STEPS = 1_500_000
"""Comparisons of neighbourhoods, about two seconds."""

BOXES = frozenset(2**a * 3**b for a in range(5) for b in range(5 - a))
"""Tasks of a full stencil around a task, itself among them, in up to four dimensions."""

_LABELS = 1 << 22


@dataclass(frozen=True)
class Edges:
    """An undirected graph without loops: every edge once, ``low < high``."""

    num: int
    low: IntArray
    high: IntArray

    @property
    def count(self) -> int:
        """Number of edges."""
        return len(self.low)

    @cached_property
    def degree(self) -> IntArray:
        """Edges at every vertex, shape ``(num,)``."""
        return np.bincount(np.concatenate([self.low, self.high]), minlength=self.num)

    @cached_property
    def matrix(self) -> csr_array:
        """The adjacency matrix."""
        ends = np.concatenate([self.low, self.high]), np.concatenate([self.high, self.low])
        return csr_array((np.ones(2 * self.count, dtype=np.int64), ends), (self.num, self.num))

    @property
    def is_complete(self) -> bool:
        """Whether all pairs are edges."""
        return 2 * self.count == self.num * (self.num - 1)

    def neighbours(self, vertex: int) -> IntArray:
        """Return the neighbours of a vertex."""
        first, last = self.matrix.indptr[vertex : vertex + 2]
        return np.sort(self.matrix.indices[first:last]).astype(np.int64)


def parts_of(edges: Edges) -> tuple[int, IntArray]:
    """Return the number of connected components, and that of every vertex."""
    count, label = connected_components(edges.matrix, directed=False)
    return int(count), label.astype(np.int64)


@dataclass(frozen=True)
class Factor:
    """A factor of a product: how its vertices are linked, and the position of every vertex in it.

    Positions of lines and rings count along them; shape ``(num,)``.
    """

    link: str
    size: int
    position: IntArray


def factors_of(edges: Edges) -> list[Factor] | None:
    """Return the factors of a connected product of lines, rings and complete graphs.

    None for other graphs. Rings of four become two lines of two, triangles become rings.
    """
    if edges.num < 2:
        return None
    if edges.is_complete or int(edges.degree.max()) <= 2:
        found = _factor(np.arange(edges.num), edges.num, np.stack([edges.low, edges.high], axis=1))
        return None if found is None else _split(found)
    labels = _labels_of(edges)
    if labels is None or not _tells_apart(labels):
        return None
    factors = []
    for d in range(labels.shape[1]):
        factor = _verified(edges, labels, d)
        if factor is None:
            return None
        factors.append(factor)
    moves = sum((labels[edges.low, d] != labels[edges.high, d]) for d in range(labels.shape[1]))
    return factors if (moves == 1).all() else None


def _tells_apart(labels: IntArray) -> bool:
    """Return whether every combination of labels belongs to one vertex."""
    sizes = tuple((labels.max(axis=0) + 1).tolist())
    if math.prod(sizes) != len(labels):
        return False
    return len(np.unique(np.ravel_multi_index(tuple(labels.T), sizes))) == len(labels)


def _verified(edges: Edges, labels: IntArray, dim: int) -> Factor | None:
    """Return a factor if all its copies have the same edges, and it is of a known kind."""
    ends = np.stack([labels[edges.low, dim], labels[edges.high, dim]], axis=1)
    ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
    size = int(labels[:, dim].max()) + 1
    unique = np.unique(ends, axis=0)
    if len(unique) * (edges.num // size) != len(ends):
        return None
    return _factor(labels[:, dim], size, unique)


def _labels_of(edges: Edges) -> IntArray | None:
    """Return the label of every vertex in every factor, if the graph is a product at all."""
    start = int(edges.degree.argmin())
    near = edges.neighbours(start)
    if len(near) > MOST_EDGES_AT_ONE:
        return None
    rows = edges.matrix[near]
    alone = (rows @ rows.T).toarray() == 1  # their common part is the start
    num_factors, axis = connected_components(rows[:, near].toarray() + alone, directed=False)
    if num_factors > MOST_FACTORS:
        return None
    level = shortest_path(edges.matrix, unweighted=True, indices=start)
    if not np.isfinite(level).all() or level.max() > MOST_LEVELS:
        return None
    return _propagated(edges, level.astype(np.int64), near, axis.astype(np.int64))


def _propagated(edges: Edges, level: IntArray, near: IntArray, axis: IntArray) -> IntArray | None:
    """Return the labels of all vertices, level by level; the start has label 0 in all factors.

    A vertex off the axes has in every factor the label of the neighbour below it that is farthest
    out there; on an axis it is a new one.
    """
    num_factors = int(axis.max()) + 1
    code = np.zeros((edges.num, num_factors), dtype=np.int64)  # distance, then label
    code[near, axis] = _LABELS + 1 + _running(axis)
    used = np.bincount(axis, minlength=num_factors)
    up, down = np.concatenate([edges.high, edges.low]), np.concatenate([edges.low, edges.high])
    below = level[down] == level[up] - 1
    up, down = up[below], down[below]
    order = np.lexsort((up, level[up]))
    up, down = up[order], down[order]
    ends = np.searchsorted(level[up], np.arange(2, int(level.max()) + 2))
    for depth, (first, last) in enumerate(pairwise(ends.tolist()), 2):
        tops, starts = np.unique(up[first:last], return_index=True)
        found = np.maximum.reduceat(code[down[first:last]], starts, axis=0)
        on_axis = np.flatnonzero((found > 0).sum(axis=1) == 1)
        factor = found[on_axis].argmax(axis=1)
        found[on_axis, factor] = depth * _LABELS + 1 + used[factor] + _running(factor)
        used += np.bincount(factor, minlength=num_factors)
        if ((found // _LABELS).sum(axis=1) != depth).any():
            return None
        code[tops] = found
    return code % _LABELS


def _running(kinds: IntArray) -> IntArray:
    """Return how many of the same kind come before every entry."""
    order = np.argsort(kinds, kind="stable")
    found = np.empty(len(kinds), dtype=np.int64)
    found[order] = np.arange(len(kinds)) - np.searchsorted(kinds[order], kinds[order])
    return found


def _factor(labels: IntArray, size: int, pairs: IntArray) -> Factor | None:
    """Return the factor with these edges between labels; None if its kind is unknown."""
    if size > 3 and 2 * len(pairs) == size * (size - 1):
        return Factor(ALL, size, labels)
    degree = np.bincount(pairs.ravel(), minlength=size)
    if len(pairs) not in (size - 1, size) or degree.max() > 2 or degree.min() < 1:
        return None
    link = LINE if len(pairs) == size - 1 else RING
    order = _walked(size, pairs, int(degree.argmin()))
    if order is None:
        return None
    place = np.empty(size, dtype=np.int64)
    place[order] = np.arange(size)
    return Factor(link, size, place[labels])


def _walked(size: int, pairs: IntArray, start: int) -> IntArray | None:
    """Return the vertices of a line or ring in order; None if the walk does not meet all."""
    beside: list[list[int]] = [[] for _ in range(size)]
    for a, b in pairs.tolist():
        beside[a].append(b)
        beside[b].append(a)
    order, before = [start], -1
    while len(order) < size:
        ahead = [other for other in beside[order[-1]] if other != before]
        if not ahead or ahead[0] == start:
            return None
        before = order[-1]
        order.append(ahead[0])
    return np.array(order, dtype=np.int64)


def _split(factor: Factor) -> list[Factor]:
    """Return a ring of four as two lines of two, other factors as they are."""
    if factor.link != RING or factor.size != 4:
        return [factor]
    halves = factor.position // 2, (factor.position + 1) // 2 % 2
    return [Factor(LINE, 2, half) for half in halves]


# ---- Full stencils ------------------------------------------------------------------------------


def along_axes(edges: Edges) -> BoolArray:
    """Return which edges lie along the axes of a grid with a full stencil, of any bytes.

    This is the Cartesian skeleton of Hammack and Imrich (2009) of a strong product. An edge xy is
    left out if some z has more neighbours in common with x than y has, and with y than x has
    (closed neighbourhoods, strict inclusion), or lies strictly between the two. No edge is left out
    if a degree already shows that the graph is not such a grid, or if it is too large.
    """
    degrees = set(np.unique(edges.degree).tolist())
    found = np.zeros(edges.count, dtype=bool)
    if not {degree + 1 for degree in degrees} <= BOXES or min(degrees) < 3:
        return found
    if edges.count * max(degrees) > MOST_SKELETON_STEPS:
        return found
    closed = [1 << vertex for vertex in range(edges.num)]
    for a, b in zip(edges.low.tolist(), edges.high.tolist(), strict=True):
        closed[a] |= 1 << b
        closed[b] |= 1 << a
    near = [own.tolist() for own in np.split(edges.matrix.indices, edges.matrix.indptr[1:-1])]
    ends = zip(edges.low.tolist(), edges.high.tolist(), strict=True)
    for number, (a, b) in enumerate(ends):
        found[number] = not _dispensable(a, b, near, closed)
    return found


def _dispensable(x: int, y: int, near: list[list[int]], closed: list[int]) -> bool:
    around_x, around_y = closed[x], closed[y]
    both = around_x & around_y
    for z in near[x]:
        if z == y or not both >> z & 1:
            continue
        around_z = closed[z]
        with_x = _below(both, around_x & around_z)
        with_y = _below(both, around_y & around_z)
        if (with_x or (_below(around_x, around_z) and _below(around_z, around_y))) and (
            with_y or (_below(around_y, around_z) and _below(around_z, around_x))
        ):
            return True
    return False


def _below(small: int, large: int) -> bool:
    """Return whether a set is part of another one, and not the same."""
    return small & ~large == 0 and small != large
