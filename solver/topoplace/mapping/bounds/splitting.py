"""The semidefinite relaxation of an assignment over pairs, by splitting."""

from __future__ import annotations

import math

import numpy as np

from topoplace.mapping.bounds._pairs_kernels import least_of_orbits, work_of
from topoplace.mapping.bounds.assignment import Assignment, Orbits
from topoplace.types import FloatArray, IntArray

# ---- The relaxation, solved by splitting (Oliveira, Wolkowicz and Xu 2018) ----------------------
# The outer product Y of an assignment, as a vector of 0 and 1, is semidefinite with trace n, in the
# space where all rows and columns have the same sum. It has entries from 0 to 1, which are 0 where
# two tasks share a place or a task has two. Multipliers Z make the two copies of Y agree. For any Z
# the least of each copy alone adds up to a bound: n times the least eigenvalue of -Z, and the least
# assignments at the costs plus Z.

STRENGTH = 3.0
"""The first weight of the difference of the copies, costs being at most 1."""

OVERSHOOT = 1.6
"""Length of a step of the multipliers."""

ADAPTING = 200
"""Steps after which the weight stays, so that the method converges."""

UNEVEN = 1.5
"""Ratio of the copies' difference and their movement from which the weight changes."""


class Splitting:
    """The relaxation of an assignment, its multipliers, and the steps that improve them.

    Arrays of pairs have the shape ``(tasks, orbits, tasks, places)``: only the first place of every
    orbit is kept, as mirrors give the others. `costs` are divided by the largest of them, `most`,
    and `multipliers` are in the same units.
    """

    def __init__(self, assignment: Assignment, orbits: Orbits) -> None:
        self.assignment, self.orbits = assignment, orbits
        num, firsts = assignment.num, orbits.firsts
        each, orbit = np.arange(num), np.arange(len(firsts))
        whole = assignment.pairs()[:, firsts]
        self.most = int(whole.max())
        self.costs: FloatArray = whole / self.most
        self._possible = np.ones(whole.shape, dtype=bool)
        self._possible[each, :, each, :] = False
        self._possible[:, orbit, :, firsts] = False
        self._possible[each[:, None], orbit, each[:, None], firsts] = True
        self._sizes = orbits.sizes[None, :, None, None]
        self._roots = np.sqrt(orbits.sizes)
        self._tasks = _beside(np.ones(num))
        self._orbits = _beside(self._roots)
        waves = (space.waves for space in orbits.spaces)
        self._waves = [wave / np.linalg.norm(wave, axis=1, keepdims=True) for wave in waves]
        self._weight = STRENGTH
        self._steps = 0
        self.multipliers = np.zeros(whole.shape)
        self._pairs = np.where(self._possible, 1 / (num * max(1, num - 1)), 0.0)
        self._pairs[each[:, None], orbit, each[:, None], firsts] = 1 / num

    def step(self) -> None:
        """Update one copy after the other, and the multipliers by their difference."""
        weight, num = self._weight, self.assignment.num
        wanted = self._pairs + self.multipliers / weight
        parts = [np.linalg.eigh(block) for block in self.to_blocks(wanted)]
        level = _level(np.concatenate([values for values, _ in parts]), num)
        blocks = []
        for values, vectors in parts:
            kept = vectors[:, values > level]
            blocks.append((kept * (values[values > level] - level)) @ kept.T)
        smooth = self.from_blocks(blocks)
        pairs = smooth - (self.costs + self.multipliers) / weight
        np.clip(pairs, 0.0, 1.0, out=pairs)
        pairs[~self._possible] = 0.0
        apart, moved = self._norm(pairs - smooth), self._norm(pairs - self._pairs)
        self.multipliers += OVERSHOOT * weight * (pairs - smooth)
        self._pairs = pairs
        self._steps += 1
        if self._steps % 10 == 0 and self._steps <= ADAPTING:
            ratio = apart / max(moved, 1e-300)
            if not 1 / UNEVEN <= ratio <= UNEVEN:
                self._weight *= min(3.0, max(1 / 3, math.sqrt(ratio)))

    def value(self) -> float:
        """Return an estimate of the multipliers' bound on twice the cost of any assignment."""
        blocks = self.to_blocks(-self.multipliers)
        least = min(float(np.linalg.eigvalsh(block)[0]) for block in blocks)
        fine = np.rint((self.costs + self.multipliers) * FINE).astype(np.int64)
        pairs = least_of_pairs(fine, self.orbits) / FINE
        return self.most * (self.assignment.num * least + pairs)

    def _norm(self, pairs: FloatArray) -> float:
        return math.sqrt(float((pairs * pairs * self._sizes).sum()))

    def to_blocks(self, pairs: FloatArray) -> list[FloatArray]:
        """Return a symmetric matrix of pairs by spaces, where the sums are those of assignments."""
        blocks = []
        for number, (space, wave) in enumerate(zip(self.orbits.spaces, self._waves, strict=True)):
            found = pairs[:, space.orbits] @ wave.T
            found *= self._roots[space.orbits][None, :, None, None]
            if number == 0:
                blocks.append(self._even_block(found))
                continue
            found = np.moveaxis(np.tensordot(found, self._tasks, (2, 0)), 3, 2)
            found = np.tensordot(self._tasks, found, (0, 0))
            blocks.append(_square(found))
        return blocks

    def _even_block(self, found: FloatArray) -> FloatArray:
        """Return the block of functions that all mirrors keep; its last row is that of the mean."""
        num, orbits = self.assignment.num, self._orbits
        mean = self._roots / num  # of the places, over the root of the number of tasks
        last = np.einsum("iajb,b->ia", found, mean)
        inner = np.moveaxis(np.tensordot(found, self._tasks, (2, 0)), 3, 2)
        inner = np.tensordot(self._tasks, inner, (0, 0))
        inner = np.moveaxis(np.tensordot(inner @ orbits, orbits, (1, 0)), 3, 1)
        size = (num - 1) * orbits.shape[1]
        block = np.empty((size + 1, size + 1))
        block[:size, :size] = _square(inner)
        block[:size, size] = block[size, :size] = (self._tasks.T @ last @ orbits).ravel()
        block[size, size] = float(last.sum(axis=0) @ mean)
        return block

    def from_blocks(self, blocks: list[FloatArray]) -> FloatArray:
        """Return the matrix of pairs of some blocks."""
        num = self.assignment.num
        pairs = np.zeros(self.costs.shape)
        spaces = zip(self.orbits.spaces, self._waves, blocks, strict=True)
        for number, (space, wave, block) in enumerate(spaces):
            if number == 0:
                found = self._from_even(block)
            else:
                width = len(space.orbits)
                found = self._of_tasks(block.reshape(num - 1, width, num - 1, width))
            found = found @ wave
            found /= self._roots[space.orbits][None, :, None, None]
            pairs[:, space.orbits] += found
        return pairs

    def _of_tasks(self, inner: FloatArray) -> FloatArray:
        inner = np.moveaxis(np.tensordot(inner, self._tasks, (2, 1)), 3, 2)
        return np.asarray(np.tensordot(self._tasks, inner, (1, 0)))

    def _from_even(self, block: FloatArray) -> FloatArray:
        num, orbits = self.assignment.num, self._orbits
        width = orbits.shape[1]
        size = (num - 1) * width
        inner = block[:size, :size].reshape(num - 1, width, num - 1, width)
        inner = np.moveaxis(np.tensordot(inner @ orbits.T, orbits, (1, 1)), 3, 1)
        found = self._of_tasks(inner)
        mean = self._roots / num
        last = self._tasks @ block[:size, size].reshape(num - 1, width) @ orbits.T
        found += last[:, :, None, None] * mean
        found += mean[:, None, None] * last
        found += block[size, size] * mean[:, None, None] * mean
        return found


FINE = float(1 << 30)
"""Units of multipliers where they are estimated."""


def _beside(vector: FloatArray) -> FloatArray:
    """Return an orthonormal basis, in columns, of the complement of a positive vector."""
    frame = np.eye(len(vector))
    frame[:, 0] = vector
    found: FloatArray = np.linalg.qr(frame)[0][:, 1:]
    return found


def _square(pairs: FloatArray) -> FloatArray:
    """Return a matrix of pairs as one of two indices, symmetric."""
    size = pairs.shape[0] * pairs.shape[1]
    block = pairs.reshape(size, size)
    return (block + block.T) / 2


def _level(values: FloatArray, total: int) -> float:
    """Return the number to subtract from values so that the positive rest adds up to a total."""
    ordered = np.sort(values)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    return float(levels[np.flatnonzero(ordered > levels)[-1]])


def least_of_pairs(costs: IntArray, orbits: Orbits) -> int:
    """Return the least sum of costs of pairs of assignments, where each task chooses alone."""
    num = costs.shape[-1]
    kind = np.searchsorted(orbits.firsts, orbits.images.min(axis=0))
    return int(least_of_orbits(np.ascontiguousarray(costs), orbits.firsts, kind, work_of(num)))
