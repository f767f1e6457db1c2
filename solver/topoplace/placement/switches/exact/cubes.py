"""Full cubes and rings: thresholds ruled out by the needs of leaves that pair badly.

Bad leaves are such that no two of them may be neighbours. Their crossing pairs go to ranks of
others, and isoperimetry bounds how many cross (docs/proofs/tree.md, "Cubes and rings").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from topoplace.placement.switches.exact._grids import offered
from topoplace.placement.switches.exact.job import NOTHING, Job
from topoplace.placement.switches.exact.leaf_states import Standing, solved, standing, whole
from topoplace.placement.switches.exact.thresholds import Empty, Guess, Leaf, Mix, Oracle
from topoplace.result.tree import Needs as NeedsDocument
from topoplace.snapshot.schema import Pattern
from topoplace.types import FloatArray, IntArray

Side = tuple[int, int]
"""How many distances, the first ones, and the least hops between two leaves in a bad state."""

_MOST_SIDES = 54
_ZERO = 1e-7


def has_sides(job: Job) -> bool:
    """Tell whether a job is one that `SideOracle` is made for: a full cube or a ring, alone."""
    if len(job.families) != 1 or not job.is_countable or job.ranks < 3:
        return False
    return job.families[0].is_full_cube or job.families[0].pattern is Pattern.RING


@dataclass(frozen=True)
class Needs(Leaf):
    """Sides with multipliers, above 0, by which the needs of bad leaves add up to too much."""

    sides: tuple[tuple[Side, int], ...]

    def document(self, number: dict[int, int]) -> NeedsDocument:
        """Return them as a certificate states them."""
        return NeedsDocument(sides=[(dims, number[least], m) for (dims, least), m in self.sides])


class SideOracle(Oracle):
    """Programs for leaves that hold all ranks and leave no bad one without neighbours."""

    decide_programs = 400
    lift_programs = 6

    def __init__(self, job: Job) -> None:
        self.job, self.ranks, self._key = job, job.states.ranks, job.states.key
        self._degree = 2 if job.families[0].pattern is Pattern.RING else 1

    def holds(self, leaf: Leaf, thresholds: IntArray, guess: Guess) -> bool:
        """Tell whether multipliers rule out thresholds per distance."""
        view = standing(self.job, thresholds, guess)
        if view is None or not isinstance(leaf, Needs):
            return view is None
        needs, more = np.zeros(len(self.ranks), dtype=np.int64), 0
        for side, multiplier in leaf.sides:
            row = self.row_of(view, side)
            if row is not None:
                needs += multiplier * row
                more += multiplier * self._crowd(row, guess)
        # in whole numbers of leaves that hold all ranks
        worth = np.where(view.alive, -needs, NOTHING)
        return bool(offered(self.job.states, self.job.ranks, guess, worth) < more)

    def row_of(self, view: Standing, side: Side) -> IntArray | None:
        """Return, per state, what bad leaves need beyond what leaves of others can give.

        Over all leaves that adds up to 0 or less. None if it says nothing. Bad are the states
        whose own hops are as many or more, without those that may be neighbours of one of these.
        """
        dims, least = side
        pairs = view.pairs[:dims]
        high = view.alive & (self._key >= least)
        bad = high & ~pairs[:, :, high].any(axis=(0, 2))
        free = ~view.keeps[:dims, bad].all(axis=1)
        num_free = int(free.sum())
        if not num_free or not bad.any():
            return None
        near = pairs[free][:, :, bad].any(axis=2)
        row: IntArray = -self._degree * self.ranks * near.sum(axis=0)
        inside = self._pairs(dims - num_free, num_free)[self.ranks]
        row[bad] = (num_free * self._degree * self.ranks - 2 * inside)[bad]
        return row

    def _crowd(self, row: IntArray, guess: Guess) -> int:
        """Return what all leaves need more on a ring on which bad ones and others are assumed.

        Others are those that may not be neighbours of a bad one: they are also separate from these.
        """
        if self._degree == 1:
            return 0
        held = guess.forced > 0
        return 2 * int((held & (row > 0)).any() and (held & (row == 0)).any())

    def _crowded(self, leaves: FloatArray, rows: list[IntArray], guess: Guess) -> int | None:
        """Return a state of leaves that need more if another is assumed, None if none do."""
        used = np.rint(leaves) > 0
        for row in rows if self._degree == 2 else ():
            bad, other = used & (row > 0), used & (row == 0)
            if bad.any() and other.any() and leaves @ row > -1:
                there = bad if (other & (guess.forced > 0)).any() else other
                return int(np.argmax(there * leaves))
        return None

    def _pairs(self, closed: int, free: int) -> IntArray:
        """Return the most pairs of some distances among x ranks that keep others inside."""
        if self._degree == 2:
            pairs = np.maximum(np.arange(self.job.ranks + 1) - 1, 0)
            pairs[-1] = self.job.ranks  # all ranks close the ring
            return pairs
        return cube_pairs(self.job.ranks, closed, free)

    def _sides(self, view: Standing, thresholds: IntArray) -> Iterator[tuple[Side, IntArray]]:
        """Yield sides and their rows, for any number of distances and some of the keys."""
        most = max(1, _MOST_SIDES // len(thresholds))
        for dims in range(1, len(thresholds) + 1):
            keys = np.unique(self._key[view.alive & (self._key > thresholds[:dims].min())])
            for least in keys[:: max(1, -(-len(keys) // most))].tolist():
                row = self.row_of(view, (dims, least))
                if row is not None:
                    yield (dims, least), row

    def solve(self, thresholds: IntArray, guess: Guess, deadline: float) -> Leaf | Mix | None:
        """Return why thresholds per distance are impossible, or a solution; None if neither."""
        view = standing(self.job, thresholds, guess)
        if view is None:
            return Empty()
        sides = list(self._sides(view, thresholds))
        rows = [row for _, row in sides]
        leaves, multipliers = self._solved(view, guess, rows)
        if leaves is not None:
            return Mix(leaves, thresholds, self._crowded(leaves, rows, guess))
        found = zip(sides, whole(multipliers).tolist(), strict=True)
        proof = Needs(tuple((side, m) for (side, _), m in found if m > 0))
        return proof if self.holds(proof, thresholds, guess) else None

    def _solved(
        self, view: Standing, guess: Guess, sides: list[IntArray]
    ) -> tuple[FloatArray | None, FloatArray]:
        """Return leaves per state that meet everything, None if there are none, and the duals.

        Rows: all ranks, leaves per type, leaves assumed, sides. Columns: leaves per state, ranks
        and leaves assumed that are missing; the fewest.
        """
        states = self.job.states
        alive = np.flatnonzero(view.alive)
        sure = alive[(guess.forced[alive] > 0) | guess.done[alive]]
        num_types = len(states.multiplicity)
        matrix = np.zeros((1 + num_types + len(sure) + len(sides), len(alive) + 1 + len(sure)))
        matrix[0, : len(alive)] = states.ranks[alive]
        matrix[1 + states.leaf_type[alive], np.arange(len(alive))] = 1
        of_sure = 1 + num_types + np.arange(len(sure))
        matrix[of_sure, np.searchsorted(alive, sure)] = 1
        matrix[[0, *of_sure], len(alive) + np.arange(1 + len(sure))] = 1
        for number, row in enumerate(sides, start=of_sure.size + 1 + num_types):
            matrix[number, : len(alive)] = row[alive]
        forced = guess.forced[sure]
        never = np.full(len(sides), -np.inf)
        lower = np.concatenate([[self.job.ranks], np.zeros(num_types), forced, never])
        most = np.where(guess.done[sure], forced, np.inf)
        crowds = [-self._crowd(row, guess) for row in sides]
        upper = np.concatenate([[self.job.ranks], states.multiplicity, most, crowds])
        objective = np.zeros(matrix.shape[1])
        objective[len(alive) :] = [1.0, *states.ranks[sure]]
        program = solved(sp.csr_matrix(matrix), objective, lower, upper)
        if program is None:
            return None, np.zeros(len(sides))
        duals = np.array(program.dual_values())[len(lower) - len(sides) :]
        if program.objective_value() > _ZERO:
            return None, -duals
        leaves = np.zeros(len(states.ranks))
        leaves[alive] = np.array(program.variable_values())[: len(alive)]
        return leaves, -duals


@lru_cache(maxsize=256)
def cube_pairs(ranks: int, closed: int, free: int) -> IntArray:
    """Return the most pairs of `free` distances among x corners of a cube that keep others inside.

    Among a corners there are at most as many as among the first a binary numbers (the
    edge-isoperimetric inequality), copied for the distances kept. Shape ``(ranks + 1,)``.
    """
    number = np.arange(ranks >> closed)
    ones = np.zeros_like(number)
    for bit in range(free):
        ones += number >> bit & 1
    pairs = np.zeros(ranks + 1, dtype=np.int64)
    pairs[:: 1 << closed] = np.concatenate([[0], np.cumsum(ones)]) << closed
    return pairs
