"""Search of prisms in the free part of a machine while jobs are placed one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from topoplace.machine import Torus, prism_links
from topoplace.placement.torus import _kernels
from topoplace.placement.torus.footprints import Footprints, Reach, footprints_of
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.state import NearState, QueuedState
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True)
class Entries:
    """The prisms that requests admit: footprints, each with a range of depths.

    Attributes
    ----------
    table
        A row per entry, sorted by footprint: footprint number, smallest and largest depth, the
        row of `least` that bounds the depth from below per origin, or -1, and the request.
    """

    table: IntArray
    least: IntArray


def entries_of(
    footprints: Footprints, requests: Sequence[QueuedState], whole: BoolArray
) -> Entries:
    """Return the entries of the prisms that requests of a class admit.

    Parameters
    ----------
    whole
        Per router, whether all its nodes are usable by the requests (for `maxz`).
    """
    torus = footprints.torus
    parts, least = [], [np.zeros((0, torus.num_routers), dtype=np.int64)]
    num_rows = 0
    for number, request in enumerate(requests):
        for geometry in request.geometries:
            depths, row = geometry.depths, -1
            bounds = least_of(torus, request, geometry, whole)
            if bounds is not None:
                row, num_rows = num_rows, num_rows + 1
                least.append(bounds[None])
            head = footprints.index(geometry.extents[:-1])
            parts.append(np.array([[head, depths[0], depths[-1], row, number]]))
        if not request.geometries:
            low = -(-request.nodes // (torus.nodes_per_router * footprints.area))
            fits = np.flatnonzero(low <= footprints.depth)
            part = np.empty((len(fits), 5), dtype=np.int64)
            part[:, 0], part[:, 1], part[:, 2:] = fits, low[fits], (footprints.depth, -1, number)
            if request.near is not None:
                part[:, 3] = num_rows + fits
                least.append(near_depths(torus, request.near))
                num_rows += len(least[-1])
            parts.append(part)
    table = np.concatenate(parts)
    return Entries(table[np.argsort(table[:, 0], kind="stable")], np.concatenate(least))


def least_depths(torus: Torus, whole: BoolArray, extents: tuple[int, ...]) -> IntArray:
    """Return per origin the least depth whose every pencil holds `extents[-1]` whole routers.

    Where there is none, it is more than the machine's.
    """
    n = torus.shape[-1]
    lines = whole.reshape(-1, n)
    ahead = np.concatenate([lines, lines & torus.wrap[-1]], axis=1).cumsum(axis=1)
    before = ahead[:, :n] - lines
    depths = np.full(lines.shape, 2 * n, dtype=np.int64)
    for depth in range(n, 0, -1):
        inside = ahead[:, depth - 1 : depth - 1 + n] - before
        depths[inside >= extents[-1]] = depth
    table = depths.reshape(torus.shape)
    for d, extent in enumerate(extents[:-1]):
        table = np.maximum.reduce([np.roll(table, -k, axis=d) for k in range(extent)])
    return np.ascontiguousarray(table.ravel())


def least_of(
    torus: Torus, request: QueuedState, geometry: Geometry, whole: BoolArray
) -> IntArray | None:
    """Return per origin the least depth of prisms of a geometry; None if it has one alone."""
    found = None
    if geometry.max_depth is not None:
        found = least_depths(torus, whole, geometry.extents)
    if request.near is not None:
        head = footprints_of(torus).index(geometry.extents[:-1])
        near = near_depths(torus, request.near)[head]
        found = near if found is None else np.maximum(found, near)
    return found


@lru_cache(maxsize=4)
def near_depths(torus: Torus, near: NearState) -> IntArray:
    """Return the least depths with enough of some routers in a prism or next to it.

    Shape ``(num_footprints, num_routers)``, by footprint (`footprints_of`) and origin. Where there
    is none, it is more than the machine's. Deeper prisms have no fewer of these routers.
    """
    n = torus.shape[-1]
    depths = np.full((torus.num_routers // n, torus.num_routers), 2 * n, dtype=np.int64)
    inside = near.routers.mask.reshape(torus.shape).astype(np.int64)
    for row, (own, around) in enumerate(_gathered(torus, 0, inside, inside)):
        ahead, around_ahead = (_Along(torus, torus.num_dims - 1, grid) for grid in (own, around))
        for depth in range(n, 0, -1):
            there = around_ahead.sums(0, depth) + ahead.sums(-1, depth + 2) - ahead.sums(0, depth)
            depths[row, (there >= near.num).ravel()] = depth
    return depths


def _gathered(
    torus: Torus, dim: int, inside: IntArray, around: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield sums inside footprints, and inside or next to them, footprint by footprint."""
    if dim == torus.num_dims - 1:
        yield inside, around
        return
    own, other = _Along(torus, dim, inside), _Along(torus, dim, around)
    for extent in range(1, torus.shape[dim] + 1):
        within = own.sums(0, extent)
        beside = own.sums(-1, extent + 2) - within
        yield from _gathered(torus, dim + 1, within, other.sums(0, extent) + beside)


