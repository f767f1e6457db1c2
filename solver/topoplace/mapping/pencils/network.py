"""The threshold network of a window, with the thresholds that holes decide left out.

Vertices are numbered as in docs/proofs-mapping.md, "Pencils"; there are few to decide, as every
level moves over `slack` positions at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.pencils.terms import CellTerms
from topoplace.mapping.pencils.window import PencilWindow

SOURCE, SINK = -1, -2
MAX_CAPACITY = 1 << 61
"""Largest sum of all finite capacities, so that sums of flows stay exact in 64 bits."""


@dataclass(frozen=True)
class Network:
    """Arcs of the network that can carry flow, and its vertices.

    Attributes
    ----------
    tails, heads
        Vertex numbers at the ends of every arc; -1 the source, -2 the sink.
    capacities
        Their capacities; no minimum cut holds an arc of the capacity `infinite`.
    state
        For every vertex number, then the sink and the source: 0 if it is the source or always
        true, 1 if it is the sink or always false, else 2, 3, ... in order of their numbers.
    num_states
        One more than the largest of these.
    infinite
        More than the sum of the finite capacities.
    """

    tails: IntArray
    heads: IntArray
    capacities: IntArray
    state: IntArray
    num_states: int
    infinite: int


def threshold_network(window: PencilWindow, terms: CellTerms) -> Network:
    """Return the network whose minimum cuts are the best selections of a feasible window.

    Raises
    ------
    InputError
        If the bytes are so large that flows would not be exact in 64 bits.
    """
    infinite = 2 * int(terms.weight.sum()) * max(1, window.depth - 1) + 1
    if infinite > MAX_CAPACITY:
        raise InputError(
            f"bytes x positions of a pencil below {MAX_CAPACITY // 2}, to be exact",
            field="bytes",
            value=infinite // 2,
        )
    state, num_states = _states(window)
    arcs = [*_order_arcs(window, state, infinite)]
    far = terms.far(window.slack)
    arcs += _near_arcs(window, terms, ~far)
    if far.any():
        arcs += _far_arcs(window, terms, far)
    tails, heads, capacities = (np.concatenate(parts) for parts in zip(*arcs, strict=True))
    carries = (state[tails] != 1) & (state[heads] != 0)
    return Network(tails[carries], heads[carries], capacities[carries], state, num_states, infinite)


Arcs = tuple[IntArray, IntArray, IntArray]


def _states(window: PencilWindow) -> tuple[IntArray, int]:
    thresholds = np.arange(1, window.depth)
    always = (thresholds <= window.earliest.reshape(-1, 1)).ravel()
    never = (thresholds > window.latest.reshape(-1, 1)).ravel()
    free = ~always & ~never
    state = np.empty(free.size + 2, dtype=np.int64)
    state[:-2] = np.where(always, 0, 1)
    num_free = int(free.sum())
    state[:-2][free] = 2 + np.arange(num_free)
    state[SINK], state[SOURCE] = 1, 0
    return state, 2 + num_free


def _order_arcs(window: PencilWindow, state: IntArray, infinite: int) -> list[Arcs]:
    """Return the infinite arcs between undecided thresholds."""
    steps = window.depth - 1
    free = (state[:-2] >= 2).reshape(window.num_pencils, window.levels, steps)
    numbers = np.arange(free.size).reshape(free.shape)
    both = free[..., :-1] & free[..., 1:]
    blocked = both & ~window.usable[:, None, 1:-1]
    risen = free[:, :-1, :-1] & free[:, 1:, 1:]
    ends = (
        (numbers[..., 1:][both], numbers[..., :-1][both]),
        (numbers[..., :-1][blocked], numbers[..., 1:][blocked]),
        (numbers[:, :-1, :-1][risen], numbers[:, 1:, 1:][risen]),
    )
    return [(tail, head, np.full(len(tail), infinite, dtype=np.int64)) for tail, head in ends]


def _near_arcs(window: PencilWindow, terms: CellTerms, near: NDArray[np.bool_]) -> list[Arcs]:
    """Return the arcs of near and mixed pairs, at the thresholds where the two may differ."""
    low, high, weight = terms.low[near], terms.high[near], terms.weight[near]
    counts = terms.gap[near] + window.slack
    pair = np.repeat(np.arange(len(low)), counts)
    first = np.cumsum(counts) - counts
    threshold = np.arange(len(pair)) - first[pair] + low[pair] % window.levels + 1
    steps = window.depth - 1
    lower, upper = (cell[pair] * steps + threshold - 1 for cell in (low, high))
    across = low[pair] // window.levels != high[pair] // window.levels
    return [
        (upper, lower, weight[pair]),
        # On one pencil the higher level is true wherever the lower one is.
        (lower[across], upper[across], weight[pair][across]),
    ]


def _far_arcs(window: PencilWindow, terms: CellTerms, far: NDArray[np.bool_]) -> list[Arcs]:
    steps = window.depth - 1
    arcs = []
    for cells, end in ((terms.high[far], SOURCE), (terms.low[far], SINK)):
        weight = np.zeros(window.num_pencils * window.levels, dtype=np.int64)
        np.add.at(weight, cells, terms.weight[far])
        linked = np.flatnonzero(weight)
        vertices = (linked[:, None] * steps + np.arange(steps)).ravel()
        ends = np.full(len(vertices), end, dtype=np.int64)
        pair = (ends, vertices) if end == SOURCE else (vertices, ends)
        arcs.append((*pair, np.repeat(weight[linked], steps)))
    return arcs
