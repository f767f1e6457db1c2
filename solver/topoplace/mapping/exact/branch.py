"""Branch and bound for small mapping problems: proven optima, or the bound that is left open."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.mapping.exact._assignment import NEVER
from topoplace.mapping.exact._kernels import search
from topoplace.mapping.exact.small import SmallProblem
from topoplace.mapping.exact.symmetry import symmetries
from topoplace.mapping.graph import IntArray

CHUNK_NODES = 100
"""Nodes between two looks at the clock."""

WATCH_SECONDS = 1.0
"""Time between two reports."""


class _Case(NamedTuple):
    """The problem: matrices, their sorted rows, and the symmetries of tasks and routers."""

    weight: IntArray
    distance: IntArray
    heaviest: IntArray
    nearest: IntArray
    guest: NDArray[np.int16]
    host: NDArray[np.int16]


class _Tree(NamedTuple):
    """The open nodes, one level per task placed, and the best mapping.

    Per level: doubled cost of the tasks placed (`base`) and of one more on any router
    (`linear`), room left, router of every task, pairs excluded, symmetries that fix all placed,
    and the children (task, router, bound), `next` being the one to search. `at` holds the level
    and the number of nodes.
    """

    at: IntArray
    best: IntArray
    best_where: IntArray
    base: IntArray
    linear: IntArray
    room: IntArray
    where: IntArray
    placed: IntArray
    forbidden: NDArray[np.uint8]
    guest: NDArray[np.int32]
    num_guest: IntArray
    host: NDArray[np.int32]
    num_host: IntArray
    child: IntArray
    num_children: IntArray
    next: IntArray


class _Work(NamedTuple):
    """Memory that a node uses."""

    cost: IntArray
    kind: IntArray
    tasks: IntArray
    sent: IntArray
    num_sent: IntArray
    near: IntArray
    price: IntArray
    trial: IntArray
    row_of: IntArray
    u: IntArray
    v: IntArray
    late: NDArray[np.uint8]
    length: IntArray
    before: IntArray
    scanned: NDArray[np.uint8]
    guest_first: IntArray
    host_first: IntArray


@dataclass(frozen=True)
class Branched:
    """What branch and bound found.

    Attributes
    ----------
    at
        Position in `SmallProblem.routers` of every task; None if nothing better was found than
        the cost given.
    bound
        Lower bound on the cost of any mapping, in units.
    complete
        Whether the search ended by itself; then the bound is the optimum.
    num_nodes
        Nodes bounded.
    """

    at: IntArray | None
    bound: int
    complete: bool
    num_nodes: int


def branch_and_bound(
    small: SmallProblem,
    upper: int | None = None,
    time_limit: float | None = None,
    watch: Callable[[Branched], None] | None = None,
) -> Branched:
    """Search all mappings of a small problem, depth first.

    Every node has the bound of Gilmore and Lawler ("Star", with prices from the assignment
    problem, in docs/proofs-graphs.md) for the tasks without router; its reduced costs exclude
    children. Of children that a symmetry of the machine, of the graph, or of both makes of each
    other, one is searched.

    Parameters
    ----------
    small
        The problem.
    upper
        Cost of a known mapping, in units; only better ones are looked for.
    time_limit
        Seconds.
    watch
        Told every `WATCH_SECONDS` what is known.
    """
    if len(small.tasks) == 0:
        return Branched(np.zeros(0, dtype=np.int64), 0, True, 0)
    told, stop = time.perf_counter(), clock.deadline(time_limit)
    case = _case(small)
    tree, work = _tree(case, small.room), _work(case, small.room)
    if upper is not None:
        tree.best[0] = upper
    complete = False
    while not complete and clock.now() < stop:
        complete = bool(search(case, tree, work, CHUNK_NODES))
        if watch is not None and time.perf_counter() >= told + WATCH_SECONDS:
            watch(_state_of(tree, complete))
            told = time.perf_counter()
    return _state_of(tree, complete)


def _state_of(tree: _Tree, complete: bool) -> Branched:
    found = tree.best_where.copy() if tree.best_where[0] >= 0 else None
    return Branched(found, _least_open(tree), complete, int(tree.at[1]))


def _least_open(tree: _Tree) -> int:
    """Return the least bound of all children not searched to the end, or the best cost."""
    least = int(tree.best[0])
    for depth in range(int(tree.at[0]) + 1):
        if tree.num_children[depth] < 0:  # not bounded yet; its parent knows its bound
            return 0 if depth == 0 else min(least, _bound_of_parent(tree, depth))
        waiting = tree.child[depth, tree.next[depth] : tree.num_children[depth], 2]
        least = min(least, int(waiting.min(initial=least)))
    return least


def _bound_of_parent(tree: _Tree, depth: int) -> int:
    return int(tree.child[depth - 1, tree.next[depth - 1] - 1, 2])


def _case(small: SmallProblem) -> _Case:
    weight, distance = small.weight, small.distance
    return _Case(
        weight,
        distance,
        np.argsort(-weight, axis=2, kind="stable"),
        np.argsort(distance, axis=2, kind="stable"),
        symmetries(weight[0], np.zeros(len(small.tasks), dtype=np.int64)),
        symmetries(distance[0], small.room),
    )


def _tree(case: _Case, room: IntArray) -> _Tree:
    n, m = case.weight.shape[1], case.distance.shape[1]
    levels = n + 1

    def zeros(*shape: int) -> IntArray:
        return np.zeros(shape, dtype=np.int64)

    tree = _Tree(
        at=zeros(2),
        best=np.full(1, NEVER),
        best_where=np.full(n, -1),
        base=zeros(levels),
        linear=zeros(levels, n, m),
        room=zeros(levels, m),
        where=np.full((levels, n), -1),
        placed=zeros(levels, 2),
        forbidden=np.zeros((levels, n, m), dtype=np.uint8),
        guest=np.zeros((levels, len(case.guest)), dtype=np.int32),
        num_guest=zeros(levels),
        host=np.zeros((levels, len(case.host)), dtype=np.int32),
        num_host=zeros(levels),
        child=zeros(levels, max(n, m), 3),
        num_children=np.full(levels, -1),
        next=zeros(levels),
    )
    tree.room[0] = room
    tree.guest[0] = np.arange(len(case.guest))
    tree.host[0] = np.arange(len(case.host))
    tree.num_guest[0], tree.num_host[0] = len(case.guest), len(case.host)
    return tree


def _work(case: _Case, room: IntArray) -> _Work:
    n, m = case.weight.shape[1], case.distance.shape[1]
    places = int(room.sum())
    numbers = {
        "cost": (n, m),
        "kind": places,
        "tasks": n,
        "sent": (n, n),
        "num_sent": n,
        "near": n,
        "price": m,
        "trial": n,
        "row_of": places,
        "u": n,
        "v": places,
        "length": places,
        "before": places,
        "guest_first": n,
        "host_first": m,
    }
    return _Work(
        late=np.zeros(n, dtype=np.uint8),
        scanned=np.zeros(places, dtype=np.uint8),
        **{name: np.zeros(shape, dtype=np.int64) for name, shape in numbers.items()},
    )
