"""One request alone with the running jobs, as certificates speak of it (docs/proofs/tree.md).

A leaf with some ranks on it is in a state. All patterns share which states thresholds leave and
which of them may be neighbours; what ranks can stay inside, and what a certificate's multipliers
show, is said by the `Rules` of a pattern.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from topoplace.certify.hierarchy.instance import Asked, Instance
from topoplace.certify.integers import added_at
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.costs import GRIDS, Pair, free_per_leaf, grid_of, hops, steps_of
from topoplace.result.tree import Empty
from topoplace.snapshot.schema import Pattern
from topoplace.types import BoolArray, IntArray

CUBES = (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING)

MOST_KINDS = 1 << 11
"""Leaves with different ranks or nodes, or both; any two of them have hops of their own."""

Box = tuple[Sequence[int], Sequence[int]]
"""Least and largest thresholds, by number."""


class Relaxed:
    """Steps, states and hops of a request, hops by number in `values`.

    `values` are all hops two of its ranks can have, leaves apart at the least distance; ascending,
    as integers in units of 1 / `scale`. `prices` are what the hops of every step are multiplied by.
    A renumbering of the ranks can exchange the steps of one of the `chains`: all of a full cube,
    and those of a grid along as many cells. Their thresholds may ascend, which costs least if
    prices descend, and so they do. `families` have the steps of a pattern and the pairs of those.

    `types` and `ranks_on` are the type of leaf and the ranks on it, of every state; ascending, and
    types by (L_nodes, L_comm, free nodes). There are `leaves` of every type. `inside` and `between`
    are the hops on a leaf in a state and between leaves in two.
    """

    def __init__(self, instance: Instance, asked: Asked) -> None:
        self.ranks = asked.nodes
        free, machine = free_per_leaf(instance), instance.machine
        leaves = [leaf for leaf, own in enumerate(free) if own]
        levels = machine.common_level
        apart = [int(levels[a, b]) for a in leaves for b in leaves if a < b]
        if any(level == 0 for level in apart):
            raise RefusedError("leaves without a common switch: the certificate does not apply")
        level = min(apart, default=2)
        sizes: list[int] = machine.leaf_sizes.tolist()
        found = Counter(sorted((sizes[leaf], instance.comm[leaf], free[leaf]) for leaf in leaves))
        self.leaves = np.array(list(found.values()), dtype=np.int64)
        states = [
            (t, count, (comm + count, size))
            for t, (size, comm, room) in enumerate(found)
            for count in range(1, min(room, self.ranks) + 1)
        ]
        self.types = np.array([t for t, _, _ in states], dtype=np.int64)
        self.ranks_on = np.array([count for _, count, _ in states], dtype=np.int64)
        kinds = list(dict.fromkeys(kind for _, _, kind in states))
        if len(kinds) > MOST_KINDS:
            raise RefusedError(f"{len(kinds)} kinds of leaves, at most {MOST_KINDS} are followed")
        inside = [hops(1, kind, None) for kind in kinds]
        between = [[hops(level, a, b) for b in kinds] for a in kinds]
        every = {*inside, *(one for row in between for one in row)}
        self.scale = math.lcm(*(one.denominator for one in every))
        number = {one: n for n, one in enumerate(sorted(every))}
        self.values = [int(one * self.scale) for one in number]
        at = np.array([kinds.index(kind) for _, _, kind in states], dtype=np.int64)
        self.inside = np.array([number[one] for one in inside], dtype=np.int64)[at]
        numbers = np.array([[number[one] for one in row] for row in between], dtype=np.int64)
        self.between = numbers[np.ix_(at, at)]
        self.prices: list[Fraction] = []
        self.chains: list[list[int]] = []
        self.families: list[tuple[list[int], list[tuple[Pair, ...]]]] = []
        self._read_steps(asked)

    def _read_steps(self, asked: Asked) -> None:
        """Collect the different steps of every pattern; both exchanges share theirs."""
        found: dict[tuple[Pattern, tuple[Pair, ...]], int] = {}
        families: dict[Pattern, list[int]] = {}
        for use in asked.patterns:
            pattern = CUBES[0] if use.pattern in CUBES else use.pattern
            for pairs, weight in steps_of(use.pattern, asked.nodes):
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
            self.families.append((steps, [pairs_of[step] for step in steps]))
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

    def costs(self, bound: Fraction) -> tuple[list[list[int]], int]:
        """Return what every value of every step costs, in integers, and a bound in their unit."""
        unit = math.lcm(*(price.denominator for price in self.prices))
        costs = [[int(price * unit) * value for value in self.values] for price in self.prices]
        return costs, math.ceil(bound * unit * self.scale)


def sums_of_components(
    ranks: int, kept: Sequence[tuple[Pair, ...]], gone: Sequence[tuple[Pair, ...]]
) -> set[int]:
    """Return how many ranks can keep the pairs of steps inside and have none of some steps."""
    leader = list(range(ranks))

    def find(rank: int) -> int:
        while leader[rank] != rank:
            leader[rank] = leader[leader[rank]]
            rank = leader[rank]
        return rank

    for pairs in kept:
        for a, b in pairs:
            leader[find(a)] = find(b)
    part = [find(rank) for rank in range(ranks)]
    barred = {part[rank] for pairs in gone for pair in pairs for rank in pair}
    sizes = Counter(size for p, size in Counter(part).items() if p not in barred)
    sums = 1
    for size, number in sizes.items():
        for _ in range(number):
            sums |= sums << size
    return {n for n in range(ranks + 1) if sums >> n & 1}


# ---- What thresholds leave -----------------------------------------------------------------------


@dataclass(frozen=True)
class Assumed:
    """Leaves that are in a state, per state, and the states that no other leaf is in."""

    leaves: tuple[int, ...]
    complete: frozenset[int] = frozenset()

    def without(self, state: int) -> Assumed:
        """Return what is assumed if no leaf more is in a state."""
        return Assumed(self.leaves, self.complete | {state})

    def more(self, state: int) -> Assumed:
        """Return what is assumed if one more is."""
        leaves = list(self.leaves)
        leaves[state] += 1
        return Assumed(tuple(leaves), self.complete)


@dataclass(frozen=True)
class View:
    """The states left; those of assumed leaves come on top, each with a type of its own.

    `able` and `keeps` say for steps and remaining states whether ranks may have partners on their
    own leaf, and whether all are there; `beside` says for steps and two states whether leaves in
    them may be neighbours; `full` for types whether none of the leaves can be without ranks; `held`
    for states whether their leaves are assumed.
    """

    states: IntArray
    types: IntArray
    ranks: IntArray
    able: BoolArray
    keeps: BoolArray
    beside: BoolArray
    leaves: IntArray
    full: BoolArray
    held: BoolArray


class Rules:
    """What ranks can stay inside leaves, and what multipliers show: here, of any patterns.

    `leaf` is the part of a certificate that has the multipliers, which the rules for any pattern do
    not have; `work` is about the number of additions that a leaf of a tree takes.
    """

    leaf: type[Any] = Empty

    def __init__(self, relaxed: Relaxed) -> None:
        self.relaxed = relaxed
        self.work = len(relaxed.prices) * len(relaxed.ranks_on) ** 2
        self._sums: dict[tuple[int, bytes, bytes], set[int]] = {}

    def fits(self, ranks: IntArray, keeps: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which numbers of ranks can keep steps inside, where some may have no pairs.

        They are a union of components of their pairs, without those with pairs that are too
        expensive.
        """
        found = np.ones(len(ranks), dtype=np.bool_)
        for number, (steps, pairs_of) in enumerate(self.relaxed.families):
            own = keeps[steps]
            gone = own & ~able[steps]
            for at, count in enumerate(ranks.tolist()):
                name = number, own[:, at].tobytes(), gone[:, at].tobytes()
                if name not in self._sums:
                    parts = [
                        [pairs for pairs, one in zip(pairs_of, some[:, at], strict=True) if one]
                        for some in (own, gone)
                    ]
                    self._sums[name] = sums_of_components(self.relaxed.ranks, *parts)
                found[at] &= count in self._sums[name]
        return found

    def read(self, leaf: Any) -> None:
        """Raise `RefusedError` unless a leaf speaks of what is there, in numbers that fit."""

    def refutes(self, leaf: Any, view: View) -> bool:
        """Tell whether multipliers rule out what is left."""
        return False

    def boxes(self) -> list[Box]:
        """Return boxes of thresholds by number that hold all that count."""
        steps = len(self.relaxed.prices)
        return [([0] * steps, [len(self.relaxed.values) - 1] * steps)]

    def view(self, most: Sequence[int], assumed: Assumed) -> View | None:
        """Return what thresholds leave, None if that cannot hold all ranks as assumed.

        All sums are of ranks, leaves and nodes of the machine, of which there are at most 2^21.
        """
        relaxed = self.relaxed
        sure = np.array(assumed.leaves, dtype=np.int64)
        num_types = len(relaxed.leaves)
        free = relaxed.leaves - added_at(num_types, relaxed.types, sure, "assumed leaves")
        if (free < 0).any():
            return None
        can_be = free[relaxed.types] > 0
        can_be[list(assumed.complete)] = False
        others, held = np.flatnonzero(can_be), np.flatnonzero(sure)
        source = np.concatenate([others, held])
        types = np.concatenate([relaxed.types[others], num_types + np.arange(len(held))])
        leaves, ranks = np.concatenate([free, sure[held]]), relaxed.ranks_on[source]
        top = np.array(most, dtype=np.int64)[:, None]
        able = relaxed.inside[source] <= top
        apart = (types[:, None] != types) | (leaves[types] > 1)
        near = apart & (relaxed.between[np.ix_(source, source)] <= top[:, None])
        alive = np.ones(len(source), dtype=np.bool_)
        while True:
            largest = np.zeros(len(leaves), dtype=np.int64)
            np.maximum.at(largest, types[alive], ranks[alive])
            spare = int(leaves @ largest) - relaxed.ranks
            if spare < 0 or not largest[num_types:].all():
                return None
            short = largest[types] - ranks
            beside = near & (short[:, None] + short <= spare) & alive
            keeps: BoolArray = np.logical_not(beside.any(axis=2))
            left = alive & (short <= spare)
            left[left] = self.fits(ranks[left], keeps[:, left], able[:, left])
            if (left == alive).all():
                break
            alive = left
        return View(
            source[alive],
            types[alive],
            ranks[alive],
            able[:, alive],
            keeps[:, alive],
            beside[:, alive][:, :, alive],
            leaves,
            (largest > spare) | (np.arange(len(leaves)) >= num_types),
            types[alive] >= num_types,
        )
