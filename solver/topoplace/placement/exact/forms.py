"""Forms: the extents that each request may have, with their origins, as tables for annealing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Torus, uses_whole_ring
from topoplace.placement.heuristics.prism_search import PrismSearch, search_of
from topoplace.placement.heuristics.room import Room
from topoplace.placement.problem import PlacementProblem

IntArray = NDArray[np.int64]
CountArray = NDArray[np.int32]

_MOST_FORMS = 90  # per request
_MOST_BYTES = 1 << 27
_SLACK = 1.25  # volume of a form over the least there is


@dataclass(frozen=True)
class Forms:
    """Forms of every request, those of request q at `first[q]` to `first[q+1] - 1`.

    Attributes
    ----------
    extents, passing
        Per form, and whether it passes through a ring it does not span.
    waste
        Per form and origin: 0 where it cannot stand beside the running jobs, else one more than
        the usable nodes left idle in it, at most 255.
    volumes
        Least volume of a prism of every request.
    """

    first: IntArray
    extents: IntArray
    passing: NDArray[np.uint8]
    waste: NDArray[np.uint8]
    volumes: IntArray


def forms_of(problem: PlacementProblem) -> Forms:
    """Return the forms of a problem: per request those of least waste and surface."""
    torus = problem.torus
    most = _MOST_BYTES // max(1, torus.num_routers * len(problem.requests))
    most = max(4, min(_MOST_FORMS, most))
    counter = _Counter(problem)
    room = Room(problem)
    first = [0]
    extents: list[tuple[int, ...]] = []
    waste: list[NDArray[np.uint8]] = []
    for idx, request in enumerate(problem.requests):
        reach = room.reach(request)
        found = []
        for form in _promising(problem, search_of(problem), idx)[: 2 * most]:
            footprint, depth, least = form
            if reach.deepest[footprint] < depth:
                continue
            here = (reach.table[footprint] >= depth) & (least <= depth)
            size = (*search_of(problem).footprints.extents[footprint].tolist(), depth)
            here &= counter.usable(request.class_idx, size) >= request.nodes
            if not here.any():
                continue
            idle = np.minimum(255, 1 + counter.usable(None, size) - request.nodes)
            row = np.where(here, idle, 0).astype(np.uint8)
            rank = int(row[here].min()) + _roughness(torus, size)
            found.append((rank, size, row))
        found.sort(key=lambda item: item[:2])
        extents += [size for _, size, _ in found[:most]]
        waste += [row for _, _, row in found[:most]]
        first.append(len(extents))
    per = torus.nodes_per_router
    return Forms(
        first=np.array(first, dtype=np.int64),
        extents=np.array(extents, dtype=np.int64).reshape(-1, torus.num_dims),
        passing=np.array([passes(torus, size) for size in extents], dtype=np.uint8),
        waste=np.array(waste, dtype=np.uint8).reshape(-1, torus.num_routers),
        volumes=np.array([-(-r.nodes // per) for r in problem.requests], dtype=np.int64),
    )


def passes(torus: Torus, extents: tuple[int, ...]) -> bool:
    """Tell whether a prism uses links of a ring that it does not span."""
    return any(
        e < n and uses_whole_ring(torus, d, e)
        for d, (e, n) in enumerate(zip(extents, torus.shape, strict=True))
    )


def _promising(
    problem: PlacementProblem, search: PrismSearch, idx: int
) -> list[tuple[int, int, IntArray]]:
    """Return (footprint, depth, least depth per origin) of a request, compact and tight first."""
    torus, request = problem.torus, problem.requests[idx]
    entries = search.entries(idx)
    nothing = np.zeros(torus.num_routers, dtype=np.int64)
    per = torus.nodes_per_router
    routers = -(-request.nodes // per)
    found = []
    for footprint, low, high, row in zip(
        entries.footprint.tolist(),
        entries.low.tolist(),
        entries.high.tolist(),
        entries.least_idx.tolist(),
        strict=True,
    ):
        area = int(search.footprints.area[footprint])
        most = torus.num_routers if request.geometries else max(_SLACK * routers, routers + per)
        for depth in range(low, min(high, int(most) // area) + 1):
            size = (*search.footprints.extents[footprint].tolist(), depth)
            rank = per * (area * depth - routers) + _roughness(torus, size)
            found.append((rank, footprint, depth, row))
    found.sort()
    return [
        (footprint, depth, nothing if row < 0 else entries.least[row])
        for _, footprint, depth, row in found
    ]


def _roughness(torus: Torus, extents: tuple[int, ...]) -> float:
    """Return what makes extents bad for packing, in nodes: surface, and rings passed through."""
    volume = int(np.prod(extents))
    return 0.02 * sum(volume // e for e in extents) + (100.0 if passes(torus, extents) else 0.0)


class _Counter:
    """Counts the usable nodes in every prism of given extents."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._torus = problem.torus
        usable = problem.state.usable_per_router
        self._sums = {k: self._prefix_sums(row) for k, row in enumerate(usable)}
        self._every = self._prefix_sums(usable.sum(axis=0))
        self._known: dict[tuple[int | None, tuple[int, ...]], CountArray] = {}

    def _prefix_sums(self, per_router: IntArray) -> CountArray:
        table: CountArray = per_router.astype(np.int32).reshape(self._torus.shape)
        for d in range(self._torus.num_dims):
            table = np.concatenate([table, table], axis=d).cumsum(axis=d, dtype=np.int32)
            start = np.zeros_like(table.take([0], axis=d))
            table = np.concatenate([start, table], axis=d)
        return table

    def usable(self, class_idx: int | None, extents: tuple[int, ...]) -> CountArray:
        """Return the count at every origin, of one class or (None) of all."""
        key = (class_idx, extents)
        if key not in self._known:
            table = self._every if class_idx is None else self._sums[class_idx]
            for d, (n, e) in enumerate(zip(self._torus.shape, extents, strict=True)):
                before = (slice(None),) * d
                table = table[(*before, slice(e, e + n))] - table[(*before, slice(n))]
            self._known[key] = table.ravel()
        return self._known[key]
