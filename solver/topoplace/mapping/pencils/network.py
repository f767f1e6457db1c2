"""The best selection of pencils in a window as a minimum cut, and its bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.graph.python import max_flow

from topoplace.errors import InputError, TopoplaceError
from topoplace.mapping.pencils.space import CellTerms, PencilWindow
from topoplace.result.mapping import FlowCertificate
from topoplace.types import BoolArray, IntArray

# ---- The threshold network of a window, without thresholds decided by unusable routers -----------
# Vertices are numbered as in docs/proofs/mapping.md, "Pencils"; there are few to decide, as every
# level moves over `slack` positions at most.

SOURCE, SINK = -1, -2
MAX_CAPACITY = 1 << 61
"""Largest sum of all finite capacities, so that sums of flows stay exact in 64 bits."""


@dataclass(frozen=True)
class Network:
    """Arcs of the network that can carry flow; no minimum cut holds one of capacity `infinite`.

    `state` has an entry for every vertex number, then for the sink and the source: 0 if it is the
    source or always true, 1 if it is the sink or always false, else 2, 3, ... in order of their
    numbers, all below `num_states`.
    """

    tails: IntArray
    heads: IntArray
    capacities: IntArray
    state: IntArray
    num_states: int
    infinite: int


def threshold_network(window: PencilWindow, terms: CellTerms) -> Network:
    """Return the network whose minimum cuts are the best selections of a feasible window.

    `InputError` if the bytes are so large that flows would not be exact in 64 bits.
    """
    infinite = 2 * int(terms.weight.sum()) * max(1, window.depth - 1) + 1
    if infinite > MAX_CAPACITY:
        expected = f"bytes x positions of a pencil below {MAX_CAPACITY // 2}, to be exact"
        raise InputError(expected, field="bytes", value=infinite // 2)
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


def _near_arcs(window: PencilWindow, terms: CellTerms, near: BoolArray) -> list[Arcs]:
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
        # On one pencil the higher level is true where the lower one is.
        (lower[across], upper[across], weight[pair][across]),
    ]


def _far_arcs(window: PencilWindow, terms: CellTerms, far: BoolArray) -> list[Arcs]:
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


# ---- The best selection in a window: an exact minimum cut, proven by its flow --------------------


@dataclass(frozen=True)
class PencilCut:
    """A best selection of a window, the position of every level, with the flow that proves it.

    `value` is the capacity of the cut and the value of the flow, `flows` the flow on every arc.
    """

    selection: IntArray
    value: int
    window: PencilWindow
    network: Network
    flows: IntArray

    def certificate(self) -> FlowCertificate:
        """Return the flow on all arcs of the full network (docs/proofs/mapping.md, "Pencils").

        It is led through the decided thresholds, along arcs of infinite capacity. A threshold t
        that is always true follows from t - 1 of its own level, if that position is unusable, or
        else of the level below; one that is never true leads to t + 1, in the same way.
        """
        window, network = self.window, self.network
        steps, cells = window.depth - 1, window.num_pencils * window.levels
        usable = np.repeat(window.usable, window.levels, axis=0)
        decided = network.state[:-2].reshape(cells, steps)
        carrying = self.flows > 0
        arcs = [(network.tails[carrying], network.heads[carrying], self.flows[carrying])]
        excess = np.zeros(cells * steps + 2, dtype=np.int64)
        np.add.at(excess, arcs[0][1], arcs[0][2])
        np.subtract.at(excess, arcs[0][0], arcs[0][2])

        def lead(t: int, state: int, end: int, sign: int) -> None:
            """Lead the excess flow at a threshold one step on, to the source or the sink."""
            here = np.flatnonzero(
                (decided[:, t - 1] == state) & (sign * excess[t - 1 : -2 : steps] > 0)
            )
            at = here * steps + t - 1
            moved = usable[here, t if sign > 0 else t - 1]
            to = (here + sign * moved) * steps + t - 1 + sign
            if t == (steps if sign > 0 else 1):
                to[:] = end
            amount = sign * excess[at]
            np.add.at(excess, to, sign * amount)
            arcs.append((at, to, amount) if sign > 0 else (to, at, amount))

        for t in range(steps, 0, -1):
            lead(t, 0, SOURCE, -1)
        for t in range(1, steps + 1):
            lead(t, 1, SINK, 1)
        tails, heads, amounts = (np.concatenate(parts) for parts in zip(*arcs, strict=True))
        keys, arc = np.unique((tails + 2) * (cells * steps + 2) + heads + 2, return_inverse=True)
        flows = np.zeros(len(keys), dtype=np.int64)
        np.add.at(flows, arc, amounts)
        return FlowCertificate(
            tails=(keys // (cells * steps + 2) - 2).tolist(),
            heads=(keys % (cells * steps + 2) - 2).tolist(),
            flows=flows.tolist(),
        )


def cut_selection(window: PencilWindow, terms: CellTerms) -> PencilCut:
    """Return a best selection of a feasible window.

    It is best if no pair of cells is mixed (`CellTerms.mixed`); else the best by an upper
    estimate of their distance. `InputError` if flows would not be exact in 64 bits.
    """
    network = threshold_network(window, terms)
    solver = max_flow.SimpleMaxFlow()
    solver.add_arc_with_capacity(0, 1, 0)  # so that source and sink exist
    arcs = solver.add_arcs_with_capacity(
        network.state[network.tails], network.state[network.heads], network.capacities
    )
    status = solver.solve(0, 1)
    if status != solver.OPTIMAL:
        raise TopoplaceError(f"maximum flow ended with {status}")
    value, flows = int(solver.optimal_flow()), np.asarray(solver.flows(arcs), dtype=np.int64)
    true = np.zeros(network.num_states, dtype=bool)
    true[solver.get_source_side_min_cut()] = True
    shape = (window.num_pencils, window.levels, window.depth - 1)
    selection = true[network.state[:-2]].reshape(shape).sum(axis=-1)
    return PencilCut(selection, value, window, network, flows)


# ---- Lower bounds on the hop-bytes of every window of a layout, without a cut --------------------


@dataclass(frozen=True)
class StretchBound:
    """Hop-bytes of a window are at least ``base + sum over pencils of price x stretch``.

    `price` has one entry per pencil; the stretch of a pencil is the number of unusable positions
    inside the narrowest run that holds its levels.
    """

    base: int
    price: IntArray


def stretch_bound(terms: CellTerms, slack: int) -> StretchBound:
    """Return a bound for windows with `slack` positions more than levels.

    Let d(k) >= 1 be the step from level k to k + 1 of a pencil. A pair on one pencil costs w
    times the steps between its levels (far: ring minus them). Of two pencils v and u, the pairs
    (v,k)-(u,l) and (v,l)-(u,k) together cost at least the steps from k to l on both, as
    |a| + |b| >= a + b (far: exactly the rings minus these). So each step has a price; all steps
    are at least 1, those of a pencil add up to at least ``levels - 1 + stretch`` and at most
    ``depth - 1``, and whatever exceeds 1 costs at least the pencil's lowest price. Weight
    without such a partner, and of mixed pairs, costs the least distance that the levels allow.
    """
    levels, gap, weight = terms.levels, terms.gap, terms.weight
    apart = gap > 0
    low, high, gap, weight = terms.low[apart], terms.high[apart], gap[apart], weight[apart]
    far, mixed = terms.far(slack)[apart], terms.mixed(slack)[apart]
    own = low // levels == high // levels
    paired = np.where(own, weight, np.minimum(weight, _partners(terms, low, high, weight)))
    paired[mixed] = 0
    rest = weight - paired
    least = np.maximum(gap - slack * ~own, 0)
    if terms.ring is not None:
        least = np.minimum(least, terms.ring - gap - slack)
    price = np.zeros((terms.num_pencils, levels), dtype=np.int64)
    signed = np.where(far, -paired, paired)
    np.add.at(price.reshape(-1), low, signed)
    np.subtract.at(price, (low // levels, high % levels), signed)
    price = price.cumsum(axis=1)[:, :-1]
    cheapest = price.min(axis=1) if levels > 1 else np.zeros(terms.num_pencils, dtype=np.int64)
    base = terms.fixed + int(rest @ least) + int(price.sum())
    base += slack * int(np.minimum(cheapest, 0).sum())
    if terms.ring is not None:
        base += terms.ring * int(paired[far].sum())
    return StretchBound(base, np.maximum(cheapest, 0))


def _partners(terms: CellTerms, low: IntArray, high: IntArray, weight: IntArray) -> IntArray:
    """Return the weight of the pair of the same pencils with the levels exchanged."""
    levels, size = terms.levels, terms.num_pencils * terms.levels
    keys = low * size + high
    order = np.argsort(keys)
    partner = (high - high % levels + low % levels) * size + low - low % levels + high % levels
    at = np.minimum(np.searchsorted(keys, partner, sorter=order), len(keys) - 1)
    found = order[at] if len(keys) else at
    matched: IntArray = np.where(keys[found] == partner, weight[found], 0)
    return matched
