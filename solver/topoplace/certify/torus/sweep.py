"""Best priced candidates, by running sums over all prisms.

For every footprint (extents in all dimensions but the last) the sums over the footprint are kept
for all origins at once; then all depths along the last dimension are gone through. Requests that
differ only in how many nodes they want, and for what, are one group: a candidate's gain is the same
for all of them up to a constant, and what a request needs is the largest gain among candidates that
hold enough.

Links and faces of dimension d are products like the routers of a prism, with another factor in
dimension d only, so they travel beside the routers and join them once d is done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from topoplace.certify.torus.instance import Instance
from topoplace.certify.torus.shapes import (
    ShapeTables,
    faces,
    num_origins,
    padded,
    prefix_sums,
    windows,
)
from topoplace.machine import Torus
from topoplace.types import BoolArray, IntArray

NONE = -(1 << 62)
"""Stands for "no candidate": below every gain (see `packing.LARGEST`)."""

BLOCK = 1 << 33
"""Above the nodes of any machine, so that one blocked router makes every count negative."""


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
        self._free = instance.free.astype(np.int64)
        self._tables = ShapeTables(instance)
        self._groups, self._gains, self._inside = groups, gains, inside
        self._per_node = gains.to_shape * instance.snapshot.weights.idle
        # Prices only grow with the prism; without shape and boundary terms so does the loss.
        self._minimal = not gains.to_shape and not gains.to_boundary
        self._best = [Best(group.needs) for group in groups]
        last = self._torus.num_dims - 1
        depths = range(1, self._torus.shape[last] + 1)
        self._link_lengths = [0, *(self._tables.link_length(last, e) for e in depths)]
        self._covering = [
            origins_that_cover(self._torus, inside, last, e) for e in (0, *depths) if inside
        ]

    def run(self) -> list[IntArray]:
        """Return per group the largest gain for each of its needs (`NONE`: none)."""
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
        dims = self._torus.num_dims
        stacked = np.stack(links).reshape(len(links), dims, -1)
        free = -self._gains.to_boundary * self._free
        return _Layer(
            self._grid(np.stack(base)),
            tuple(self._grid(x) if x.any() else None for x in np.moveaxis(stacked, 1, 0)),
            (self._grid(free) if self._gains.to_boundary else None,) * dims,
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
        ends = None if layer.faces[0] is None else padded(layer.faces[0].reshape(n, -1), 0, wraps)
        for g, best in enumerate(self._best):
            per_depth = int(layer.base[2 * g + 1].max())
            if per_depth > 0:
                rows = [
                    _Column(
                        prefix_sums(layer.base[channel].reshape(n, -1), 0, wraps),
                        self._links_of(layer.links[0], channel),
                    )
                    for channel in (2 * g + 1, 2 * g)
                ]
                depths = range(-(-int(best.needs[0]) // per_depth), n + 1)
                self._search_column(best, depths, rows[0], rows[1], ends, consts)

    def _links_of(self, links: IntArray | None, channel: int) -> IntArray | None:
        if links is None or not links[channel].any():
            return None
        return prefix_sums(links[channel].reshape(len(links[channel]), -1), 0, self._torus.wrap[-1])

    def _shape_gains(self, footprint: tuple[int, ...], n: int) -> list[int]:
        """Return what the shapes on a footprint gain, by depth from 0 (unused) to `n`."""
        if not self._gains.to_shape:
            return [0] * (n + 1)
        extents = np.empty((n + 1, len(footprint) + 1), dtype=np.int64)
        extents[:, :-1] = footprint
        extents[:, -1] = np.arange(n + 1)
        scores: list[int] = (self._gains.to_shape * self._tables.scores(extents)).tolist()
        return scores

    def _search_column(
        self,
        best: Best,
        depths: range,
        counts_of: _Column,
        gains_of: _Column,
        ends: IntArray | None,
        consts: list[int],
    ) -> None:
        """Record the candidates of all depths of a group on a footprint.

        Origins die as the depth grows: what blocks a prism blocks every deeper one from the same
        origin. While most live (`live` is None), windows are contiguous slices; later they are
        gathered.
        """
        n, wraps = self._torus.shape[-1], self._torus.wrap[-1]
        width = counts_of.prefix.shape[1]
        live: IntArray | None = None
        for depth in depths:
            num = num_origins(n, wraps, depth) * width
            if live is not None:
                live = live[: np.searchsorted(live, num)]
                if not len(live):
                    return
            length = self._link_lengths[depth]
            counts = counts_of.windows(depth, length, num, live)
            if int(counts.max()) < 0:
                return
            if self._covering:  # too few nodes elsewhere, but not blocked for good
                at = np.arange(num) if live is None else live
                elsewhere = ~self._covering[depth][at // width]
                counts[elsewhere] = np.minimum(counts[elsewhere], best.needs[0] - 1)
            most, const = int(counts.max()), consts[depth]
            if most >= best.needs[0] and not best.hopeless(most, const, self._per_node):
                gains = gains_of.windows(depth, length, num, live)
                if ends is not None and depth < n:
                    before, after = _both(ends, depth + 1, num, live)
                    gains += before
                    gains += after
                best.record(counts, gains, const)
            alive = counts >= 0
            if self._minimal:  # one that serves every need ends its origin
                alive &= counts < best.needs[-1]
            left = int(np.count_nonzero(alive))
            if live is None and 5 * left <= 3 * num:
                live = np.flatnonzero(alive)
            elif live is not None and 8 * left < 7 * len(live):
                live = live[alive]


@dataclass(frozen=True)
class _Column:
    """Prefix sums along the last dimension, origins of the footprint flat behind it.

    Attributes
    ----------
    links
        The same of the links along the last dimension; None if none matters.
    """

    prefix: IntArray
    links: IntArray | None

    def windows(self, depth: int, length: int, num: int, live: IntArray | None) -> IntArray:
        """Return the sums over prisms from the first `num` origins, or the live ones of them."""
        before, after = _both(self.prefix, depth, num, live)
        sums: IntArray = after - before
        if self.links is not None and depth > 1:
            before, after = _both(self.links, length, num, live)
            sums += after
            sums -= before
        return sums


def _both(rows: IntArray, shift: int, num: int, live: IntArray | None) -> tuple[IntArray, IntArray]:
    """Return entries at the first `num` places, or the live ones, and so many rows after them."""
    flat, shift = rows.ravel(), shift * rows.shape[1]
    if live is None:
        return flat[:num], flat[shift : shift + num]
    return flat.take(live), flat.take(live + shift)


class _Sums:
    """Window sums of a layer along its next dimension."""

    def __init__(self, layer: _Layer, axis: int, wraps: bool) -> None:
        self._layer, self._axis = layer, axis
        self._base = prefix_sums(layer.base, axis, wraps)
        self._links = [None if x is None else prefix_sums(x, axis, wraps) for x in layer.links]
        self._faces = [None if x is None else prefix_sums(x, axis, wraps) for x in layer.faces[1:]]
        own = layer.faces[0]
        self._own_faces = None if own is None else padded(own, axis, wraps)

    def layer(self, extent: int, num: int, link_length: int, has_faces: bool) -> _Layer:
        """Return the layer of one extent more, this dimension's links and faces joined in."""
        base = windows(self._base, self._axis, extent, num)
        own, *others = self._links
        if own is not None and extent > 1:
            base += windows(own, self._axis, link_length, num)
        if self._own_faces is not None and has_faces:
            base[::2] += faces(self._own_faces, self._axis, extent, num)
        return replace(
            self._layer,
            base=base,
            links=tuple(self._along(x, extent, num) for x in others),
            faces=tuple(self._along(x, extent, num) for x in self._faces),
            extents=(*self._layer.extents, extent),
        )

    def _along(self, prefix: IntArray | None, extent: int, num: int) -> IntArray | None:
        return None if prefix is None else windows(prefix, self._axis, extent, num)
