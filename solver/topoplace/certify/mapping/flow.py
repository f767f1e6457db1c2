"""What a flow proves of all selections in a window (docs/proofs-mapping.md, "Pencils")."""

from __future__ import annotations

import numpy as np

from topoplace.certify.integers import IntArray, require_room
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.mapping.layout import Window
from topoplace.certify.report import RefusedError
from topoplace.result.mapping import FlowCertificate

SOURCE, SINK = -1, -2

Arcs = tuple[IntArray, IntArray, IntArray]
"""Tails, heads and capacities."""


def window_value(instance: Instance, window: Window, flow: FlowCertificate) -> int:
    """Return the hop-bytes that a flow proves of every selection in the window.

    Raises
    ------
    RefusedError
        If it is no flow of the threshold network, or some pair of cells is mixed.
    """
    terms = _Terms(instance, window)
    return terms.constant + _flow_value(window, terms.arcs(), flow)


class _Terms:
    """Bytes between cells, split as the proof splits them."""

    def __init__(self, instance: Instance, window: Window) -> None:
        torus, q = instance.torus, window.pencil
        ends = [window.cells[tasks] for tasks in (instance.sources, instance.targets)]
        apart = (ends[0] != ends[1]).any(axis=1)
        here, there = (end[apart] for end in ends)
        self._window = window
        sizes = instance.sizes[apart]
        steps = np.abs(here - there)
        rings = np.asarray(torus.wrap)
        across = np.where(rings, np.minimum(steps, np.asarray(torus.shape) - steps), steps)
        across[:, q] = 0
        self.constant = int(across.sum(axis=1) @ sizes)
        is_low = here[:, q] <= there[:, q]
        first, second = (window.pencil_of(c) * window.levels + c[:, q] for c in (here, there))
        pairs = np.stack([np.where(is_low, first, second), np.where(is_low, second, first)])
        (self._low, self._high), which = np.unique(pairs, axis=1, return_inverse=True)
        # sums of bytes, and of bytes times distances above: see `Instance`
        self._sizes = np.zeros(len(self._low), dtype=np.int64)
        np.add.at(self._sizes, which.ravel(), sizes)
        gap = self._high % window.levels - self._low % window.levels
        slack, n = window.depth - window.levels, torus.shape[q]
        self._far = np.zeros(len(gap), dtype=bool)
        if torus.wrap[q]:
            self._far = 2 * (gap - slack) >= n
            if (~self._far & (2 * (gap + slack) > n)).any():
                raise RefusedError("a pair of cells may lie nearer either way round the ring")
            self.constant += (n - window.depth + 1) * int(self._sizes[self._far].sum())

    def arcs(self) -> Arcs:
        """Return the arcs of finite capacity, parallel ones not yet added up."""
        steps = self._window.depth - 1
        thresholds = np.arange(steps)
        near = ~self._far
        low, high = ((c[:, None] * steps + thresholds) for c in (self._low, self._high))
        sizes = np.repeat(self._sizes[:, None], steps, axis=1)
        source = np.full_like(low[self._far], SOURCE)
        sink = np.full_like(source, SINK)
        tails = [low[near], high[near], source, low[self._far]]
        heads = [high[near], low[near], high[self._far], sink]
        capacities = [sizes[near], sizes[near], sizes[self._far], sizes[self._far]]
        joined = [np.concatenate([p.ravel() for p in part]) for part in (tails, heads, capacities)]
        return joined[0], joined[1], joined[2]


def _flow_value(window: Window, finite: Arcs, flow: FlowCertificate) -> int:
    """Check a flow against the network and return its value."""
    if not len(flow.tails) == len(flow.heads) == len(flow.flows):
        raise RefusedError("the lists of the flow differ in length")
    count = window.usable.shape[0] * window.levels * (window.depth - 1)
    require_room((count + 2) ** 2, "the number of an arc")
    given = [np.asarray(part, dtype=np.int64) for part in (flow.tails, flow.heads, flow.flows)]
    tails, heads, amounts = given
    ends = np.concatenate([tails, heads])
    if len(ends) and (ends.min() < SINK or ends.max() >= count):
        raise RefusedError("the flow names a vertex that the network does not have")
    if (amounts < 0).any():
        raise RefusedError("a flow is negative")
    arcs, carried = _added(tails, heads, amounts, count)
    known, capacities = _added(*finite, count)
    endless = np.unique(_keys(*_endless(window), count))
    is_endless = np.isin(arcs, endless)
    at = np.minimum(np.searchsorted(known, arcs), max(0, len(known) - 1))
    room = np.zeros(len(arcs), dtype=object)
    if len(known):
        room = np.where(known[at] == arcs, capacities[at], 0)
    over = ~is_endless & (carried > room).astype(bool)
    if over.any():
        raise RefusedError(f"{int(over.sum())} arcs carry more than their capacity")
    excess = np.zeros(count + 2, dtype=object)
    np.add.at(excess, heads, amounts.astype(object))
    np.subtract.at(excess, tails, amounts.astype(object))
    if (excess[:count] != 0).any():
        raise RefusedError("the flow is not conserved at a vertex")
    return -int(excess[SOURCE])  # source and sink are the last two entries


def _keys(tails: IntArray, heads: IntArray, count: int) -> IntArray:
    keys: IntArray = (tails - SINK) * (count + 2) + heads - SINK
    return keys


def _added(
    tails: IntArray, heads: IntArray, amounts: IntArray, count: int
) -> tuple[IntArray, IntArray]:
    """Add up parallel arcs; amounts become Python integers of any size."""
    keys, which = np.unique(_keys(tails, heads, count), return_inverse=True)
    sums = np.zeros(len(keys), dtype=object)
    np.add.at(sums, which.ravel(), amounts.astype(object))
    return keys, sums


def _endless(window: Window) -> tuple[IntArray, IntArray]:
    """Return tails and heads of the arcs without a capacity."""
    pencils, levels, depth = window.usable.shape[0], window.levels, window.depth
    # vertex "z >= t" for t = 0..depth: the source at 0, the sink at depth
    vertex = np.full((pencils, levels, depth + 1), SOURCE, dtype=np.int64)
    vertex[:, :, depth] = SINK
    inner = np.arange(pencils * levels * (depth - 1), dtype=np.int64)
    vertex[:, :, 1:depth] = inner.reshape(pencils, levels, depth - 1)
    closed = np.repeat(~window.usable[:, None, :], levels, axis=1)
    pairs = [
        (vertex[:, :, 2:depth], vertex[:, :, 1 : depth - 1]),
        (vertex[:, :, :depth][closed], vertex[:, :, 1:][closed]),
        (vertex[:, :-1, :depth], vertex[:, 1:, 1:]),
    ]
    tails, heads = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    return tails, heads
