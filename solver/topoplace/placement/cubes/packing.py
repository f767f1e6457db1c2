"""Cubes as a packing: spots where requests may stand, told apart only where that matters.

In the pool whatever fits by number fits in place: there a request has one spot, which takes of the
blocks of the pool by size, and `unpooled` finds the place afterwards. In other cubes every part is
a spot, which takes of its chips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from topoplace.machine.cubes import Extents
from topoplace.packing.spots import Form, SpotPacking, Spots
from topoplace.placement.cubes.pool import Pool
from topoplace.placement.cubes.problem import CubesProblem, Placed, Room
from topoplace.types import IntArray

_WORK = 3e-4  # seconds of a call, as measured


class CubesPacking(SpotPacking):
    """The queue, and as many spares as there are free cubes: each keeps one free as a whole.

    Spares are worth nothing on the first level and one each on the second. Rows are all chips, and
    the blocks of the pool by size, free cubes at the end.
    """

    senses = (1, 1)
    is_small = True

    def __init__(self, problem: CubesProblem) -> None:
        self.spots = spots = _Spots(problem)
        num_spares, queue = len(problem.free_cubes), problem.requests
        names = [request.id for request in queue]
        names += spare_names(names, num_spares)
        worth = np.array([[r.value, 0] for r in queue] + [[0, 1]] * num_spares, dtype=np.int64)
        forms = [spots.part(r.parts) if r.parts else spots.whole(r.num_cubes) for r in queue]
        forms += [spots.whole(1)] * num_spares
        worth = worth.reshape(-1, 2)
        super().__init__(names, worth, forms, spots.rows_of, *spots.rows(), len(queue))

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return _WORK

    def largest(self, level: int) -> int:
        """Return an upper bound on the value of a candidate on a level."""
        return 1 if level else super().largest(level)


def spare_names(names: Iterable[str], num: int) -> list[str]:
    """Return names of spares that no request has: numbers after as few ``~`` as are needed."""
    mark, taken = "~", list(names)
    while any(name.startswith(mark) for name in taken):
        mark += "~"
    return [f"{mark}{number}" for number in range(num)]


# ---- Spots ---------------------------------------------------------------------------------------


class _Spots:
    """The spots of a problem, numbered as they are asked for.

    Attributes
    ----------
    rows_of, places
        By spot the rows it takes of, as often as it does, and where it is; None in the pool.
    """

    def __init__(self, problem: CubesProblem) -> None:
        self.problem, self.pool = problem, Pool(problem)
        self.rows_of: list[IntArray] = []
        self.places: list[Placed | None] = []
        self._forms: dict[object, Form] = {}
        self._parts: dict[Extents, list[int]] = {}
        self._apart = np.flatnonzero(~self.pool.cubes & problem.state.free.any(axis=1)).tolist()

    def rows(self) -> tuple[dict[str, slice], IntArray]:
        """Return the families of rows, and what they hold."""
        chips, blocks = self.problem.state.free.ravel(), self.pool.blocks
        num, ends = len(chips), len(chips) + len(blocks)
        families = {"chips": slice(0, num), "blocks": slice(num, ends)}
        return families, np.array([*chips, *blocks], dtype=np.int64)

    def whole(self, count: int) -> Form:
        """Return where `count` whole cubes may be: all free cubes are in the pool, or none is."""
        if self.pool.has_free:
            return self._form(count, lambda: [self._of_pool(self.pool.blocks_of_cube, count)])
        machine, cubes = self.problem.machine, self.problem.free_cubes.tolist()
        every = self._form(
            0, lambda: [self._add(machine.chips_of(cube), Placed(0, (cube,))) for cube in cubes]
        )
        return self._forms.setdefault(("cubes", count), Form(every.spots, count))

    def part(self, parts: Sequence[Extents]) -> Form:
        """Return where a part of some shapes may be."""
        return self._form(frozenset(parts), lambda: self._spots_of(parts))

    def _form(self, key: object, listed: Callable[[], list[int]]) -> Form:
        if key not in self._forms:
            self._forms[key] = Form(np.array(listed(), dtype=np.int64))
        return self._forms[key]

    def _spots_of(self, parts: Sequence[Extents]) -> list[int]:
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
            found += in_pool.spots.tolist()
        return found

    def _apart_of(self, extents: Extents) -> list[int]:
        """Return the spots of a shape outside the pool."""
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


def unpooled(packing: CubesPacking, candidates: Sequence[Spots]) -> list[Placed]:
    """Return where the requests of a packing stand.

    Those on spots of the pool get places there: whole cubes the first free ones, parts, the largest
    first, blocks of the pool's chain in the fullest cube that has one, but for as many free cubes
    as there are spares.
    """
    spots, problem = packing.spots, packing.spots.problem
    room, placed, pooled, num_spares = Room(problem), [], [], 0
    for candidate in candidates:
        idx, places = candidate.request_idx, [spots.places[spot] for spot in candidate.spots]
        first = places[0]
        if packing.spares[idx]:
            num_spares += 1
        elif first is None:
            pooled.append(idx)
        else:
            cubes = tuple(cube for place in places if place for cube in place.cubes)
            placed.append(Placed(idx, cubes, first.origin, first.extents))
            room.free.ravel()[problem.chips_of(placed[-1])] = False
    among = spots.pool.cubes.copy()
    requests = problem.requests
    for idx in sorted(pooled, key=lambda idx: (-requests[idx].nodes, idx)):
        if requests[idx].num_cubes:
            found = room.whole(idx)
        else:
            if num_spares:
                among[np.flatnonzero(room.free.all(axis=1))[-num_spares:]] = False
                num_spares = 0
            found = room.part(idx, [spots.pool.chain[requests[idx].nodes]], among, fullest=True)
        assert found is not None, "what fits by number fits in place"
        placed.append(found)
    return sorted(placed, key=lambda one: one.request_idx)
