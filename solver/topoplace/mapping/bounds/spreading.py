"""Trees that tasks send their loads along, packed into the bytes of pairs.

It is the dual of spreading metrics (Even, Naor, Rao and Schieber 1999), in integers, with the
distances of a machine in the place of "apart or not" (docs/proofs/graphs.md, "Routes").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.mapping.bounds._routes_kernels import pack, plant
from topoplace.mapping.graph import Rows
from topoplace.result.certificate import packed
from topoplace.result.mapping import LONGEST, Routes, Trees
from topoplace.types import FloatArray, IntArray

ROUNDS, STEPS, CHUNK = 7, 60, 10
"""Rounds of a certificate, in each of which trees are added, steps of the packing after it, and
steps between two looks at the clock."""

QUICK_WORK, WORK = 1 << 15, 1 << 22
"""Tasks in the trees of the first round, which takes a moment, and of all others."""

SAMPLE, KEPT = 32, 0.8
"""Trees that are grown first, to see which are good enough, and the part of them that is."""

LARGE = 1 << 10
"""Tasks that a tree may always have."""

TINY = 1e-300

SHORTEST, SCALE = 64, float(1 << 20)
"""Length of the average pair, and how often the tree is sent that is sent most."""

LOAD_BITS, SENT_LIMIT = 10, 1 << 61
"""Loads are counted in units of about the mean divided by 2 to this power; and a limit of sums."""


class Shells(NamedTuple):
    """By distance the most load that there is room for around a router, up to where all fits.

    Beyond a shell of this room the distance is at least `step` more.
    """

    step: IntArray
    room: IntArray


def routed(
    rows: Rows, loads: IntArray, shells: Shells, time_limit: float | None
) -> tuple[Fraction, Routes] | None:
    """Return what bytes times distances come to at least in any mapping, and the certificate.

    A packing program has a column per tree and a row per pair. Trees are generated in rounds, by
    the prices of pairs in the rounds before.
    """
    unit = max(1, int(loads.mean()) >> LOAD_BITS)
    search = _Packing(rows, loads // unit, Shells(shells.step, shells.room // unit))
    stop = clock.deadline(time_limit)
    search.run(QUICK_WORK, 0, math.inf)
    for turn in range(1, ROUNDS):
        if clock.now() >= stop:
            break
        search.run(WORK // ROUNDS, turn, stop)
    if search.best is None:
        return None
    value, rounds = search.best
    return value, Routes(unit=unit, rounds=rounds)


@dataclass(frozen=True)
class _Columns:
    """Trees of one round: the lengths they follow, and by tree its root, load, pairs and value."""

    lengths: IntArray
    roots: IntArray
    held: IntArray
    begins: IntArray
    pairs: NDArray[np.int32]
    amounts: IntArray
    worth: FloatArray

    def trees(self, num: int, times: IntArray) -> Trees:
        """Return the trees that are sent as certificates have them."""
        sizes, often = np.zeros((2, num), dtype=np.int64)
        sizes[self.roots] = np.where(times > 0, np.diff(self.begins) + 1, 0)
        often[self.roots] = times
        parts = map(packed, (self.lengths, sizes, often))
        return Trees(**dict(zip(("lengths", "sizes", "times"), parts, strict=True)))


class _Packing:
    """The columns so far, how often each is sent, and the prices of pairs."""

    def __init__(self, rows: Rows, loads: IntArray, shells: Shells) -> None:
        self.rows, self.loads, self.shells = rows, loads, shells
        low = np.minimum(rows.owner, rows.other)
        keys = low * rows.size + np.maximum(rows.owner, rows.other)
        _, first, pair = np.unique(keys, return_index=True, return_inverse=True)
        self.pair, self.bytes = pair.ravel().astype(np.int64), rows.weight[first]
        self.weight = self.bytes / self.bytes.mean()
        self.price: FloatArray = np.ones(len(first))
        self.sends: FloatArray = np.zeros(0)
        self.best: tuple[Fraction, list[Trees]] | None = None
        self.columns: list[_Columns] = []
        fits = int(np.searchsorted(np.cumsum(loads), shells.room[0]))
        self._most = min(rows.size, max(LARGE, 3 * fits))

    def run(self, work: int, turn: int, stop: float) -> None:
        """Add trees of about this many tasks, and pack anew until the clock shows `stop`."""
        length = self.price / self.weight
        whole = np.rint(SHORTEST * length / length.mean()).astype(np.int64) + 1
        lengths = np.minimum(whole, LONGEST)
        roots = np.random.default_rng(turn).permutation(self.rows.size)
        _, reached = self._planted(lengths, roots[:SAMPLE], self._most, 0.0)
        enough = float(np.quantile(reached, 1 - KEPT))
        found, _ = self._planted(lengths, roots, work, enough)
        if len(found.roots):
            self.columns.append(found)
            self._pack(stop)

    def _planted(
        self, lengths: IntArray, roots: IntArray, work: int, enough: float
    ) -> tuple[_Columns, FloatArray]:
        """Return the trees of roots, as many as have room, and the value per length of each."""
        size = max(work, self._most) + self._most
        pairs, amounts = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
        begins = np.zeros(len(roots) + 1, dtype=np.int64)
        held, reached = np.zeros(len(roots), dtype=np.int64), np.zeros(len(roots))
        graph = self.rows.first, self.rows.other, self.pair, lengths
        columns = pairs, amounts
        own = roots, self._most, enough
        tried = plant(graph, self.loads, self.shells, *own, columns, begins, held, reached)
        ends = begins[: tried + 1]
        kept = np.flatnonzero(np.diff(ends))
        worth = np.zeros(len(kept))
        for step, room in zip(*map(np.ndarray.tolist, self.shells), strict=True):
            worth += step * np.maximum(0, held[kept] - room).astype(float)
        num = int(ends[-1])
        inside = pairs[:num].copy(), amounts[:num].copy()
        found = _Columns(lengths, roots[kept], held[kept], ends[[0, *(kept + 1)]], *inside, worth)
        return found, reached[:tried]

    def _pack(self, stop: float) -> None:
        """Find how often trees are sent."""
        each = self.columns
        begins = np.cumsum([0, *(size for own in each for size in np.diff(own.begins).tolist())])
        pairs, amounts, worth, held = (
            np.concatenate([getattr(own, name) for own in each])
            for name in ("pairs", "amounts", "worth", "held")
        )
        self.sends = np.append(self.sends, np.zeros(len(worth) - len(self.sends)))
        program = begins, pairs, amounts, worth, self.weight
        summed = np.zeros(len(worth))
        for _ in range(STEPS // CHUNK):
            summed = summed / 2 + pack(*program, self.sends, self.price, CHUNK)
            if clock.now() >= stop:
                break
        for sends in (summed, 1 / worth):  # a program that is far from solved may send nothing
            limit = SENT_LIMIT / max(1.0, float(self.loads.sum()) * float(sends.sum()))
            scale = min(limit, SCALE / max(float(sends.max()), TINY))
            self._offer(held, program, np.rint(sends * scale).astype(np.int64))

    def _offer(self, held: IntArray, program: tuple[Any, ...], times: IntArray) -> None:
        """Keep how often trees are sent, in whole numbers, if it proves more."""
        begins, pairs, amounts, *_ = program
        sent = np.zeros(len(self.bytes), dtype=np.int64)
        np.add.at(sent, pairs, amounts * np.repeat(times, np.diff(begins)))
        value = self._worth(held, times)
        if not value:
            return
        least = value / _fullest(sent, self.bytes)
        if self.best is None or least > self.best[0]:
            ends = np.cumsum([len(own.roots) for own in self.columns])[:-1]
            parts = zip(self.columns, np.split(times, ends), strict=True)
            rounds = [own.trees(self.rows.size, part) for own, part in parts if part.any()]
            self.best = least, rounds

    def _worth(self, held: IntArray, times: IntArray) -> int:
        """Return what trees are worth, exactly."""
        total = 0
        for step, room in zip(*map(np.ndarray.tolist, self.shells), strict=True):
            beyond = zip(np.maximum(0, held - room).tolist(), times.tolist(), strict=True)
            total += step * sum(own * often for own, often in beyond)
        return total


def _fullest(sent: IntArray, sizes: IntArray) -> Fraction:
    """Return the most that is sent over a byte of any pair, exactly."""
    ratio = sent / sizes
    near = np.flatnonzero(ratio >= (1 - 1e-9) * ratio.max())
    pairs = zip(sent[near].tolist(), sizes[near].tolist(), strict=True)
    return max(Fraction(amount, size) for amount, size in pairs)
