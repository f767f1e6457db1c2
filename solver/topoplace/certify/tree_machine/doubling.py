"""Following the nogoods of a binomial request (docs/proofs-tree.md, "Certificates")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.instance import Wish
from topoplace.certify.tree_machine.relaxed import Relaxed, State
from topoplace.certify.tree_machine.steps import steps_of
from topoplace.certify.tree_machine.transversal import has_cheap_one
from topoplace.result.tree import DoublingNogood
from topoplace.snapshot.schema import Pattern

MOST_NOGOODS = 20_000


class Doubling:
    """One request whose ranks double step by step, alone with the running jobs.

    Raises
    ------
    RefusedError
        If it has any other pattern.
    """

    def __init__(self, relaxed: Relaxed, wish: Wish) -> None:
        if any(use.pattern is not Pattern.BINOMIAL for use in wish.patterns):
            raise RefusedError(f"{wish.id} has patterns beside binomial")
        self._relaxed = relaxed
        self._children = [len(pairs) for pairs, _ in steps_of(Pattern.BINOMIAL, wish.nodes)]
        self._active = [1]
        for children in self._children:
            self._active.append(self._active[-1] + children)
        self._idle = [a - c for a, c in zip(self._active, self._children, strict=False)]
        self._inside = {s: relaxed.inside[relaxed.kind(s)] for s in relaxed.states}
        self._key = {s: self._hops(s, s) for s in relaxed.states}

    def _hops(self, one: State, other: State) -> int:
        return self._relaxed.between[self._relaxed.kind(one), self._relaxed.kind(other)]

    def _pair(self, one: State, other: State, most: int) -> bool:
        """Tell whether leaves in two states can pair, which takes two leaves."""
        apart = one[0] != other[0] or self._relaxed.leaves(one) > 1
        return apart and self._hops(one, other) <= most

    def follow(self, nogoods: Sequence[DoublingNogood], bound: Fraction) -> None:
        """Raise `RefusedError` unless every nogood is right and together they prove the bound."""
        if len(nogoods) > MOST_NOGOODS:
            raise RefusedError(f"more than {MOST_NOGOODS} nogoods")
        for number, nogood in enumerate(nogoods):
            if not self._is_right(nogood):
                raise RefusedError(f"nogood {number} rules out thresholds that are possible")
        prices = self._relaxed.prices
        unit = math.lcm(*(price.denominator for price in prices))
        costs = [[int(price * unit) * v for v in self._relaxed.values] for price in prices]
        least = math.ceil(bound * unit * self._relaxed.scale)
        if has_cheap_one(costs, [nogood.at for nogood in nogoods], least):
            raise RefusedError(f"thresholds that cost less than {bound} are not ruled out")

    def _is_right(self, nogood: DoublingNogood) -> bool:
        """Tell whether the plans of all leaves together are worth too little."""
        steps, num_values = len(self._children), len(self._relaxed.values)
        if len(nogood.at) != steps or len(nogood.shares) != steps + 1:
            raise RefusedError("a nogood has another number of steps")
        if not all(0 <= at < num_values for at in nogood.at):
            raise RefusedError("a nogood names an unknown value")
        for step, key, senders, receivers in nogood.cuts:
            if not (0 <= step < steps and 0 <= key < num_values and min(senders, receivers) >= 0):
                raise RefusedError("a nogood has an unknown cut, or one below 0")
        most = [self._relaxed.values[at] for at in nogood.at]
        moves = self._moves(most)
        worth = {state: _Worth(nogood.shares, steps) for state in moves}
        wanted = sum(s * a for s, a in zip(nogood.shares, self._active, strict=True))
        for step, key, senders, receivers in nogood.cuts:
            wanted -= senders * self._idle[step]
            high = [s for s in moves if self._key[s] >= self._relaxed.values[key]]
            for state in moves:
                if any(self._pair(state, other, most[step]) for other in high):
                    worth[state].partner(step, senders, receivers)
                elif self._key[state] >= self._relaxed.values[key]:
                    worth[state].bad(step, senders, receivers)
        best: dict[int, int] = {}
        leaves = {state[0]: self._relaxed.leaves(state) for state in moves}
        for state, reached in moves.items():
            able = [self._inside[state] <= top for top in most]
            found = worth[state].most(reached, state[1], able)
            best[state[0]] = max(best.get(state[0], 0), found)
        return sum(leaves[t] * value for t, value in best.items()) < wanted

    def _moves(self, most: Sequence[int]) -> dict[State, list[dict[int, list[int]]]]:
        """Return, of the states left, per step what active ranks can become."""
        states = list(self._relaxed.states)
        while True:
            found = {}
            for state in states:
                moves = self._moves_of(state, most, states)
                if moves is not None:
                    found[state] = moves
            if len(found) == len(states):
                return found
            states = list(found)

    def _moves_of(
        self, state: State, most: Sequence[int], states: Sequence[State]
    ) -> list[dict[int, list[int]]] | None:
        """Return what active ranks can become in every step; None if not all ranks in the end."""
        reached, moves = {0, 1}, []
        for step, top in enumerate(most):
            here: dict[int, list[int]] = {}
            highest = min(state[1], self._active[step + 1])
            crosses = self._idle[step] or any(self._pair(state, other, top) for other in states)
            for a in reached:
                if crosses:
                    here[a] = list(range(a, highest + 1))
                elif a == 0 or (self._inside[state] <= top and 2 * a <= highest):
                    here[a] = [2 * a]  # all stays inside, so that every rank has a child there
            moves.append(here)
            reached = {after for ends in here.values() for after in ends}
        return moves if state[1] in reached else None


class _Worth:
    """What ranks on a leaf in one state are worth, step by step."""

    def __init__(self, shares: Sequence[int], steps: int) -> None:
        self._active = list(shares)
        self._new = [0] * steps
        self._inside = [0] * steps

    def partner(self, step: int, senders: int, receivers: int) -> None:
        """Count what a leaf can do for bad ones: new ranks take senders, active ones receivers."""
        self._new[step] += senders
        self._active[step] += receivers

    def bad(self, step: int, senders: int, receivers: int) -> None:
        """Count what a bad leaf needs: partners for all that does not stay inside."""
        self._active[step] -= senders
        self._new[step] -= receivers
        self._inside[step] += senders + receivers

    def most(self, moves: Sequence[dict[int, list[int]]], ranks: int, able: Sequence[bool]) -> int:
        """Return the most that a way through active ranks to all ranks is worth."""
        best = {0: 0, 1: self._active[0]}
        for step, here in enumerate(moves):
            after: dict[int, int] = {}
            inside = self._inside[step] if able[step] else 0
            for a, ends in here.items():
                for end in ends:
                    new = end - a
                    value = best[a] + self._new[step] * new + self._active[step + 1] * end
                    value += inside * min(a, new)
                    if end not in after or value > after[end]:
                        after[end] = value
            best = after
        return best[ranks]
