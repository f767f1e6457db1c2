"""The last step of the sweep: one footprint and one group, all depths along the last dimension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.windows import Faces, Windows, num_origins

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NONE = -(1 << 62)
"""Stands for "no candidate": below every gain (see `leaf.LARGEST`)."""


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
