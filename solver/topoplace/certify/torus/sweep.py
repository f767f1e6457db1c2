"""Best priced candidates of large machines, by running sums over all prisms.

For every footprint (extents in all dimensions but the last) the sums over the footprint are kept
for all origins at once; `Column` then runs through the depths. Requests that differ only in how
many nodes they want, and for what, are one group: a candidate's gain is the same for all of them
up to a constant, and what a request needs is the largest gain among candidates that hold enough.

Links and faces of dimension d are products like the routers of a prism, with another factor in
dimension d only, so they travel beside the routers and join them once d is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from topoplace.certify.torus.instance import BoolArray, Instance, IntArray
from topoplace.certify.torus.solution import ShapeTables
from topoplace.machine import Torus

NONE = -(1 << 62)
"""Stands for "no candidate": below every gain (see `leaf.LARGEST`)."""

BLOCK = 1 << 33
"""Above the nodes of any machine, so that one blocked router makes every count negative."""


def num_origins(n: int, wraps: bool, extent: int) -> int:
    """Return the number of canonical origins of an extent along a dimension of size `n`."""
    return 1 if extent == n else n if wraps else n - extent + 1


@dataclass(frozen=True)
class Windows:
    """Prefix sums along one axis, twice round where it is a ring."""

    prefix: IntArray
    axis: int

    def sums(self, length: int, first: int, stop: int) -> IntArray:
        """Return the sums over `length` positions from the origins ``first..stop-1``."""
        return _cut(self.prefix, self.axis, first + length, stop + length) - _cut(
            self.prefix, self.axis, first, stop
        )


def windows(values: IntArray, axis: int, wraps: bool) -> Windows:
    """Return the prefix sums of an array along an axis."""
    n = values.shape[axis]
    shape = list(values.shape)
    shape[axis] = (2 * n if wraps else n) + 1
    prefix = np.zeros(shape, dtype=np.int64)
    np.cumsum(values, axis=axis, out=_cut(prefix, axis, 1, n + 1))
    if wraps:
        once = _cut(prefix, axis, n, n + 1)
        np.add(_cut(prefix, axis, 1, n + 1), once, out=_cut(prefix, axis, n + 1, 2 * n + 1))
    return Windows(prefix, axis)


@dataclass(frozen=True)
class Faces:
    """An array along one axis with what lies before its first position and after its last."""

    padded: IntArray
    axis: int

    def sums(self, extent: int, first: int, stop: int) -> IntArray:
        """Return what lies at both ends of an interval from the origins ``first..stop-1``."""
        return _cut(self.padded, self.axis, first, stop) + _cut(
            self.padded, self.axis, first + extent + 1, stop + extent + 1
        )


def faces(values: IntArray, axis: int, wraps: bool) -> Faces:
    """Return an array padded for face sums: by itself on a ring, by nothing on a line."""
    n = values.shape[axis]
    if wraps:
        parts: Sequence[IntArray] = (_cut(values, axis, n - 1, n), values, values)
    else:
        edge = np.zeros_like(_cut(values, axis, 0, 1))
        parts = (edge, values, edge)
    return Faces(np.concatenate(parts, axis=axis), axis)


def _cut(array: IntArray, axis: int, start: int, stop: int) -> IntArray:
    return array[(slice(None),) * axis + (slice(start, stop),)]


def origins_that_cover(torus: Torus, routers: frozenset[int], dim: int, extent: int) -> BoolArray:
    """Mark the canonical origins along a dimension whose interval covers all of some routers."""
    n = torus.shape[dim]
    origins = np.arange(num_origins(n, torus.wrap[dim], extent))
    coords = np.array(sorted(routers), dtype=np.int64) // torus.strides[dim] % n
    return np.asarray(((coords[:, None] - origins) % n < extent).all(axis=0))


@dataclass(frozen=True)
class Group:
    """Requests of one class, region and kind of communication, with the same link prices.

    Attributes
    ----------
    usable
        Usable nodes of the class per router, shape ``(num_routers,)``.
    blocked
        Routers that no prism of theirs contains, shape ``(num_routers,)``.
    closed
        Links that no prism of theirs uses, shape ``(num_links,)``; None if there are none.
    link_prices
        What they pay per link, shape ``(num_links,)``; None if nothing.
    needs
        Their node counts, ascending, each once.
    """

    usable: IntArray
    blocked: BoolArray
    closed: BoolArray | None
    link_prices: IntArray | None
    needs: IntArray


@dataclass(frozen=True)
class Gains:
    """What makes a candidate's gain, the request's own constants left out."""

    router_prices: IntArray
    to_shape: int
    to_boundary: int


@dataclass(frozen=True)
class _Layer:
    """The sums over a footprint so far; arrays are ``(channel, last, dimension 0, 1, ...)``.

    Channels 2g and 2g+1 are the gains and the counts of group g. Links and faces are listed for
    the dimensions still to come, None where nothing is charged or closed; faces have one channel.
    """

    base: IntArray
    links: tuple[IntArray | None, ...]
    faces: tuple[IntArray | None, ...]
    extents: tuple[int, ...]

    def only(self, axis: int, origins: IntArray) -> _Layer:
        """Return the sums from some origins along an axis."""
        return replace(
            self,
            base=self.base.take(origins, axis),
            links=tuple(None if x is None else x.take(origins, axis) for x in self.links),
            faces=tuple(None if x is None else x.take(origins, axis) for x in self.faces),
        )


class Sweep:
    """One run over all prisms that cover some routers, for several groups at once."""

    def __init__(
        self, instance: Instance, groups: list[Group], gains: Gains, inside: frozenset[int]
    ) -> None:
        self._torus = instance.torus
        self._tables = ShapeTables(instance)
        self._inside = inside
        self._groups = groups
        self._gains = gains
        self._per_node = gains.to_shape * instance.snapshot.weights.idle
        # Prices only grow with the prism; without shape and boundary terms so does the loss.
        self._minimal = not gains.to_shape and not gains.to_boundary
        self._best = [Best(group.needs) for group in groups]
        last = self._torus.num_dims - 1
        self._link_lengths = [
            self._tables.link_length(last, e) if e else 0
            for e in range(self._torus.shape[last] + 1)
        ]
        self._free = instance.free
        self._covering = None
        if inside:
            self._covering = [
                origins_that_cover(self._torus, inside, last, e)
                for e in range(self._torus.shape[last] + 1)
            ]

    def run(self) -> list[IntArray]:
        """Return per group the largest gain for each of its needs (`column.NONE`: none)."""
        self._descend(self._first_layer(), 0)
        return [best.reach for best in self._best]

    def _first_layer(self) -> _Layer:
        base, links = [], []
        for group in self._groups:
            base.append(-self._gains.router_prices - self._per_node * group.usable)
            base.append(group.usable - BLOCK * group.blocked.astype(np.int64))
            zero = np.zeros(self._torus.num_links, dtype=np.int64)
            links.append(zero if group.link_prices is None else -group.link_prices)
            links.append(zero if group.closed is None else -BLOCK * group.closed.astype(np.int64))
        stacked = np.stack(links).reshape(len(links), self._torus.num_dims, -1)
        shape = self._torus.shape
        free = [-self._gains.to_boundary * self._free.astype(np.int64)]
        return _Layer(
            self._grid(np.stack(base)),
            tuple(
                self._grid(stacked[:, d]) if stacked[:, d].any() else None
                for d in range(len(shape))
            ),
            tuple(self._grid(np.stack(free)) if self._gains.to_boundary else None for _ in shape),
            (),
        )

    def _grid(self, rows: IntArray) -> IntArray:
        return np.ascontiguousarray(np.moveaxis(rows.reshape(-1, *self._torus.shape), -1, 1))

    def _descend(self, layer: _Layer, dim: int) -> None:
        if dim == self._torus.num_dims - 1:
            self._search_columns(layer)
            return
        axis, n, wraps = 2 + dim, self._torus.shape[dim], self._torus.wrap[dim]
        sums = _Sums(layer, axis, wraps)
        for extent in range(1, n + 1):
            length = self._tables.link_length(dim, extent)
            wider = sums.layer(extent, num_origins(n, wraps, extent), length, extent < n)
            counts = wider.base[1::2]
            # What blocks the thinnest prism of a footprint blocks every one that contains it.
            if (counts < 0).all():
                return
            if self._inside:
                covering = origins_that_cover(self._torus, self._inside, dim, extent)
                if covering.any():
                    self._descend(wider.only(axis, np.flatnonzero(covering)), dim + 1)
                continue  # a wider one may hold what must be covered the other way round a ring
            self._descend(wider, dim + 1)
            if self._minimal and self._all_served(counts):
                return

    def _all_served(self, counts: IntArray) -> bool:
        """Tell whether no origin can gain from a wider footprint: all blocked, or enough inside."""
        return all(
            bool(((c < 0) | (c >= group.needs[-1])).all())
            for c, group in zip(counts, self._groups, strict=True)
        )

    def _search_columns(self, layer: _Layer) -> None:
        last = self._torus.num_dims - 1
        n, wraps = self._torus.shape[last], self._torus.wrap[last]
        consts = self._shape_gains(layer.extents, n)
        face: Faces | None = None
        if layer.faces[0] is not None:
            face = faces(layer.faces[0].reshape(n, -1), 0, wraps)
        for g, (group, best) in enumerate(zip(self._groups, self._best, strict=True)):
            gains, counts = layer.base[2 * g].reshape(n, -1), layer.base[2 * g + 1].reshape(n, -1)
            per_depth = int(counts.max())
            if per_depth <= 0:
                continue
            shallowest = -(-int(group.needs[0]) // per_depth)
            link_gains = link_counts = None
            if layer.links[0] is not None:
                link_gains = _column_windows(layer.links[0][2 * g], n, wraps)
                link_counts = _column_windows(layer.links[0][2 * g + 1], n, wraps)
            Column(
                n,
                wraps,
                windows(counts, 0, wraps),
                windows(gains, 0, wraps),
                link_counts,
                link_gains,
                face,
                self._minimal,
            ).search(
                best,
                range(shallowest, n + 1),
                covering=self._covering,
                link_lengths=self._link_lengths,
                consts=consts,
                per_node=self._per_node,
            )

    def _shape_gains(self, footprint: tuple[int, ...], n: int) -> list[int]:
        """Return what the shapes on a footprint gain, by depth from 0 (unused) to `n`."""
        if not self._gains.to_shape:
            return [0] * (n + 1)
        extents = np.empty((n + 1, len(footprint) + 1), dtype=np.int64)
        extents[:, :-1] = footprint
        extents[:, -1] = np.arange(n + 1)
        scores: list[int] = (self._gains.to_shape * self._tables.scores(extents)).tolist()
        return scores


def _column_windows(values: IntArray, n: int, wraps: bool) -> Windows | None:
    return windows(values.reshape(n, -1), 0, wraps) if values.any() else None


class _Sums:
    """Window sums of a layer along its next dimension."""

    def __init__(self, layer: _Layer, axis: int, wraps: bool) -> None:
        self._layer = layer
        self._base = windows(layer.base, axis, wraps)
        self._links = [None if x is None else windows(x, axis, wraps) for x in layer.links]
        self._faces = [None if x is None else windows(x, axis, wraps) for x in layer.faces[1:]]
        own = layer.faces[0]
        self._own_faces = None if own is None else faces(own, axis, wraps)

    def layer(self, extent: int, num: int, link_length: int, has_faces: bool) -> _Layer:
        """Return the layer of one extent more, this dimension's links and faces joined in."""
        base = self._base.sums(extent, 0, num)
        own, *others = self._links
        if own is not None and extent > 1:
            base += own.sums(link_length, 0, num)
        if self._own_faces is not None and has_faces:
            base[::2] += self._own_faces.sums(extent, 0, num)
        return replace(
            self._layer,
            base=base,
            links=tuple(None if x is None else x.sums(extent, 0, num) for x in others),
            faces=tuple(None if x is None else x.sums(extent, 0, num) for x in self._faces),
            extents=(*self._layer.extents, extent),
        )


