"""The restricted master: a set-packing program over the columns found so far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace import clock
from topoplace.placement.exact import _kernels
from topoplace.placement.exact.relaxation import DualPoint, Subproblem
from topoplace.placement.exact.rows import PackingRows, RowLists
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.types import BoolArray, FloatArray, IntArray


@dataclass
class Column:
    """A candidate with the packing rows it occupies, its latest amount, and its level values.

    Those are there once `values_of` was asked for more than the first.
    """

    candidate: Candidate
    rows: IntArray
    amount: float = 0.0
    values: tuple[int, ...] = ()


def owners_of(columns: Sequence[Column]) -> IntArray:
    """Return the request of every column."""
    return np.array([c.candidate.request_idx for c in columns], dtype=np.int64)


def values_of(problem: PlacementProblem, columns: Sequence[Column], num_levels: int) -> IntArray:
    """Return the values of columns on the first levels, shape ``(num_columns, num_levels)``."""
    if num_levels == 1:
        worth = np.array([request.value for request in problem.requests], dtype=np.int64)
        return worth[owners_of(columns)][:, None]
    new = [column for column in columns if not column.values]
    found = problem.values_of([column.candidate for column in new]).tolist()
    for column, values in zip(new, found, strict=True):
        column.values = tuple(values)
    every = np.array([column.values for column in columns], dtype=np.int64)
    return every.reshape(-1, 3)[:, :num_levels]


@dataclass(frozen=True)
class Packing:
    """Packing rows of a program.

    Attributes
    ----------
    matrix
        Rows by columns, 0/1.
    rows, stands_in
        The packing rows that a row of the matrix stands for, and which one.
    """

    matrix: sp.csr_matrix
    rows: IntArray
    stands_in: IntArray


@dataclass(frozen=True)
class LpSolution:
    """An optimum of the restricted master's relaxation.

    Attributes
    ----------
    objective
        LP optimum of the level solved.
    columns, amounts
        The columns of the program, and the value of each.
    duals
        The dual optimum, spread over the rows no column tells apart.
    reduced
        Reduced cost of every column, at most 0 for the columns of requests that may stay out.
    complete
        Whether the amounts respect every row, those not in the program included.
    size
        Nonzeros of the program, plus one.
    """

    objective: float
    columns: list[Column]
    amounts: FloatArray
    duals: DualPoint
    reduced: FloatArray
    size: int
    complete: bool = True


def matrix_of(columns: Sequence[Column], row_of: IntArray, num_rows: int) -> sp.csr_matrix:
    """Return the rows numbered by `row_of` (-1: none) by columns."""
    flat = row_of[np.concatenate([np.zeros(0, dtype=np.int64), *(c.rows for c in columns)])]
    of = np.repeat(np.arange(len(columns)), [len(c.rows) for c in columns])
    there = flat >= 0
    ones = np.ones(int(there.sum()), dtype=np.float32)
    return sp.csr_matrix((ones, (flat[there], of[there])), shape=(num_rows, len(columns)))


def undominated(matrix: sp.csr_matrix) -> IntArray:
    """Return the rows whose columns are not all among those of another row."""
    num_rows, num_columns = matrix.shape
    size = np.diff(matrix.indptr).astype(np.int64)
    order = np.argsort(-size, kind="stable")  # a row can only be among a larger one's columns
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
    kept = _kernels.maximal_sets(words, rarest, holders.indptr, holders.indices)
    return np.sort(order[kept])


_GLOP = "use_preprocessing: false"
"""Primal simplex from the slack basis: twice as fast here as the dual one."""


class Master:
    """Columns, and linear programs over them.

    Rows occupied by the same columns are one row of the program, and rows whose columns are among
    another row's are left out: prisms are boxes, so far fewer rows than routers remain. Rows of
    links take part once a solution has violated them. A program not solved by the deadline counts
    as failed.
    """

    def __init__(self, rows: PackingRows, deadline: float = math.inf) -> None:
        self.rows = rows
        self.deadline = deadline
        self.columns: list[Column] = []
        self._index: dict[Candidate, int] = {}
        self._active = np.zeros(rows.num_rows, dtype=bool)
        self._active[: rows.num_routers] = True
        self._keys = np.random.default_rng(rows.num_rows)
        self._hashes, self._num_hashed = np.zeros(rows.num_rows, dtype=np.int64), 0
        self._row_lists = RowLists(rows.num_rows)
        self._passed = np.zeros(rows.num_rows, dtype=bool)
        self._share = np.full(rows.num_rows, 1e-3)
        usable = rows.problem.state.usable_per_router.sum(axis=0)
        self._share[: rows.num_routers] += usable

    def __contains__(self, candidate: Candidate) -> bool:
        return candidate in self._index

    def add(self, candidates: Iterable[Candidate]) -> int:
        """Add candidates not known yet; return how many were new."""
        new = [c for c in dict.fromkeys(candidates) if c not in self._index]
        if not new:
            return 0
        for candidate in new:
            self._index[candidate] = len(self.columns)
            rows = self.rows.of(candidate)
            self.columns.append(Column(candidate, rows))
            self._row_lists.append(rows)
            self._passed[self.rows.passing(candidate, rows)] = True
        return len(new)

    def keep(self, kept: BoolArray) -> None:
        """Forget all columns but those marked."""
        self.columns = [c for c, k in zip(self.columns, kept, strict=True) if k]
        self._index = {c.candidate: i for i, c in enumerate(self.columns)}
        self._row_lists.keep(kept)
        self._hashes, self._num_hashed = np.zeros_like(self._hashes), 0

    def _new_key(self) -> np.int64:
        return self._keys.integers(1, 1 << 62, dtype=np.int64)

    def amounts(self) -> list[tuple[float, Candidate]]:
        """Return the columns with an amount, and it."""
        return [(c.amount, c.candidate) for c in self.columns if c.amount > 1e-6]

    def set_amounts(self, amounts: Iterable[tuple[float, Candidate]]) -> None:
        """Set the amounts of some columns, and those of all others to 0."""
        amounts = list(amounts)
        self.add(candidate for _, candidate in amounts)
        for column in self.columns:
            column.amount = 0.0
        for amount, candidate in amounts:
            self.columns[self._index[candidate]].amount = amount

    def positions(self, candidates: Iterable[Candidate]) -> list[int]:
        """Return the positions of known candidates."""
        return [self._index[c] for c in candidates]

    def owners(self) -> IntArray:
        """Return the request of every column."""
        return owners_of(self.columns)

    def values(self, num_levels: int) -> IntArray:
        """Return the values of every column on so many levels (see `program.values_of`)."""
        return values_of(self.rows.problem, self.columns, num_levels)

    def rows_among(
        self, positions: IntArray, marked: BoolArray
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the marked rows of some columns, and before them where each one's begin."""
        return self._row_lists.among(positions, marked)

    def packing(self) -> Packing:
        """Return merged, undominated packing rows that take part by columns."""
        self._add_hashes(self._hashes, self.columns[self._num_hashed :])
        self._num_hashed = len(self.columns)
        return self._packing(self._hashes, self._active, self.columns)

    def packing_of(self, positions: IntArray) -> sp.csr_matrix:
        """Return the rows that an integer program over some columns needs, by those columns.

        These are the rows of all routers, and of every link that some column can break.
        """
        columns = [self.columns[k] for k in positions.tolist()]
        wanted = self.tight_rows() | self._active
        hashes = np.zeros(self.rows.num_rows, dtype=np.int64)
        self._add_hashes(hashes, columns)
        return self._packing(hashes, wanted, columns).matrix

    def tight_rows(self) -> BoolArray:
        """Mark the rows that matter: those of all routers, and of links that columns pass."""
        tight = self._passed.copy()
        tight[: self.rows.num_routers] = True
        return tight

    def _add_hashes(self, hashes: IntArray, columns: Sequence[Column]) -> None:
        """Add to a number per row that is the same where the same columns are (0: none)."""
        for column in columns:
            hashes[column.rows] += self._new_key()  # wraps around: any mix will do

    def _packing(self, hashes: IntArray, wanted: BoolArray, columns: Sequence[Column]) -> Packing:
        if not columns:
            nothing = np.zeros(0, dtype=np.int64)
            return Packing(sp.csr_matrix((0, 0)), nothing, nothing)
        used = np.flatnonzero(hashes)
        _, first, merged = np.unique(hashes[used], return_index=True, return_inverse=True)
        chosen = np.bincount(merged, weights=wanted[used], minlength=len(first)) > 0
        number = np.where(chosen, chosen.cumsum() - 1, -1)
        row_of = np.full(self.rows.num_rows, -1, dtype=np.int64)
        row_of[used[first[chosen]]] = np.arange(int(chosen.sum()))
        matrix = matrix_of(columns, row_of, int(chosen.sum()))
        kept = undominated(matrix)
        position = np.full(matrix.shape[0] + 1, -1, dtype=np.int64)
        position[kept] = np.arange(len(kept))
        stands = position[number[merged]] >= 0
        return Packing(matrix[kept].astype(float), used[stands], position[number[merged[stands]]])

    def solve_lp(self, sub: Subproblem) -> LpSolution | None:
        """Solve the relaxation of a subproblem, adding rows until none is violated.

        Returns None if the solver fails or the deadline passes.
        """
        while clock.now() < self.deadline:
            solution = self.solve_lp_once(sub)
            if solution is None or solution.complete:
                return solution
        return None

    def solve_lp_once(self, sub: Subproblem) -> LpSolution | None:
        """Solve the relaxation with the rows active so far, then activate violated ones."""
        solution = self._solve_lp(sub)
        if solution is None:
            return None
        load = np.zeros(self.rows.num_rows)
        for k in np.flatnonzero(solution.amounts > 1e-9):
            load[self.columns[k].rows] += solution.amounts[k]
        violated = (load > 1 + 1e-6) & ~self._active
        self._active |= violated
        return replace(solution, complete=not violated.any())

    def _solve_lp(self, sub: Subproblem) -> LpSolution | None:
        merged = self.packing()
        packing = merged.matrix
        owner, values = self.owners(), self.values(sub.level + 1).astype(float)
        num_requests, num_packing = len(self.rows.problem.requests), packing.shape[0]
        choice = sp.csr_matrix(
            (np.ones(len(owner)), (owner, np.arange(len(owner)))),
            shape=(num_requests, len(owner)),
        )
        # the level rows are scaled to 1 so that the simplex sees numbers of one size
        sizes = [max(1.0, abs(float(v))) for v in sub.reached]
        level_rows = [sp.csr_matrix(values[:, j] / size) for j, size in enumerate(sizes)]
        lower = np.full(num_packing + num_requests + len(sizes), -np.inf)
        upper = np.ones(len(lower))
        lower[num_packing + np.array(sorted(sub.forced), dtype=np.int64)] = 1.0
        for j, (value, size) in enumerate(zip(sub.reached, sizes, strict=True)):
            lower[num_packing + num_requests + j] = value / size
            upper[num_packing + num_requests + j] = np.inf
        admitted = np.array([sub.admits(c.candidate) for c in self.columns], dtype=bool)
        matrix = sp.vstack([packing, choice, *level_rows], format="csr")
        cost = values[:, sub.level]
        # what must be reached may be missed at a price above any gain: never without a solution
        needed = np.flatnonzero(lower > -np.inf)
        slack = sp.csr_matrix(
            (np.ones(len(needed)), (needed, np.arange(len(needed)))),
            shape=(matrix.shape[0], len(needed)),
        )
        worth = np.concatenate([np.ones(num_packing + num_requests), sizes])[needed]
        miss = (1.0 + 2.0 * self._largest_gain(cost, owner)) * worth
        helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
        helper.fill_model_from_sparse_data(
            np.zeros(len(owner) + len(needed)),
            np.concatenate([np.where(admitted, np.inf, 0.0), np.full(len(needed), np.inf)]),
            np.concatenate([-cost, miss]),
            lower,
            upper,
            sp.hstack([matrix, slack], format="csr"),
        )
        program = mbh.ModelSolverHelper("glop")
        program.set_solver_specific_parameters(_GLOP)
        program.set_time_limit_in_seconds(min(3600.0, max(0.1, self.deadline - clock.now())))
        program.solve(helper)
        if program.status() != mbh.SolveStatus.OPTIMAL:
            return None
        duals = -np.array(program.dual_values())
        reduced = cost - matrix.T @ duals
        prices = np.maximum(0.0, duals[:num_packing])
        share = self._share[merged.rows]
        total = np.bincount(merged.stands_in, weights=share, minlength=num_packing)
        row_prices = np.zeros(self.rows.num_rows)
        row_prices[merged.rows] = prices[merged.stands_in] * share / total[merged.stands_in]
        multipliers = np.maximum(0.0, -duals[num_packing + num_requests :])
        return LpSolution(
            objective=-program.objective_value(),
            size=matrix.nnz + 1,
            columns=list(self.columns),
            amounts=np.array(program.variable_values())[: len(owner)],
            duals=DualPoint(
                row_prices,
                tuple(float(m) / s for m, s in zip(multipliers, sizes, strict=True)),
            ),
            reduced=reduced,
        )

    def _largest_gain(self, cost: FloatArray, owner: IntArray) -> float:
        """Return the sum over requests of the largest absolute value of a column."""
        largest = np.zeros(len(self.rows.problem.requests))
        np.maximum.at(largest, owner, np.abs(cost))
        return float(largest.sum())
