"""Following the nogoods of a binomial request (docs/proofs-tree.md, "Certificates")."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine._kernels import NONE, best_plans
from topoplace.certify.tree_machine.doubling_states import DoublingStates, DoublingView
from topoplace.certify.tree_machine.instance import Wish
from topoplace.certify.tree_machine.line_states import Assumed
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.certify.tree_machine.steps import steps_of
from topoplace.certify.tree_machine.transversal import Box, has_cheap_one
from topoplace.result.tree import (
    DoublingBranch,
    DoublingNogood,
    DoublingShares,
    DoublingSharesNogood,
    DoublingTreeNogood,
)
from topoplace.snapshot.schema import Pattern

MOST_PARTS = 200_000
"""Of all nogoods together."""

MOST_WORK = 300_000_000_000
"""Additions, of all nogoods together: some minutes."""

MOST_DEPTH = 150
MOST_STATES = 600
MOST_RANKS = 1 << 20
LARGEST_WORTH = (1 << 58) + 1
"""Above the multipliers of a tree's leaf together, times all ranks.

Every multiplier is taken at most three times per rank, so that sums stay below 2^60, and above
`NONE`, which is -2^61.
"""

_Shares = DoublingSharesNogood | DoublingShares


class Doubling:
    """One request whose ranks double step by step, alone with the running jobs.

    Raises
    ------
    RefusedError
        If it has any other pattern, a single rank, or is larger than can be followed.
    """

    def __init__(self, relaxed: Relaxed, wish: Wish) -> None:
        if {use.pattern for use in wish.patterns} != {Pattern.BINOMIAL} or wish.nodes == 1:
            raise RefusedError(f"{wish.id} has patterns beside binomial, or a single rank")
        if len(relaxed.states) > MOST_STATES or wish.nodes > MOST_RANKS:
            raise RefusedError(f"more than {MOST_STATES} states or {MOST_RANKS} ranks")
        self._relaxed = relaxed
        children = np.array(
            [len(pairs) for pairs, _ in steps_of(Pattern.BINOMIAL, wish.nodes)], dtype=np.int64
        )
        self._active = np.concatenate([[1], 1 + np.cumsum(children)]).astype(np.int64)
        self._idle = self._active[:-1] - children
        self._num_states = len(relaxed.states)
        self._states = DoublingStates(relaxed, self._active, self._idle)
        self._parts = self._work = 0

    def follow(self, nogoods: Sequence[DoublingNogood], bound: Fraction) -> None:
        """Raise `RefusedError` unless every nogood is right and together they prove the bound."""
        for number, nogood in enumerate(nogoods):
            if not self._is_right(nogood):
                raise RefusedError(f"nogood {number} rules out thresholds that are possible")
        costs, least = self._relaxed.costs(bound)
        if has_cheap_one(costs, [nogood.at for nogood in nogoods], least, self._boxes()):
            raise RefusedError(f"thresholds that cost less than {bound} are not ruled out")

    def _boxes(self) -> list[Box]:
        """Return boxes of thresholds by number that hold all that count.

        A step that crosses and a later one that is inside can change places if no rank is idle;
        with equal prices those inside come first, and all of them are on one leaf.
        """
        values, steps = self._relaxed.values, len(self._idle)
        top = len(values) - 1
        if self._idle.any() or len(set(self._relaxed.prices)) > 1:
            return [([0] * steps, [top] * steps)]
        crossing = values.index(min(self._relaxed.between.values()))
        boxes: list[Box] = [([crossing] * steps, [top] * steps)]
        for inside in set(self._relaxed.inside.values()):
            for n in range(1, steps + 1):
                begin, rest = [values.index(inside)] * n, steps - n
                boxes.append((begin + [crossing] * rest, begin + [top] * rest))
        return boxes

    def _is_right(self, nogood: DoublingNogood) -> bool:
        """Tell whether a nogood's multipliers, or its tree, rule out its thresholds."""
        if len(nogood.at) != len(self._idle):
            raise RefusedError("a nogood has another number of steps")
        if not all(0 <= at < len(self._relaxed.values) for at in nogood.at):
            raise RefusedError("a nogood names an unknown value")
        proof = nogood.proof if isinstance(nogood, DoublingTreeNogood) else nogood
        return self._refutes(proof, nogood.at, Assumed((0,) * self._num_states), 0)

    def _refutes(
        self, tree: _Shares | DoublingBranch, most: Sequence[int], assumed: Assumed, depth: int
    ) -> bool:
        """Tell whether a tree rules out thresholds."""
        self._parts += 1
        if self._parts > MOST_PARTS or depth > MOST_DEPTH:
            raise RefusedError(f"trees of more than {MOST_PARTS} parts or {MOST_DEPTH} levels")
        if isinstance(tree, DoublingBranch):
            if not 0 <= tree.state < self._num_states:
                raise RefusedError("a branch is on an unknown state")
            without, more = assumed.without(tree.state), assumed.more(tree.state)
            return self._refutes(tree.without, most, without, depth + 1) and self._refutes(
                tree.more, most, more, depth + 1
            )
        self._read(tree)
        self._work += self._states.work
        if self._work > MOST_WORK:
            raise RefusedError(f"more than {MOST_WORK} additions")
        view = self._states.view(most, assumed)
        return view is None or self._worth(tree, view) < self._wanted(tree)

    def _read(self, tree: _Shares) -> None:
        """Raise `RefusedError` unless multipliers are of steps and values that are there."""
        steps, num_values = len(self._idle), len(self._relaxed.values)
        if len(tree.shares) != steps + 1:
            raise RefusedError("a nogood has another number of steps")
        for step, key, senders, receivers in tree.cuts:
            if not (0 <= step < steps and 0 <= key < num_values and min(senders, receivers) >= 0):
                raise RefusedError("a nogood has an unknown cut, or one below 0")
        total = sum(abs(share) for share in tree.shares) + sum(a + b for _, _, a, b in tree.cuts)
        require_room(total * self._relaxed.ranks, "multipliers times ranks", LARGEST_WORTH)

    def _wanted(self, tree: _Shares) -> int:
        """Return what all leaves together have to be worth."""
        active: list[int] = self._active.tolist()
        idle: list[int] = self._idle.tolist()
        all_active = sum(s * a for s, a in zip(tree.shares, active, strict=True))
        return all_active - sum(u * idle[step] for step, _, u, _ in tree.cuts)

    def _worth(self, tree: _Shares, view: DoublingView) -> int:
        """Return the most that all leaves together are worth.

        New ranks of a bad leaf's partners take its senders, active ones its receivers; a bad leaf
        needs partners for all that does not stay inside.
        """
        num, steps = len(view.ranks), len(self._idle)
        of_active = np.tile(np.array(tree.shares, dtype=np.int64), (num, 1))
        of_new, of_inside = np.zeros((2, num, steps), dtype=np.int64)
        for step, key, senders, receivers in tree.cuts:
            high = view.key >= key
            near = view.beside[step][:, high].any(axis=1)
            bad = high & ~near
            of_new[near, step] += senders
            of_active[near, step] += receivers
            of_active[bad, step] -= senders
            of_new[bad, step] -= receivers
            of_inside[bad, step] += senders + receivers
        worths = best_plans(
            view.ranks, self._active, view.crosses, view.able, of_active, of_new, of_inside
        )
        best = np.where(view.full, NONE, 0)
        np.maximum.at(best, view.types, worths)
        leaves: list[int] = view.leaves.tolist()
        return sum(n * worth for n, worth in zip(leaves, best.tolist(), strict=True))
