"""Search of one request's prisms in the room that is left."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.machine import Torus
from topoplace.placement.torus.heuristics import _kernels
from topoplace.placement.torus.heuristics.footprints import Footprints, footprints_of
from topoplace.placement.torus.heuristics.room import Room
from topoplace.placement.torus.heuristics.shape_parts import shape_parts
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot import QueuedState
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True)
class Entries:
    """What a request admits: footprints, each with a range of depths.

    Attributes
    ----------
    footprint, low, high
        Footprint number, smallest and largest depth of every entry.
    least_idx
        Row of `least` that bounds the depth from below per origin, or -1.
    """

    footprint: IntArray
    low: IntArray
    high: IntArray
    least_idx: IntArray
    least: IntArray

    def kept(self, keep: IntArray) -> Entries:
        """Return some of the entries, in the order given."""
        return Entries(
            self.footprint[keep], self.low[keep], self.high[keep], self.least_idx[keep], self.least
        )


def entries_of(footprints: Footprints, request: QueuedState, whole: BoolArray) -> Entries:
    """Return what a request admits.

    Parameters
    ----------
    whole
        Per router, whether all its nodes are usable by the request (for `maxz`).
    """
    torus = footprints.torus
    per = torus.nodes_per_router
    nothing = np.zeros((0, torus.num_routers), dtype=np.int64)
    if not request.geometries:
        low = -(-request.nodes // (per * footprints.area))
        keep = np.flatnonzero(low <= footprints.depth)
        high = np.full(len(keep), footprints.depth, dtype=np.int64)
        return Entries(keep, low[keep], high, np.full(len(keep), -1, dtype=np.int64), nothing)
    rows = []
    least = [nothing]
    for geometry in request.geometries:
        footprint = footprints.index(geometry.extents[:-1])
        depths = geometry.depths
        row = -1
        if geometry.max_depth is not None:
            row = len(least) - 1
            least.append(_least_depths(torus, whole, geometry.extents)[None])
        rows.append((footprint, depths[0], depths[-1], row))
    footprint, low, high, least_idx = np.array(rows, dtype=np.int64).T.copy()
    return Entries(footprint, low, high, least_idx, np.concatenate(least))


def _least_depths(torus: Torus, whole: BoolArray, extents: tuple[int, ...]) -> IntArray:
    """Return per origin the least depth whose every pencil holds `extents[-1]` whole routers."""
    n = torus.shape[-1]
    never = 2 * n + 1
    lines = whole.reshape(-1, n)
    rounds = 2 if torus.wrap[-1] else 1
    depths = np.empty(lines.shape, dtype=np.int64)
    for line, flags in enumerate(lines):
        counts = np.concatenate([[0], np.tile(flags, rounds).cumsum()])
        ends = np.searchsorted(counts, counts[:n] + extents[-1])
        depths[line] = np.where(ends < len(counts), ends - np.arange(n), never)
    table = depths.reshape(torus.shape)
    for d, extent in enumerate(extents[:-1]):
        table = np.maximum.reduce([np.roll(table, -k, axis=d) for k in range(extent)])
    return np.ascontiguousarray(table.ravel())


class PrismSearch:
    """Finds a prism for one request at a time; its tables belong to one problem."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.footprints = footprints_of(problem.torus)
        self._sums: dict[int, IntArray] = {}
        self._entries: dict[int, Entries] = {}

    def with_scores(self, part: IntArray) -> PrismSearch:
        """Return a search that scores extents by a table of its own, shape ``torus.shape``."""
        other = PrismSearch(self.problem)
        other._sums, other._entries = self._sums, self._entries
        other._part = np.ascontiguousarray(part.reshape(-1, self.footprints.depth))
        return other

    @cached_property
    def _part(self) -> IntArray:
        table = shape_parts(self.problem.torus, self.problem.state.snapshot.weights)
        return np.ascontiguousarray(table.reshape(-1, self.footprints.depth))

    @cached_property
    def _suffix_best(self) -> IntArray:
        """Largest `_part` of a footprint from a depth on."""
        return np.ascontiguousarray(np.maximum.accumulate(self._part[:, ::-1], axis=1)[:, ::-1])

    def usable_sums(self, class_idx: int) -> IntArray:
        """Return the prefix sums of a class's usable nodes."""
        if class_idx not in self._sums:
            usable = self.problem.state.usable_per_router[class_idx]
            self._sums[class_idx] = self.footprints.sums(usable)
        return self._sums[class_idx]

    def entries(self, request_idx: int) -> Entries:
        """Return what a request admits."""
        if request_idx not in self._entries:
            request = self.problem.requests[request_idx]
            whole = self.problem.whole_routers(request.class_idx)
            self._entries[request_idx] = entries_of(self.footprints, request, whole)
        return self._entries[request_idx]

    def best(self, request_idx: int, room: Room) -> Candidate | None:
        """Return the candidate of the largest shape score; ties: least (extents, origin)."""
        request = self.problem.requests[request_idx]
        reach = room.reach(request)
        entries = self.entries(request_idx)
        bound = self._suffix_best[entries.footprint, entries.low - 1]
        alive = np.flatnonzero(reach.deepest[entries.footprint] >= entries.low)
        alive = alive[np.argsort(-bound[alive], kind="stable")]
        entries = entries.kept(alive)
        _, code = _kernels.best(
            entries.footprint, entries.low, entries.high, entries.least_idx, entries.least,
            bound[alive], request.nodes,
            reach.table, self.usable_sums(request.class_idx),
            self.footprints.bases, self.footprints.box, self.footprints.signs,
            self._part, self._suffix_best, self.problem.state.snapshot.weights.idle,
        )  # fmt: skip
        return self._candidate(request_idx, code)

    def first(self, request_idx: int, room: Room) -> Candidate | None:
        """Return the candidate that first fit takes (see `first_fit`)."""
        request = self.problem.requests[request_idx]
        reach = room.reach(request)
        entries = self.entries(request_idx)
        entries = entries.kept(np.flatnonzero(reach.deepest[entries.footprint] >= entries.low))
        code = _kernels.first(
            entries.footprint, entries.low, entries.high, entries.least_idx, entries.least,
            request.nodes,
            reach.table, self.usable_sums(request.class_idx),
            self.footprints.bases, self.footprints.box, self.footprints.signs,
            self.footprints.area, self._part,
        )  # fmt: skip
        return self._candidate(request_idx, code)

    def _candidate(self, request_idx: int, code: int) -> Candidate | None:
        return None if code < 0 else Candidate(request_idx, self.footprints.prism(int(code)))


def search_of(problem: PlacementProblem) -> PrismSearch:
    """Return the search of a problem, made once."""
    memo = problem._memo
    if PrismSearch not in memo:
        memo[PrismSearch] = PrismSearch(problem)
    search = memo[PrismSearch]
    assert isinstance(search, PrismSearch)
    return search
