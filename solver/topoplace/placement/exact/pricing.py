"""Pricing: the best prism of every request at given prices, over all prisms of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Torus
from topoplace.placement.exact import _kernels
from topoplace.placement.exact.lines import LineView
from topoplace.placement.heuristics.footprints import ReachArray, footprints_of
from topoplace.placement.heuristics.room import reach_of
from topoplace.placement.heuristics.shape_parts import shape_parts
from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.snapshot import Geometry

IntArray = NDArray[np.int64]
_GroupKey = tuple[int, str | None, bool, int | None, tuple[int, Geometry] | None]

NO_VALUE = -(1 << 62)
"""Value of a request that has no candidate."""

_NEVER = 1 << 62  # a price no prism has


@dataclass
class Prices:
    """Integer prices of routers and link rows (docs/proofs.md, "A leaf").

    Attributes
    ----------
    routers
        Price per router.
    links
        Price per link number, by row family: None for the rows of all strict jobs, or the queue
        position of a tolerant request.
    """

    routers: IntArray
    links: dict[int | None, IntArray] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Sum of all prices."""
        return int(self.routers.sum()) + sum(int(v.sum()) for v in self.links.values())

    def seen_by(self, tolerant_idx: int | None) -> IntArray | None:
        """Return the link prices a job pays: a strict job all rows, a tolerant one its own."""
        if tolerant_idx is not None:
            return self.links.get(tolerant_idx)
        if not self.links:
            return None
        total: IntArray = np.sum(list(self.links.values()), axis=0, dtype=np.int64)
        return total


@dataclass(frozen=True)
class Weights:
    """Integer weights of the three level values in a candidate's value."""

    nodes: int = 0
    shape: int = 0
    fragmentation: int = 0


@dataclass
class Priced:
    """The answer of a pricing pass.

    Attributes
    ----------
    best
        Per request the largest (value - price), `NO_VALUE` without candidate; Python-int safe.
    columns
        Candidates worth adding, best first per request, with their (value - price).
    """

    best: IntArray
    columns: list[list[tuple[int, Candidate]]]


@dataclass
class _Group:
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


@dataclass(frozen=True)
class _PriceSums:
    """Prefix sums of the prices that a group pays (see `LineView.prefix_sums`).

    `links` has a table per dimension, None where no link has a price.
    """

    routers: IntArray
    links: list[IntArray] | None