# One footprint: all depths along the last dimension.


class Best:
    """The largest gain found so far among candidates with at least so many usable nodes.

    Attributes
    ----------
    needs
        Node counts of the group's requests, ascending, each once.
    reach
        For every need the largest gain among the candidates that hold that many nodes.
    """

    def __init__(self, needs: IntArray) -> None:
        self.needs = needs
        self.reach = np.full(len(needs), NONE, dtype=np.int64)

    def hopeless(self, most: int, gain_limit: int, per_node: int) -> bool:
        """Tell whether no candidate of at most `most` nodes can improve anything.

        A candidate of c nodes gains at most ``gain_limit - per_node * c``.
        """
        top = int(np.searchsorted(self.needs, most, side="right"))
        limits = gain_limit - per_node * self.needs[:top]
        return bool((limits <= self.reach[:top]).all())

    def record(self, counts: IntArray, gains: IntArray, const: int) -> None:
        """Take in candidates; a count below the smallest need is none."""
        top = int(np.searchsorted(self.needs, counts.max(), side="right"))
        if not top:
            return
        # `reach` falls with the need, so what does not beat its last relevant entry is idle.
        floor = int(self.reach[top - 1])
        if int(gains.max()) + const <= floor:
            return
        chosen = np.flatnonzero((gains > floor - const) & (counts >= self.needs[0]))
        if not len(chosen):
            return
        buckets = np.searchsorted(self.needs, counts[chosen], side="right") - 1
        np.maximum.at(self.reach, buckets, gains[chosen] + const)
        self.reach[:] = np.maximum.accumulate(self.reach[::-1])[::-1]


