"""What plans of a binomial request are worth at given multipliers (docs/proofs-tree.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import IntArray, added_at, require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine._kernels import NONE, best_plans
from topoplace.certify.tree_machine.box_states import Assumed
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.certify.tree_machine.steps import steps_of
from topoplace.result.tree import BinomialShares, Empty, LinePrices, Needs
from topoplace.snapshot.schema import Pattern

BoolArray = NDArray[np.bool_]
Box = tuple[Sequence[int], Sequence[int]]

LARGEST_WORTH = (1 << 58) + 1
"""Above the multipliers of a tree's leaf together, times all ranks.

Every multiplier is taken at most three times per rank, so that sums stay below 2^60, and above
`NONE`, which is -2^61.
"""


@dataclass(frozen=True)
class PlanView:
    """The states left; those of assumed leaves come on top, each with a type of its own.

    Attributes
    ----------
    types, ranks, key
        Per state left: type of leaf, ranks, number of the hops to another leaf in the same state.
    able, crosses
        Whether ranks may have children on their own leaf, and on others; shape
        ``(num_steps, num_left)``.
    beside
        Whether leaves in two states may pair, shape ``(num_steps, num_left, num_left)``.
    leaves, full
        Per type, leaves, and whether none of them can be without ranks.
    """

    types: IntArray
    ranks: IntArray
    key: IntArray
    able: BoolArray
    crosses: BoolArray
    beside: BoolArray
    leaves: IntArray
    full: BoolArray


class PlanStates:
    """The states of a binomial request; hops are by number in `Relaxed.values`.

    Parameters
    ----------
    active, idle
        Active ranks before every step and at the end, and those of a step without a child.
    """

    def __init__(self, relaxed: Relaxed, active: IntArray, idle: IntArray) -> None:
        states = relaxed.states
        number = {value: n for n, value in enumerate(relaxed.values)}
        kinds = [relaxed.kind(state) for state in states]
        self._active, self._idle = active, idle
        self._types = np.array([t for t, _ in states], dtype=np.int64)
        self._ranks = np.array([count for _, count in states], dtype=np.int64)
        leaves = {t: relaxed.leaves((t, 0)) for t, _ in states}
        self._leaves = np.array([leaves[t] for t in sorted(leaves)], dtype=np.int64)
        self._inside = np.array([number[relaxed.inside[kind]] for kind in kinds])
        between = relaxed.between
        self._between = np.array([[number[between[a, b]] for b in kinds] for a in kinds])

    @property
    def work(self) -> int:
        """About how many additions a view and what its plans are worth take."""
        return len(self._idle) * (len(self._ranks) ** 2 + int((self._ranks**2).sum()))

    def view(self, most: Sequence[int], assumed: Assumed) -> PlanView | None:
        """Return what thresholds leave, None if that cannot hold all ranks as assumed."""
        sure = np.array(assumed.leaves, dtype=np.int64)
        free = self._leaves - added_at(len(self._leaves), self._types, sure, "assumed leaves")
        if (free < 0).any():
            return None
        can_be = free[self._types] > 0
        can_be[list(assumed.complete)] = False
        others, held = np.flatnonzero(can_be), np.flatnonzero(sure)
        source = np.concatenate([others, held])
        types = np.concatenate([self._types[others], len(free) + np.arange(len(held))])
        leaves = np.concatenate([free, sure[held]])
        top = np.array(most, dtype=np.int64)[:, None]
        able = self._inside[source] <= top
        apart = (types[:, None] != types) | (leaves[types] > 1)
        near = apart & (self._between[np.ix_(source, source)] <= top[:, None])
        alive = np.ones(len(source), dtype=np.bool_)
        while True:
            largest = np.zeros(len(leaves), dtype=np.int64)
            np.maximum.at(largest, types[alive], self._ranks[source[alive]])
            spare = int(leaves @ largest) - int(self._active[-1])
            if spare < 0 or not largest[len(free) :].all():
                return None
            short = largest[types] - self._ranks[source]
            together = short[:, None] + short <= spare
            beside = near & together & alive
            crosses = beside.any(axis=2) | (self._idle > 0)[:, None]
            left = alive & (short <= spare) & self._has_plan(source, crosses, able)
            if (left == alive).all():
                break
            alive = left
        own = source[alive]
        keys = self._between[own, own]
        beside = beside[:, alive][:, :, alive]
        full = np.concatenate([largest[: len(free)] > spare, np.ones(len(held), dtype=np.bool_)])
        return PlanView(
            types[alive],
            self._ranks[own],
            keys,
            able[:, alive],
            crosses[:, alive],
            beside,
            leaves,
            full,
        )

    def _has_plan(self, source: IntArray, crosses: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which states have a way through active ranks to all ranks."""
        nothing = np.zeros((len(source), len(self._active)), dtype=np.int64)
        found = best_plans(
            self._ranks[source], self._active, crosses, able, nothing, nothing, nothing
        )
        there: BoolArray = found > NONE
        return there


class Plans:
    """A request whose ranks double step by step."""

    def __init__(self, relaxed: Relaxed) -> None:
        self._relaxed = relaxed
        pairs_of = [pairs for pairs, _ in steps_of(Pattern.BINOMIAL, relaxed.ranks)]
        children = np.array([len(pairs) for pairs in pairs_of], dtype=np.int64)
        self._active = np.concatenate([[1], 1 + np.cumsum(children)]).astype(np.int64)
        self._idle = self._active[:-1] - children
        self.states = PlanStates(relaxed, self._active, self._idle)

    @property
    def work(self) -> int:
        """About how many additions weighing multipliers takes."""
        return self.states.work

    def read(self, leaf: Needs | BinomialShares | LinePrices) -> None:
        """Raise `RefusedError` unless multipliers are of steps and values that are there."""
        if not isinstance(leaf, BinomialShares):
            raise RefusedError("a binomial tree has shares and cuts alone")
        steps, num_values = len(self._idle), len(self._relaxed.values)
        if len(leaf.shares) != steps + 1:
            raise RefusedError("a nogood has another number of steps")
        for step, key, senders, receivers in leaf.cuts:
            if not (0 <= step < steps and 0 <= key < num_values and min(senders, receivers) >= 0):
                raise RefusedError("a nogood has an unknown cut, or one below 0")
        total = sum(abs(share) for share in leaf.shares) + sum(a + b for _, _, a, b in leaf.cuts)
        require_room(total * self._relaxed.ranks, "multipliers times ranks", LARGEST_WORTH)

    def refutes(
        self,
        leaf: Needs | BinomialShares | LinePrices | Empty,
        most: Sequence[int],
        assumed: Assumed,
    ) -> bool:
        """Tell whether multipliers rule out thresholds."""
        view = self.states.view(most, assumed)
        if view is None or not isinstance(leaf, BinomialShares):
            return view is None
        return self._worth(leaf, view) < self._wanted(leaf)

    def boxes(self) -> list[Box]:
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

    def _wanted(self, tree: BinomialShares) -> int:
        """Return what all leaves together have to be worth."""
        active: list[int] = self._active.tolist()
        idle: list[int] = self._idle.tolist()
        all_active = sum(s * a for s, a in zip(tree.shares, active, strict=True))
        return all_active - sum(u * idle[step] for step, _, u, _ in tree.cuts)

    def _worth(self, tree: BinomialShares, view: PlanView) -> int:
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