class _Along:
    """Sums over intervals along a dimension of a grid of routers."""

    def __init__(self, torus: Torus, dim: int, grid: IntArray) -> None:
        self._n, self._wraps, self._dim = torus.shape[dim], torus.wrap[dim], dim
        twice = np.concatenate([grid, grid], axis=dim) if self._wraps else grid
        nothing = np.zeros_like(grid.take([0], axis=dim))
        self._prefix = np.concatenate([nothing, twice.cumsum(axis=dim)], axis=dim)

    def sums(self, shift: int, length: int) -> IntArray:
        """Return the sums over so many routers, or all, from a shift of each; no router twice."""
        first = np.arange(self._n) + shift
        if self._wraps:
            first %= self._n
            last = first + min(length, self._n)
        else:
            first, last = np.clip([first, first + length], 0, self._n)
        ends = (self._prefix.take(at, axis=self._dim) for at in (last, first))
        return np.asarray(np.subtract(*ends))


class Room:
    """The routers and links that running jobs and the jobs placed so far leave to others."""

    def __init__(self, problem: PlacementProblem, started: Iterable[Candidate] = ()) -> None:
        self.problem = problem
        self._taken = np.zeros(problem.torus.num_routers, dtype=bool)
        self._links = {kind: np.zeros(problem.torus.num_links, dtype=bool) for kind in (0, 1)}
        self._reaches: dict[object, tuple[int, Reach]] = {}
        self._version = 0
        for candidate in started:
            self.add(candidate)

    def add(self, candidate: Candidate) -> None:
        """Take the routers and links of a job."""
        problem = self.problem
        communication = problem.requests[candidate.request_idx].communication
        self._taken[candidate.routers(problem.torus)] = True
        if problem.uses_links(communication):
            links = prism_links(problem.torus, candidate.prism)
            self._links[problem.is_tolerant(communication)][links] = True
        self._version += 1

    @property
    def taken(self) -> BoolArray:
        """Routers of the jobs placed so far, shape ``(num_routers,)``."""
        return self._taken

    def leaves(self, candidate: Candidate) -> bool:
        """Return whether the jobs placed so far leave a candidate its routers and links."""
        problem = self.problem
        communication = problem.requests[candidate.request_idx].communication
        if self._taken[candidate.prism.routers(problem.torus)].any():
            return False
        if not problem.uses_links(communication):
            return True
        closed = self._links[False]
        if not problem.is_tolerant(communication):
            closed = closed | self._links[True]
        return not closed[prism_links(problem.torus, candidate.prism)].any()

    def reach(self, request: QueuedState) -> Reach:
        """Return the reach of the request's prisms; valid until the next call."""
        problem = self.problem
        uses_links = problem.uses_links(request.communication)
        tolerant = problem.is_tolerant(request.communication)
        key = (request.region, uses_links, tolerant)
        version, reach = self._reaches.get(key, (-1, None))
        if version == self._version and reach is not None:
            return reach
        blocked = ~problem.allowed_routers(request) | self._taken
        closed = problem.closed_links(request.communication)
        if uses_links:
            closed = closed | self._links[False]
            if not tolerant:
                closed |= self._links[True]
        reach = problem.view.reach(blocked, closed, over=reach)
        self._reaches[key] = (self._version, reach)
        return reach