class ScanPricer:
    """Prices by scanning every prism (DESIGN 4: summed-area pricing), any number of dimensions."""

    def __init__(self, problem: PlacementProblem, threads: int | None = None) -> None:
        self.problem = problem
        self._pool = ThreadPoolExecutor(threads or min(8, os.cpu_count() or 1))
        self._chunks = threads or min(8, os.cpu_count() or 1)
        self._free_sums: dict[tuple[int, int], IntArray] = {}  # by view and weight
        self._full_view = LineView.all_footprints(problem.torus)
        self.groups = list(self._make_groups())
        self.num_prisms = sum(int(group.reach.sum()) for group in self.groups)
        """Prisms of free routers that a pass looks at."""

    def _make_groups(self) -> Iterator[_Group]:
        problem = self.problem
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
    ) -> _Group:
        problem, torus = self.problem, self.problem.torus
        request = problem.requests[members[0]]
        key = (request.region, request.communication)
        if key not in reaches:
            reaches[key] = self._reach(
                problem.allowed_routers(request), problem.closed_links(request.communication)
            )
        view = self._full_view
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
        return _Group(
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
        found = reach_of(footprints_of(self.problem.torus), ~allowed, closed)
        found.table[found.deepest == 0] = 0  # undefined there
        view = self._full_view
        reach = found.table.reshape(len(view.footprints), len(view.bases), view.depth)
        return reach, (reach.max(axis=2) > 0).astype(np.int8)

    def _geometry_depths(
        self, view: LineView, reach: ReachArray, geometry: Geometry, class_idx: int
    ) -> tuple[ReachArray, ReachArray]:
        """Narrow the depths to those a geometry admits: (largest, smallest) per origin."""
        torus = self.problem.torus
        depths = geometry.depths
        deepest = np.minimum(reach, depths[-1]).astype(reach.dtype)
        least = np.full_like(deepest, depths[0])
        if geometry.max_depth is not None:
            need = _depth_of_whole_routers(
                torus, self.problem.whole_routers(class_idx), geometry.extents[-1]
            )
            for d, extent in enumerate(geometry.extents[:-1]):
                need = np.maximum.reduce([np.roll(need, -k, axis=d) for k in range(extent)])
            least = np.maximum(least, need.reshape(1, -1, view.depth)).astype(reach.dtype)
        return deepest, least

    handles_limits = False

    def price(
        self,
        prices: Prices,
        weights: Weights,
        per_request: int = 24,
        limits: tuple[object, ...] = (),
        *,
        exact_for: frozenset[int] | None = None,
    ) -> Priced:
        """Return the best candidates of every request.

        Parameters
        ----------
        prices, weights
            In the same integer scale.
        per_request
            At most this many columns per request, at most one per value of the first origin
            coordinate and group.
        exact_for
            On the first level, leave out candidates whose price exceeds every request's value;
            `best` is then exact only where it is positive, and for these requests. None: it is
            exact for all.
        """
        assert not limits, "the scan knows no limits on places"
        num = len(self.problem.requests)
        best = np.full(num, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Candidate]]] = [[] for _ in range(num)]
        known: dict[object, _PriceSums] = {}
        for group in self.groups:
            key = (id(group.view), group.uses_links, group.tolerant_idx)
            if key not in known:
                known[key] = self._price_sums(group, prices)
            values, codes = self._scan(group, known[key], weights, exact_for)
            idle = weights.shape * self.problem.state.snapshot.weights.idle
            for idx in group.requests:
                request = self.problem.requests[idx]
                first = int(np.searchsorted(group.sizes, request.nodes))
                at = values[:, first:].argmax(axis=1) + first
                rows = np.arange(len(values))
                worth = values[rows, at]
                constant = weights.nodes * request.value + idle * request.nodes
                for slot in np.argsort(-worth, kind="stable")[:per_request]:
                    if worth[slot] == NO_VALUE:
                        break
                    value = int(worth[slot]) + constant
                    prism = group.view.prism(int(codes[slot, at[slot]]))
                    columns[idx].append((value, Candidate(idx, prism)))
                    best[idx] = max(best[idx], value)
        for found in columns:
            found.sort(key=lambda item: -item[0])
            del found[per_request:]
        return Priced(best, columns)

    def _price_sums(self, group: _Group, prices: Prices) -> _PriceSums:
        view, torus = group.view, self.problem.torus
        link_prices = prices.seen_by(group.tolerant_idx) if group.uses_links else None
        links = None
        if link_prices is not None and link_prices.any():
            links = [view.prefix_sums(layer) for layer in link_prices.reshape(torus.num_dims, -1)]
        return _PriceSums(view.prefix_sums(prices.routers), links)

    def _scan(
        self,
        group: _Group,
        sums: _PriceSums,
        weights: Weights,
        exact_for: frozenset[int] | None,
    ) -> tuple[IntArray, IntArray]:
        """Return the largest values by slot and size, the constants of requests left out."""
        if exact_for is None or weights.shape or weights.fragmentation:
            return self._pass(group, sums, weights, _NEVER)
        give_up = weights.nodes * max(self.problem.requests[i].value for i in group.requests)
        needed = [
            int(np.searchsorted(group.sizes, self.problem.requests[i].nodes))
            for i in group.requests
            if i in exact_for
        ]
        if needed:  # what they cost is often more than they are worth, but not by much
            give_up += give_up // 4
        values, codes = self._pass(group, sums, weights, give_up)
        if needed and (values[:, max(needed) :].max() < -give_up):
            return self._pass(group, sums, weights, _NEVER)
        return values, codes

    def _pass(
        self, group: _Group, sums: _PriceSums, weights: Weights, give_up: int
    ) -> tuple[IntArray, IntArray]:
        """Scan all prisms that cost no more than `give_up`, and perhaps more."""
        view, torus = group.view, self.problem.torus
        shape = (torus.shape[0] if torus.num_dims > 1 else 1, len(group.sizes))
        values = np.full(shape, NO_VALUE, dtype=np.int64)
        codes = np.zeros(shape, dtype=np.int64)
        nothing = np.zeros((1, view.depth), dtype=np.int64)
        links = sums.links or [nothing]
        leading_links = _stack(links[:-1], view)
        side = weights.fragmentation
        free_sat = nothing
        if side:
            key = (id(view), side)
            if key not in self._free_sums:
                free = self.problem.free_routers.astype(np.int64)
                self._free_sums[key] = side * view.prefix_sums(free)
            free_sat = self._free_sums[key]
        only_nodes = weights.shape == 0 and side == 0
        stop = int(group.sizes[-1]) if only_nodes and not len(group.least) else 1 << 60
        order = np.argsort(view.slots, kind="stable")
        chunks = np.array_split(np.unique(view.slots), self._chunks)

        def work(slots: IntArray) -> None:
            lines = order[np.isin(view.slots[order], slots)]
            if not len(lines):
                return
            _kernels.scan(
                lines, group.reach, group.least, group.live, view.bases, view.slots,
                view.line_coords, view.pad_strides, view.extents,
                np.array(torus.shape), np.array(torus.wrap),
                view.box, view.link, view.face, view.signs,
                group.count_sat, sums.routers, leading_links, links[-1], free_sat,
                sums.links is not None, side != 0,
                weights.shape * group.shape_part,
                weights.shape * self.problem.state.snapshot.weights.idle,
                group.bucket_of_count, stop, give_up,
                values, codes,
            )  # fmt: skip

        list(self._pool.map(work, chunks))
        return values, codes


def _stack(tables: list[IntArray], view: LineView) -> IntArray:
    if tables:
        return np.ascontiguousarray(np.stack(tables))
    return np.zeros((0, 1, view.depth), dtype=np.int64)


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
