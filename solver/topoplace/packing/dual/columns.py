"""Columns: the known candidates, with the rows that they use and their latest amounts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topoplace.packing.dual._kernels import (
    marked_rows,
    marked_runs,
    maximal_sets,
    rows_of_runs,
    runs_of,
    sums_over,
    using,
)
from topoplace.packing.problem import Kinds, PackingProblem
from topoplace.types import BoolArray, FloatArray, IntArray

Unsigned = NDArray[np.uint32]


_NO_AMOUNT = 1e-6


class _RowLists:
    """Lists of row numbers, one after the other, each as runs; a full array grows by half.

    A prism has a run per line of routers: a list takes a tenth of the memory of its numbers.
    Numbers are unsigned, so that compiled loops need not handle indices from the end.

    Attributes
    ----------
    num_entries
        Rows of all lists together.
    """

    def __init__(self) -> None:
        self.num_entries = self._num = 0
        self._starts = np.zeros(1 << 10, dtype=np.uint32)
        self._runs = np.zeros((1 << 12, 2), dtype=np.uint32)

    def append(self, starts: IntArray, runs: Unsigned) -> None:
        """Append lists given as runs, after the positions where those of each begin."""
        start, new = int(self._starts[self._num]), len(starts) - 1
        end = start + len(runs)
        while self._num + new >= len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        if end > len(self._runs):
            grown = np.zeros((end + end // 2, 2), dtype=np.uint32)
            grown[:start] = self._runs[:start]
            self._runs = grown
        self._runs[start:end] = runs
        self._starts[self._num + 1 : self._num + 1 + new] = start + starts[1:]
        self._num += new
        self.num_entries += int(runs[:, 1].sum())

    def runs(self, number: int) -> Unsigned:
        """Return the runs of one of the lists."""
        return self._runs[self._starts[number] : self._starts[number + 1]]

    def of(self, number: int) -> Unsigned:
        """Return one of the lists."""
        rows: Unsigned = rows_of_runs(self.runs(number))
        return rows

    def among(self, which: IntArray, marked: BoolArray) -> tuple[Unsigned, Unsigned]:
        """Return the marked rows of some of the lists: starts and rows."""
        found: tuple[Unsigned, Unsigned] = marked_rows(self._starts, self._runs, which, marked)
        return found

    def runs_among(self, which: IntArray, before: Unsigned) -> tuple[Unsigned, Unsigned]:
        """Return the rows of some of the lists that are marked: starts and runs (`marked_runs`)."""
        found: tuple[Unsigned, Unsigned] = marked_runs(self._starts, self._runs, which, before)
        return found

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values of every list's rows."""
        found: FloatArray = sums_over(self._starts, self._runs, self._num, values)
        return found

    def using(self, which: IntArray, row: int) -> BoolArray:
        """Mark those of some of the lists that have a row."""
        found: BoolArray = using(self._starts, self._runs, which, row)
        return found

    def keep(self, which: IntArray) -> None:
        starts, runs = self._starts, self._runs
        kept = [runs[starts[k] : starts[k + 1]] for k in which.tolist()]
        self._num = len(kept)
        self._starts[1 : 1 + len(kept)] = np.cumsum([len(mine) for mine in kept])
        self._runs = np.concatenate([*kept, np.zeros((1 << 12, 2), dtype=np.uint32)])
        self.num_entries = sum(int(mine[:, 1].sum()) for mine in kept)


@dataclass(frozen=True)
class Packing:
    """Rows of a program over columns.

    Attributes
    ----------
    matrix, capacities
        Amounts, rows by columns, and the capacity of each row.
    rows, stands_in
        The problem's rows that a row of the matrix represents, and the number of that row.
    """

    matrix: sp.csr_matrix
    capacities: IntArray
    rows: IntArray
    stands_in: IntArray