@dataclass(frozen=True)
class Column:
    """One group on one footprint.

    Arrays have the last dimension first and all origins of the footprint flat behind it.

    Attributes
    ----------
    counts, gains
        Usable nodes (far below 0 where blocked) and gains, to be summed along the last dimension.
    link_counts, link_gains
        The same of the links along the last dimension; None if none matters.
    faces
        Gains of the faces at both ends; None if the level does not ask for them.
    minimal
        No candidate gains by growing, so that one which serves every need ends its origin.
    """

    size: int
    wraps: bool
    counts: Windows
    gains: Windows
    link_counts: Windows | None
    link_gains: Windows | None
    faces: Faces | None
    minimal: bool

    def search(
        self,
        best: Best,
        depths: range,
        *,
        covering: list[BoolArray] | None,
        link_lengths: list[int],
        consts: list[int],
        per_node: int,
    ) -> None:
        """Record the candidates of all depths.

        `consts` are the shape gains by depth, and `covering` marks the origins whose prisms cover
        what they must, by depth; None if there is nothing to be covered.

        Origins die as the depth grows: what blocks a prism blocks every deeper one from the same
        origin. While most live, windows are contiguous slices; later they are gathered.
        """
        width = self.counts.prefix.shape[1]
        live: IntArray | None = None
        for depth in depths:
            num = num_origins(self.size, self.wraps, depth)
            span = _Span(num, width, live)
            if live is not None:
                live = span.inside()
                if not len(live):
                    return
                span = _Span(num, width, live)
            counts = span.window(self.counts, depth)
            if depth > 1 and self.link_counts is not None:
                counts += span.window(self.link_counts, link_lengths[depth])
            if int(counts.max()) < 0:
                return
            if covering is not None:  # too few nodes elsewhere, but not blocked for good
                elsewhere = ~span.rows_of(covering[depth])
                counts[elsewhere] = np.minimum(counts[elsewhere], best.needs[0] - 1)
            most = int(counts.max())
            const = consts[depth]
            if most >= best.needs[0] and not best.hopeless(most, const, per_node):
                gains = span.window(self.gains, depth)
                if depth > 1 and self.link_gains is not None:
                    gains += span.window(self.link_gains, link_lengths[depth])
                if self.faces is not None and depth < self.size:
                    gains += span.ends(self.faces, depth)
                best.record(counts, gains, const)
            live = self._survivors(span, counts, int(best.needs[-1]))
            if live is not None and not len(live):
                return

    def _survivors(self, span: _Span, counts: IntArray, largest_need: int) -> IntArray | None:
        """Return the origins worth deepening; None while nearly all are."""
        alive = counts >= 0
        if self.minimal:
            alive &= counts < largest_need
        num = int(np.count_nonzero(alive))
        if span.live is None:
            if 5 * num > 3 * len(counts):
                return None
            return np.flatnonzero(alive)
        return span.live[alive] if 8 * num < 7 * len(counts) else span.live


@dataclass(frozen=True)
class _Span:
    """The origins under search at one depth: the first rows, or the `live` ones of them."""

    num: int
    width: int
    live: IntArray | None

    def inside(self) -> IntArray:
        assert self.live is not None
        return self.live[: np.searchsorted(self.live, self.num * self.width)]

    def rows_of(self, marked: BoolArray) -> BoolArray:
        """Return a mark of every row for every origin under search."""
        if self.live is None:
            return np.repeat(marked, self.width)
        return marked[self.live // self.width]

    def window(self, values: Windows, length: int) -> IntArray:
        if self.live is None:
            return values.sums(length, 0, self.num).ravel()
        flat = values.prefix.ravel()
        ends: IntArray = flat.take(self.live + length * self.width)
        ends -= flat.take(self.live)
        return ends

    def ends(self, values: Faces, extent: int) -> IntArray:
        if self.live is None:
            return values.sums(extent, 0, self.num).ravel()
        flat = values.padded.ravel()
        both: IntArray = flat.take(self.live)
        both += flat.take(self.live + (extent + 1) * self.width)
        return both
