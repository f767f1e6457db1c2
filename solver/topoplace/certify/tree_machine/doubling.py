"""Following the nogoods of a binomial request (docs/proofs-tree.md, "Certificates")."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.instance import Wish
from topoplace.certify.tree_machine.relaxed import Relaxed, State
from topoplace.certify.tree_machine.steps import steps_of
from topoplace.certify.tree_machine.transversal import Box, has_cheap_one
from topoplace.result.tree import DoublingNogood
from topoplace.snapshot.schema import Pattern

MOST_NOGOODS = 20_000
Moves = list[dict[int, list[int]]]
"""Per step, what active ranks can become."""


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

    def follow(self, nogoods: Sequence[DoublingNogood], bound: Fraction) -> None:
        """Raise `RefusedError` unless every nogood is right and together they prove the bound."""
        if len(nogoods) > MOST_NOGOODS:
            raise RefusedError(f"more than {MOST_NOGOODS} nogoods")
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
        values, steps = self._relaxed.values, len(self._children)
        top = len(values) - 1
        if any(self._idle) or len(set(self._relaxed.prices)) > 1:
            return [([0] * steps, [top] * steps)]
        crossing = values.index(min(self._relaxed.between.values()))
        boxes: list[Box] = [([crossing] * steps, [top] * steps)]
        for inside in set(self._inside.values()):
            for n in range(1, steps + 1):
                begin, rest = [values.index(inside)] * n, steps - n
                boxes.append((begin + [crossing] * rest, begin + [top] * rest))
        return boxes

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
        left = self._left(most)
        worth = {state: _Worth(nogood.shares, steps) for state in left.moves}
        wanted = sum(s * a for s, a in zip(nogood.shares, self._active, strict=True))
        for step, key, senders, receivers in nogood.cuts:
            wanted -= senders * self._idle[step]
            high = [s for s in worth if self._key[s] >= self._relaxed.values[key]]
            for state, own in worth.items():
                if any(self._pair(state, other, most[step], left) for other in high):
                    own.partner(step, senders, receivers)
                elif self._key[state] >= self._relaxed.values[key]:
                    own.bad(step, senders, receivers)
        best: dict[int, list[int]] = {t: [] for t in left.most}
        for state, reached in left.moves.items():
            able = [self._inside[state] <= top for top in most]
            best[state[0]].append(worth[state].most(reached, state[1], able))
        total = 0
        for t, found in best.items():
            if left.most[t] <= left.spare:
                found.append(0)  # a leaf may be without ranks
            total += left.leaves[t] * max(found)
        return left.spare < 0 or total < wanted

    def _left(self, most: Sequence[int]) -> _Left:
        """Return the states that thresholds leave."""
        found: dict[State, Moves] = {state: [] for state in self._relaxed.states}
        while True:
            states = list(found)
            leaves = {state[0]: self._relaxed.leaves(state) for state in states}
            left = _Left(found, leaves, self._active[-1])
            found = {}
            for state in states:
                moves = self._moves_of(state, most, left)
                if moves is not None and left.short(state) <= left.spare:
                    found[state] = moves
            if len(found) == len(states):
                return _Left(found, leaves, self._active[-1])

    def _moves_of(self, state: State, most: Sequence[int], left: _Left) -> Moves | None:
        """Return what active ranks can become in every step; None if not all ranks in the end."""
        reached, moves = {0, 1}, []
        for step, top in enumerate(most):
            here: dict[int, list[int]] = {}
            highest = min(state[1], self._active[step + 1])
            crosses = self._idle[step] or any(
                self._pair(state, other, top, left) for other in left.moves
            )
            for a in reached:
                if crosses:
                    here[a] = list(range(a, highest + 1))
                elif a == 0 or (self._inside[state] <= top and 2 * a <= highest):
                    here[a] = [2 * a]  # all stays inside, so that every rank has a child there
            moves.append(here)
            reached = {after for ends in here.values() for after in ends}
        return moves if state[1] in reached else None

    def _pair(self, one: State, other: State, most: int, left: _Left) -> bool:
        """Tell whether leaves in two states can pair, which takes two leaves and room for all."""
        apart = one[0] != other[0] or left.leaves[one[0]] > 1
        near = apart and self._hops(one, other) <= most
        return near and left.short(one) + left.short(other) <= left.spare


class _Left:
    """States that thresholds leave, and how many ranks fewer than they can leaves may hold.

    Attributes
    ----------
    moves
        Per state and step, what active ranks can become.
    leaves, most
        Per type of leaf, their number and the most ranks on one of them.
    spare
        Ranks that all leaves can hold beyond those of the request; below 0, they do not fit.
    """

    def __init__(self, moves: dict[State, Moves], leaves: dict[int, int], ranks: int) -> None:
        self.moves, self.leaves = moves, leaves
        self.most: dict[int, int] = {}
        for t, count in moves:
            self.most[t] = max(self.most.get(t, 0), count)
        self.spare = sum(leaves[t] * most for t, most in self.most.items()) - ranks

    def short(self, state: State) -> int:
        """Return how many ranks fewer than its most a leaf has."""
        return self.most[state[0]] - state[1]


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