class Columns:
    """Candidates known, in order, each with its latest amount.

    Rows that the same columns use by the same amounts are one row of a program, and rows that hold
    one candidate are left out if their columns are among those of another such row. On machines
    with prisms, this removes most rows.
    """

    def __init__(self, problem: PackingProblem) -> None:
        self.problem = problem
        self.all: list[Any] = []
        self._index: dict[Any, int] = {}
        self._keys = np.random.default_rng(problem.num_rows)
        self._hashes, self._num_hashed = np.zeros(problem.num_rows, dtype=np.int64), 0
        self._row_lists = _RowLists()
        self._owner, self._amount = np.zeros(1 << 10, dtype=np.int64), np.zeros(1 << 10)
        self._values = np.zeros((0, len(problem.senses)), dtype=np.int64)  # of the first ones
        self._tight = np.zeros(problem.num_rows, dtype=bool)
        self._tight[: problem.num_covers] = True

    def __contains__(self, candidate: Any) -> bool:
        return candidate in self._index

    def __len__(self) -> int:
        return len(self.all)

    def add(self, candidates: Iterable[Any]) -> int:
        """Add candidates not known yet; return how many were new."""
        new = [c for c in dict.fromkeys(candidates) if c not in self._index]
        if new:
            starts, rows = self.problem.rows_of_all(new)
            self._tight[self.problem.breakable_of_all(new, starts, rows)] = True
            self._append(new, *runs_of(starts, rows))
        return len(new)

    def _append(self, candidates: Sequence[Any], starts: IntArray, runs: Unsigned) -> None:
        known = len(self.all)
        self.all += candidates
        self._index.update(zip(candidates, range(known, len(self.all)), strict=True))
        while len(self.all) > len(self._owner):
            self._owner = np.concatenate([self._owner, np.zeros_like(self._owner)])
            self._amount = np.concatenate([self._amount, np.zeros_like(self._amount)])
        self._owner[known : len(self.all)] = [c.request_idx for c in candidates]
        self._amount[known : len(self.all)] = 0.0
        self._row_lists.append(starts, runs)

    def share(self, kinds: Kinds, since: int = 0) -> None:
        """Copy columns, from a position on, to requests of their kind that are distinguished."""
        several = np.array([len(kinds.others(q)) for q in range(len(kinds.first))], dtype=bool)
        for position in (since + np.flatnonzero(several[self.owners()[since:]])).tolist():
            known = self.all[position]
            for q in kinds.others(known.request_idx):
                candidate = replace(known, request_idx=q)
                if candidate not in self._index and kinds.admits(candidate):
                    runs = self._row_lists.runs(position)
                    self._append([candidate], np.array([0, len(runs)]), runs)

    def keep(self, kept: BoolArray) -> None:
        """Drop all columns that are not marked."""
        self.all = [c for c, k in zip(self.all, kept, strict=True) if k]
        self._index = {c: i for i, c in enumerate(self.all)}
        for own in (self._owner, self._amount):
            own[: len(self.all)] = own[: len(kept)][kept]
        self._values = self._values[kept[: len(self._values)]]
        self._row_lists.keep(np.flatnonzero(kept))
        self._hashes, self._num_hashed = np.zeros(len(self._hashes), dtype=np.int64), 0

    def rows(self, position: int) -> Unsigned:
        """Return the rows that a column uses."""
        return self._row_lists.of(position)

    @property
    def num_entries(self) -> int:
        """Rows of all columns together."""
        return self._row_lists.num_entries

    @property
    def amount(self) -> FloatArray:
        """The latest amount of every column."""
        return self._amount[: len(self.all)]

    def amounts(self) -> list[tuple[float, Any]]:
        """Return the columns with an amount, and it."""
        used = np.flatnonzero(self.amount > _NO_AMOUNT).tolist()
        return [(float(self._amount[k]), self.all[k]) for k in used]

    def set_amounts(self, amounts: Iterable[tuple[float, Any]]) -> None:
        """Set the amounts of some columns, and those of all others to 0."""
        amounts = list(amounts)
        self.add(candidate for _, candidate in amounts)
        self.amount[:] = 0.0
        for amount, candidate in amounts:
            self._amount[self._index[candidate]] = amount

    def positions(self, candidates: Iterable[Any]) -> list[int]:
        """Return the positions of known candidates."""
        return [self._index[c] for c in candidates]

    @property
    def tight_rows(self) -> BoolArray:
        """Mark the rows that matter: the first ones, and others that some column can violate."""
        return self._tight

    def rows_among(self, positions: IntArray, marked: BoolArray) -> tuple[Unsigned, Unsigned]:
        """Return the marked rows of some columns, after the positions where those of each begin."""
        return self._row_lists.among(positions, marked)

    def runs_among(self, positions: IntArray, before: Unsigned) -> tuple[Unsigned, Unsigned]:
        """Return the marked rows of some columns as runs, numbered among those marked.

        The runs of the k-th, each its first number and that after its last, are those from
        ``starts[k]`` to ``starts[k + 1]``.

        Parameters
        ----------
        before
            How many rows before each one, and in total, are marked (`numbered`).
        """
        return self._row_lists.runs_among(positions, before)

    def sums(self, row_values: FloatArray) -> FloatArray:
        """Return for every column the sum of its rows' values."""
        return self._row_lists.sums(row_values)

    def packing(self, wanted: BoolArray) -> Packing:
        """Return the rows used by all columns."""
        every = np.arange(len(self.all))
        self._add_hashes(self._hashes, map(self.rows, range(self._num_hashed, len(every))))
        self._num_hashed = len(self.all)
        return self._packing(self._hashes, wanted, every)

    def packing_of(self, positions: IntArray, wanted: BoolArray) -> Packing:
        """Return the rows used by some columns, of `rows` only if given."""
        hashes = np.zeros(self.problem.num_rows, dtype=np.int64)
        starts, rows = self.rows_among(positions, wanted)
        self._add_hashes(hashes, (rows[a:b] for a, b in itertools.pairwise(starts.tolist())))
        return self._packing(hashes, wanted, positions)

    def _add_hashes(self, hashes: IntArray, rows_of: Iterable[Unsigned]) -> None:
        """Add to a number per row, which is equal for rows with the same columns (0: none)."""
        for rows in rows_of:
            key = self._keys.integers(1, 1 << 62, dtype=np.int64)
            if self.problem.is_unit:
                hashes[rows] += key  # wraps around: any mix will do
            else:
                np.add.at(hashes, rows, key)

    def _packing(self, hashes: IntArray, wanted: BoolArray, positions: IntArray) -> Packing:
        if not len(positions):
            nothing = np.zeros(0, dtype=np.int64)
            return Packing(sp.csr_matrix((0, 0)), nothing, nothing, nothing)
        problem = self.problem
        used = np.flatnonzero(hashes)
        alike = hashes[used]
        if not problem.is_unit:
            alike = np.stack([alike, problem.capacities[used]])
        _, first, merged = np.unique(alike, axis=-1, return_index=True, return_inverse=True)
        merged = merged.ravel()
        chosen = np.bincount(merged, weights=wanted[used], minlength=len(first)) > 0
        number = np.where(chosen, chosen.cumsum() - 1, -1)
        row_of = np.full(problem.num_rows, -1, dtype=np.int32)
        row_of[used[first[chosen]]] = np.arange(int(chosen.sum()))
        starts, rows = self.rows_among(positions, row_of >= 0)
        ends = starts.astype(np.int64)
        of = np.repeat(np.arange(len(positions)), ends[1:] - ends[:-1])
        ones, shape = np.ones(len(rows), dtype=np.float32), (int(chosen.sum()), len(positions))
        matrix = sp.csr_matrix((ones, (row_of[rows], of)), shape=shape)
        capacities = problem.capacities[used[first[chosen]]]
        kept = undominated(matrix) if problem.is_unit else np.arange(matrix.shape[0])
        position = np.full(matrix.shape[0] + 1, -1, dtype=np.int64)
        position[kept] = np.arange(len(kept))
        stands = position[number[merged]] >= 0
        return Packing(
            matrix[kept].astype(float),
            capacities[kept],
            used[stands],
            position[number[merged[stands]]],
        )

    def owners(self, positions: IntArray | None = None) -> IntArray:
        """Return the request of every column, or of some."""
        every = self._owner[: len(self.all)]
        return every.copy() if positions is None else every[positions]

    def admitted(self, kinds: Kinds, since: int) -> BoolArray:
        """Mark the columns that kinds admit, from a position on."""
        own = self.owners()[since:]
        found: BoolArray = kinds.most[own] > 0
        limited = np.flatnonzero(found & kinds.limited[own])
        for q in np.unique(own[limited]).tolist():
            mine = limited[own[limited] == q]
            for cover in kinds.covers_of[q]:
                used = self._row_lists.using(since + mine, cover.row)
                found[mine[used != cover.inside]] = False
        return found

    def values(self, num_levels: int, positions: IntArray | None = None) -> IntArray:
        """Return the values of columns on the first levels, shape ``(num_columns, num_levels)``."""
        if num_levels == 1:
            return self.problem.values[self.owners(positions)][:, None]
        if new := self.all[len(self._values) :]:
            found = np.asarray(self.problem.values_of(new)).reshape(len(new), -1)
            self._values = np.concatenate([self._values, found])
        return (self._values if positions is None else self._values[positions])[:, :num_levels]


def undominated(matrix: sp.csr_matrix) -> IntArray:
    """Return the rows whose columns are not all among those of another row."""
    num_rows, num_columns = matrix.shape
    size = np.diff(matrix.indptr).astype(np.int64)
    order = np.argsort(-size, kind="stable")  # only larger rows can contain it
    ordered = matrix[order]
    words = np.zeros((num_rows, num_columns // 63 + 1), dtype=np.int64)
    row = np.repeat(np.arange(num_rows), size[order])
    bit = np.left_shift(np.int64(1), ordered.indices % 63)
    np.bitwise_or.at(words, (row, ordered.indices // 63), bit)
    holders = ordered.tocsc()
    common = np.diff(holders.indptr).astype(np.int64)
    rarest = np.zeros(num_rows, dtype=np.int64)
    last_first = np.argsort(-common[ordered.indices], kind="stable")
    rarest[row[last_first]] = ordered.indices[last_first]
    kept = maximal_sets(words, rarest, holders.indptr, holders.indices)
    return np.sort(order[kept])
