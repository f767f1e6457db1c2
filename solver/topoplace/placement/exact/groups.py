"""Groups of requests that are priced together, and the prisms each may take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Torus
from topoplace.placement.exact import _kernels
from topoplace.placement.exact.limits import PlaceLimit
from topoplace.placement.exact.lines import LineView
from topoplace.placement.exact.minimal import MinimalPrisms
from topoplace.placement.heuristics.footprints import ReachArray, footprints_of
from topoplace.placement.heuristics.room import reach_of
from topoplace.placement.heuristics.shape_parts import shape_parts
from topoplace.placement.problem import PlacementProblem
from topoplace.snapshot import Geometry

IntArray = NDArray[np.int64]
_GroupKey = tuple[int, str | None, bool, int | None, tuple[int, Geometry] | None]


@dataclass
class Group:
    """Requests that share their candidates but for the number of nodes they need."""

    requests: list[int]
    class_idx: int
    tolerant_idx: int | None
    uses_links: bool
    view: LineView
    reach: ReachArray
    least: ReachArray
    live: NDArray[np.int8]
    count_sat: IntArray
    sizes: IntArray
    bucket_of_count: NDArray[np.int16]
    shape_part: IntArray
    minimal: MinimalPrisms = field(default_factory=MinimalPrisms)

    def without(self, requests: frozenset[int]) -> Group:
        """Return the group with some requests left out."""
        return replace(self, requests=[i for i in self.requests if i not in requests])

    def within(self, limits: Sequence[PlaceLimit], nodes: int) -> Group:
        """Return the group of one of its requests, of so many nodes, under limits on its place."""
        reach, least = self.reach.copy(), self.least
        inside = np.array([limit.inside for limit in limits])
        if inside.any():
            least = least.copy() if len(least) else np.ones_like(reach)
        live = _kernels.narrow(
            reach, least, self.live, self.view.extents, self.view.line_coords,
            np.array(limits[0].shape), np.array([limit.coords for limit in limits]), inside,
        )  # fmt: skip
        return replace(
            self,
            requests=[limits[0].request_idx],
            reach=reach,
            least=least,
            live=live,
            sizes=np.array([nodes]),
            bucket_of_count=(np.arange(len(self.bucket_of_count)) >= nodes).astype(np.int16) - 1,
            minimal=MinimalPrisms(),
        )


class GroupMaker:
    """Makes the groups of a problem; `full_view` has every footprint of its machine."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._problem = problem
        self.full_view = LineView.all_footprints(problem.torus)

    def groups(self) -> Iterator[Group]:
        """Make the groups of all requests."""
        problem = self._problem
        keys: dict[_GroupKey, list[int]] = {}
        for idx, request in enumerate(problem.requests):
            tolerant = idx if problem.is_tolerant(request.communication) else None
            for geometry in request.geometries or (None,):
                key: _GroupKey = (
                    request.class_idx,
                    request.region,
                    problem.uses_links(request.communication),
                    tolerant,
                    None if geometry is None else (idx, geometry),
                )
                keys.setdefault(key, []).append(idx)
        reaches: dict[object, tuple[ReachArray, NDArray[np.int8]]] = {}
        for key, members in keys.items():
            class_idx, _, uses_links, tolerant, alternative = key
            geometry = None if alternative is None else alternative[1]
            yield self._group(members, class_idx, uses_links, tolerant, geometry, reaches)

    def _group(
        self,
        members: list[int],
        class_idx: int,
        uses_links: bool,
        tolerant: int | None,
        geometry: Geometry | None,
        reaches: dict[object, tuple[ReachArray, NDArray[np.int8]]],
    ) -> Group:
        problem, torus = self._problem, self._problem.torus
        request = problem.requests[members[0]]
        key = (request.region, request.communication)
        if key not in reaches:
            reaches[key] = self._reach(
                problem.allowed_routers(request), problem.closed_links(request.communication)
            )
        view = self.full_view
        reach, live = reaches[key]
        least = np.zeros((0, 0, 0), dtype=reach.dtype)
        if geometry is not None:
            view = LineView(torus, (geometry.extents[:-1],))
            only = [footprints_of(torus).index(geometry.extents[:-1])]
            reach, live = reach[only], live[only]
            reach, least = self._geometry_depths(view, reach, geometry, class_idx)
        usable = problem.state.usable_per_router[class_idx]
        sizes = np.unique([problem.requests[i].nodes for i in members])
        counts = np.arange(int(usable.sum()) + 1)
        return Group(
            requests=members,
            class_idx=class_idx,
            tolerant_idx=tolerant,
            uses_links=uses_links,
            view=view,
            reach=reach,
            least=least,
            live=live.copy(),  # a pass marks what is too small for these requests
            count_sat=view.prefix_sums(usable),
            sizes=sizes,
            bucket_of_count=(np.searchsorted(sizes, counts, side="right") - 1).astype(np.int16),
            shape_part=_shape_parts(problem, view),
        )

    def _reach(
        self, allowed: NDArray[np.bool_], closed: NDArray[np.bool_]
    ) -> tuple[ReachArray, NDArray[np.int8]]:
        """Return how deep free prisms go, and which lines of a footprint have any."""
        found = reach_of(footprints_of(self._problem.torus), ~allowed, closed)
        found.table[found.deepest == 0] = 0  # undefined there
        view = self.full_view
        reach = found.table.reshape(len(view.footprints), len(view.bases), view.depth)
        return reach, (reach.max(axis=2) > 0).astype(np.int8)

    def _geometry_depths(
        self, view: LineView, reach: ReachArray, geometry: Geometry, class_idx: int
    ) -> tuple[ReachArray, ReachArray]:
        """Narrow the depths to those a geometry admits: (largest, smallest) per origin."""
        torus = self._problem.torus
        depths = geometry.depths
        deepest = np.minimum(reach, depths[-1]).astype(reach.dtype)
        least = np.full_like(deepest, depths[0])
        if geometry.max_depth is not None:
            need = _depth_of_whole_routers(
                torus, self._problem.whole_routers(class_idx), geometry.extents[-1]
            )
            for d, extent in enumerate(geometry.extents[:-1]):
                need = np.maximum.reduce([np.roll(need, -k, axis=d) for k in range(extent)])
            least = np.maximum(least, need.reshape(1, -1, view.depth)).astype(reach.dtype)
        return deepest, least


def _shape_parts(problem: PlacementProblem, view: LineView) -> IntArray:
    """Return the shape parts of every footprint and depth."""
    every = shape_parts(problem.torus, problem.state.snapshot.weights)
    at = tuple(view.extents.T - 1)
    return np.ascontiguousarray(every[at].reshape(len(view.footprints), view.depth))


def _depth_of_whole_routers(torus: Torus, whole: NDArray[np.bool_], needed: int) -> IntArray:
    """Return per router the least depth from it whose pencil holds `needed` whole routers."""
    n = torus.shape[-1]
    flags = whole.reshape(-1, n)
    ahead = flags if not torus.wrap[-1] else np.concatenate([flags, flags], axis=1)
    padded = np.zeros((len(flags), 2 * n), dtype=np.int64)
    padded[:, : ahead.shape[1]] = ahead
    depth = np.full((len(flags), n), 2 * n, dtype=np.int64)
    running = np.zeros((len(flags), n), dtype=np.int64)
    for c in range(1, n + 1):
        running += padded[:, c - 1 : c - 1 + n]
        depth = np.where((running >= needed) & (depth > n), c, depth)
    return depth.reshape(torus.shape)
