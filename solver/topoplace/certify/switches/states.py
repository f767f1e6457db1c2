"""The states of a request that thresholds leave, and what a pattern's rules say of them.

A leaf with some ranks on it is in a state. All patterns share which states are left and which of
them may be neighbours; what ranks can stay inside, and what a certificate's multipliers show, is
said by the `Rules` of a pattern (docs/proofs-tree.md, "Relaxation", "Branches").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace.certify.integers import added_at
from topoplace.certify.switches.relaxed import Relaxed
from topoplace.types import BoolArray, IntArray

Box = tuple[Sequence[int], Sequence[int]]
"""Least and largest thresholds, by number."""

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
    """The states left; those of assumed leaves come on top, each with a type of its own.

    Attributes
    ----------
    states, types, ranks
        Per state left its number, type of leaf and ranks.
    able, keeps
        Whether ranks may have partners on their own leaf, and whether all are there; shape
        ``(num_steps, num_left)``.
    beside
        Whether leaves in two states may be neighbours, shape ``(num_steps, num_left, num_left)``.
    leaves, full
        Per type, leaves, and whether none of them can be without ranks.
    held
        Per state left, whether its leaves are assumed.
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


class Rules(ABC):
    """What ranks of a pattern can stay inside leaves, and what its multipliers show.

    Attributes
    ----------
    leaf
        The part of a certificate that has the multipliers.
    work
        About how many additions a leaf of a tree takes.
    """

    leaf: type[Any]

    def __init__(self, relaxed: Relaxed) -> None:
        self.relaxed = relaxed
        self.work = len(relaxed.prices) * len(relaxed.ranks_on) ** 2

    @abstractmethod
    def fits(self, ranks: IntArray, keeps: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which numbers of ranks can keep steps inside, where some may have no pairs."""

    @abstractmethod
    def read(self, leaf: Any) -> None:
        """Raise `RefusedError` unless a leaf speaks of what is there, in numbers that fit."""

    @abstractmethod
    def refutes(self, leaf: Any, view: View) -> bool:
        """Tell whether multipliers rule out what is left."""

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


class BoxRules(Rules):
    """Rules of ranks that form a box: a grid, a full cube, or a ring as a single line."""

    def __init__(self, relaxed: Relaxed, extents: Sequence[int]) -> None:
        super().__init__(relaxed)
        self.extents = list(extents)
        of_lines = sum(extents) * len(relaxed.ranks_on) ** 2
        num_leaves = min(int(relaxed.leaves.sum()), relaxed.ranks)
        self.work = of_lines + len(relaxed.ranks_on) * relaxed.ranks * num_leaves

    def fits(self, ranks: IntArray, keeps: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which ranks can be whole lines of all dimensions kept inside."""
        whole = np.ones(len(ranks), dtype=np.int64)
        for extent, kept in zip(self.extents, keeps, strict=True):
            whole[kept] *= extent
        held: BoolArray = (ranks % whole == 0) & ~(keeps & ~able).any(axis=0)
        return held

    def most_worth(self, view: View, worths: Sequence[int | None]) -> int | None:
        """Return the most that leaves are worth which hold all ranks, None if none do.

        Parameters
        ----------
        worths
            Of a leaf, per state left, small enough for sums within 64 bits; None if impossible.
        """
        sure, left = 0, self.relaxed.ranks
        by_type: dict[int, list[tuple[int, int]]] = {}
        states = zip(view.types.tolist(), view.ranks.tolist(), view.held, worths, strict=True)
        for t, ranks, held, worth in states:
            if held and worth is None:
                return None
            if held and worth is not None:
                sure += int(view.leaves[t]) * worth
                left -= int(view.leaves[t]) * ranks
            elif worth is not None:
                by_type.setdefault(t, []).append((ranks, worth))
        if left < 0:
            return None
        best = np.full(left + 1, -_NEVER, dtype=np.int64)
        best[0] = 0
        for t, choices in by_type.items():
            for _ in range(int(view.leaves[t])):
                after = best.copy()
                for ranks, worth in choices:
                    if ranks <= left:
                        part = after[ranks:]
                        np.maximum(part, best[: left + 1 - ranks] + worth, out=part)
                if (after == best).all():
                    break
                best = after
        return None if best[left] < -_NEVER // 2 else int(best[left]) + sure
