"""Branch and bound for small graphs: symmetry, and the search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.kernels import kernel
from topoplace.mapping.exact._kernels import NEVER, search
from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray

# ---- A small mapping problem as the branch and bound sees it: two matrices and room --------------

MAX_TASKS, MAX_ROUTERS = 24, 256
"""Largest problem taken; whether it can be solved is another matter."""

MAX_COST = 1 << 60
"""Twice the largest hop-bytes, so that sums of dual values stay exact in 64 bits."""


@dataclass(frozen=True)
class SmallProblem:
    """Tasks that send or receive, routers with room, and the cost of any two pairs of them.

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


# ---- Symmetries of a small matrix: the permutations of its rows and columns that leave it as it is

MAX_SYMMETRIES = 1 << 13
"""Most permutations listed, and most exchanges; any of them may be left out."""

MAX_COMPARISONS = 1 << 28
"""Most pairs of cells compared to list them: some tenths of a second."""


def symmetries(matrix: IntArray, colour: IntArray) -> NDArray[np.int16]:
    """List permutations p with ``matrix[p[i], p[j]] == matrix[i, j]`` that keep colours, in rows.

    The colours are refined first by what rows and columns hold in each colour. Exchanges of two
    equal rows come first; large groups are not listed whole, but with about as many
    permutations for every image of row 0.
    """
    n = len(matrix)
    _, flat = np.unique(matrix, return_inverse=True)
    cells = flat.reshape(n, n).astype(np.int64)
    fine = _refined(cells, colour)
    share = max(1, MAX_SYMMETRIES // max(1, int((fine == fine[0]).sum())))
    exchanges = _exchanges(cells, fine, MAX_SYMMETRIES)
    return np.concatenate([exchanges, _listed(cells, fine, share, MAX_COMPARISONS // n)])


def _refined(cells: IntArray, colour: IntArray) -> IntArray:
    """Return the coarsest finer colours in which equal colours see equal cells."""
    kinds = cells * (int(cells.max()) + 1) + cells.T
    now = np.unique(colour, return_inverse=True)[1].astype(np.int64)
    while True:
        seen = np.sort(kinds * len(cells) + now[None, :], axis=1)
        signature = np.concatenate([now[:, None], seen], axis=1)
        after = np.unique(signature, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
        if after.max() == now.max():
            return after
        now = after


def _exchanges(cells: IntArray, colour: IntArray, most: int) -> NDArray[np.int16]:
    """Return exchanges of two rows that are symmetries."""
    n = len(cells)
    listed: list[NDArray[np.int16]] = []
    for i in range(n):
        near = (cells[:i] != cells[i]).sum(axis=1) <= 2
        for j in np.flatnonzero(near & (colour[:i] == colour[i])).tolist():
            turn = np.arange(n, dtype=np.int16)
            turn[i], turn[j] = j, i
            alike = (cells[i, turn] == cells[j]).all() and (cells[turn, i] == cells[:, j]).all()
            if alike and len(listed) < most:
                listed.append(turn)
    return np.array(listed, dtype=np.int16).reshape(-1, n)


@kernel()
def _fits(cells: IntArray, image: IntArray, i: int, goal: int) -> bool:
    """Tell whether row i may become row `goal`, given the images of the rows before it."""
    for j in range(i):
        at = image[j]
        if cells[at, goal] != cells[j, i] or cells[goal, at] != cells[i, j]:
            return False
    return bool(cells[goal, goal] == cells[i, i])


@kernel()
def _listed(cells: IntArray, colour: IntArray, share: int, budget: int) -> NDArray[np.int16]:
    """List symmetries by backtracking.

    Every image of row 0 gets at most `share` of them and `budget` comparisons.
    """
    n = len(cells)
    found = [np.arange(n).astype(np.int16)]
    for first in range(n if n > 1 else 0):
        if colour[first] != colour[0]:
            continue
        image = np.full(n, -1, dtype=np.int64)
        taken = np.zeros(n, dtype=np.bool_)
        image[0], taken[first] = first, True
        i, count, spent = 1, 0, 0
        while i > 0 and count < share and spent < budget:
            goal = image[i] + 1
            if goal > 0:
                taken[image[i]] = False
            while goal < n and (
                taken[goal] or colour[goal] != colour[i] or not _fits(cells, image, i, goal)
            ):
                goal += 1
            # most misfits show at the first few rows
            spent += i + 4 * (goal - image[i])
            if goal == n:
                image[i] = -1
                i -= 1
                continue
            image[i], taken[goal] = goal, True
            if i < n - 1:
                i += 1
            else:
                count += 1
                found.append(image.astype(np.int16))
    listed = np.empty((len(found), n), dtype=np.int16)
    for s in range(len(found)):
        listed[s] = found[s]
    return listed


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
    problem, in docs/proofs-graphs.md) for the tasks without router; its reduced costs exclude
    children. Of children that a symmetry of the machine, of the graph, or of both makes of each
    other, one is searched.

    `upper` are the hop-bytes of a known mapping: only better ones are looked for. `watch` is told
    every `WATCH_SECONDS` what is known.
    """
    if len(small.tasks) == 0:
        return Branched(np.zeros(0, dtype=np.int64), 0, True, 0)
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
