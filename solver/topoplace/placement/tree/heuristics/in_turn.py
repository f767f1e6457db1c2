"""Allocators serve one request at a time; a queue is served in its order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.occupancy import Occupancy
from topoplace.placement.tree.problem import TreeProblem
from topoplace.snapshot.tree_state import TreeRequest
from topoplace.solving import Options, Outcome, register

IntArray = NDArray[np.int64]
Allocator = Callable[[Occupancy, TreeRequest, np.random.Generator], IntArray | None]
"""Chooses the node of every rank of a request, or None if it does not fit; changes nothing."""

_ALLOCATORS: dict[str, Allocator] = {}


def register_allocator(name: str, summary: str) -> Callable[[Allocator], Allocator]:
    """Return a decorator that registers an allocator, and the method that serves a queue with it.

    The method skips requests that do not fit; later requests see the nodes of earlier ones.
    """

    def add(allocator: Allocator) -> Allocator:
        def method(problem: TreeProblem, options: Options) -> Outcome:
            return Outcome(serve(allocator, problem, options.seed))

        register("allocation", name, summary)(method)
        _ALLOCATORS[name] = allocator
        return allocator

    return add


def serve(allocator: Allocator, problem: TreeProblem, seed: int) -> dict[int, IntArray]:
    """Return the node of every rank of all requests that start if an allocator serves the queue."""
    rng = np.random.default_rng(seed)
    occupancy = problem.occupancy()
    started = {}
    for idx, request in enumerate(problem.requests):
        nodes = allocator(occupancy, request, rng)
        if nodes is not None:
            occupancy.start(nodes, request.intensive)
            started[idx] = nodes
    return started


def registered_allocator(name: str) -> Allocator | None:
    """Return the allocator behind a method, or None if the method serves a queue as a whole."""
    return _ALLOCATORS.get(name)


def fill(occupancy: Occupancy, leaves: Iterable[int], num_nodes: int) -> list[tuple[int, int]]:
    """Return takes of all that is free on one leaf after the other until there is enough."""
    takes = []
    for leaf in leaves:
        count = min(int(occupancy.free_per_leaf[leaf]), num_nodes)
        takes.append((int(leaf), count))
        num_nodes -= count
        if not num_nodes:
            break
    return takes
