"""A placement on cubes as a packing: the best candidates at prices, by going through all of them.

Rows are the chips, and blocks of the pool (docs/proofs/cubes.md, "Exact"). Here every candidate is
in its place: one in a cube of the pool pays for its chips and for blocks, one elsewhere for its
chips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from topoplace.certify.cubes.instance import Instance, Request, Shape
from topoplace.certify.packing import Covers, Prices
from topoplace.certify.sets import Hosts
from topoplace.types import BoolArray, IntArray


class Tables:
    """All parts of all shapes of a queue, and the pool.

    Attributes
    ----------
    sizes
        Chips of parts, ascending.
    pool
        Marks the cubes of the pool.
    blocks, of_cube
        Blocks of every size in the pool and in a free cube of it; free cubes at the end.
    merges
        Whether there is a pool.
    """

    def __init__(self, instance: Instance, *, merges: bool = True) -> None:
        self.free, self.whole, self.merges = instance.free, instance.whole, merges
        shapes = {shape for request in instance.queue for shape in request.shapes}
        self.parts = {shape: _parts(instance, shape) for shape in sorted(shapes)}
        self.fits = {
            shape: ~((~self.free).astype(np.int64) @ parts.T).astype(bool)
            for shape, parts in self.parts.items()
        }
        self.sizes = sorted({request.nodes for request in instance.queue if request.shapes})
        chain = _chain(instance, self.sizes)
        most, fitting = self._most(), np.zeros((len(self.sizes), len(self.free)), dtype=np.int64)
        for k, shape in enumerate(chain or ()):
            fitting[k] = self.fits[shape].sum(axis=1)
        self.pool = (most == fitting).all(axis=0) & (merges and chain is not None)
        self.pool &= self._open(instance)
        free_there = self.whole & self.pool
        self.blocks = [*most[:, self.pool].sum(axis=1).tolist(), int(free_there.sum())]
        self.of_cube = [*most[:, free_there].max(axis=1, initial=0).tolist(), 1]

    def _open(self, instance: Instance) -> BoolArray:
        """Mark the cubes whose free chips all requests may have; free cubes all, or none."""
        kept = np.flatnonzero(instance.free.ravel()).tolist()
        found = np.ones(len(self.free), dtype=bool)
        for allowed in {own for one in instance.queue for own in one.allowed if own is not None}:
            barred = [chip for chip in kept if chip not in allowed]
            found[[chip // instance.volume for chip in barred]] = False
        if not found[self.whole].all():
            found[self.whole] = False
        return found

    def allowed(self, chips: Hosts | None) -> BoolArray:
        """Mark the chips that a request may have, shape ``(num_cubes, volume)``."""
        found = np.full(self.free.size, chips is None)
        found[[*(chips or ())]] = True
        return found.reshape(self.free.shape)

    def _most(self) -> IntArray:
        """Return by size and cube how many parts of this size or larger can fit at most.

        One of several times the size counts as that many: each takes as many of the chips that any
        of them can reach.
        """
        found = []
        for size in self.sizes:
            reached = np.zeros_like(self.free)
            for shape, parts in self.parts.items():
                if np.prod(shape) >= size:
                    reached |= (self.fits[shape].astype(np.int64) @ parts).astype(bool)
            found.append(reached.sum(axis=1) // size)
        return np.array(found, dtype=np.int64).reshape(-1, len(self.free))

    def taken(self, nodes: int) -> list[int]:
        """Return how many blocks a part of the pool counts as, by row."""
        return [*(nodes // size for size in self.sizes), 0]


def _parts(instance: Instance, shape: Shape) -> IntArray:
    """Mark the chips of every part of a shape, shape ``(num_parts, volume)``."""
    origins = instance.origins(shape)
    marks = np.zeros((len(origins), instance.volume), dtype=np.int64)
    for k, origin in enumerate(origins):
        marks[k, instance.chips(0, origin, shape)] = 1
    return marks


def _chain(instance: Instance, sizes: Sequence[int]) -> list[Shape] | None:
    """Return a shape by size that all requests of the size take, each dividing the next larger.

    Of several, the one whose largest shape comes first, then whose second largest does.
    """
    taken = [
        frozenset.intersection(*(r.shapes for r in instance.queue if r.nodes == size))
        for size in sizes
    ]

    @cache
    def ends(idx: int, shape: Shape) -> tuple[Shape, ...] | None:
        """Return the first chain of the sizes up to one that ends with a shape."""
        if not idx:
            return (shape,)
        for below in sorted(taken[idx - 1]):
            if not any(e % b for e, b in zip(shape, below, strict=True)):
                before = ends(idx - 1, below)
                if before is not None:
                    return (*before, shape)
        return None

    if not sizes:
        return []
    last = len(sizes) - 1
    found = (ends(last, shape) for shape in sorted(taken[last]))
    chain = next((one for one in found if one is not None), None)
    return None if chain is None else list(chain)


@dataclass(frozen=True)
class CubesOracle:
    """Parts and whole cubes as `certify.packing.CheckingOracle`."""

    requests: tuple[Request, ...]
    tables: Tables

    @property
    def rows(self) -> dict[str, IntArray]:
        """One job per free chip, and the blocks of the pool."""
        found = {"chips": self.tables.free.ravel().astype(np.int64)}
        if self.tables.merges:
            found["blocks"] = np.array(self.tables.blocks, dtype=np.int64)
        return found

    @property
    def coverable(self) -> int:
        """All rows are covered."""
        return sum(map(len, self.rows.values()))

    @cached_property
    def largest(self) -> tuple[int, int]:
        """Limits of a candidate's nodes, and of the cubes that it keeps free."""
        return max((request.value for request in self.requests), default=0), 1

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether a request takes all that another takes: as many cubes, or its shapes."""
        a, b = self.requests[one], self.requests[other]
        inside = all(any(_inside(own, some) for some in a.allowed) for own in b.allowed)
        return a.count == b.count and a.shapes >= b.shapes and inside

    def among(self, chosen: Sequence[tuple[int, int]]) -> CubesOracle:
        """Return an oracle of some requests, each with the places of another."""
        queue = self.requests
        some = (
            replace(own, count=o.count, shapes=o.shapes, allowed=o.allowed)
            for own, o in ((queue[q], queue[other]) for q, other in chosen)
        )
        return replace(self, requests=tuple(some))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return what the cheapest candidates gain."""
        pricing = _Pricing(self.tables, prices)
        found: dict[int, int | None] = {}
        for q, covers in wanted.items():
            request = self.requests[q]
            values = (request.value, int(request.is_spare))
            worth = sum(f * v for f, v in zip(prices.factors, values, strict=False))
            cost = pricing.cheapest(request, covers)
            found[q] = None if cost is None else worth - cost
        return found


