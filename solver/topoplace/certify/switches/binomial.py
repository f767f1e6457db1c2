"""What plans of a binomial request are worth at given multipliers (docs/proofs-tree.md)."""

from __future__ import annotations

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.switches._kernels import NONE, best_plans
from topoplace.certify.switches.relaxed import Box, Relaxed, Rules, View
from topoplace.result.tree import BinomialShares
from topoplace.types import BoolArray, IntArray

LARGEST_WORTH = (1 << 58) + 1
"""Above the multipliers of a tree's leaf together, times all ranks.

Every multiplier is taken at most three times per rank, so that sums stay below 2^60, and above
`NONE`, which is -2^61.
"""


class Plans(Rules):
    """A request whose ranks double step by step."""

    leaf = BinomialShares

    def __init__(self, relaxed: Relaxed) -> None:
        super().__init__(relaxed)
        ((_, pairs_of),) = relaxed.families
        children = np.array([len(pairs) for pairs in pairs_of], dtype=np.int64)
        self._active = np.concatenate([[1], 1 + np.cumsum(children)]).astype(np.int64)
        self._idle = self._active[:-1] - children
        self.work += len(children) * int((relaxed.ranks_on**2).sum())

    def fits(self, ranks: IntArray, keeps: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which states have a way through active ranks to all ranks."""
        nothing = np.zeros((len(ranks), len(self._active)), dtype=np.int64)
        crosses = self._crosses(keeps)
        found = best_plans(ranks, self._active, crosses, able, nothing, nothing, nothing)
        there: BoolArray = found > NONE
        return there

    def _crosses(self, keeps: BoolArray) -> BoolArray:
        """Tell in which steps ranks may have children elsewhere, or none if one of all is idle."""
        crosses: BoolArray = ~keeps | (self._idle > 0)[:, None]
        return crosses

    def read(self, leaf: BinomialShares) -> None:
        """Raise `RefusedError` unless multipliers are of steps and values that are there."""
        steps, num_values = len(self._idle), len(self.relaxed.values)
        if len(leaf.shares) != steps + 1:
            raise RefusedError("a nogood has another number of steps")
        for step, key, senders, receivers in leaf.cuts:
            if not (0 <= step < steps and 0 <= key < num_values and min(senders, receivers) >= 0):
                raise RefusedError("a nogood has an unknown cut, or one below 0")
        total = sum(abs(share) for share in leaf.shares) + sum(a + b for _, _, a, b in leaf.cuts)
        require_room(total * self.relaxed.ranks, "multipliers times ranks", LARGEST_WORTH)

    def refutes(self, leaf: BinomialShares, view: View) -> bool:
        """Tell whether multipliers rule out what is left."""
        return self._worth(leaf, view) < self._wanted(leaf)

    def boxes(self) -> list[Box]:
        """Return boxes of thresholds by number that hold all that count.

        A step that crosses and a later one that is inside can change places if no rank is idle;
        with equal prices those inside come first, and all of them are on one leaf.
        """
        relaxed, steps = self.relaxed, len(self._idle)
        top = len(relaxed.values) - 1
        if self._idle.any() or len(set(relaxed.prices)) > 1:
            return super().boxes()
        crossing = int(relaxed.between.min())
        boxes: list[Box] = [([crossing] * steps, [top] * steps)]
        for inside in set(relaxed.inside.tolist()):
            for n in range(1, steps + 1):
                begin, rest = [inside] * n, steps - n
                boxes.append((begin + [crossing] * rest, begin + [top] * rest))
        return boxes

    def _wanted(self, tree: BinomialShares) -> int:
        """Return what all leaves together have to be worth."""
        active: list[int] = self._active.tolist()
        idle: list[int] = self._idle.tolist()
        all_active = sum(s * a for s, a in zip(tree.shares, active, strict=True))
        return all_active - sum(u * idle[step] for step, _, u, _ in tree.cuts)

    def _worth(self, tree: BinomialShares, view: View) -> int:
        """Return the most that all leaves together are worth.

        New ranks of a bad leaf's partners take its senders, active ones its receivers; a bad leaf
        needs partners for all that does not stay inside.
        """
        num, steps = len(view.ranks), len(self._idle)
        of_active = np.tile(np.array(tree.shares, dtype=np.int64), (num, 1))
        of_new, of_inside = np.zeros((2, num, steps), dtype=np.int64)
        for step, key, senders, receivers in tree.cuts:
            high = self.relaxed.between.diagonal()[view.states] >= key
            near = view.beside[step][:, high].any(axis=1)
            bad = high & ~near
            of_new[near, step] += senders
            of_active[near, step] += receivers
            of_active[bad, step] -= senders
            of_new[bad, step] -= receivers
            of_inside[bad, step] += senders + receivers
        crosses = self._crosses(view.keeps)
        worths = best_plans(
            view.ranks, self._active, crosses, view.able, of_active, of_new, of_inside
        )
        best = np.where(view.full, NONE, 0)
        np.maximum.at(best, view.types, worths)
        leaves: list[int] = view.leaves.tolist()
        return sum(n * worth for n, worth in zip(leaves, best.tolist(), strict=True))
