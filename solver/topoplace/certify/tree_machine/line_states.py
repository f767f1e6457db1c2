"""What thresholds and assumed leaves leave of a grid's states (docs/proofs-tree.md, "Grids")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import IntArray, added_at
from topoplace.certify.tree_machine.relaxed import Relaxed

BoolArray = NDArray[np.bool_]


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


class LineStates:
    """The states of a request on a grid.

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


def least_met(ranks: int, extents: Sequence[int]) -> IntArray:
    """Return how many lines per dimension some cells of a grid may meet, where none is fewer.

    By Loomis and Whitney, the product is at least ``ranks ** (num_dims - 1)``. Shape
    ``(num_dims, num_ways)``.
    """
    cells = math.prod(extents)
    ranges = [np.arange(-(-ranks // n), min(ranks, cells // n) + 1) for n in extents]
    heads = np.meshgrid(*ranges[:-1], indexing="ij") if len(extents) > 1 else []
    product = math.prod(heads, start=np.ones([len(own) for own in ranges[:-1]], dtype=np.int64))
    last = np.maximum(ranges[-1][0], -(-(ranks ** (len(extents) - 1)) // product))
    never = cells + 1
    last = np.where(last <= ranges[-1][-1], last, never)
    fewest = last
    for axis in range(last.ndim):
        fewest = np.minimum.accumulate(fewest, axis=axis)
    least = last < never
    for axis in range(last.ndim):
        before = np.roll(fewest, 1, axis=axis)
        np.moveaxis(before, axis, 0)[0] = never
        least &= last < before
    return np.stack([*(head[least] for head in heads), last[least]])