def _inside(own: Hosts | None, some: Hosts | None) -> bool:
    """Return whether a set of chips is inside another one."""
    return some is None or (own is not None and some >= own)


class _Pricing:
    """What candidates cost at some prices."""

    def __init__(self, tables: Tables, prices: Prices) -> None:
        self._tables = tables
        num_cubes, self._volume = map(int, tables.free.shape)
        chips = prices.rows.get("chips", np.zeros(tables.free.size, dtype=np.int64))
        self._chips = chips.reshape(num_cubes, -1)
        blocks = prices.rows.get("blocks", np.zeros(len(tables.blocks), dtype=np.int64))
        self._blocks: list[int] = blocks.tolist()
        self._costs: dict[Shape, IntArray] = {}
        self._known: dict[object, int | None] = {}

    def cheapest(self, request: Request, covers: Covers) -> int | None:
        """Return the least cost of the cubes or part of a request; None if covers leave none."""
        key = request.count, request.shapes, request.allowed, covers
        if key not in self._known:
            costs: list[int | None] = []
            for may in map(self._tables.allowed, request.allowed):
                costs += [self._whole(request.count, may, covers)] if request.count else []
                costs += [self._part(shape, may, covers) for shape in request.shapes]
            self._known[key] = min((cost for cost in costs if cost is not None), default=None)
        return self._known[key]

    def _of_pool(self, taken: Sequence[int]) -> int:
        return sum(p * n for p, n in zip(self._blocks, taken, strict=True))

    def _takes(self, row: int, taken: Sequence[int]) -> tuple[int, int] | bool:
        """Return cube and chip of a row, or whether that many blocks of the pool take of it."""
        if row < self._tables.free.size:
            return row // self._volume, row % self._volume
        return taken[row - self._tables.free.size] > 0

    def _part(self, shape: Shape, may: BoolArray, covers: Covers) -> int | None:
        tables, parts = self._tables, self._tables.parts[shape]
        taken = tables.taken(int(np.prod(shape)))
        if shape not in self._costs:
            costs = self._chips @ parts.T
            there = tables.pool & tables.fits[shape].any(axis=1)
            if there.any():
                costs[there] += self._of_pool(taken)
            self._costs[shape] = costs
        allowed = tables.fits[shape] & ~((~may).astype(np.int64) @ parts.T).astype(bool)
        for row, inside in covers.named:
            place = self._takes(row, taken)
            covering = np.zeros_like(allowed)
            if isinstance(place, tuple):
                covering[place[0]] = parts[:, place[1]] > 0
            else:
                covering[tables.pool] = place
            allowed &= covering == inside
        return int(self._costs[shape][allowed].min()) if allowed.any() else None

    def _whole(self, count: int, may: BoolArray, covers: Covers) -> int | None:
        tables = self._tables
        allowed, must = tables.whole & may.all(axis=1), np.zeros_like(tables.whole)
        for row in covers.outside:
            allowed &= ~self._covering_cubes(row)
        for row in covers.inside:
            covering = self._covering_cubes(row) & tables.whole
            if not covering.any():
                return None
            if covering.sum() == 1 and not must[covering].any():
                must |= covering  # a chip's cube; free cubes are all of the pool, or none is
        if (must & ~allowed).any() or must.sum() > count or allowed.sum() < count:
            return None
        costs: list[int] = self._chips.sum(axis=1).tolist()
        in_pool = self._of_pool(tables.of_cube) if (tables.pool & tables.whole).any() else 0
        own = [costs[c] + in_pool * int(tables.pool[c]) for c in np.flatnonzero(must)]
        rest = sorted(
            costs[c] + in_pool * int(tables.pool[c]) for c in np.flatnonzero(allowed & ~must)
        )
        return sum(own) + sum(rest[: count - len(own)])

    def _covering_cubes(self, row: int) -> BoolArray:
        """Mark the cubes that take of a row as a whole."""
        place, marked = self._takes(row, self._tables.of_cube), np.zeros_like(self._tables.whole)
        if isinstance(place, tuple):
            marked[place[0]] = True
        else:
            marked[self._tables.pool] = place
        return marked
