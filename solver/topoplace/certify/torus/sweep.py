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

from dataclasses import dataclass

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
from topoplace.types import BoolArray, IntArray

NONE = -(1 << 62)
"""Stands for "no candidate": below every gain (see `packing.LARGEST`)."""

BLOCK = 1 << 33
"""Above the nodes of any machine, so that one blocked router makes every count negative."""


@dataclass(frozen=True)
class Group:
    """Requests of one class, region and kind of communication, with the same link prices.

    `usable` are the usable nodes of the class per router. No prism of theirs contains `blocked`
    routers or uses `closed` links. `needs` are their node counts, ascending, each once.
    """

    usable: IntArray
    blocked: BoolArray
    closed: BoolArray
    link_prices: IntArray
    needs: IntArray


@dataclass(frozen=True)
class Gains:
    """What makes a candidate's gain, the request's own constants left out."""

    router_prices: IntArray
    to_shape: int
    to_boundary: int


class Best:
    """For every need, ascending, the largest gain so far of candidates that hold that many nodes.

    The gains are `reach`, which falls with the need.
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


class Sweep:
    """One run over all prisms that cover some routers, for several groups at once.

    Its sums over footprints are arrays ``(channel, last, dimension 0, 1, ...)``. The first channels
    are the gains of all groups, then come their counts, then free routers if the boundary counts.
    Links of the dimensions to come follow, the next one's last, as gains and counts of all groups;
    a dimension whose links matter to nobody has none.
    """

    def __init__(
        self, instance: Instance, groups: list[Group], gains: Gains, inside: frozenset[int]
    ) -> None:
        self._instance, self._torus = instance, instance.torus
        self._tables = ShapeTables(instance)
        self._groups, self._gains, self._inside = groups, gains, inside
        self._per_node = gains.to_shape * instance.snapshot.weights.idle
        # Prices only grow with the prism; without shape and boundary terms so does the loss.
        self._minimal = not gains.to_shape and not gains.to_boundary
        self._best = [Best(group.needs) for group in groups]
        self._covering = [
            [self._origins_that_cover(dim, e) for e in range(n + 1) if inside]
            for dim, n in enumerate(self._torus.shape)
        ]

    def run(self) -> list[IntArray]:
        """Return per group the largest gain for each of its needs (`NONE`: none)."""
        gains = [-self._gains.router_prices - self._per_node * g.usable for g in self._groups]
        counts = [g.usable - BLOCK * g.blocked.astype(np.int64) for g in self._groups]
        boundary = self._gains.to_boundary
        free = [-boundary * self._instance.free.astype(np.int64)] if boundary else []
        paid = [-g.link_prices for g in self._groups]
        closed = [-BLOCK * g.closed.astype(np.int64) for g in self._groups]
        links = np.stack([*paid, *closed]).reshape(2 * len(gains), self._torus.num_dims, -1)
        self._has_links = np.asarray(links.any(axis=(0, 2))).tolist()
        of_links = [links[:, d] for d in np.flatnonzero(self._has_links)[::-1]]
        own = np.stack([*gains, *counts, *free])
        rows = np.concatenate([own, *of_links]).reshape(-1, *self._torus.shape)
        self._descend(np.ascontiguousarray(np.moveaxis(rows, -1, 1)), ())
        return [best.reach for best in self._best]

    def _origins_that_cover(self, dim: int, extent: int) -> BoolArray:
        """Mark the canonical origins whose interval covers all that must be covered."""
        n = self._torus.shape[dim]
        origins = np.arange(num_origins(n, self._torus.wrap[dim], extent))
        coords = np.array(sorted(self._inside), dtype=np.int64) // self._torus.strides[dim] % n
        return np.asarray(((coords[:, None] - origins) % n < extent).all(axis=0))

    def _descend(self, sums: IntArray, footprint: tuple[int, ...]) -> None:
        """Go through the extents of the next dimension, from the sums over a footprint so far."""
        dim, num = len(footprint), len(self._groups)
        if dim == self._torus.num_dims - 1:
            self._search_columns(sums, footprint)
            return
        axis, n, wraps = 2 + dim, self._torus.shape[dim], self._torus.wrap[dim]
        prefix = prefix_sums(sums, axis, wraps)
        rest = len(sums) - 2 * num * int(self._has_links[dim])
        free = padded(sums[2 * num : 2 * num + 1], axis, wraps) if self._gains.to_boundary else None
        for extent in range(1, n + 1):
            origins = num_origins(n, wraps, extent)
            wider = windows(prefix[:rest], axis, extent, origins)
            if self._has_links[dim]:
                length = self._tables.link_length(dim, extent)
                wider[: 2 * num] += windows(prefix[rest:], axis, length, origins)
            if free is not None and extent < n:
                wider[:num] += faces(free, axis, extent, origins)
            counts = wider[num : 2 * num]
            # What blocks the thinnest prism of a footprint blocks every one that contains it.
            if (counts < 0).all():
                return
            if self._inside:
                covering = self._covering[dim][extent]
                if covering.any():
                    self._descend(wider.compress(covering, axis), (*footprint, extent))
                continue  # a wider one may hold what must be covered the other way round a ring
            self._descend(wider, (*footprint, extent))
            if self._minimal and self._all_served(counts):
                return

    def _all_served(self, counts: IntArray) -> bool:
        """Tell whether no origin can gain from a wider footprint: all blocked, or enough inside."""
        return all(
            bool(((c < 0) | (c >= group.needs[-1])).all())
            for c, group in zip(counts, self._groups, strict=True)
        )

    def _search_columns(self, sums: IntArray, footprint: tuple[int, ...]) -> None:
        n, wraps, num = self._torus.shape[-1], self._torus.wrap[-1], len(self._groups)
        columns = sums.reshape(len(sums), n, -1)
        consts = self._shape_gains(footprint, n)
        ends = padded(columns[2 * num], 0, wraps) if self._gains.to_boundary else None
        for g, best in enumerate(self._best):
            per_depth = int(columns[num + g].max())
            if per_depth > 0:
                of_gains, of_counts = (self._column(columns, at) for at in (g, num + g))
                depths = range(-(-int(best.needs[0]) // per_depth), n + 1)
                self._search_column(best, depths, of_counts, of_gains, ends, consts)

    def _column(self, columns: IntArray, channel: int) -> _Column:
        wraps, links = self._torus.wrap[-1], None
        if self._has_links[-1]:
            links = columns[channel - 2 * len(self._groups)]
        return _Column(
            prefix_sums(columns[channel], 0, wraps),
            prefix_sums(links, 0, wraps) if links is not None and links.any() else None,
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
            length = self._tables.link_length(-1, depth)
            counts = counts_of.windows(depth, length, num, live)
            if int(counts.max()) < 0:
                return
            if self._inside:  # too few nodes elsewhere, but not blocked for good
                at = np.arange(num) if live is None else live
                elsewhere = ~self._covering[-1][depth][at // width]
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
    """Prefix sums along the last dimension, and of its links, None if none of these matters.

    The origins of the footprint are flat behind it.
    """

    prefix: IntArray
    links: IntArray | None

    def windows(self, depth: int, length: int, num: int, live: IntArray | None) -> IntArray:
        """Return the sums over prisms from the first `num` origins, or the live ones of them."""
        before, after = _both(self.prefix, depth, num, live)
        sums: IntArray = after - before
        if self.links is not None:
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
