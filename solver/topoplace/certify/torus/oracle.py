"""A placement on a torus or mesh as a packing: its best priced candidates, by running sums.

For every footprint (extents in all dimensions except the longest) the sums over the footprint are
kept for all origins at once; then all depths along the longest are gone through. Requests that
differ only in the number of nodes and their value are one group: a candidate's gain is the same for
all of them up to a constant, and a request needs the largest gain among candidates that hold enough
nodes. A group has a gain for every leaf of a certificate, and for every request that pays for links
of its own: which prisms there are, and how many nodes they hold, is found once for all of these.

Links and faces of dimension d are products like the routers of a prism, with another factor in
dimension d only, so they are carried along with the routers and join them once d is done.
"""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from topoplace.certify.packing import Covers, Prices
from topoplace.certify.torus.instance import Instance, Request
from topoplace.certify.torus.shapes import (
    Box,
    ShapeTables,
    beside,
    faces,
    link_length,
    num_origins,
    of_routers,
    padded,
    prefix_sums,
    windows,
)
from topoplace.machine import Prism
from topoplace.types import BoolArray, IntArray

NONE = -(1 << 62)
"""Stands for "no candidate": below every gain (see `packing.LARGEST`)."""

_FEW = 2
"""Blocked places are left out if all places are more than this multiple of the others."""

_THREADS, _LARGE = 4, 10_000
"""Threads of a sweep at most, and routers from which on they save time."""

_ROOM = 1 << 17
"""Gains of routers that a sweep has at most."""

BLOCK = 1 << 33
"""Above the nodes of any machine, so that one blocked router makes every count negative."""


