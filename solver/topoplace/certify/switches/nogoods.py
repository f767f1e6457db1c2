"""Following the nogoods of a request: trees of integers, one grammar for all patterns.

See docs/proofs/tree.md, "Certificates". What a pattern's leaves and multipliers mean is checked by
its rules (`rules_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from topoplace.certify.hierarchy.instance import Asked
from topoplace.certify.integers import ROOM, require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.costs import GRIDS
from topoplace.certify.switches.relaxed import (
    CUBES,
    Assumed,
    Box,
    Relaxed,
    Rules,
)
from topoplace.certify.switches.rules import Lines, Plans, Sides
from topoplace.result.tree import Empty, StateBranch, ThresholdNogood, ThresholdTree
from topoplace.snapshot.schema import Pattern

MOST_PARTS = 200_000
"""Most parts of all trees together."""

MOST_WORK = 300_000_000_000
"""Additions, of all trees together: some minutes."""

MOST_DEPTH = 150
MOST_STATES = 600
MOST_RANKS = 1 << 20


class Nogoods:
    """Follows the nogoods of one request, alone with the running jobs."""

    def __init__(self, relaxed: Relaxed, asked: Asked) -> None:
        self._relaxed = relaxed
        self.rules = rules_of(relaxed, asked)
        self._any = Rules(relaxed)
        self._parts = self._work = 0

    def follow(self, nogoods: Sequence[ThresholdNogood], bound: Fraction) -> None:
        """Raise `RefusedError` unless every nogood is right and together they prove the bound."""
        for number, nogood in enumerate(nogoods):
            if not self.is_right(nogood):
                raise RefusedError(f"nogood {number} rules out thresholds that are possible")
        costs, least = self._relaxed.costs(bound)
        corners, chains = [nogood.at for nogood in nogoods], self._relaxed.chains
        if has_cheap_one(costs, corners, least, self.rules.boxes(), chains):
            raise RefusedError(f"thresholds that cost less than {bound} are not ruled out")

    def is_right(self, nogood: ThresholdNogood) -> bool:
        """Tell whether a nogood's tree rules out its thresholds."""
        if len(nogood.at) != len(self._relaxed.prices):
            raise RefusedError("a nogood has another number of steps")
        if not all(0 <= at < len(self._relaxed.values) for at in nogood.at):
            raise RefusedError("a nogood names an unknown value")
        nothing = Assumed((0,) * len(self._relaxed.types))
        return self._refutes(nogood.proof, nogood.at, nothing, 0)

    def _refutes(
        self, tree: ThresholdTree, most: Sequence[int], assumed: Assumed, depth: int
    ) -> bool:
        self._parts += 1
        if self._parts > MOST_PARTS or depth > MOST_DEPTH:
            raise RefusedError(f"trees of more than {MOST_PARTS} parts or {MOST_DEPTH} levels")
        if isinstance(tree, StateBranch):
            if not 0 <= tree.state < len(assumed.leaves):
                raise RefusedError("a branch is on an unknown state")
            without, more = assumed.without(tree.state), assumed.more(tree.state)
            return self._refutes(tree.without, most, without, depth + 1) and self._refutes(
                tree.more, most, more, depth + 1
            )
        if not isinstance(tree, Empty):
            if not isinstance(tree, self.rules.leaf):
                raise RefusedError(f"{tree.kind} rule out nothing of this pattern")
            self.rules.read(tree)
        self._work += self.rules.work
        if self._work > MOST_WORK:
            raise RefusedError(f"more than {MOST_WORK} additions")
        view = self.rules.view(most, assumed)
        if view is None or not isinstance(tree, Empty):
            return view is None or self.rules.refutes(tree, view)
        return self._any.view(most, assumed) is None


def rules_of(relaxed: Relaxed, asked: Asked) -> Rules:
    """Return the rules of a request: of its single pattern, if it has some and is not too large."""
    kinds = {CUBES[0] if use.pattern in CUBES else use.pattern for use in asked.patterns}
    if len(kinds) != 1 or len(relaxed.types) > MOST_STATES or not 1 < asked.nodes <= MOST_RANKS:
        return Rules(relaxed)
    kind = kinds.pop()
    if kind is Pattern.BINOMIAL:
        return Plans(relaxed)
    if kind in GRIDS:
        return Lines(relaxed, kind)
    full = kind in CUBES and asked.nodes & (asked.nodes - 1) == 0
    is_sided = full or (kind is Pattern.RING and asked.nodes > 2)
    return Sides(relaxed, kind) if is_sided else Rules(relaxed)


def has_cheap_one(
    costs: Sequence[Sequence[int]],
    nogoods: Sequence[Sequence[int]],
    bound: int,
    boxes: Sequence[Box],
    chains: Sequence[Sequence[int]] = (),
) -> bool:
    """Tell whether a vector of some boxes that is under no nogood costs less than a bound.

    A vector is under a nogood if no component is above the nogood's. What a nogood leaves of a
    box of vectors are boxes again; it takes those whose cheapest corner is under no nogood. The
    costs of the values 0, 1, .. of a component ascend; costs of components are added up. Components
    of a chain ascend in the vectors that count.
    """
    if not costs:
        return bound > 0
    require_room(sum(own[-1] for own in costs), "the cost of thresholds")
    require_room(abs(bound), "the bound of a proof, in the unit of its thresholds")
    # one value more, dearer than all: above it there is nothing
    cost = np.array([[*own, ROOM] for own in costs], dtype=np.int64)
    corners = np.array(nogoods, dtype=np.int64).reshape(-1, len(costs)).T.copy()
    every = np.arange(len(costs))
    above = cost[every[:, None], corners + 1]
    chained = [list(chain) for chain in chains]
    stack = []
    for lows, highs in boxes:
        stack.append((np.array(lows), np.array(highs), np.arange(corners.shape[1])))
    while stack:
        low, high, over = stack.pop()
        for chain in chained:
            low[chain] = np.maximum.accumulate(low[chain])
            high[chain] = np.minimum.accumulate(high[chain][::-1])[::-1]
        at_low = cost[every, low]
        spare = bound - int(at_low.sum())
        if spare <= 0 or (low > high).any():
            continue
        # the nogoods above the low corner
        over = over[(corners[:, over] >= low[:, None]).all(axis=0)]
        if not len(over):
            return True
        # The nogood outside of which the box costs most, and the dearest part of it first.
        dearer = above[:, over] - at_low[:, None]
        extras = np.where(corners[:, over] < high[:, None], dearer, ROOM)
        best = int(extras.min(axis=0).argmax())
        corner, extra = corners[:, over[best]], extras[:, best]
        for n in np.argsort(-extra, kind="stable").tolist():
            if corner[n] < high[n] and extra[n] < spare:
                part = low.copy()
                part[n] = corner[n] + 1
                stack.append((part, high.copy(), over))
            high[n] = min(high[n], corner[n])
    return False
