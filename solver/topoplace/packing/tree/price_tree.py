"""Branch and price: a tree whose leaves are bounded by column generation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from topoplace.packing.dual.generation import Bounded, generate_columns, is_met
from topoplace.packing.dual.master import LpSolution, Master
from topoplace.packing.dual.relaxation import DualPoint, Relaxation
from topoplace.packing.problem import Kinds, Subproblem
from topoplace.packing.tree.best_first import BestFirstTree
from topoplace.packing.tree.branching import Branch, Dominance, split_cover, split_start
from topoplace.packing.tree.nodes import NOTHING, Node, Root

_INTEGRAL = 1e-6


class PriceTree(BestFirstTree):
    """A tree of any level, for later levels and small problems.

    Parameters
    ----------
    offer
        Takes a placement that a linear program has found.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        master: Master,
        root: Root,
        lower: Callable[[], int],
        offer: Callable[[list[Any]], object],
    ) -> None:
        own = root.bounded.value.certified
        top = Node(root.sub, NOTHING if own is None else own, bounded=root.bounded)
        problem, level = relaxation.problem, root.sub.level
        every = frozenset(range(len(problem.names)))
        groups = tuple(problem.equal_groups(every))
        super().__init__(relaxation.filling(None), top, lower, groups, room=root.room)
        self._master, self._offer = master, offer
        self._dominance = Dominance(problem, every, level)

    def work_on(self, node: Node, until: float) -> None:
        """Split a leaf, and bound both sides."""
        assert node.bounded is not None
        lp = node.bounded.lp or self._master.solve(node.sub)
        if lp is not None:
            self._offer_whole(node.sub, lp)
        branch = None if lp is None else self._branch(node.sub, lp)
        if branch is None:
            self.settle(node)
            return
        start, bound, depth = node.bounded, node.bound, node.depth + 1
        low, high = (
            Node(sub, bound, depth, bounded=self._bounded(sub, start, until))
            for sub in branch.sides
        )
        self.split(node, branch, (low, high))

    def _bounded(self, sub: Subproblem, parent: Bounded, until: float) -> Bounded:
        start = Bounded(self.relaxation.evaluate(sub, parent.point), parent.point)
        known = self.relaxation.problem.first_prices(sub) if sub.level else None
        if known is not None and not is_met(start, self.lower()):
            point = DualPoint(*known)
            start = min(
                start,
                Bounded(self.relaxation.evaluate(sub, point), point),
                key=lambda bounded: bounded.value.bound,
            )
        bounded = generate_columns(
            self.relaxation, self._master, sub, start, self.lower(), until=until, max_work=1 << 62
        )
        if bounded.lp is not None:
            self._offer_whole(sub, bounded.lp)
        return bounded

    def _offer_whole(self, sub: Subproblem, lp: LpSolution) -> None:
        """Offer the solution of a program if it is a placement."""
        times = np.rint(lp.amounts).astype(np.int64)
        if lp.complete and (np.abs(lp.amounts - times) < _INTEGRAL).all():
            started = np.repeat(np.arange(len(times)), times).tolist()
            kinds = Kinds(self.relaxation.problem, sub)
            self._offer(kinds.placed(lp.columns[k].candidate for k in started))

    def _branch(self, sub: Subproblem, lp: LpSolution) -> Branch | None:
        """Split the least decided start, or else the places of the request that is most spread.

        For requests that share columns, the branch is whether more of them start than in the
        program, rounded down.
        """
        problem, kinds = self.relaxation.problem, Kinds(self.relaxation.problem, sub)
        starts = np.zeros(len(problem.names))
        spread: dict[int, float] = {}
        for column, amount in zip(lp.columns, lp.amounts.tolist(), strict=True):
            q = column.candidate.request_idx
            starts[q] += amount
            part = amount % 1
            if _INTEGRAL < part < 1 - _INTEGRAL:
                spread[q] = spread.get(q, 0.0) + part * (1 - part)
        whole = np.floor(starts + _INTEGRAL).astype(np.int64)
        worth = np.minimum(starts - whole, 1 - (starts - whole)) * problem.values
        undecided = np.flatnonzero(kinds.least < kinds.most).tolist()
        fractional = [q for q in undecided if starts[q] - whole[q] > _INTEGRAL]
        follow = [q for q in fractional if q in problem.worthless]  # starts and places decide these
        fractional = [q for q in fractional if q not in problem.worthless]
        if fractional:
            q = max(fractional, key=lambda q: (worth[q], -q))
            return split_start(problem, sub, kinds.members[q][whole[q]], self._dominance)
        for most in sorted(spread, key=lambda q: (-spread[q], q)):
            if kinds.least[most] < whole[most]:
                last = kinds.members[most][whole[most] - 1]
                return split_start(problem, sub, last, self._dominance)
            mine = [
                (float(amount), column.candidate)
                for column, amount in zip(lp.columns, lp.amounts, strict=True)
                if column.candidate.request_idx == most
            ]
            branch = split_cover(problem, sub, mine, self.groups)
            if branch is not None:  # else its candidates all use the same rows
                return branch
        for q in follow:
            return split_start(problem, sub, kinds.members[q][whole[q]], self._dominance)
        return None
