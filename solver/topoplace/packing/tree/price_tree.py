"""Branch and price: a tree whose leaves are bounded by column generation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from topoplace.packing.dual.generation import Bounded, generate_columns
from topoplace.packing.dual.master import LpSolution, Master
from topoplace.packing.dual.relaxation import Relaxation
from topoplace.packing.problem import Subproblem
from topoplace.packing.tree.best_first import BestFirstTree
from topoplace.packing.tree.branching import Branch, split_cover, split_start
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
        super().__init__(relaxation.filling(None), top, lower)
        self._master, self._offer = master, offer

    def work_on(self, node: Node, until: float) -> None:
        """Split a leaf, and bound both sides."""
        assert node.bounded is not None
        lp = node.bounded.lp or self._master.solve(node.sub)
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
        bounded = generate_columns(
            self.relaxation, self._master, sub, start, self.lower(), until=until, max_work=1 << 62
        )
        lp = bounded.lp
        if lp is not None and lp.complete:
            whole = (lp.amounts < _INTEGRAL) | (lp.amounts > 1 - _INTEGRAL)
            if whole.all():
                ones = zip(lp.columns, lp.amounts, strict=True)
                self._offer([column.candidate for column, amount in ones if amount > 0.5])
        return bounded

    def _branch(self, sub: Subproblem, lp: LpSolution) -> Branch | None:
        """Split the start that is least decided, or else the place of the request most spread."""
        problem = self.relaxation.problem
        starts = np.zeros(len(problem.names))
        spread: dict[int, float] = {}
        for column, amount in zip(lp.columns, lp.amounts.tolist(), strict=True):
            q = column.candidate.request_idx
            starts[q] += amount
            if _INTEGRAL < amount < 1 - _INTEGRAL:
                spread[q] = spread.get(q, 0.0) + amount * (1 - amount)
        undecided = [q for q in range(len(starts)) if q not in sub.decided]
        fractional = [q for q in undecided if _INTEGRAL < starts[q] < 1 - _INTEGRAL]
        if fractional:
            worth = np.minimum(starts, 1 - starts) * problem.values
            return split_start(problem, sub, max(fractional, key=lambda q: (worth[q], -q)))
        for most in sorted(spread, key=lambda q: (-spread[q], q)):
            if most not in sub.forced:
                return split_start(problem, sub, most)
            mine = [
                (float(amount), column.candidate)
                for column, amount in zip(lp.columns, lp.amounts, strict=True)
                if column.candidate.request_idx == most
            ]
            branch = split_cover(problem, sub, mine)
            if branch is not None:  # else its candidates all take of the same rows
                return branch
        return None
