"""The prisms that a job may have, and the cheapest of them at prices of routers, links and jobs.

They are found shape by shape, for all origins at once, and listed. What a listed prism pays are
differences of prefix sums at the corners of its box, and of one box of links by dimension.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from topoplace.machine import Prism, Torus, uses_whole_ring
from topoplace.placement.torus.heuristics.prism_search import entries_of
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.types import BoolArray, IntArray

Extents = tuple[int, ...]


@dataclass(frozen=True)
class Standing:
    """Jobs at their present places, and whether their links are closed to the one in question.

    Attributes
    ----------
    origins, extents
        Of their prisms, shape ``(num_jobs, num_dims)``.
    closes
        Shape ``(num_jobs,)``.
    """

    origins: IntArray
    extents: IntArray
    closes: BoolArray

    def meeting(self, torus: Torus, extents: Extents, origins: IntArray) -> BoolArray:
        """Return which prisms of some extents are in conflict with which jobs, ``(prisms, jobs)``.

        A prism meets a job in routers where their intervals meet in all dimensions. It shares links
        of a dimension with it where one of the two uses whole rings along it, and their intervals
        meet in all others.
        """
        meets = []
        for d, n in enumerate(torus.shape):
            ahead = (self.origins[:, d] - origins[:, d, None]) % n
            meets.append((ahead < extents[d]) | ((n - ahead) % n < self.extents[:, d]))
        found = np.logical_and.reduce(meets)
        for d, e in enumerate(extents):
            rings = [uses_whole_ring(torus, d, x) for x in self.extents[:, d].tolist()]
            theirs = np.array(rings, dtype=bool)
            ring = theirs & (e > 1) | (self.extents[:, d] > 1) & uses_whole_ring(torus, d, e)
            others = [meets[k] for k in range(len(meets)) if k != d]
            if others:
                found |= np.logical_and.reduce(others) & (ring & self.closes)
            else:
                found |= ring & self.closes
        return np.asarray(found)


class _Free:
    """The prisms that a request may have alongside the running jobs, extents by extents."""

    def __init__(self, problem: PlacementProblem, idx: int) -> None:
        self.view, request = problem.view, problem.requests[idx]
        self.reach = problem.reach(request, self.view)
        self._usable = problem.usable_sums[request.class_idx]

    def extents(self, footprint: int, depth: int) -> Extents:
        """Return the extents of a footprint and a depth, on the turned machine."""
        return (*self.view.extents[footprint].tolist(), depth)

    def nodes(self, footprint: int, depth: int) -> IntArray:
        """Return by origin the nodes that the request may take in a prism, -1 if it is not free."""
        inside = self.view.everywhere(self._usable, self.extents(footprint, depth))
        found = np.where(self.reach.of(footprint) >= depth, inside, -1)
        return found.reshape(self.view.turned.shape)

    def places(self, extents: Extents, origins: IntArray) -> tuple[Extents, IntArray]:
        """Return extents and flat origins as those on the machine, ``(num_origins, num_dims)``."""
        at = np.stack(np.unravel_index(origins, self.view.turned.shape), axis=1)
        return self.view.back(extents), at[:, [*self.view.back(range(at.shape[1]))]]


class Places:
    """The prisms that a request may have alongside the running jobs.

    Of the prisms that hold enough nodes, only those are kept that contain no smaller one that does,
    as the cost of a prism grows with its size.

    Attributes
    ----------
    extents, shape_of, origins
        The extents that there are, ascending, and by prism the number of its own and where it
        begins, shape ``(num_prisms, num_dims)``.
    """

    def __init__(
        self, problem: PlacementProblem, idx: int, standing: Standing | None = None
    ) -> None:
        self._torus = problem.torus
        found = [*_minimal(problem, idx)]
        self.extents = [extents for extents, _ in found]
        sizes = [len(origins) for _, origins in found]
        self.shape_of = np.repeat(np.arange(len(found)), sizes)
        nothing = np.zeros((0, problem.torus.num_dims), dtype=np.int64)
        self.origins = np.concatenate([nothing, *(origins for _, origins in found)])
        self.clashes = None
        if standing is not None:
            starts = np.cumsum([0, *sizes])
            parts = [sp.csr_matrix((0, len(standing.closes)), dtype=np.int64)]
            for extents, (a, b) in zip(self.extents, itertools.pairwise(starts), strict=True):
                meeting = standing.meeting(self._torus, extents, self.origins[a:b])
                parts.append(sp.csr_matrix(meeting.astype(np.int64)))
            self.clashes = sp.vstack(parts, format="csr")
        self._place_corners()

    def _place_corners(self) -> None:
        """Find the corners of all boxes in prefix sums: of routers, then of links by dimension."""
        shape = [2 * n + 1 for n in self._torus.shape]
        steps = np.array([math.prod(shape[d + 1 :]) for d in range(len(shape))])
        self._at = self.origins @ steps
        corners = np.array([*itertools.product((0, 1), repeat=len(shape))])
        self._signs = [1 if (len(shape) - c.sum()) % 2 == 0 else -1 for c in corners]
        own = np.array(self.extents, dtype=np.int64).reshape(-1, len(shape))
        boxes = [own]
        for d in range(len(shape)):
            boxes.append(own.copy())
            boxes[-1][:, d] = [_link_length(self._torus, d, e) for e in own[:, d].tolist()]
        self._corners = [(box * steps) @ corners.T for box in boxes]

    def paid(self, routers: IntArray, links: IntArray | None, amounts: IntArray) -> IntArray:
        """Return every prism's payment for routers and links, and an amount by job it clashes with.

        Without such jobs there are no amounts.
        """
        grids = [routers]
        if links is not None:
            grids += [*links.reshape(self._torus.num_dims, -1)]
        total = np.zeros(len(self._at), dtype=np.int64)
        for grid, corners in zip(grids, self._corners, strict=False):
            if not grid.any():
                continue
            prefix = grid.reshape(self._torus.shape)
            for d in range(self._torus.num_dims):
                beyond = prefix if self._torus.wrap[d] else np.zeros_like(prefix)
                nothing = np.zeros_like(prefix[(slice(None),) * d + (slice(1),)])
                prefix = np.concatenate([nothing, prefix, beyond], axis=d).cumsum(axis=d)
            flat = prefix.ravel()
            for sign, offsets in zip(self._signs, corners.T, strict=True):
                total += sign * flat[self._at + offsets[self.shape_of]]
        if self.clashes is not None and amounts.any():
            total += self.clashes @ amounts
        return total

    def holding(self, router: int) -> BoolArray:
        """Mark the prisms that hold a router."""
        own = np.array(self.extents, dtype=np.int64).reshape(-1, self._torus.num_dims)
        ahead = (np.array(self._torus.coords(router)) - self.origins) % np.array(self._torus.shape)
        return np.asarray((ahead < own[self.shape_of]).all(axis=1))

    def prism(self, number: int) -> Prism:
        """Return a prism by its number."""
        origin = tuple(self.origins[number].tolist())
        return Prism(origin, self.extents[int(self.shape_of[number])])


def _minimal(problem: PlacementProblem, idx: int) -> Iterator[tuple[Extents, IntArray]]:
    """Yield extents, ascending, and the origins of the prisms that `Places` lists."""
    request, free = problem.requests[idx], _Free(problem, idx)
    torus, whole = free.view.turned, problem.whole_routers(request.class_idx)
    entries = entries_of(free.view, [request], whole)
    asked: dict[tuple[int, int], list[int]] = {}
    for footprint, low, high, row, _ in entries.table.tolist():
        for depth in range(low, min(high, int(free.reach.deepest[footprint])) + 1):
            asked.setdefault((footprint, depth), []).append(row)
    done: dict[Extents, int] = {}
    enough: dict[Extents, BoolArray] = {}
    for (footprint, depth), rows in sorted(asked.items()):
        e = free.extents(footprint, depth)
        if depth > done.get(e[:-1], depth):
            continue
        nodes, smaller = free.nodes(footprint, depth), _one_less(e)
        fits = nodes >= request.nodes
        if -1 not in rows:
            fits &= (entries.least[rows].min(axis=0) <= depth).reshape(fits.shape)
        minimal = fits.copy()
        for d, less in enumerate(smaller):
            if less in enough:
                inside = enough[less] | np.roll(enough[less], -1, axis=d)
                if torus.wrap[d] and e[d] == torus.shape[d]:
                    inside = np.asarray(inside.any(axis=d, keepdims=True))
                minimal &= ~inside
        enough[e] = fits
        for gone in [k for k in enough if k[0] < e[0] - 1]:
            del enough[gone]
        if not request.geometries and ((nodes < 0) | fits).all():
            done[e[:-1]] = depth  # what is deeper, or wider, is blocked or holds a smaller one
        if any(depth > done.get(less[:-1], depth) for less in smaller[:-1]):
            done[e[:-1]] = depth
        elif minimal.any():
            yield free.places(e, np.flatnonzero(minimal))


def largest_prism(problem: PlacementProblem, idx: int) -> tuple[int, Prism | None]:
    """Return the most nodes that a request may take in a prism, and such a prism."""
    free, most, best = _Free(problem, idx), 0, None
    for footprint, deepest in enumerate(free.reach.deepest.tolist()):
        room = int(free.view.area[footprint]) * problem.torus.nodes_per_router
        for depth in range(most // room + 1, deepest + 1):
            nodes = free.nodes(footprint, depth)
            at = int(nodes.argmax())
            if nodes.flat[at] > most:
                most = int(nodes.flat[at])
                extents, [origin] = free.places(free.extents(footprint, depth), np.array([at]))
                best = Prism(tuple(origin.tolist()), extents)
    return most, best


def _link_length(torus: Torus, dim: int, extent: int) -> int:
    """Return how many links of each of its rows a prism uses along a dimension."""
    return torus.shape[dim] if uses_whole_ring(torus, dim, extent) else extent - 1


def _one_less(extents: Extents) -> list[Extents]:
    """Return extents with each of them less by one."""
    return [(*extents[:d], e - 1, *extents[d + 1 :]) for d, e in enumerate(extents)]
