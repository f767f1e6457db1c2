"""The best selection in a window: an exact minimum cut, proven by its flow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.graph.python import max_flow

from topoplace.errors import TopoplaceError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.pencils.network import SINK, SOURCE, Network, threshold_network
from topoplace.mapping.pencils.terms import CellTerms
from topoplace.mapping.pencils.window import PencilWindow
from topoplace.result.mapping import FlowCertificate


@dataclass(frozen=True)
class PencilCut:
    """A best selection of a window, with the flow that proves it.

    Attributes
    ----------
    selection
        Position of every level, shape ``(num_pencils, levels)``.
    value
        Capacity of the cut, which is the value of the flow.
    window, network, flows
        What it was computed in, and the flow on every arc of the network.
    """

    selection: IntArray
    value: int
    window: PencilWindow
    network: Network
    flows: IntArray

    def certificate(self) -> FlowCertificate:
        """Return the flow on all arcs of the full network (docs/proofs-mapping.md, "Pencils")."""
        return _full_flow(self.window, self.network, self.flows)


def cut_selection(window: PencilWindow, terms: CellTerms) -> PencilCut:
    """Return a best selection of a feasible window.

    It is best if no pair of cells is mixed (`CellTerms.mixed`); else the best by an upper
    estimate of their distance.

    Raises
    ------
    InputError
        If the bytes are so large that flows would not be exact in 64 bits.
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


def _full_flow(window: PencilWindow, network: Network, flows: IntArray) -> FlowCertificate:
    """Lead the flow through the decided thresholds, along arcs of infinite capacity.

    A threshold t that is always true follows from t - 1 of its own level, if that position is
    unusable, or else of the level below; one that is never true, mirrored, leads to t + 1.
    """
    steps, cells = window.depth - 1, window.num_pencils * window.levels
    carrying = flows > 0
    arcs = [(network.tails[carrying], network.heads[carrying], flows[carrying])]
    excess = np.zeros(cells * steps + 2, dtype=np.int64)
    np.add.at(excess, arcs[0][1], arcs[0][2])
    np.subtract.at(excess, arcs[0][0], arcs[0][2])
    decided = network.state[:-2].reshape(cells, steps)
    usable = np.repeat(window.usable, window.levels, axis=0)
    for t in range(steps, 0, -1):  # away from the source, last first
        owed = np.flatnonzero((decided[:, t - 1] == 0) & (excess[t - 1 : -2 : steps] < 0))
        here = owed * steps + t - 1
        before = (owed - usable[owed, t - 1]) * steps + t - 2
        if t == 1:
            before[:] = SOURCE
        amount = -excess[here]
        np.subtract.at(excess, before, amount)
        arcs.append((before, here, amount))
    for t in range(1, steps + 1):  # towards the sink
        owed = np.flatnonzero((decided[:, t - 1] == 1) & (excess[t - 1 : -2 : steps] > 0))
        here = owed * steps + t - 1
        after = (owed + usable[owed, t]) * steps + t
        if t == steps:
            after[:] = SINK
        amount = excess[here]
        np.add.at(excess, after, amount)
        arcs.append((here, after, amount))
    tails, heads, amounts = (np.concatenate(parts) for parts in zip(*arcs, strict=True))
    return _merged(tails, heads, amounts, cells * steps)


def _merged(tails: IntArray, heads: IntArray, amounts: IntArray, size: int) -> FlowCertificate:
    """Add up flows on the same arc."""
    keys, arc = np.unique((tails + 2) * (size + 2) + heads + 2, return_inverse=True)
    flows = np.zeros(len(keys), dtype=np.int64)
    np.add.at(flows, arc, amounts)
    return FlowCertificate(
        tails=(keys // (size + 2) - 2).tolist(),
        heads=(keys % (size + 2) - 2).tolist(),
        flows=flows.tolist(),
    )
