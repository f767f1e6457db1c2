"""The prisms that a job may have, and the cheapest of them at prices of routers, links and jobs.

They are found shape by shape, by sums over all origins at once, and listed. The payments of a
listed prism are differences of prefix sums at the corners of its box, and of one box of links by
dimension.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from topoplace.machine import Prism, Torus, uses_whole_ring
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.snapshot.geometry import Geometry
from topoplace.types import BoolArray, IntArray

Extents = tuple[int, ...]

_BLOCK = 1 << 40  # above the nodes of any machine: one blocked router makes a count negative


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


class _Boxes:
    """Sums over the prisms of a machine, extents by extents, from all origins at once."""

    def __init__(self, torus: Torus) -> None:
        self._torus = torus

    def blocked_and_usable(self, problem: PlacementProblem, idx: int) -> tuple[IntArray, IntArray]:
        """Return numbers of routers and links that add up to the nodes that a request may take.

        Routers and links that it may not have make the sum of a prism negative.
        """
        r = problem.requests[idx]
        counts = problem.state.usable_per_router[r.class_idx]
        counts = counts - _BLOCK * ~problem.allowed_routers(r)
        return counts, -_BLOCK * problem.closed_links(r.communication).astype(np.int64)

    def _along(self, grid: IntArray, dim: int, length: int) -> IntArray:
        """Return the sums over `length` positions along a dimension, from every origin."""
        n, cut = self._torus.shape[dim], (slice(None),) * dim
        prefix = self._prefix(grid, dim)
        after = prefix[(*cut, slice(length, length + n))]
        return np.asarray(after - prefix[(*cut, slice(0, n))])

    def _prefix(self, grid: IntArray, dim: int) -> IntArray:
        """Return the prefix sums along a dimension, twice round; a mesh has nothing beyond."""
        beyond = grid if self._torus.wrap[dim] else np.zeros_like(grid)
        nothing = np.zeros_like(grid[(slice(None),) * dim + (slice(1),)])
        return np.concatenate([nothing, grid, beyond], axis=dim).cumsum(axis=dim)

    def canonical(self, extents: Extents) -> BoolArray:
        """Mark the origins that prisms of some extents may have."""
        marks = np.ones(self._torus.shape, dtype=bool)
        for d, (e, n, wraps) in enumerate(
            zip(extents, self._torus.shape, self._torus.wrap, strict=True)
        ):
            num = 1 if e == n else n if wraps else n - e + 1
            marks[(slice(None),) * d + (slice(num, None),)] = False
        return marks

    def sums(
        self, every: Iterable[Extents], routers: IntArray, links: IntArray, done: dict[Extents, int]
    ) -> Iterator[tuple[Extents, IntArray]]:
        """Yield extents, and the sums of their prisms over routers and links, by origin.

        Extents ascend; those deeper than where their first ones are `done` by then are passed over.
        Links of a dimension join the routers after it: before, they have the same factors.
        """
        torus, last = self._torus, self._torus.num_dims - 1
        heads: dict[Extents, list[IntArray]] = {}
        grids = [routers, *links.reshape(last + 1, -1)]
        heads[()] = [grid.reshape(torus.shape) for grid in grids]
        for e in every:
            for k in range(1, last + 1):
                if e[:k] not in heads:
                    for gone in [h for h in heads if len(h) >= k]:
                        del heads[gone]
                    heads[e[:k]] = self._joined(heads[e[: k - 1]], k - 1, e[k - 1])
            if e[-1] <= done.get(e[:-1], e[-1]):
                [total] = self._joined(heads[e[:-1]], last, e[-1])
                yield e, total

    def _joined(self, grids: list[IntArray], dim: int, extent: int) -> list[IntArray]:
        """Return the sums along a dimension, of routers and of the links of those after it."""
        base = self._along(grids[0], dim, extent)
        length = self._link_length(dim, extent)
        if length and grids[1].any():
            base = base + self._along(grids[1], dim, length)
        rest = (self._along(grid, dim, extent) if grid.any() else grid for grid in grids[2:])
        return [base, *rest]

    def _link_length(self, dim: int, extent: int) -> int:
        """Return how many links of each of its rows a prism uses along a dimension."""
        ring = uses_whole_ring(self._torus, dim, extent)
        return self._torus.shape[dim] if ring else extent - 1


class Places(_Boxes):
    """The prisms that a request may have with the running jobs in place.

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
        super().__init__(problem.torus)
        self._request = problem.requests[idx]
        found = [*self._listed(problem, idx)]
        self.extents = [extents for extents, _ in found]
        sizes = [len(at) for _, at in found]
        self.shape_of = np.repeat(np.arange(len(found)), sizes)
        at = np.concatenate([np.zeros(0, dtype=np.int64), *(at for _, at in found)])
        self.origins = np.stack(np.unravel_index(at, self._torus.shape), axis=1)
        self.clashes = None
        if standing is not None:
            starts = np.cumsum([0, *sizes])
            parts = [sp.csr_matrix((0, len(standing.closes)), dtype=np.int64)]
            for extents, (a, b) in zip(self.extents, itertools.pairwise(starts), strict=True):
                meeting = standing.meeting(self._torus, extents, self.origins[a:b])
                parts.append(sp.csr_matrix(meeting.astype(np.int64)))
            self.clashes = sp.vstack(parts, format="csr")
        self._place_corners()

    def _listed(self, problem: PlacementProblem, idx: int) -> Iterator[tuple[Extents, IntArray]]:
        """Yield extents and the origins of their prisms, flat."""
        r, torus = self._request, self._torus
        counts, closed = self.blocked_and_usable(problem, idx)
        whole = problem.whole_routers(r.class_idx)
        asked: dict[Extents, list[Geometry]] = {}
        for geometry in r.geometries:
            for depth in geometry.depths:
                asked.setdefault((*geometry.extents[:-1], depth), []).append(geometry)
        every = sorted(asked) or itertools.product(*(range(1, n + 1) for n in torus.shape))
        least = -(-r.nodes // torus.nodes_per_router)
        done: dict[Extents, int] = {}
        enough: dict[Extents, BoolArray] = {}
        for e, sums in self.sums((e for e in every if math.prod(e) >= least), counts, closed, done):
            canonical, smaller = self.canonical(e), _one_less(e)
            fits = (sums >= r.nodes) & canonical
            if any(g.max_depth is not None for g in asked.get(e, ())):
                fits &= self._pencils(e, asked[e], sums >= r.nodes, whole)
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
            if not asked and ((sums < 0) | fits)[canonical].all():
                done[e[:-1]] = e[-1]  # deeper or wider prisms are blocked or hold a smaller one
            if any(less[-1] > done.get(less[:-1], less[-1]) for less in smaller[:-1]):
                done[e[:-1]] = e[-1]
            elif minimal.any():
                yield e, np.flatnonzero(minimal)

    def _pencils(
        self, extents: Extents, asked: Sequence[Geometry], plain: BoolArray, whole: BoolArray
    ) -> BoolArray:
        """Mark where an alternative of the geometry fits (see `Geometry`)."""
        last = self._torus.num_dims - 1
        deep = self._along(whole.astype(np.int64).reshape(plain.shape), last, extents[last])
        found = np.zeros_like(plain)
        for geometry in asked:
            if geometry.max_depth is None:
                found |= plain
                continue
            short = (deep < geometry.extents[-1]).astype(np.int64)
            for d in range(last):
                short = self._along(short, d, extents[d])
            found |= short == 0
        return found

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
            boxes[-1][:, d] = [self._link_length(d, e) for e in own[:, d].tolist()]
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
                prefix = self._prefix(prefix, d)
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


def largest_prism(problem: PlacementProblem, idx: int) -> tuple[int, Prism | None]:
    """Return the most nodes that a request may take in a prism, and a prism with that number."""
    torus, boxes = problem.torus, _Boxes(problem.torus)
    counts, closed = boxes.blocked_and_usable(problem, idx)
    most, best = 0, None
    done: dict[Extents, int] = {}
    every = itertools.product(*(range(1, n + 1) for n in torus.shape))
    for extents, sums in boxes.sums(every, counts, closed, done):
        smaller = [less[:-1] for less in _one_less(extents)[:-1]]
        found = np.where(boxes.canonical(extents), sums, -1)
        at = int(found.argmax())
        if found.flat[at] > most:
            origin = np.unravel_index(at, torus.shape)
            most, best = int(found.flat[at]), Prism(tuple(int(o) for o in origin), extents)
        if found.max() < 0 or any(done.get(head, extents[-1]) < extents[-1] for head in smaller):
            done[extents[:-1]] = extents[-1]  # deeper or wider prisms are blocked as well
    return most, best


def _one_less(extents: Extents) -> list[Extents]:
    """Return extents with each of them less by one."""
    return [(*extents[:d], e - 1, *extents[d + 1 :]) for d, e in enumerate(extents)]
