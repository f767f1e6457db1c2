"""Cubes as a packing of positions, which are distinguished only where that matters.

In the pool, requests fit if their numbers of blocks fit. So a request has one position there, which
uses blocks of the pool by size, and `unpooled` finds the place afterwards. In other cubes every
part is a position, which uses its chips. `Pool` says which cubes need not be distinguished.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from topoplace.machine.cubes import Extents
from topoplace.packing.positions import Form, PositionPacking, Positions, spare_names
from topoplace.placement.cubes.problem import CubesProblem, Placed, Room
from topoplace.snapshot.sets import HostSet
from topoplace.types import BoolArray, IntArray


class Pool:
    """Cubes where requests fit in place if they fit by number (docs/proofs/cubes.md, "Exact").

    Every size of a part has a shape that all requests of that size take, and each of these divides
    the next larger one. So their free blocks are nested: of the largest parts first, as many fit as
    there are blocks. A cube is of the pool if other shapes fit no more often: the chips that parts
    of a size or larger can reach are too few for one more of that size. And all requests may have
    all its free chips: free cubes are all of the pool, or none is.

    Attributes
    ----------
    sizes, chain
        Chips of parts, ascending, and the shape of each; no cube is of the pool without shapes.
    cubes
        Marks the cubes of the pool, shape ``(num_cubes,)``.
    blocks
        By size how many free blocks the pool has, and at the end how many free cubes; empty if
        none are merged.
    blocks_of_cube
        How many of each one free cube is.
    """

    def __init__(self, problem: CubesProblem, *, merges: bool = True) -> None:
        self._problem = problem
        shapes: dict[int, set[Extents]] = {}
        common: dict[int, set[Extents]] = {}
        for request in problem.requests:
            if request.parts:
                own = {*request.parts}
                shapes[request.nodes] = shapes.get(request.nodes, own) | own
                common[request.nodes] = common.get(request.nodes, own) & own
        self.sizes = sorted(shapes)
        chain = _chain([sorted(common[size]) for size in self.sizes])
        self.chain = dict(zip(self.sizes, chain or (), strict=False))
        free = problem.state.free
        whole = np.asarray(free.all(axis=1))
        self.cubes = self._open_to_all(whole) & (merges and chain is not None)
        counts = np.zeros((len(self.sizes), len(free)), dtype=np.int64)
        reached = np.zeros_like(free)
        for idx in reversed(range(len(self.sizes) if self.chain else 0)):
            size = self.sizes[idx]
            for extents in shapes[size]:
                reached |= self._free_parts(extents)[1]
            counts[idx] = self._free_parts(self.chain[size])[0]
            self.cubes &= reached.sum(axis=1) // size == counts[idx]
        self.has_free = bool((whole & self.cubes).any())
        free_there = int((whole & self.cubes).sum())
        self.blocks = [*counts[:, self.cubes].sum(axis=1).tolist(), free_there] * merges
        self.blocks_of_cube = [*counts[:, whole].max(axis=1, initial=0).tolist(), 1]

    def _open_to_all(self, whole: BoolArray) -> BoolArray:
        """Mark the cubes whose free chips all requests may have; free cubes only together."""
        free = self._problem.state.free
        found = np.ones(len(free), dtype=bool)
        for own in {own for request in self._problem.requests for own in request.allowed if own}:
            found &= (own.mask.reshape(free.shape) | ~free).all(axis=1)
        if not found[whole].all():
            found[whole] = False
        return found

    def blocks_of(self, nodes: int) -> list[int]:
        """Return how many blocks of each size a part takes."""
        return [nodes // size if size <= nodes else 0 for size in self.sizes] + [0]

    def _free_parts(self, extents: Extents) -> tuple[IntArray, BoolArray]:
        """Return how many free parts of a shape every cube has, and mark the chips of these."""
        machine, free = self._problem.machine, self._problem.state.free
        reached = np.zeros_like(free)
        num = np.zeros(len(free), dtype=np.int64)
        for origin in machine.origins(extents):
            chips = machine.inside(origin, extents)
            fits = free[:, chips].all(axis=1)
            num += fits
            reached[np.ix_(fits, chips)] = True
        return num, reached


def _chain(choices: Sequence[Sequence[Extents]]) -> list[Extents] | None:
    """Return a choice of shapes each of which divides the next one; None if none does.

    Of several, it is the one whose largest shape comes first, then whose second largest does.
    """
    ends: list[list[Extents]] = []
    for shapes in choices:
        below = ends[-1] if ends else None
        fitting = [e for e in shapes if below is None or any(divides(b, e) for b in below)]
        if not fitting:
            return None
        ends.append(fitting)
    chain: list[Extents] = []
    for shapes in reversed(ends):
        chain.insert(0, next(e for e in shapes if not chain or divides(e, chain[0])))
    return chain


def divides(one: Extents, other: Extents) -> bool:
    """Tell whether extents divide others in every dimension."""
    return all(o % e == 0 for e, o in zip(one, other, strict=True))


_WORK = 3e-4  # seconds of a call, as measured


class CubesPacking(PositionPacking):
    """The queue, and as many spares as there are free cubes: each keeps one free as a whole.

    A spare has value 0 on the first level and 1 on the second. Rows are all chips, and
    the blocks of the pool by size, free cubes at the end.

    Parameters
    ----------
    merges
        Whether there are a pool and spares; without them a position says which chips it takes.
    """

    senses = (1, 1)
    is_small = True

    def __init__(self, problem: CubesProblem, *, merges: bool = True) -> None:
        self.positions = positions = _Positions(problem, Pool(problem, merges=merges))
        num_spares, queue = len(problem.free_cubes) if merges else 0, problem.requests
        names = [request.id for request in queue]
        names += spare_names(names, num_spares)
        worth = np.array([[r.value, 0] for r in queue] + [[0, 1]] * num_spares, dtype=np.int64)
        forms = [
            positions.part(r.parts, r.allowed)
            if r.parts
            else positions.whole(r.num_cubes, r.allowed)
            for r in queue
        ]
        forms += [positions.whole(1)] * num_spares
        worth = worth.reshape(-1, 2)
        super().__init__(names, worth, forms, positions.rows_of, *positions.rows(), len(queue))

    def candidate(self, placed: Placed) -> Positions:
        """Return a request in its place as a candidate."""
        places, q = self.positions.places, placed.request_idx
        own = {places[k]: k for k in self.forms[q].positions.tolist()}
        each = [Placed(0, (cube,), placed.origin, placed.extents) for cube in placed.cubes]
        return Positions(q, tuple(sorted({own[one if one in own else None] for one in each})))

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return _WORK

    def largest(self, level: int) -> int:
        """Return an upper bound on the value of a candidate on a level."""
        return 1 if level else super().largest(level)


# ---- Positions ----------------------------------------------------------------------------------


Allowed = frozenset[HostSet | None]
"""Sets of chips, of one of which a request has all; None for all there are."""


class _Positions:
    """The positions of a problem, numbered in the order in which they are requested.

    Attributes
    ----------
    rows_of, places
        For each position the rows that it uses, each repeated as often as the amount it uses, and
        its place; None in the pool.
    """

    def __init__(self, problem: CubesProblem, pool: Pool) -> None:
        self.problem, self.pool = problem, pool
        self.rows_of: list[IntArray] = []
        self.places: list[Placed | None] = []
        self._forms: dict[object, Form] = {}
        self._parts: dict[Extents, list[int]] = {}
        self._apart = np.flatnonzero(~self.pool.cubes & problem.state.free.any(axis=1)).tolist()

    def rows(self) -> tuple[dict[str, slice], IntArray]:
        """Return the families of rows, and what they hold."""
        chips, blocks = self.problem.state.free.ravel(), self.pool.blocks
        families = {"chips": slice(0, len(chips))}
        if blocks:
            families["blocks"] = slice(len(chips), len(chips) + len(blocks))
        return families, np.array([*chips, *blocks], dtype=np.int64)

    def whole(self, count: int, allowed: Allowed = frozenset((None,))) -> Form:
        """Return where `count` whole cubes may be: all free cubes are in the pool, or none is."""
        if self.pool.has_free:
            return self._form(count, lambda: [self._of_pool(self.pool.blocks_of_cube, count)])
        machine, cubes = self.problem.machine, self.problem.free_cubes.tolist()
        every = self._form(
            0, lambda: [self._add(machine.chips_of(cube), Placed(0, (cube,))) for cube in cubes]
        )
        ways = [
            np.array([self._is_in(k, own) for k in every.positions], dtype=bool) for own in allowed
        ]
        own = Form(every.positions, count, tuple(ways) if len(ways) > 1 and count > 1 else ())
        own = own.among(np.logical_or.reduce(ways))
        return self._forms.setdefault(("cubes", count, allowed), own)

    def part(self, parts: Sequence[Extents], allowed: Allowed) -> Form:
        """Return where a part of some shapes may be, on chips that it may have."""

        def listed() -> list[int]:
            every = self._positions_of(parts)
            return [k for k in every if any(self._is_in(k, own) for own in allowed)]

        return self._form((frozenset(parts), allowed), listed)

    def _is_in(self, position: int, allowed: HostSet | None) -> bool:
        """Return whether all chips of a position are allowed, as those of the pool are."""
        inside = self.places[position] is None or allowed is None
        return inside or bool(allowed is not None and allowed.mask[self.rows_of[position]].all())

    def _form(self, key: object, listed: Callable[[], list[int]]) -> Form:
        if key not in self._forms:
            self._forms[key] = Form(np.array(listed(), dtype=np.int64))
        return self._forms[key]

    def _positions_of(self, parts: Sequence[Extents]) -> list[int]:
        found = []
        for extents in parts:
            if extents not in self._parts:
                self._parts[extents] = self._apart_of(extents)
            found += self._parts[extents]
        nodes = math.prod(parts[0])
        if self.pool.cubes.any():
            in_pool = self._form(
                ("part", nodes), lambda: [self._of_pool(self.pool.blocks_of(nodes))]
            )
            found += in_pool.positions.tolist()
        return found

    def _apart_of(self, extents: Extents) -> list[int]:
        """Return the positions of a shape outside the pool."""
        machine, free, found = self.problem.machine, self.problem.state.free, []
        for origin in machine.origins(extents):
            inside = machine.inside(origin, extents)
            for cube in self._apart:
                if free[cube, inside].all():
                    place = Placed(0, (cube,), origin, extents)
                    found.append(self._add(inside + cube * machine.volume, place))
        return found

    def _of_pool(self, blocks: Sequence[int], times: int = 1) -> int:
        num_chips = self.problem.machine.num_chips
        numbers = np.repeat(np.arange(len(blocks)), np.array(blocks) * times)
        return self._add(num_chips + numbers)

    def _add(self, rows: IntArray, place: Placed | None = None) -> int:
        self.rows_of.append(rows)
        self.places.append(place)
        return len(self.places) - 1


def unpooled(packing: CubesPacking, candidates: Sequence[Positions]) -> list[Placed]:
    """Return where the requests of a packing stand.

    Those on positions of the pool get places there: whole cubes the first free ones, parts, the
    largest first, blocks of the pool's chain in the fullest cube that has one. The last free
    cubes, one for each spare, get no parts.
    """
    positions, problem = packing.positions, packing.positions.problem
    room, placed, pooled, num_spares = Room(problem), [], [], 0
    for candidate in candidates:
        idx, places = candidate.request_idx, [positions.places[k] for k in candidate.positions]
        first = places[0]
        if packing.spares[idx]:
            num_spares += 1
        elif first is None:
            pooled.append(idx)
        else:
            cubes = tuple(cube for place in places if place for cube in place.cubes)
            placed.append(Placed(idx, cubes, first.origin, first.extents))
            room.free.ravel()[problem.chips_of(placed[-1])] = False
    among = positions.pool.cubes.copy()
    requests = problem.requests
    for idx in sorted(pooled, key=lambda idx: (-requests[idx].nodes, idx)):
        if requests[idx].num_cubes:
            found = room.whole(idx)
        else:
            if num_spares:
                among[np.flatnonzero(room.free.all(axis=1))[-num_spares:]] = False
                num_spares = 0
            found = room.part(idx, [positions.pool.chain[requests[idx].nodes]], among, fullest=True)
        assert found is not None, "what fits by number fits in place"
        placed.append(found)
    return sorted(placed, key=lambda one: one.request_idx)
