"""Allocations of all requests that start: one after the other, then each anew if that helps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import topoplace.placement.tree.heuristics.adaptive
import topoplace.placement.tree.heuristics.balanced
import topoplace.placement.tree.heuristics.fewest_domains
import topoplace.placement.tree.heuristics.greedy
import topoplace.placement.tree.heuristics.random_nodes
import topoplace.placement.tree.heuristics.slurm_default  # noqa: F401
from topoplace import clock
from topoplace.placement.tree.exact.single import Room, good_leaves
from topoplace.placement.tree.exact.starts import Choice
from topoplace.placement.tree.heuristics.in_turn import registered_allocator, serve
from topoplace.placement.tree.outcome import costs_of
from topoplace.placement.tree.problem import TreeProblem

IntArray = NDArray[np.int64]
Leaves = Mapping[int, IntArray]
"""Per request that starts, the leaf of every rank."""

_ALLOCATORS = ("default", "greedy", "balanced", "adaptive", "fewest-domains", "random")


class Placing:
    """Places the requests of a problem.

    Attributes
    ----------
    room
        The leaves as the running jobs leave them.
    """

    def __init__(self, problem: TreeProblem, seed: int) -> None:
        self._problem = problem
        self._seed = seed
        tree = problem.state.tree
        free = np.bincount(tree.leaf_of_node[problem.state.free], minlength=tree.num_leaves)
        self.room = Room(problem.costs, problem.state.comm, free)

    def good(self, q: int, room: Room, deadline: float) -> IntArray | None:
        """Return a good allocation of one request; None if it does not fit.

        Where only the running jobs are there, it is no worse than any of the algorithms'.
        """
        request = self._problem.requests[q]
        jobs = room.jobs(request.patterns, request.nodes)
        if not jobs:
            return None
        starts = []
        if room is self.room:
            occupancy = self._problem.occupancy()
            rng = np.random.default_rng(self._seed)
            for name in _ALLOCATORS:
                allocator = registered_allocator(name)
                nodes = allocator(occupancy, request, rng) if allocator else None
                if nodes is not None:
                    starts.append(self._problem.state.tree.leaf_of_node[nodes])
        return good_leaves(jobs, starts, deadline, self._seed)

    def served(self, value: int) -> Iterator[dict[int, IntArray]]:
        """Yield what the algorithms make of the queue where they start that value."""
        requests, leaf_of_node = self._problem.requests, self._problem.state.tree.leaf_of_node
        for name in _ALLOCATORS:
            allocator = registered_allocator(name)
            started = serve(allocator, self._problem, self._seed) if allocator else {}
            if sum(requests[q].value for q in started) == value:
                yield {q: leaf_of_node[nodes] for q, nodes in started.items()}

    def place(self, choice: Choice, deadline: float) -> dict[int, IntArray]:
        """Place the requests of a choice one after the other, intensive and large ones first."""
        requests = self._problem.requests
        order = sorted(
            choice.started, key=lambda q: (not requests[q].intensive, -requests[q].nodes, q)
        )
        placed: dict[int, IntArray] = {}
        for number, q in enumerate(order):
            later = [choice.reserved[other] for other in order[number + 1 :] if choice.reserved]
            room = self._left(placed, sum(later, np.zeros_like(self.room.free)))
            leaves = None
            if requests[q].intensive:
                share = (deadline - clock.now()) / (len(order) - number)
                leaves = self.good(q, room, clock.now() + share)
            if leaves is None:
                free = choice.reserved.get(q, room.free)
                leaves = np.repeat(np.arange(len(free)), free)[: requests[q].nodes]
            placed[q] = leaves
        return placed

    def _left(self, placed: Leaves, reserved: IntArray) -> Room:
        """Return the leaves as some requests leave them, some more nodes held back."""
        comm, free = self.room.comm.copy(), self.room.free - reserved
        for q, leaves in placed.items():
            taken = np.bincount(leaves, minlength=len(free))
            free = free - taken
            if self._problem.requests[q].intensive:
                comm += taken
        return Room(self.room.model, comm, free)

    def improved(self, placed: dict[int, IntArray], deadline: float) -> dict[int, IntArray]:
        """Place one request after the other anew as long as that lowers the total cost."""
        best = self.cost(placed)
        movable = [q for q in placed if self._problem.requests[q].intensive]
        tried = 0
        for q in itertools.cycle(movable):
            if tried == len(movable) or clock.now() > deadline:
                break
            tried += 1
            others = {other: leaves for other, leaves in placed.items() if other != q}
            room = self._left(others, np.zeros_like(self.room.free))
            share = (deadline - clock.now()) / (2 * len(movable))
            anew = self.good(q, room, clock.now() + share)
            if anew is not None and (cost := self.cost({**others, q: anew})) < best:
                best, placed, tried = cost, {**others, q: anew}, 0
        return placed

    def nodes(self, placed: Leaves) -> dict[int, IntArray]:
        """Return the nodes of every rank: on each leaf the lowest-numbered free ones."""
        occupancy = self._problem.occupancy()
        nodes = {}
        for q, leaves in placed.items():
            nodes[q] = occupancy.nodes_of([(leaf, 1) for leaf in leaves.tolist()])
            occupancy.start(nodes[q], self._problem.requests[q].intensive)
        return nodes

    def cost(self, placed: Leaves) -> Fraction:
        """Return the total cost of eq. (6)."""
        return sum(costs_of(self._problem, self.nodes(placed)).values(), Fraction(0))