class PrismSearch:
    """Finds a prism for one request at a time; its tables belong to one problem.

    The problem refers to the search, and not the reverse, so both are freed as soon as the problem
    is not needed any more.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        self.footprints = view = problem.view
        self._tables = (view.bases, view.box, view.signs)
        self._parts: dict[int | None, tuple[IntArray, IntArray]] = {}
        self._entries: dict[tuple[int, int], Entries] = {}

    def _values(self, problem: PlacementProblem, request_idx: int) -> tuple[IntArray, IntArray]:
        """Return values of footprints and depths for a request, and the largest from a depth on."""
        key, view = problem.priced_as(request_idx), self.footprints
        if key not in self._parts:
            values = problem.extent_values(request_idx)
            parts = view.per_router(values).reshape(-1, view.depth).copy()
            suffix_best = np.maximum.accumulate(parts[:, ::-1], axis=1)[:, ::-1]
            self._parts[key] = parts, np.ascontiguousarray(suffix_best)
        return self._parts[key]

    def entries(self, problem: PlacementProblem, request_idx: int, way: QueuedState) -> Entries:
        """Return what a request of the problem, with one kind of nodes alone, admits."""
        key = request_idx, way.class_idx
        if key not in self._entries:
            whole = problem.whole_routers(way.class_idx)
            self._entries[key] = entries_of(self.footprints, [way], whole)
        return self._entries[key]

    def _alive(
        self, problem: PlacementProblem, request_idx: int, way: QueuedState, reach: Reach
    ) -> Entries:
        """Return what a request admits where some prism is free."""
        known = self.entries(problem, request_idx, way)
        alive = reach.deepest[known.table[:, 0]] >= known.table[:, 1]
        return Entries(known.table[alive], known.least)

    def best(self, request_idx: int, request: QueuedState, room: Room) -> Candidate | None:
        """Return the candidate of the largest shape score; ties: least (extents, origin).

        The request has one kind of nodes alone.
        """
        problem = room.problem
        reach = room.reach(request)
        entries = self._alive(problem, request_idx, request, reach)
        parts, suffix_best = self._values(problem, request_idx)
        bound = suffix_best[entries.table[:, 0], entries.table[:, 1] - 1]
        order = np.argsort(-bound, kind="stable")
        code = _kernels.best(
            entries.table[order], entries.least, bound[order], request.nodes,
            reach.row, reach.depths, reach.tops,
            problem.usable_sums[request.class_idx], *self._tables,
            parts, suffix_best, problem.idle_weight,
        )  # fmt: skip
        return self._candidate(request_idx, code)

    def first(self, request_idx: int, request: QueuedState, room: Room) -> Candidate | None:
        """Return the candidate that first fit takes (see `first_fit`).

        The request has one kind of nodes alone.
        """
        problem = room.problem
        reach = room.reach(request)
        entries = self._alive(problem, request_idx, request, reach)
        code = _kernels.first(
            entries.table, entries.least, request.nodes,
            reach.row, reach.depths, reach.tops,
            problem.usable_sums[request.class_idx], *self._tables,
            self.footprints.area, self._values(problem, request_idx)[0],
        )  # fmt: skip
        return self._candidate(request_idx, code)

    def _candidate(self, request_idx: int, code: int) -> Candidate | None:
        return None if code < 0 else Candidate(request_idx, self.footprints.prism(int(code)))


def search_of(problem: PlacementProblem) -> PrismSearch:
    """Return the search of a problem, made once."""
    if PrismSearch not in problem._memo:
        problem._memo[PrismSearch] = PrismSearch(problem)
    search = problem._memo[PrismSearch]
    assert isinstance(search, PrismSearch)
    return search
