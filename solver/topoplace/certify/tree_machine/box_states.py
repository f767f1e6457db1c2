"""States of a request whose ranks form a box: a grid, a full cube, or a ring as a single line.

What thresholds and assumed leaves leave of them, and whole numbers of leaves that hold all ranks
(docs/proofs-tree.md, "Grids").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import IntArray, added_at
from topoplace.certify.tree_machine.relaxed import Relaxed

BoolArray = NDArray[np.bool_]

_NEVER = 1 << 61


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
    """The states left, ascending, and what leaves in them may do.

    Attributes
    ----------
    states
        Their numbers.
    able, keeps
        Whether a state may have neighbours inside, and whether it has all its neighbours inside;
        shape ``(num_dims, num_left)``.
    beside
        Whether two are neighbours, shape ``(num_dims, num_left, num_left)``.
    assumed
        Leaves assumed, per state left.
    free
        Leaves of every type besides those.
    open
        Whether one of those may be in a state left.
    """

    states: IntArray
    able: BoolArray
    keeps: BoolArray
    beside: BoolArray
    assumed: IntArray
    free: IntArray
    open: BoolArray


class BoxStates:
    """The states of a request whose ranks form a box.

    All sums are of ranks, leaves and nodes of the machine, of which there are at most 2^21.
    Hops are by number in `Relaxed.values`, so that they fit where their units may not.

    Attributes
    ----------
    ranks, types
        Ranks on the leaf and its type, per state.
    num_leaves
        Of all types.
    """

    def __init__(self, relaxed: Relaxed, extents: Sequence[int]) -> None:
        states = relaxed.states
        number = {value: n for n, value in enumerate(relaxed.values)}
        kinds = [relaxed.kind(state) for state in states]
        self.types = np.array([t for t, _ in states], dtype=np.int64)
        self.ranks = np.array([count for _, count in states], dtype=np.int64)
        self._wanted, self._extents = relaxed.ranks, extents
        leaves = {t: relaxed.leaves((t, 0)) for t, _ in states}
        self._leaves = np.array([leaves[t] for t in sorted(leaves)], dtype=np.int64)
        self.num_leaves = int(self._leaves.sum())
        self._inside = np.array([number[relaxed.inside[kind]] for kind in kinds])
        between = relaxed.between
        self._between = np.array([[number[between[a, b]] for b in kinds] for a in kinds])

    def view(self, most: Sequence[int], assumed: Assumed) -> View | None:
        """Return what thresholds leave, None if that cannot hold all ranks as assumed."""
        sure = np.array(assumed.leaves, dtype=np.int64)
        free = self._leaves - added_at(len(self._leaves), self.types, sure, "assumed leaves")
        if (free < 0).any():
            return None
        can_be = free[self.types] > 0
        can_be[list(assumed.complete)] = False
        near = self._near(most, sure, free, can_be)
        able = self._inside <= np.array(most)[:, None]
        alive = can_be | (sure > 0)
        while True:
            short, spare = self._short(alive & can_be, sure, free)
            left = alive & (short <= spare)
            if spare < 0 or ((sure > 0) & ~alive).any():
                return None
            together = short[:, None] + short <= spare
            keeps: BoolArray = np.logical_not((near & together & left).any(axis=2))
            left &= self._holds_lines(keeps, able)
            if (left == alive).all():
                break
            alive = left
        at = np.flatnonzero(alive)
        stays = keeps[:, at]
        beside = (near & together)[:, at][:, :, at] & ~stays[:, :, None] & ~stays[:, None, :]
        return View(at, able[:, at], stays, beside, sure[at], free, can_be[at])

    def _near(
        self, most: Sequence[int], sure: IntArray, free: IntArray, can_be: BoolArray
    ) -> BoolArray:
        """Return which states may be side by side per dimension: two leaves, near enough."""
        taken = (sure == 0).astype(np.int64)
        same = self.types[:, None] == self.types
        apart = ~same | (taken[:, None] + taken <= free[self.types])
        np.fill_diagonal(apart, sure + np.where(can_be, free[self.types], 0) > 1)
        near: BoolArray = apart & (self._between <= np.array(most)[:, None, None])
        return near

    def _short(self, alive: BoolArray, sure: IntArray, free: IntArray) -> tuple[IntArray, int]:
        """Return how many ranks fewer than it could a leaf holds, and how many all may lack.

        An assumed leaf holds what it could.
        """
        top = np.zeros(len(free), dtype=np.int64)
        np.maximum.at(top, self.types[alive], self.ranks[alive])
        spare = int(sure @ self.ranks + free @ top) - self._wanted
        return np.where(sure > 0, 0, top[self.types] - self.ranks), spare

    def _holds_lines(self, keeps: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which states' ranks can be whole lines of all dimensions kept inside."""
        whole = np.ones(len(self.ranks), dtype=np.int64)
        for extent, kept in zip(self._extents, keeps, strict=True):
            whole[kept] *= extent
        held: BoolArray = (self.ranks % whole == 0) & ~(keeps & ~able).any(axis=0)
        return held


def work_of_holding(states: BoxStates, wanted: int) -> int:
    """Return about how many additions `most_worth` takes."""
    return len(states.ranks) * wanted * min(states.num_leaves, wanted)


def most_worth(
    states: BoxStates, view: View, worths: Sequence[int | None], wanted: int
) -> int | None:
    """Return the most that leaves are worth which hold all ranks, None if none do.

    Parameters
    ----------
    worths
        Of a leaf, per state left, small enough for sums within 64 bits; None if impossible.
    wanted
        All ranks.
    """
    sure, left = 0, wanted
    by_type: dict[int, list[tuple[int, int]]] = {}
    for at, worth in enumerate(worths):
        state = view.states[at]
        ranks, assumed = int(states.ranks[state]), int(view.assumed[at])
        if worth is None:
            if assumed:
                return None
            continue
        sure += assumed * worth
        left -= assumed * ranks
        if view.open[at]:
            by_type.setdefault(int(states.types[state]), []).append((ranks, worth))
    if left < 0:
        return None
    best = np.full(left + 1, -_NEVER, dtype=np.int64)
    best[0] = 0
    for t, choices in by_type.items():
        for _ in range(int(view.free[t])):
            after = best.copy()
            for ranks, worth in choices:
                if ranks <= left:
                    part = after[ranks:]
                    np.maximum(part, best[: left + 1 - ranks] + worth, out=part)
            if (after == best).all():
                break
            best = after
    return None if best[left] < -_NEVER // 2 else int(best[left]) + sure
