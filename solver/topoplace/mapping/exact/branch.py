"""Branch and bound for small graphs: the search, and its proof as a tree."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.kernels import compile_late
from topoplace.mapping.exact._kernels import NEVER, prove, search
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.symmetry import symmetries
from topoplace.result.certificate import packed
from topoplace.result.mapping import TREE_NODES, TreeCertificate
from topoplace.types import IntArray

# ---- A small mapping problem for branch and bound: two matrices and capacities -------------------

MAX_TASKS, MAX_ROUTERS = 24, 256
"""Largest problem accepted; whether it can be solved is not sure."""

MAX_COST = 1 << 60
"""Twice the largest hop-bytes, so that sums of dual values stay exact in 64 bits."""


@dataclass(frozen=True)
class SmallProblem:
    """Tasks that send or receive, routers with places, and the cost of any two pairs of them.

    Task i on router r and task j on router s cost `unit`, the greatest common divisor of all
    weights, times the sum over k of ``weight[k, i, j] * distance[k, r, s]``: both directions, k
    being one sum of both where distances are symmetric, else the direction. `tasks` and `routers`
    are their numbers in the problem, `room` the most tasks per router, none above all.
    """

    tasks: IntArray
    routers: IntArray
    room: IntArray
    weight: IntArray
    distance: IntArray
    unit: int


def small_problem(problem: MappingProblem) -> SmallProblem | None:
    """Return the problem without silent tasks and useless routers; None if it is too large."""
    graph, machine = problem.graph, problem.machine
    tasks = np.union1d(graph.sources, graph.targets)
    routers = np.flatnonzero(problem.capacity)
    if len(tasks) > MAX_TASKS or len(routers) > MAX_ROUTERS:
        return None
    sent = np.zeros((len(tasks), len(tasks)), dtype=np.int64)
    ends = np.searchsorted(tasks, graph.sources), np.searchsorted(tasks, graph.targets)
    np.add.at(sent, ends, graph.bytes)
    hops = machine.hops(routers[:, None], routers[None, :])
    symmetric = bool((hops == hops.T).all())
    weight = np.array([sent + sent.T] if symmetric else [sent, sent.T])
    distance = np.array([hops] if symmetric else [hops, hops.T])
    unit = max(1, math.gcd(*weight.ravel().tolist()))
    if 2 * graph.total_bytes // unit * max(1, machine.diameter) >= MAX_COST:
        return None
    room = np.minimum(problem.capacity[routers], len(tasks))
    return SmallProblem(tasks, routers, room, weight // unit, distance, unit)


# ---- Branch and bound for small mapping problems: proven optima, or the bound that is left open --

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
    """Memory that a node uses: per task and router or task, per task, per router, per place."""

    cost: IntArray
    sent: IntArray
    tasks: IntArray
    num_sent: IntArray
    near: IntArray
    trial: IntArray
    u: IntArray
    late: IntArray
    guest_first: IntArray
    price: IntArray
    host_first: IntArray
    kind: IntArray
    row_of: IntArray
    v: IntArray
    length: IntArray
    before: IntArray
    scanned: IntArray


@dataclass(frozen=True)
class Branched:
    """What branch and bound found.

    `at` has the position of every task in `SmallProblem.routers`, None if nothing better was found
    than the hop-bytes given; `bound` holds for any mapping, and is met if the search is complete.
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
    problem, in docs/proofs/graphs.md) for the tasks without router; its reduced costs exclude
    children. Of children that are symmetric, by the machine, the graph, or both, one is searched.

    `upper` are the hop-bytes of a known mapping: only better ones are searched. `watch` is called
    every `WATCH_SECONDS` with the state.
    """
    if len(small.tasks) == 0:
        return Branched(np.zeros(0, dtype=np.int64), 0, True, 0)
    compile_late("mapping.branch")
    told, stop = time.perf_counter(), clock.deadline(time_limit)
    case = _case(small)
    tree, work = _tree(case, small.room), _work(case, small.room)
    if upper is not None:
        tree.best[0] = upper // small.unit
    complete = False

    def known() -> Branched:
        found = tree.best_where.copy() if tree.best_where[0] >= 0 else None
        return Branched(found, _least_open(tree) * small.unit, complete, int(tree.at[1]))

    while not complete and clock.now() < stop:
        complete = bool(search(case, tree, work, CHUNK_NODES))
        if watch is not None and time.perf_counter() >= told + WATCH_SECONDS:
            watch(known())
            told = time.perf_counter()
    return known()


PROOF_NODES = 2_000
"""Nodes of a proof between two looks at the clock."""

MAX_LISTED = 1 << 15
"""Most entries of the symmetries that a certificate lists."""


def proof_tree(
    small: SmallProblem, target: int, time_limit: float | None = None
) -> TreeCertificate | None:
    """Return a tree of partial mappings that proves that none is below `target` hop-bytes.

    Its leaves have the bound of Gilmore and Lawler; it has no more than `TREE_NODES` nodes. None
    if there is no such tree, or not in time.
    """
    if len(small.tasks) == 0 or _is_too_large(small):
        return None
    compile_late("mapping.branch")
    stop = clock.deadline(time_limit)
    case = _case(small)
    most = MAX_LISTED // max(len(small.tasks), len(small.routers))
    case = case._replace(guest=case.guest[:most], host=case.host[:most])
    tree, work = _tree(case, small.room), _work(case, small.room)
    goal = -(-target // small.unit)
    tree.best[0] = goal
    written = np.zeros(TREE_NODES, dtype=np.int64)
    while not prove(case, tree, work, goal, written, PROOF_NODES):
        if clock.now() >= stop or tree.at[1] == len(written):
            return None
    size = int(tree.at[1])
    return TreeCertificate(
        guests=_moving(case.guest),
        hosts=_moving(case.host),
        size=size,
        nodes=packed(written[:size]),
    )


def _is_too_large(small: SmallProblem) -> bool:
    """Return whether costs are so large that the checker's sums might not fit into 64 bits."""
    total = int(small.weight[0].sum()) * small.unit
    return 8 * total * max(1, int(small.distance.max())) * len(small.tasks) >= 1 << 62


def _moving(listed: NDArray[np.int16]) -> list[list[int]]:
    """Return symmetries without the identity."""
    each = np.arange(listed.shape[1])
    found: list[list[int]] = listed[(listed != each).any(axis=1)].tolist()
    return found


def _least_open(tree: _Tree) -> int:
    """Return the least bound of all children not searched to the end, or the best cost."""
    least = int(tree.best[0])
    for depth in range(int(tree.at[0]) + 1):
        if tree.num_children[depth] < 0:  # not bounded yet; its parent knows its bound
            if depth == 0:
                return 0
            return min(least, int(tree.child[depth - 1, tree.next[depth - 1] - 1, 2]))
        waiting = tree.child[depth, tree.next[depth] : tree.num_children[depth], 2]
        least = min(least, int(waiting.min(initial=least)))
    return least


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
    shapes = [(n, m), (n, n), *[n] * 7, *[m] * 2, *[int(room.sum())] * 6]
    return _Work(*(np.zeros(shape, dtype=np.int64) for shape in shapes))
