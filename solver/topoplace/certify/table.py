"""Best priced candidates of small machines, from a table of all prisms.

All prisms of the machine are listed once with the routers and links they hold as matrices, so
that a leaf costs one product per price vector. A prism is a product of intervals, and so are its
routers, the links of one dimension and the faces of one dimension: each matrix is a Kronecker
product of small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.covers import Covers
from topoplace.certify.instance import Instance, Wish
from topoplace.certify.leaf import Prices
from topoplace.certify.score import ShapeTables
from topoplace.certify.solution import fits
from topoplace.machine import Prism
from topoplace.snapshot.schema import Communication

IntArray = NDArray[np.int64]


def intervals(n: int, wraps: bool) -> list[tuple[int, int]]:
    """Return every canonical (origin, extent) of one dimension."""
    return [
        (o, e) for e in range(1, n + 1) for o in range(1 if e == n else n if wraps else n - e + 1)
    ]


def table_size(instance: Instance) -> int:
    """Return the number of entries of the matrices of a machine."""
    torus = instance.torus
    size = torus.num_routers * (1 + torus.num_dims)
    for n, wraps in zip(torus.shape, torus.wrap, strict=True):
        size *= len(intervals(n, wraps)) if n < 1000 else n * n // 2
    return size


class TablePricer:
    """Finds best(q) of leaves by going through a table of all prisms.

    Attributes
    ----------
    origins, extents
        Of every prism, shape ``(prisms, num_dims)``.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._tables = ShapeTables(instance)
        torus = instance.torus
        lists = [intervals(n, w) for n, w in zip(torus.shape, torus.wrap, strict=True)]
        grid = np.indices([len(x) for x in lists]).reshape(torus.num_dims, -1)
        pairs = [np.array(x, dtype=np.int64)[i] for x, i in zip(lists, grid, strict=True)]
        self.origins = np.stack([p[:, 0] for p in pairs], axis=1)
        self.extents = np.stack([p[:, 1] for p in pairs], axis=1)
        self._wish_rows: dict[int, IntArray] = {}
        self._lists = lists
        self._members = [self._rows(d, 0, None) for d in range(torus.num_dims)]

    def _rows(self, dim: int, shift: int, lengths: list[int] | None) -> IntArray:
        """Return which positions the intervals of a dimension hold, from `shift` past origins."""
        n = self.instance.torus.shape[dim]
        rows = np.zeros((len(self._lists[dim]), n), dtype=np.int64)
        for i, (o, e) in enumerate(self._lists[dim]):
            length = e if lengths is None else lengths[i]
            rows[i, (o + shift + np.arange(length)) % n] = 1
        return rows

    def _product(self, dim: int | None, rows: IntArray | None) -> IntArray:
        """Return the Kronecker product of the members, one dimension's rows replaced."""
        parts = [rows if d == dim and rows is not None else m for d, m in enumerate(self._members)]
        return reduce(np.kron, parts)

    @cached_property
    def routers(self) -> IntArray:
        """Which routers every prism holds, shape ``(prisms, num_routers)``."""
        return self._product(None, None)

    @cached_property
    def _links(self) -> IntArray:
        """Return which links every prism uses, shape ``(prisms, num_links)``."""
        blocks = []
        for d, pairs in enumerate(self._lists):
            lengths = [self._tables.link_length(d, e) if e > 1 else 0 for _, e in pairs]
            blocks.append(self._product(d, self._rows(d, 0, lengths)))
        return np.concatenate(blocks, axis=1)

    @cached_property
    def _boundary(self) -> IntArray:
        """Return the level-3 links of every prism."""
        torus = self.instance.torus
        free = self.instance.free.astype(np.int64)
        total = np.zeros(len(self.origins), dtype=np.int64)
        for d, (pairs, n, wraps) in enumerate(
            zip(self._lists, torus.shape, torus.wrap, strict=True)
        ):
            faces = np.zeros((len(pairs), n), dtype=np.int64)
            for i, (o, e) in enumerate(pairs):
                for at in (o - 1, o + e):
                    if e < n and (wraps or 0 <= at < n):
                        faces[i, at % n] += 1
            total += self._product(d, faces) @ free
        return total

    @cached_property
    def _scores(self) -> IntArray:
        return self._tables.scores(self.extents)

    @cached_property
    def _counts(self) -> IntArray:
        """Return the usable nodes in every prism, shape ``(num_classes, prisms)``."""
        return self.instance.usable_counts @ self.routers.T

    def candidates(self, wish_idx: int) -> IntArray:
        """Return the rows of a request's candidates."""
        known = self._wish_rows.get(wish_idx)
        if known is None:
            known = self._wish_rows[wish_idx] = self._find(self.instance.wishes[wish_idx])
        return known

    def _find(self, wish: Wish) -> IntArray:
        forbidden = (~self.instance.allowed(wish)).astype(np.int64)
        good = self.routers @ forbidden == 0
        if wish.sharing is not Communication.NONE:
            closed = self.instance.closed(wish.sharing)
            if closed.any():
                good &= self._links @ closed.astype(np.int64) == 0
        if not wish.geometries:
            return np.flatnonzero(good & (self._counts[wish.class_idx] >= wish.nodes))
        rows = []
        for row in np.flatnonzero(good).tolist():
            prism = Prism(tuple(self.origins[row].tolist()), tuple(self.extents[row].tolist()))
            if any(fits(self.instance, wish, geometry, prism) for geometry in wish.geometries):
                rows.append(row)
        return np.array(rows, dtype=np.int64)

    def of(self, instance: Instance) -> TablePricer:
        """Return a table pricer of another instance."""
        return TablePricer(instance)

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return best(q) per request (by queue position), None where it has no candidate."""
        to_value, to_shape, to_boundary = prices.factors
        shared = to_shape * self._scores - self.routers @ prices.routers
        if to_boundary:
            shared -= to_boundary * self._boundary
        strict = None if prices.strict is None else self._links @ prices.strict
        found: dict[int, int | None] = {}
        for idx, covers in wanted.items():
            wish = self.instance.wishes[idx]
            rows = self._that_cover(self.candidates(idx), covers)
            if not len(rows):
                found[idx] = None
                continue
            gains = shared[rows]
            if to_shape:
                idle = self._counts[wish.class_idx][rows] - wish.nodes
                gains -= to_shape * self.instance.snapshot.weights.idle * idle
            if wish.sharing is Communication.STRICT and strict is not None:
                gains -= strict[rows]
            elif wish.sharing is Communication.TOLERANT and wish.id in prices.tolerant:
                gains -= self._links[rows] @ prices.tolerant[wish.id]
            found[idx] = int(gains.max()) + to_value * wish.value
        return found

    def _that_cover(self, rows: IntArray, covers: Covers) -> IntArray:
        held = self.routers[rows]
        good = held[:, sorted(covers.inside)].all(axis=1)
        good &= ~held[:, sorted(covers.outside)].any(axis=1)
        return rows[good]
