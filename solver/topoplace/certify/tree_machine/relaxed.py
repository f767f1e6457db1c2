"""Which step values no allocation of one request has (docs/proofs-tree.md, "Certificates")."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.cost import hops
from topoplace.certify.tree_machine.instance import Instance, Wish
from topoplace.certify.tree_machine.steps import GRIDS, Pair, grid_of, steps_of
from topoplace.snapshot.schema import Pattern

CUBES = (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING)
State = tuple[int, int]
"""Number of a type of leaf, and ranks on a leaf of it."""


class Relaxed:
    """One request alone with the running jobs.

    Attributes
    ----------
    values
        All hops two of its ranks can have, leaves apart at the least distance; ascending, as
        integers in units of 1 / `scale`.
    prices
        Per step, what its hops are multiplied by. Those of a chain descend.
    chains
        Steps that a renumbering of the ranks can exchange: all of a full cube, and those of a grid
        along as many cells. Their thresholds may ascend, which costs least if prices descend.
    ranks
        Of the request.
    states
        Number of the type of leaf and ranks on it, of every state; ascending, and types by
        (L_nodes, L_comm, free nodes).
    inside, between
        Hops on a leaf of a kind and between leaves of two kinds, in the same units.
    """

    def __init__(self, instance: Instance, wish: Wish) -> None:
        self.ranks = wish.nodes
        leaves = [leaf for leaf, free in enumerate(instance.free_per_leaf) if free]
        levels = instance.tree.common_level
        apart = [int(levels[a, b]) for a in leaves for b in leaves if a < b]
        if any(level == 0 for level in apart):
            raise RefusedError("leaves without a common switch: the certificate does not apply")
        self._level = min(apart, default=2)
        free, sizes = instance.free_per_leaf, instance.sizes
        types = sorted((sizes[leaf], instance.comm[leaf], free[leaf]) for leaf in leaves)
        self._types = Counter(types)
        self.states: list[State] = [
            (t, count)
            for t, (_, _, room) in enumerate(self._types)
            for count in range(1, min(room, self.ranks) + 1)
        ]
        self._numbers = list(self._types)
        kinds = {self.kind(state) for state in self.states}
        inside = {kind: hops(1, kind, None) for kind in kinds}
        between = {(a, b): hops(self._level, a, b) for a in kinds for b in kinds}
        self.scale = math.lcm(*(h.denominator for h in (*inside.values(), *between.values())))
        self.inside = {kind: int(h * self.scale) for kind, h in inside.items()}
        self.between = {pair: int(h * self.scale) for pair, h in between.items()}
        self.values = sorted({*self.inside.values(), *self.between.values()})
        self.prices: list[Fraction] = []
        self.chains: list[list[int]] = []
        self._families: list[tuple[list[int], list[tuple[Pair, ...]]]] = []
        self._read_steps(wish)
        self._sums: dict[tuple[int, frozenset[int], frozenset[int]], set[int]] = {}

    def kind(self, state: State) -> tuple[int, int]:
        """Return L_comm with the request and L_nodes of a state."""
        size, comm, _ = self._numbers[state[0]]
        return comm + state[1], size

    def leaves(self, state: State) -> int:
        """Return the number of leaves that can be in a state."""
        return self._types[self._numbers[state[0]]]

    def _read_steps(self, wish: Wish) -> None:
        """Collect the different steps of every pattern; both exchanges share theirs."""
        found: dict[tuple[Pattern, tuple[Pair, ...]], int] = {}
        families: dict[Pattern, list[int]] = {}
        for use in wish.patterns:
            pattern = CUBES[0] if use.pattern in CUBES else use.pattern
            for pairs, weight in steps_of(use.pattern, wish.nodes):
                name = pattern, tuple(sorted(pairs))
                if name not in found:
                    found[name] = len(self.prices)
                    self.prices.append(Fraction(0))
                    families.setdefault(pattern, []).append(found[name])
                price = Fraction(use.share, 100) * use.message_bytes * weight
                self.prices[found[name]] += price
        pairs_of = [pairs for _, pairs in found]
        power_of_2 = self.ranks & (self.ranks - 1) == 0
        for pattern, steps in families.items():
            self._families.append((steps, [pairs_of[step] for step in steps]))
            extents = [1] * len(steps) if pattern in CUBES and power_of_2 else []
            if pattern in GRIDS:
                extents = [extent for extent in grid_of(pattern, self.ranks) if extent > 1]
            for extent in dict.fromkeys(extents):
                own = zip(steps, extents, strict=True)
                chain = [step for step, length in own if length == extent]
                ordered = sorted((self.prices[step] for step in chain), reverse=True)
                for step, price in zip(chain, ordered, strict=True):
                    self.prices[step] = price
                self.chains += [chain] if len(chain) > 1 else []

    def cost(self, at: Sequence[int]) -> Fraction:
        """Return the cost of step values, by number."""
        parts = (price * self.values[i] for price, i in zip(self.prices, at, strict=True))
        return sum(parts, Fraction(0)) / self.scale

    def costs(self, bound: Fraction) -> tuple[list[list[int]], int]:
        """Return what every value of every step costs, in integers, and a bound in their unit."""
        unit = math.lcm(*(price.denominator for price in self.prices))
        costs = [[int(price * unit) * value for value in self.values] for price in self.prices]
        return costs, math.ceil(bound * unit * self.scale)

    def possible(self, at: Sequence[int]) -> bool:
        """Tell whether states hold all ranks with every step at most a value, by number."""
        most = [self.values[i] for i in at]
        states = self.states
        while True:
            left = _Left(self, states)
            if left.spare < 0:
                return False
            kept = [state for state in states if self._can_be(state, most, left)]
            if len(kept) == len(states):
                return True
            states = kept

    def _can_be(self, state: State, most: Sequence[int], left: _Left) -> bool:
        short = left.short(state)
        if short > left.spare:
            return False
        kind = self.kind(state)
        crossings = [self.between[kind, self.kind(other)] for other in left.partners(state)]
        cheapest = min(crossings, default=self.values[-1] + 1)
        for number, (steps, _) in enumerate(self._families):
            kept = frozenset(at for at, step in enumerate(steps) if most[step] < cheapest)
            gone = frozenset(at for at in kept if most[steps[at]] < self.inside[kind])
            if state[1] not in self._reachable(number, kept, gone):
                return False
        return True

    def _reachable(self, family: int, kept: frozenset[int], gone: frozenset[int]) -> set[int]:
        """Return how many ranks can keep steps inside and take no part in some of them."""
        name = family, kept, gone
        if name not in self._sums:
            _, pairs_of = self._families[family]
            leader = list(range(self.ranks))
            for at in kept:
                for a, b in pairs_of[at]:
                    leader[_find(leader, a)] = _find(leader, b)
            part = [_find(leader, rank) for rank in range(self.ranks)]
            barred = {part[rank] for at in gone for pair in pairs_of[at] for rank in pair}
            sizes = Counter(size for p, size in Counter(part).items() if p not in barred)
            sums = 1
            for size, number in sizes.items():
                for _ in range(number):
                    sums |= sums << size
            self._sums[name] = {n for n in range(self.ranks + 1) if sums >> n & 1}
        return self._sums[name]


class _Left:
    """Some states, and the room that they leave.

    Attributes
    ----------
    spare
        How many ranks fewer than they could all leaves together may hold.
    """

    def __init__(self, relaxed: Relaxed, states: Sequence[State]) -> None:
        self._relaxed = relaxed
        self._counts: dict[int, list[int]] = {}
        for t, count in states:
            self._counts.setdefault(t, []).append(count)
        self._leaves = {t: relaxed.leaves((t, 0)) for t in self._counts}
        room = sum(self._leaves[t] * counts[-1] for t, counts in self._counts.items())
        self.spare = room - relaxed.ranks

    def short(self, state: State) -> int:
        """Return how many ranks fewer than it could a leaf in a state holds."""
        return self._counts[state[0]][-1] - state[1]

    def partners(self, state: State) -> Iterator[State]:
        """Yield, of every type, the state with the fewest ranks that another leaf may be in.

        Hops grow with ranks, so these are the cheapest; together with the leaf they may be short
        of no more than the spare.
        """
        left = self.spare - self.short(state)
        for t, counts in self._counts.items():
            if t != state[0] or self._leaves[t] > 1:
                yield t, counts[bisect.bisect_left(counts, counts[-1] - left)]


def _find(leader: list[int], rank: int) -> int:
    while leader[rank] != rank:
        leader[rank] = leader[leader[rank]]
        rank = leader[rank]
    return rank
