"""Embeddings of dilation 1: every message over exactly one link, whatever the labelling.

Where no router has two places, such a mapping has the least hop-bytes there can be, the sum of
all bytes (docs/proofs-graphs.md, "Embedding").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.exact._embedding import (
    distances,
    place_all,
    placing_order,
    seed_noise,
    two_coloured,
)
from topoplace.mapping.graph import IntArray
from topoplace.mapping.local_search.arrays import guest_arrays
from topoplace.mapping.problem import MappingProblem

MAX_NODES = 20_000_000
"""Most placements tried in all."""

NODES_PER_TASK, FEWEST_NODES = 4, 2_000
"""Placements tried from one start before another one is, doubled from round to round."""

MOST_NODES = 1 << 18
"""Most placements from one start, to keep to a time limit."""

CENTRE_STEPS = 1 << 24
"""About how many tasks are visited to find a central one."""

FAR = 1 << 40
"""Stands for no way at all between two vertices."""


class Graph(NamedTuple):
    """Rows of partners: those of t are ``other[first[t]:first[t + 1]]``, each once."""

    first: IntArray
    other: IntArray

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.first) - 1

    @property
    def degree(self) -> IntArray:
        """Partners of every vertex."""
        return np.diff(self.first)

    def distances(self, start: int) -> IntArray:
        """Return the distances from a vertex, `FAR` where there is no way."""
        found = distances(self.first, self.other, start)
        return np.where(found < 0, FAR, found).astype(np.int64)


class _State(NamedTuple):
    """Where tasks are, and what is left to try."""

    at: IntArray
    holder: IntArray
    need: IntArray
    free: IntArray
    choice: IntArray
    num_choices: IntArray
    next: IntArray
    rank: NDArray[np.float64]


class _Reach(NamedTuple):
    """Distances from the first task and from its router: a path of messages is one of links."""

    task: IntArray
    router: IntArray


def find_embedding(
    problem: MappingProblem,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    max_nodes: int = MAX_NODES,
) -> IntArray | None:
    """Look for a mapping with one task per router and every message over one link.

    Tasks are placed next to their placed partners, those with the most first, on routers with
    few free neighbours. A task is not placed where a partner of it would have no router left or
    where a shortest path of messages to the first task would be shorter than one of links. The
    search begins anew, with ties broken at random, when it does not get on.

    Parameters
    ----------
    problem
        The instance; routers may have more than one place, of which one is used.
    seed
        Of the ties.
    time_limit
        Seconds.
    max_nodes
        Most placements to try.

    Returns
    -------
    ndarray or None
        Router of every task; None if there is none or none was found.
    """
    stop = clock.deadline(time_limit)
    usable = np.flatnonzero(problem.capacity)
    rows = guest_arrays(problem.graph)
    active = np.flatnonzero(np.diff(rows.first))
    if problem.num_tasks > len(usable):
        return None
    guest = Graph(rows.first, rows.other.astype(np.int64))
    host = _links(problem, usable)
    if not _may_fit(guest, host):
        return None
    found = np.full(guest.size, -1, dtype=np.int64)
    if len(active):
        placed = _search(guest, host, _starts(problem, usable), seed, stop, max_nodes)
        if placed is None:
            return None
        found = placed
    silent = np.flatnonzero(found < 0)
    rest = np.setdiff1d(np.arange(len(usable)), found)
    found[silent] = rest[: len(silent)]
    return usable[found]


def _links(problem: MappingProblem, usable: IntArray) -> Graph:
    """Return the usable routers, numbered from 0, and the links between them."""
    machine = problem.machine
    if isinstance(machine, Torus):
        numbers = np.arange(machine.num_routers).reshape(machine.shape)
        real = machine.link_mask
        ends = [
            (numbers[real[d]], np.roll(numbers, -1, axis=d)[real[d]])
            for d in range(machine.num_dims)
        ]
        tails, heads = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    else:
        near = machine.distances == 1
        tails, heads = np.nonzero(near & near.T)
    place = np.full(machine.num_routers, -1)
    place[usable] = np.arange(len(usable))
    tails, heads = place[tails], place[heads]
    kept = (tails >= 0) & (heads >= 0)
    tails, heads = tails[kept], heads[kept]
    pairs = (np.concatenate([tails, heads]), np.concatenate([heads, tails]))
    shape = (len(usable), len(usable))
    rows = coo_array((np.ones(len(pairs[0])), pairs), shape=shape).tocsr()
    rows.sum_duplicates()  # the two links of a ring of two lead to the same router
    return Graph(rows.indptr.astype(np.int64), rows.indices.astype(np.int64))


def _starts(problem: MappingProblem, usable: IntArray) -> IntArray:
    """Return routers for the first task: one is enough where all are alike."""
    machine = problem.machine
    alike = isinstance(machine, Torus) and all(machine.wrap) and len(usable) == machine.num_routers
    return np.arange(1 if alike else len(usable))


def _may_fit(guest: Graph, host: Graph) -> bool:
    """Test degrees and, on a machine of two colours, the colours of the graph."""
    tasks, routers = np.sort(guest.degree)[::-1], np.sort(host.degree)[::-1]
    if (tasks > routers[: len(tasks)]).any():
        return False
    return bool(two_coloured(guest.first, guest.other)) or not two_coloured(*host)


def _search(
    guest: Graph, host: Graph, starts: IntArray, seed: int, stop: float, max_nodes: int
) -> IntArray | None:
    """Try starts in rounds; return the place of every task that has partners."""
    state = _state(guest, host)
    rng = np.random.default_rng(seed)
    seed_noise(seed)
    active = np.flatnonzero(guest.degree)
    share = max(FEWEST_NODES, NODES_PER_TASK * len(active))
    left, rounds = max_nodes, 0
    while left > 0:
        root = _central(guest, active) if rounds == 0 else int(rng.choice(active))
        order = placing_order(guest.first, guest.other, root)
        from_root = guest.distances(root)
        within = _ball_sizes(from_root, guest.size)
        ended = True
        for start in starts.tolist():
            if left <= 0 or clock.now() >= stop:
                return None
            reach = _Reach(from_root, host.distances(start))
            if (within > _ball_sizes(reach.router, guest.size)).any():
                continue
            noise = 0.5 if rounds else 0.0
            nodes = place_all(guest, host, order, start, reach, noise, state, min(share, left))
            if state.at[root] >= 0:
                return state.at.copy()
            left -= abs(nodes)
            ended &= nodes >= 0
        if ended:
            return None  # every start was searched to its end
        rounds += 1
        share = min(2 * share, MOST_NODES)
    return None


def _ball_sizes(found: IntArray, most: int) -> IntArray:
    """Return how many vertices lie within 0, 1, ... steps, the unreachable ones left out."""
    sizes: IntArray = np.cumsum(np.bincount(np.minimum(found, most), minlength=most + 1)[:most])
    return sizes


def _central(guest: Graph, active: IntArray) -> int:
    """Return the task with the most others near it: fewest routers can take it."""
    some = active[:: -(-len(active) * guest.size // CENTRE_STEPS)]
    reached = [int(guest.distances(task).sum()) for task in some.tolist()]
    return int(some[int(np.argmin(reached))])


def _state(guest: Graph, host: Graph) -> _State:
    width = max(1, int(host.degree.max()))
    return _State(
        at=np.full(guest.size, -1, dtype=np.int64),
        holder=np.full(host.size, -1, dtype=np.int64),
        need=guest.degree.astype(np.int64),
        free=host.degree.astype(np.int64),
        choice=np.zeros((guest.size, width), dtype=np.int64),
        num_choices=np.zeros(guest.size, dtype=np.int64),
        next=np.zeros(guest.size, dtype=np.int64),
        rank=np.zeros(width),
    )