@dataclass(frozen=True)
class TorusOracle:
    """Candidates are prisms, rows are routers and links (`certify.packing.CheckingOracle`).

    Attributes
    ----------
    costs
        Of requests by name, what they cost in a prism by its extents, shape of the machine; entry
        0 is that of extent 1. Those that are not named cost nothing. With costs, the second and
        last level of a candidate is its cost, negated; None: it is the shape.
    """

    instance: Instance
    costs: Mapping[str, IntArray] | None = None

    @property
    def requests(self) -> tuple[Request, ...]:
        """The queue."""
        return self.instance.requests

    @property
    def coverable(self) -> int:
        """Routers are covered."""
        return self.instance.torus.num_routers

    @property
    def rows(self) -> dict[str, IntArray]:
        """One job per router, and per link by family of link rows."""
        return self.instance.rows

    @cached_property
    def largest(self) -> tuple[int, int, int]:
        """Limits of a candidate's nodes, shape score and faces."""
        torus = self.instance.torus
        value = max((request.value for request in self.requests), default=0)
        if self.costs is not None:
            return value, max((int(c.max()) for c in self.costs.values()), default=0), 0
        return value, ShapeTables(self.instance).largest, 2 * torus.num_dims * torus.num_routers

    def may_replace(self, one: int, other: int) -> bool:
        """Tell whether a request is of the same kind as another and needs no more nodes.

        One with a geometry may replace those alone that have the same one and need as many.
        """
        a, b = self.requests[one], self.requests[other]
        if self.costs is not None and a.tasks != b.tasks:
            return False
        if a.geometries or b.geometries:
            return a.kind == b.kind and a.nodes == b.nodes and a.geometries == b.geometries
        return a.kind == b.kind and a.nodes <= b.nodes

    def among(self, chosen: Sequence[tuple[int, int]]) -> TorusOracle:
        """Return an oracle of some requests, where each needs as few nodes as another."""
        queue = self.requests
        some = tuple(replace(queue[q], nodes=queue[other].nodes) for q, other in chosen)
        return TorusOracle(replace(self.instance, requests=some), self.costs)

    @property
    def _idle(self) -> int:
        """What an idle node takes from the second level."""
        return 0 if self.costs is not None else self.instance.snapshot.weights.idle

    def _table_of(self, request: Request) -> IntArray | None:
        """Return what a request costs by extents; None where shapes count."""
        if self.costs is None:
            return None
        nothing = np.zeros(self.instance.torus.shape, dtype=np.int64)
        return self.costs.get(request.id, nothing)

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return what the best prisms gain."""
        return self.best_of_several([(prices, wanted)])[0]

    def best_of_several(
        self, asked: Sequence[tuple[Prices, Mapping[int, Covers]]]
    ) -> list[dict[int, int | None]]:
        """Return what the best prisms gain at each of several leaves.

        Sweeps go over all prisms, for each set of routers to be covered; requests with a geometry
        have few shapes, which are gone through one by one. A request that has all its nodes of one
        of several kinds gains what it gains most with one of these alone.
        """
        if self._in_ways is not None:
            owners, inner = self._in_ways
            each = [
                (prices, {k: wanted[q] for k, q in enumerate(owners) if q in wanted})
                for prices, wanted in asked
            ]
            found = inner.best_of_several(each)
            return [
                {q: _most(g for k, g in own.items() if owners[k] == q) for q in wanted}
                for own, (_, wanted) in zip(found, asked, strict=True)
            ]
        gains: list[dict[int, int]] = [{} for _ in asked]
        leaves = [replace(p, factors=(*p.factors, 0, 0)[:3]) for p, _ in asked]
        swept: dict[frozenset[int], dict[_Kind, dict[tuple[int, int | None], list[int]]]] = {}
        for at, (leaf, (_, wanted)) in enumerate(zip(leaves, asked, strict=True)):
            for q, covers in wanted.items():
                request = self.requests[q]
                if request.geometries:
                    group = self._group([(leaf, [q])], covers.outside)
                    gain = self._best_of_shapes(request, group, covers.inside, leaf.factors)
                    gains[at][q] = gain
                    continue
                payer = q if f"links of {request.id}" in leaf.rows else None
                alike = None if self.costs is None else id(self.costs.get(request.id))
                kind = covers.outside, (*request.kind, alike)
                of_kind = swept.setdefault(covers.inside, {}).setdefault(kind, {})
                of_kind.setdefault((at, payer), []).append(q)
        most = max(1, _ROOM // self.coverable)
        for inside, kinds in swept.items():
            rows = [
                (kind, at, own) for kind, some in kinds.items() for (at, _), own in some.items()
            ]
            for start in range(0, len(rows), most):
                self._sweep(inside, rows[start : start + most], leaves, gains)
        return [
            {q: self._gain(q, gain, leaf.factors) for q, gain in own.items()}
            for own, leaf in zip(gains, leaves, strict=True)
        ]

    def _sweep(
        self,
        inside: frozenset[int],
        rows: Sequence[tuple[_Kind, int, list[int]]],
        leaves: Sequence[Prices],
        gains: Sequence[dict[int, int]],
    ) -> None:
        """Find the largest gains of prisms that cover some routers.

        Rows have requests of a kind at a leaf that pay for the same links; those of one kind
        follow each other.
        """
        kinds = [(k, [*own]) for k, own in itertools.groupby(rows, key=operator.itemgetter(0))]
        groups = [
            self._group([(leaves[at], own) for _, at, own in some], outside)
            for (outside, _), some in kinds
        ]
        reaches = Sweep(self.instance, groups, inside).run()
        for (_, some), group, reach in zip(kinds, groups, reaches, strict=True):
            for (_, at, own), most in zip(some, reach, strict=True):
                places = np.searchsorted(group.needs, [self.requests[q].nodes for q in own])
                gains[at] |= dict(zip(own, most[places].tolist(), strict=True))

    @cached_property
    def _in_ways(self) -> tuple[list[int], TorusOracle] | None:
        """The oracle in which each kind of a request is one of its own, and whose it is.

        None if no request has several.
        """
        if not any(request.others for request in self.requests):
            return None
        each = [(q, own) for q, request in enumerate(self.requests) for own in request.alone]
        inner = replace(self.instance, requests=tuple(own for _, own in each))
        return [q for q, _ in each], TorusOracle(inner, self.costs)

    def best_charged(
        self, prices: Prices, q: int, covers: Covers, charges: Mapping[Hashable, int]
    ) -> int | None:
        """Return what the best prism of a request gains if some places are charged, one by one.

        A place is a prism, or a set of routers: those of a prism that have nodes for the request.
        """
        prices = replace(prices, factors=(*prices.factors, 0, 0)[:3])
        if self.requests[q].others and self._in_ways is not None:
            owners, inner = self._in_ways
            kinds = (k for k, owner in enumerate(owners) if owner == q)
            usable = self.instance.open_to(self.requests[q])
            return _most(inner._charged(prices, k, covers, charges, usable) for k in kinds)
        usable = self.instance.open_to(self.requests[q])
        return self._charged(prices, q, covers, charges, usable)

    def _charged(
        self,
        prices: Prices,
        q: int,
        covers: Covers,
        charges: Mapping[Hashable, int],
        usable: BoolArray,
    ) -> int | None:
        """Return what `best_charged` does for a request with one kind of nodes.

        `usable` are the routers that have nodes for the request with any of its kinds.
        """
        request, group = self.requests[q], self._group([(prices, [q])], covers.outside)
        charged = prices.factors, charges, usable
        return self._gain(
            q, self._best_of_shapes(request, group, covers.inside, *charged), prices.factors
        )

    def _gain(self, q: int, found: int, factors: tuple[int, ...]) -> int | None:
        """Return what a candidate gains, with what is the same for all of its request."""
        request, idle = self.requests[q], factors[1] * self._idle
        return None if found == NONE else found + factors[0] * request.value + idle * request.nodes

    def _group(
        self, rows: Sequence[tuple[Prices, Sequence[int]]], outside: frozenset[int]
    ) -> Group:
        """Return requests of one kind as sweeps have them, by prices and who pays for links."""
        first = self.requests[rows[0][1][0]]
        usable = self.instance.usable_counts[first.class_idx]
        free = np.zeros_like(usable)
        gains, link_gains = [], []
        for prices, own in rows:
            per_node = prices.factors[1] * self._idle
            gains.append(-prices.rows.get("routers", free) - per_node * usable)
            total = np.zeros(self.instance.torus.num_links, dtype=np.int64)
            for family, price in prices.rows.items():
                if self.requests[own[0]].pays(family):
                    total -= price
            link_gains.append(total)
        factors = np.array([prices.factors for prices, _ in rows], dtype=np.int64)
        blocked = ~self.instance.allowed(first)
        blocked[sorted(outside)] = True
        nodes = [self.requests[q].nodes for _, own in rows for q in own]
        return Group(
            np.array(gains),
            usable - BLOCK * blocked.astype(np.int64),
            np.array(link_gains),
            -BLOCK * self.instance.closed(first.sharing).astype(np.int64),
            np.unique(np.array(nodes, dtype=np.int64)),
            self._table_of(first),
            first.near,
            factors[:, 1],
            factors[:, 2],
        )

    def _best_of_shapes(
        self,
        request: Request,
        group: Group,
        inside: frozenset[int],
        factors: tuple[int, ...],
        charges: Mapping[Hashable, int] = MappingProxyType({}),
        usable: BoolArray | None = None,
    ) -> int:
        """Return the largest gain of a request, shape by shape, `NONE` without a candidate."""
        _, to_shape, to_boundary = factors
        cover = np.zeros(self.coverable, dtype=np.int64)
        cover[sorted(inside)] = 1
        best = NONE
        for extents in self._shapes(request):
            box = Box(self.instance, extents)
            good = box.enough(request) & (box.sums(cover) == len(inside))
            good &= box.sums(group.counts) + box.links(group.link_counts) >= 0
            if request.near is not None:
                good &= box.near(request)
            if not good.any():
                continue
            worth = box.score
            if group.costs is not None:
                worth = -int(group.costs[tuple(e - 1 for e in extents)])
            found = box.sums(group.gains[0]) + box.links(group.link_gains[0]) + to_shape * worth
            if to_boundary:
                found -= to_boundary * box.faces(self.instance.free)
            for place, charge in charges.items():
                assert usable is not None, "places are known by the routers that have nodes"
                self._charge(found, place, charge, box, usable)
            best = max(best, int(found[good].max()))
        return best

    def _shapes(self, request: Request) -> Iterable[tuple[int, ...]]:
        """Return the shapes that a request may have."""
        if not request.geometries:
            return itertools.product(*(range(1, n + 1) for n in self.instance.torus.shape))
        return {(*g.extents[:-1], depth) for g in request.geometries for depth in g.depths}

    def _charge(
        self, found: IntArray, place: Hashable, charge: int, box: Box, usable: BoolArray
    ) -> None:
        """Charge the prism of a shape that is a place, or all with nodes on its routers alone."""
        if isinstance(place, Prism):
            if place.extents == box.extents:
                found[place.origin] -= charge
            return
        assert isinstance(place, frozenset)
        own = np.zeros(self.coverable, dtype=np.int64)
        own[sorted(place)] = 1
        found[(box.sums(usable) == len(place)) & (box.sums(own) == len(place))] -= charge


_Kind = tuple[frozenset[int], Hashable]
"""What requests have in common that have the same prisms, but for the nodes that these hold: the
routers that they may not have, and the rest."""


def _most(gains: Iterable[int | None]) -> int | None:
    """Return the largest gain, None if there is none."""
    return max((gain for gain in gains if gain is not None), default=None)


@dataclass(frozen=True)
class Group:
    """Requests of one class, region and kind of communication.

    Attributes
    ----------
    gains, link_gains
        What routers and links add to the gain of a prism, row by row: rows differ in their leaf, or
        in who pays for links.
    counts, link_counts
        What they add to the nodes that it has: `BLOCK` less than none where it may not be.
    needs
        How many nodes requests need, ascending, each once.
    costs
        What they cost by extents, None where shapes count.
    near
        How many of which routers they have in a prism or next to it.
    to_shape, to_boundary
        By row the factors of a prism's shape or cost, and of its boundary.
    """

    gains: IntArray
    counts: IntArray
    link_gains: IntArray
    link_counts: IntArray
    needs: IntArray
    costs: IntArray | None
    near: tuple[int, frozenset[int]] | None
    to_shape: IntArray
    to_boundary: IntArray


class Best:
    """For every row and need, the largest gain so far of candidates that hold that many nodes.

    Needs ascend. The gains are `reach`, which falls with the need.
    """

    def __init__(self, needs: IntArray, num_rows: int) -> None:
        self.needs = needs
        self.reach = np.full((num_rows, len(needs)), NONE, dtype=np.int64)

    def hopeful(self, most: int, gain_limits: IntArray, per_node: IntArray) -> IntArray:
        """Return the rows in which a candidate of at most `most` nodes may improve something.

        One of c nodes gains at most ``gain_limits - per_node * c``.
        """
        top = int(np.searchsorted(self.needs, most, side="right"))
        limits = gain_limits[:, None] - per_node[:, None] * self.needs[:top]
        return np.flatnonzero((limits > self.reach[:, :top]).any(axis=1))

    def record(self, rows: IntArray, counts: IntArray, gains: IntArray, consts: IntArray) -> None:
        """Take in candidates, some with enough nodes; a count below the smallest need is none.

        `gains` are by row and candidate, without `consts`, those of a row.
        """
        top = int(np.searchsorted(self.needs, counts.max(), side="right"))
        # `reach` falls with the need, so what does not beat its last relevant entry is idle.
        floors = self.reach[rows, top - 1] - consts
        for k in np.flatnonzero(gains.max(axis=1) > floors).tolist():
            reach, own = self.reach[rows[k]], gains[k]
            chosen = np.flatnonzero((own > floors[k]) & (counts >= self.needs[0]))
            buckets = np.searchsorted(self.needs, counts[chosen], side="right") - 1
            np.maximum.at(reach, buckets, own[chosen] + consts[k])
            reach[:] = np.maximum.accumulate(reach[::-1])[::-1]


class Sweep:
    """One run over all prisms that cover some routers, for several groups at once.

    Its sums over footprints are arrays ``(channel, last, place, dimension k, k + 1, ...)``; a place
    is where a footprint begins in the dimensions before k, and left out if all that stands there is
    blocked. The first channels are the gains of all groups, row by row, then come the groups'
    counts, then free routers if the boundary counts. Those of groups with routers near them follow:
    by group how many are in a prism or next to it, and how many are in it. Links of the dimensions
    to come follow, the next one's last, as gains and counts of all groups; a dimension whose links
    matter to nobody has none. Dimensions are taken from the shortest to the longest: that makes the
    fewest footprints, and the fewest sums on the way to them.
    """

    def __init__(self, instance: Instance, groups: Sequence[Group], inside: frozenset[int]) -> None:
        self._instance, self._torus = instance, instance.torus
        self._tables = ShapeTables(instance)
        self._order = sorted(range(self._torus.num_dims), key=lambda d: (self._torus.shape[d], d))
        long = [self._torus.shape[d] > 2 * _THREADS for d in self._order]
        self._split = long.index(True) if any(long) else 0  # the parts differ in this extent
        self._groups, self._inside = groups, inside
        self._near = {g: own.near for g, own in enumerate(groups) if own.near is not None}
        ends = [0, *itertools.accumulate(len(group.gains) for group in groups)]
        self._rows = [slice(*both) for both in itertools.pairwise(ends)]
        self._num_rows = ends[-1]
        self._paying = self._num_rows + len(groups)
        self._to_boundary = np.concatenate([group.to_boundary for group in groups])
        self._bounded = bool(self._to_boundary.any())
        # Prices only grow with the prism; without shape and boundary terms so does the loss.
        self._minimal = not self._bounded and not any(group.to_shape.any() for group in groups)
        self._best: list[Best] = []  # of a part
        self._mine = range(1)
        self._covering = [
            [self._origins_that_cover(dim, e) for e in range(n + 1) if inside]
            for dim, n in enumerate(self._torus.shape)
        ]
        links = [*(g.link_gains for g in groups), np.stack([g.link_counts for g in groups])]
        self._links = np.concatenate(links).reshape(self._paying, self._torus.num_dims, -1)
        self._has_links = np.asarray(self._links.any(axis=(0, 2))).tolist()

    def run(self) -> list[IntArray]:
        """Return per group the largest gain by row and need (`NONE`: none)."""
        own = [row for group in self._groups for row in group.gains]
        own += [group.counts for group in self._groups]
        if self._bounded:
            own.append(self._instance.free.astype(np.int64))
        for near in self._near.values():
            own += 2 * [of_routers(self._torus, near[1])]
        links = [self._links[:, d] for d in self._order[::-1] if self._has_links[d]]
        rows = np.concatenate([np.stack(own), *links]).reshape(-1, *self._torus.shape)
        rows = rows.transpose(0, *(1 + d for d in self._order))
        rows = np.ascontiguousarray(np.moveaxis(rows, -1, 1))[:, :, None]
        threads = min(_THREADS, os.cpu_count() or 1)
        if threads == 1 or self._torus.num_routers < _LARGE:
            return self._part(rows, range(1, 1 << 62))
        with ThreadPoolExecutor(threads) as pool:
            parts = [range(k + 1, 1 << 62, 2 * threads) for k in range(2 * threads)]
            found = list(pool.map(lambda mine: self._part(rows, mine), parts))
        return [np.max(reaches, axis=0) for reaches in zip(*found, strict=True)]

    @property
    def _first_near(self) -> int:
        """The first channel of routers near."""
        return self._paying + self._bounded

    def _part(self, rows: IntArray, mine: range) -> list[IntArray]:
        """Return what `run` does, of prisms with some extents in one dimension alone."""
        part = copy(self)
        part._mine = mine
        part._best = [Best(group.needs, len(group.gains)) for group in self._groups]
        part._descend(rows, ())
        return [best.reach for best in part._best]

    def _origins_that_cover(self, dim: int, extent: int) -> BoolArray:
        """Mark the canonical origins whose interval covers all that must be covered."""
        n = self._torus.shape[dim]
        origins = np.arange(num_origins(n, self._torus.wrap[dim], extent))
        coords = np.array(sorted(self._inside), dtype=np.int64) // self._torus.strides[dim] % n
        return np.asarray(((coords[:, None] - origins) % n < extent).all(axis=0))

    def _covers(self, depth: int, origins: IntArray) -> BoolArray | bool:
        """Tell which prisms of a depth cover all that must be covered along the last dimension."""
        return self._covering[self._order[-1]][depth][origins] if self._inside else True

    def _descend(self, sums: IntArray, footprint: tuple[int, ...]) -> None:
        """Go through the extents of the next dimension, from the sums over a footprint so far."""
        axis, rows, paying = 3, self._num_rows, self._paying
        if len(footprint) == self._torus.num_dims - 1:
            self._search_columns(sums, footprint)
            return
        dim = self._order[len(footprint)]
        n, wraps = self._torus.shape[dim], self._torus.wrap[dim]
        prefix = prefix_sums(sums, axis, wraps)
        rest = len(sums) - paying * int(self._has_links[dim])
        free = padded(sums[paying : paying + 1], axis, wraps) if self._bounded else None
        pays = self._to_boundary.reshape(-1, *(1,) * (sums.ndim - 2))
        for extent in range(1, n + 1):
            origins, length = num_origins(n, wraps, extent), link_length(self._torus, dim, extent)
            counts = windows(prefix[rows:paying], axis, extent, origins)
            if self._has_links[dim]:
                counts += windows(prefix[rest + rows : rest + paying], axis, length, origins)
            some = np.asarray((counts >= 0).any(axis=(0, 1, *range(axis + 1, sums.ndim))))
            # What blocks the thinnest prism of a footprint blocks every one that contains it.
            if not some.any():
                return
            if len(footprint) == self._split and extent not in self._mine:
                continue
            if self._inside:  # a wider one may hold what must be covered the other way round a ring
                some &= self._covering[dim][extent]
            places = np.flatnonzero(some)
            if not len(places):
                continue
            chosen = at = None  # all places, as slices
            if self._inside or _FEW * len(places) < some.size:
                chosen = places
                at = places // origins * prefix.shape[axis] + places % origins
            wider = _grown(prefix[:rest], extent, origins, at)
            if self._has_links[dim]:
                wider[:paying] += _grown(prefix[rest:], length, origins, at)
            if free is not None and extent < n:
                wider[:rows] -= pays * _flat(faces(free, axis, extent, origins), chosen)
            if self._near and extent < n:
                own = slice(self._first_near, self._first_near + 2 * len(self._near))
                next_to = beside(sums[own][1::2], axis, wraps, extent, origins)
                wider[own][::2] += _flat(np.asarray(next_to), chosen)
            self._descend(wider, (*footprint, extent))

    def _search_columns(self, sums: IntArray, footprint: tuple[int, ...]) -> None:
        last = self._order[-1]
        n, wraps = self._torus.shape[last], self._torus.wrap[last]
        columns = sums.reshape(len(sums), n, -1)
        ends = padded(columns[self._paying], 0, wraps) if self._bounded else None
        for g, best in enumerate(self._best):
            per_depth = int(columns[self._num_rows + g].max(initial=-1))
            if per_depth > 0:
                of_gains = self._column(columns, self._rows[g])
                of_counts = self._column(columns, slice(self._num_rows + g, self._num_rows + g + 1))
                depths = range(-(-int(best.needs[0]) // per_depth), n + 1)
                consts = self._shape_gains(footprint, n, self._groups[g])
                near = self._near_of(columns, g)
                self._search_column(g, best, depths, of_counts, of_gains, ends, consts, near)

    def _near_of(self, columns: IntArray, g: int) -> Callable[[int], BoolArray] | None:
        """Return which prisms of a depth have enough routers near them, of a group that asks."""
        if g not in self._near:
            return None
        last, least = self._order[-1], self._near[g][0]
        n, wraps = self._torus.shape[last], self._torus.wrap[last]
        at = self._first_near + 2 * [*self._near].index(g)
        around, inside = columns[at], columns[at + 1]
        prefix = prefix_sums(around, 0, wraps)

        def enough(depth: int) -> BoolArray:
            num = num_origins(n, wraps, depth)
            there = windows(prefix, 0, depth, num) + beside(inside, 0, wraps, depth, num)
            return np.asarray(there.ravel() >= least)

        return enough

    def _column(self, columns: IntArray, channels: slice) -> _Column:
        wraps, links = self._torus.wrap[self._order[-1]], None
        if self._has_links[self._order[-1]]:  # at the end, in the same order
            links = columns[-self._paying :][channels]
        return _Column(
            prefix_sums(columns[channels], 1, wraps),
            prefix_sums(links, 1, wraps) if links is not None and links.any() else None,
        )

    def _shape_gains(self, footprint: tuple[int, ...], n: int, group: Group) -> IntArray:
        """Return what the shapes on a footprint gain, by depth from 0 (unused) to `n`, and row."""
        extents = np.empty((n + 1, len(footprint) + 1), dtype=np.int64)
        extents[:, self._order] = np.array([(*footprint, depth) for depth in range(n + 1)])
        if group.costs is not None:
            return -group.costs[tuple(extents.T - 1)][:, None] * group.to_shape
        if not group.to_shape.any():
            return np.zeros((n + 1, len(group.to_shape)), dtype=np.int64)
        return self._tables.scores(extents)[:, None] * group.to_shape

    def _search_column(
        self,
        g: int,
        best: Best,
        depths: range,
        counts_of: _Column,
        gains_of: _Column,
        ends: IntArray | None,
        consts: IntArray,
        near: Callable[[int], BoolArray] | None,
    ) -> None:
        """Record the candidates of all depths of a group on a footprint.

        Origins die as the depth grows: what blocks a prism blocks every deeper one from the same
        origin. While most live (`live` is None), windows are contiguous slices; later they are
        gathered.
        """
        last, group = self._order[-1], self._groups[g]
        n, wraps = self._torus.shape[last], self._torus.wrap[last]
        width = counts_of.prefix.shape[2]
        idle = self._instance.snapshot.weights.idle if group.costs is None else 0
        per_node = group.to_shape * idle
        live: IntArray | None = None
        for depth in depths:
            num = num_origins(n, wraps, depth) * width
            if live is not None:
                live = live[: np.searchsorted(live, num)]
                if not len(live):
                    return
            length = link_length(self._torus, last, depth)
            counts = counts_of.windows(depth, length, num, live)[0]
            if int(counts.max()) < 0:
                return
            if self._inside or near is not None:  # too few nodes, but not blocked for good
                at = np.arange(num) if live is None else live
                poor = ~(self._covers(depth, at // width) & (near is None or near(depth)[at]))
                counts[poor] = np.minimum(counts[poor], best.needs[0] - 1)
            most = int(counts.max())
            if most >= best.needs[0]:
                rows = best.hopeful(most, consts[depth], per_node)
                if len(rows):
                    gains = gains_of.windows(depth, length, num, live, rows)
                    if ends is not None and depth < n:
                        before, after = _both(ends[None], depth + 1, num, live)
                        gains -= group.to_boundary[rows, None] * (before + after)
                    best.record(rows, counts, gains, consts[depth, rows])
            alive = counts >= 0
            if self._minimal:  # one that serves every need ends its origin
                alive &= counts < best.needs[-1]
            left = int(np.count_nonzero(alive))
            if live is None and 5 * left <= 3 * num:
                live = np.flatnonzero(alive)
            elif live is not None and 8 * left < 7 * len(live):
                live = live[alive]


def _flat(sums: IntArray, places: IntArray | None) -> IntArray:
    """Return sums by place once a footprint is known in one more dimension, all or some."""
    flat = sums.reshape(*sums.shape[:2], -1, *sums.shape[4:])
    return flat if places is None else flat.take(places, axis=2)


def _grown(prefix: IntArray, length: int, num: int, at: IntArray | None) -> IntArray:
    """Return the sums over intervals of a dimension, by place once their origin is part of it.

    Those from the first `num` origins of each place, or some, by where they begin in `prefix`.
    """
    if at is None:
        return _flat(windows(prefix, 3, length, num), None)
    return _flat(prefix, at + length) - _flat(prefix, at)


@dataclass(frozen=True)
class _Column:
    """Prefix sums along the last dimension, and of its links, None if none of these matters.

    Shape ``(channels, positions, origins of the footprint)``.
    """

    prefix: IntArray
    links: IntArray | None

    def windows(
        self,
        depth: int,
        length: int,
        num: int,
        live: IntArray | None,
        channels: IntArray | None = None,
    ) -> IntArray:
        """Return the sums over prisms from the first `num` origins, or the live ones of them."""
        before, after = _both(self.prefix, depth, num, live, channels)
        sums: IntArray = after - before
        if self.links is not None:
            before, after = _both(self.links, length, num, live, channels)
            sums += after
            sums -= before
        return sums


def _both(
    sums: IntArray,
    shift: int,
    num: int,
    live: IntArray | None,
    channels: IntArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Return entries at the first `num` places, or the live ones, and `shift` positions on."""
    flat, shift = sums.reshape(len(sums), -1), shift * sums.shape[2]
    if channels is not None and len(channels) < len(flat):
        if live is not None:
            return flat[channels[:, None], live], flat[channels[:, None], live + shift]
        return flat[channels, :num], flat[channels, shift : shift + num]
    if live is None:
        return flat[:, :num], flat[:, shift : shift + num]
    return flat.take(live, axis=1), flat.take(live + shift, axis=1)
