"""A mapping of which only some tasks may move: search, and a bound (docs/proofs/mapping.md).

How a mapping is improved step by step where communication or loads change (Bhatele 2009, section
4.3, "dynamic object graph").
"""

from __future__ import annotations

import numpy as np

from topoplace import clock
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.local_search import WANDER, Annealing, State
from topoplace.mapping.mapped import Keeper
from topoplace.mapping.objects._kernels import anneal_few
from topoplace.mapping.objects.search import anneal_gently, search_loaded
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import FewMovesCertificate
from topoplace.solving import Bound, Options, Outcome
from topoplace.types import IntArray

# ---- Search --------------------------------------------------------------------------------------


def searched(problem: MappingProblem, options: Options) -> Outcome:
    """Anneal objects (`search_loaded`), where moves are limited from the mapping before them."""
    if problem.before is None:
        return search_loaded(problem, options)
    keeper = Keeper(problem, options, problem.before)
    if options.start is not None:
        keeper.offer_nodes(options.start, "start")
    if problem.instance.moves and problem.instance.moves.most and not problem.fixed.all():
        anneal_gently(keeper, FewMoves)
    return keeper.outcome


class FewMoves(Annealing):
    """Annealing that never has more tasks away from the cells of the mapping before than allowed.

    `away` lists the tasks that are, `at` has the position of every task in the list, or -1; `count`
    is how many there are, and may be.
    """

    def resume(self, state: State) -> None:
        """Go on from another mapping."""
        super().resume(state)
        problem = self.problem
        assert problem.before is not None
        assert problem.instance.moves is not None
        self.stay = problem.pools_of(problem.before)
        moved = np.flatnonzero(self.stay != self.state.cell)
        self.away = np.full(problem.num_tasks, -1, dtype=np.int64)
        self.away[: len(moved)] = moved
        self.at = np.full(problem.num_tasks, -1, dtype=np.int64)
        self.at[moved] = np.arange(len(moved))
        self.count = np.array([len(moved), problem.instance.moves.most], dtype=np.int64)

    def tries(self, work: tuple[float, int]) -> int:
        """Try so many moves at a temperature, and return the change."""
        problem = self.problem
        sent = self.machine, self.guest, self.guide, self.trees
        own = problem.pools, problem.loads, self.home, self.movable, self.state, self.random
        away = self.stay, self.away, self.at, self.count
        return int(anneal_few(*sent, *own, away, work, WANDER))


# ---- A bound: what those that gain most can gain -------------------------------------------------

MOST_WORK, LARGEST = 1 << 28, 1 << 62
"""Most pairs of a task's partner and a router that are looked at, and where sums might not fit."""


def few_moves_bound(problem: MappingProblem, time_limit: float | None = None) -> Bound | None:
    """Return the hop-bytes before any move, less what the tasks that gain most can gain.

    A pair of which both ends move counts half at each of them; see docs/proofs/mapping.md, "Few
    moves". None if moves are not limited, or there are too many for a moment.
    """
    moves, before = problem.instance.moves, problem.before
    rows, stop = problem.graph.exchanged, clock.deadline(time_limit)
    goals = np.flatnonzero(problem.usable)
    if moves is None or before is None or len(rows.other) * len(goals) > MOST_WORK:
        return None
    farthest = max(1, problem.machine.diameter) * problem.machine.num_routers
    every = problem.graph.total_bytes + sum(one.bytes for one in problem.listed_trees)
    if 8 * every * farthest >= LARGEST:
        return None
    room, at, most = problem.room[goals], problem.routers_of(before), moves.most
    apart = int(room.max()) if problem.machine.torus is not None else problem.total_load
    gains = np.zeros(problem.num_tasks, dtype=np.int64) + 2 * _tree_gains(problem)
    for one in np.flatnonzero(~problem.fixed).tolist() if most else ():
        if clock.now() >= stop:
            return None
        mine = slice(int(rows.first[one]), int(rows.first[one + 1]))
        others, weight = rows.other[mine].astype(np.int64), rows.weight[mine]
        there = goals[room >= problem.loads[one]]
        if not len(others) or not len(there):
            continue
        now = problem.machine.hops(np.full(len(others), at[one]), at[others])
        then = problem.machine.hops(there[:, None], at[others][None, :])
        least = problem.loads[others] + problem.loads[one] > apart
        both = np.maximum(0, weight * (2 * then - now - least))
        both = np.where(problem.fixed[others], 0, both)
        if most - 1 < both.shape[1]:
            both = np.sort(both, axis=1)[:, both.shape[1] - most + 1 :]
        gains[one] += int(((2 * weight * (now - then)).sum(axis=1) + both.sum(axis=1)).max())
    gains = np.sort(gains[~problem.fixed])[::-1][:most]
    saved = sum(gain for gain in gains.tolist() if gain > 0) // 2
    return Bound(max(0, hop_bytes(problem, before) - saved), FewMovesCertificate())


def _tree_gains(problem: MappingProblem) -> IntArray:
    """Return the most that its trees gain by a task that moves, for every task.

    A root that moves may save all of its trees, and so may whoever is in one over links. Of a tree
    that goes once to a node, the way to that is saved only if all its members move: each saves its
    part, rounded up.
    """
    gains = np.zeros(problem.num_tasks, dtype=np.int64)
    before = problem.before
    assert before is not None
    if not problem.listed_trees:
        return gains
    routers, cells = problem.routers_of(before), problem.cells_of(before)
    for one, cost in zip(problem.listed_trees, _costs(problem, before).tolist(), strict=True):
        members = np.array(sorted({*one.members} - {one.root}), dtype=np.int64)
        gains[one.root] += cost
        if one.once == "link":
            gains[members] += cost
            continue
        _, of, counts = np.unique(cells[members], return_inverse=True, return_counts=True)
        away = problem.machine.hops(np.full(len(members), routers[one.root]), routers[members])
        gains[members] += -(-one.bytes * away // counts[of])
    return gains


def _costs(problem: MappingProblem, nodes: IntArray) -> IntArray:
    """Return what every tree costs."""
    hops = np.zeros(len(problem.trees.root), dtype=np.int64)
    for tree, _, up, down in problem.arms(nodes):
        np.add.at(hops, tree, up + down)
    tree, roots, ends = problem.copies(nodes)
    np.add.at(hops, tree, problem.machine.hops(roots, ends))
    return hops * problem.trees.bytes
