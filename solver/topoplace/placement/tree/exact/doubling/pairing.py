"""The leaf of every rank from a plan per leaf: in every step a flow pairs old and new ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import max_flow

from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]


def assigned(job: Job, plans: list[tuple[int, IntArray]], thresholds: IntArray) -> IntArray | None:
    """Return the leaf of every rank with such a plan per leaf; None if the pairs do not fit."""
    states = job.states
    spare = [leaves.tolist() for leaves in states.leaves]
    leaf = np.array([spare[states.type[s]].pop() for s, _ in plans], dtype=np.int64)
    path = np.stack([path for _, path in plans])
    comm = job.comm.copy()
    comm[leaf] += path[:, -1]
    hops = job.model.scaled_hops(leaf[:, None], leaf, comm) * job.scale // int(job.model.scale)
    found = np.full(job.ranks, -1, dtype=np.int64)
    held: list[list[int]] = [[] for _ in plans]
    root = int(np.flatnonzero(path[:, 0])[0])
    held[root].append(0)
    found[0] = root
    for n, step in enumerate(job.steps):
        child_of = dict(step.pairs.tolist())
        free = [[rank for rank in ranks if rank in child_of] for ranks in held]
        supply = np.array([len(ranks) for ranks in free])
        amounts = _pairing(supply, path[:, n + 1] - path[:, n], hops <= thresholds[n])
        if amounts is None:
            return None
        for sender, receiver, amount in amounts:
            for _ in range(amount):
                child = child_of[free[sender].pop()]
                held[receiver].append(child)
                found[child] = receiver
    return leaf[found]


def _pairing(
    supply: IntArray, demand: IntArray, allowed: NDArray[np.bool_]
) -> list[tuple[int, int, int]] | None:
    """Return how many pairs go from leaf to leaf; None if some would be left over."""
    num = len(supply)
    flow = max_flow.SimpleMaxFlow()
    senders, receivers = np.nonzero(allowed & (supply[:, None] > 0) & (demand > 0))
    source, sink = 2 * num, 2 * num + 1
    everyone = np.arange(num)
    arcs = flow.add_arcs_with_capacity(
        senders, num + receivers, np.minimum(supply[senders], demand[receivers])
    )
    flow.add_arcs_with_capacity(np.full(num, source), everyone, supply)
    flow.add_arcs_with_capacity(num + everyone, np.full(num, sink), demand)
    flow.solve(source, sink)
    if flow.optimal_flow() < int(demand.sum()):
        return None
    amounts = flow.flows(arcs)
    return [
        (int(a), int(b), int(amount))
        for a, b, amount in zip(senders, receivers, amounts, strict=True)
        if amount
    ]
