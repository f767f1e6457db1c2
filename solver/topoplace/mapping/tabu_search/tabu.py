"""Robust tabu search (Taillard 1991, "Robust taboo search for the quadratic assignment")."""

from __future__ import annotations

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.tabu_search._kernels import all_changes, tabu_moves

MAX_PLACES = 512
"""Places up to which the tables of all swaps are small and quick to go through."""


class Tabu:
    """A tabu search under way: the mapping it is at, and the best one it has seen.

    Any distances will do, symmetric or not. Places without a task hold padding, so that a move
    to a free place is a swap too.

    Parameters
    ----------
    problem
        The instance, of at most `MAX_PLACES` places; a router counts at most as many as tasks.
    routers
        Router of every task to start from, shape ``(num_tasks,)``.
    seed
        Of the random times for which moves are barred.

    Attributes
    ----------
    least
        Hop-bytes of the best mapping seen.

    Raises
    ------
    InputError
        If there are more places.
    """

    def __init__(self, problem: MappingProblem, routers: IntArray, seed: int = 0) -> None:
        size = num_places(problem)
        if size > MAX_PLACES:
            raise InputError(f"at most {MAX_PLACES} places for tabu search", value=size)
        num_tasks, graph = problem.num_tasks, problem.graph
        room = np.minimum(problem.capacity, num_tasks)
        self._router = np.repeat(np.arange(problem.machine.num_routers), room)
        dist = problem.machine.hops(self._router[:, None], self._router[None, :])
        flow = np.zeros((size, size), dtype=np.int64)
        np.add.at(flow, (graph.sources, graph.targets), graph.bytes)
        self._problem = (flow, np.ascontiguousarray(dist), self._router, num_tasks)
        # the generator's state must not be 0
        self._random = np.random.default_rng(seed).integers(1, 1 << 63, size=1, dtype=np.uint64)
        self._place = self._places_of(routers)
        self._best = self._place.copy()
        self._delta = np.zeros((size, size), dtype=np.int64)
        # barred in the past, each at its own time: what was never done becomes due one by one
        self._barred = -np.arange(size * size, dtype=np.int64).reshape(size, size)
        self._made = np.zeros(1, dtype=np.int64)
        all_changes(flow, dist, self._place, num_tasks, self._delta)
        self.cost = hop_bytes(problem, routers * problem.machine.nodes_per_router)
        self.least = self.cost

    @property
    def routers(self) -> IntArray:
        """Router of every task in the best mapping seen."""
        found: IntArray = self._router[self._best[: self._problem[3]]]
        return found

    @property
    def move_work(self) -> int:
        """Swaps looked at per move."""
        return self._problem[3] * len(self._place)

    def run(self, num_moves: int) -> None:
        """Make that many moves."""
        state = (self._place, self._best, self._delta, self._barred, self._made)
        cost, least = tabu_moves(
            self._problem, state, self.cost, self.least, num_moves, self._random
        )
        self.cost, self.least = int(cost), int(least)

    def _places_of(self, routers: IntArray) -> IntArray:
        """Return the place of every task, and of the padding, given the tasks' routers."""
        order = np.argsort(routers, kind="stable")
        at = routers[order]
        begin = np.searchsorted(self._router, at)
        nth = np.arange(len(at)) - np.searchsorted(at, at)
        taken = np.empty(len(at), dtype=np.int64)
        taken[order] = begin + nth
        free = np.setdiff1d(np.arange(len(self._router)), taken)
        return np.concatenate([taken, free])


def num_places(problem: MappingProblem) -> int:
    """Return the places that can be told apart: a router has no more than there are tasks."""
    return int(np.minimum(problem.capacity, problem.num_tasks).sum())
