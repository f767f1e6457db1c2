"""The restricted master: the linear program over the columns found so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace import clock
from topoplace.packing.budget import Budget
from topoplace.packing.dual.columns import Columns, Packing
from topoplace.packing.dual.relaxation import DualPoint
from topoplace.packing.problem import Kinds, Subproblem
from topoplace.types import FloatArray, IntArray

_GLOP = "use_preprocessing: false"
"""Primal simplex from the slack basis: twice as fast here as the dual one."""

_FIRST_PART = 256  # columns; of each of them a large machine has tens of thousands of rows
_WORK = 2e-6  # nominal seconds a nonzero
_MOST_OF_START = 1e4  # beyond it the simplex loses small values next to it


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
        The dual optimum, spread over the rows that no column distinguishes.
    reduced
        Reduced cost of every column, at most 0 for the columns of requests that may stay out.
    complete
        Whether the amounts respect every row, including those not in the program.
    size
        Nonzeros of the program, plus one.
    """

    objective: float
    columns: list[Any]
    amounts: FloatArray
    duals: DualPoint
    reduced: FloatArray
    size: int
    complete: bool = True


class Master:
    """Linear programs over columns.

    Rows beyond the first ones take part once a solution has violated them. A program not solved by
    the deadline counts as failed.
    """

    def __init__(self, columns: Columns, budget: Budget) -> None:
        self.columns, self.budget = columns, budget
        self._active = np.zeros(columns.problem.num_rows, dtype=bool)
        self._active[: columns.problem.num_covers] = True

    def num_nonzeros(self, most: int) -> int:
        """Return the nonzeros of the rows of a program over all columns.

        If a part of the columns already has more than `most`, the nonzeros of that part.
        """
        num, part = len(self.columns), _FIRST_PART
        while part < num:
            some = np.linspace(0, num - 1, part).astype(np.int64)
            found = int(self.columns.packing_of(some, self._active).matrix.nnz)
            if found > most:
                return found
            part *= 2
        return int(self.columns.packing(self._active).matrix.nnz)

    def solve(self, sub: Subproblem) -> LpSolution | None:
        """Solve the relaxation of a subproblem, adding rows until none is violated.

        Returns None if the solver fails or the time is up.
        """
        while not self.budget.is_over():
            solution = self.solve_once(sub)
            if solution is None or solution.complete:
                return solution
        return None

    def solve_once(self, sub: Subproblem) -> LpSolution | None:
        """Solve the relaxation with the rows active so far, then activate violated ones."""
        solution = self._solve(sub)
        if solution is None:
            return None
        problem = self.columns.problem
        load = np.zeros(problem.num_rows)
        for k in np.flatnonzero(solution.amounts > 1e-9):
            np.add.at(load, self.columns.rows(int(k)), solution.amounts[k])
        violated = (load > problem.capacities + 1e-6) & ~self._active
        self._active |= violated
        return replace(solution, complete=not violated.any())

    def packing_of(self, positions: IntArray) -> Packing:
        """Return the rows that an integer program over some columns needs."""
        return self.columns.packing_of(positions, self.columns.tight_rows | self._active)

    def _solve(self, sub: Subproblem) -> LpSolution | None:
        columns, problem = self.columns, self.columns.problem
        kinds = Kinds(problem, sub)
        columns.share(kinds)
        merged = columns.packing(self._active)
        packing = merged.matrix
        owner, values = columns.owners(), columns.values(sub.level + 1).astype(float)
        num_requests, num_packing = len(problem.names), packing.shape[0]
        choice = sp.csr_matrix(
            (np.ones(len(owner)), (owner, np.arange(len(owner)))),
            shape=(num_requests, len(owner)),
        )
        # the level rows are scaled to 1 so that the simplex sees numbers of one size
        sizes = [max(1.0, abs(float(v or 0))) for v in sub.reached]
        level_rows = [sp.csr_matrix(values[:, j] / size) for j, size in enumerate(sizes)]
        lower = np.full(num_packing + num_requests + len(sizes), -np.inf)
        upper = np.ones(len(lower))
        upper[:num_packing] = merged.capacities
        must = np.flatnonzero(kinds.least)
        lower[num_packing + must] = kinds.least[must]
        upper[num_packing : num_packing + num_requests] = kinds.most
        for j, (value, size) in enumerate(zip(sub.reached, sizes, strict=True)):
            if value is not None:
                lower[num_packing + num_requests + j] = value / size
            upper[num_packing + num_requests + j] = np.inf
        admitted = np.array([kinds.admits(c) for c in columns.all], dtype=bool)
        matrix = sp.vstack([packing, choice, *level_rows], format="csr")
        self.budget.spend(_WORK * (matrix.nnz + 1))
        cost = values[:, sub.level]
        # what must be reached may be missed at a price above any gain: never without a solution,
        # and a whole unit missed leaves less than any placement has
        needed = np.flatnonzero(lower > -np.inf)
        slack = sp.csr_matrix(
            (np.ones(len(needed)), (needed, np.arange(len(needed)))),
            shape=(matrix.shape[0], len(needed)),
        )
        # a start is not missed to reach a level, where starting takes from it
        of_start = 1.0 + np.abs(values[:, : len(sizes)]).max(axis=0, initial=0).sum()
        of_start = min(of_start, _MOST_OF_START)
        worth = np.concatenate([np.full(num_packing + num_requests, of_start), sizes])[needed]
        miss = (1.0 + 2.0 * _largest_gain(kinds, cost, owner)) * worth
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
        left = self.budget.deadline - clock.now()
        program.set_time_limit_in_seconds(min(3600.0, max(0.1, left)))
        program.solve(helper)
        if program.status() != mbh.SolveStatus.OPTIMAL:
            return None
        duals = -np.array(program.dual_values())
        multipliers = np.maximum(0.0, -duals[num_packing + num_requests :])
        return LpSolution(
            objective=-program.objective_value(),
            size=matrix.nnz + 1,
            columns=list(columns.all),
            amounts=np.array(program.variable_values())[: len(owner)],
            duals=DualPoint(
                self._spread(merged, np.maximum(0.0, duals[:num_packing])),
                tuple(float(m) / s for m, s in zip(multipliers, sizes, strict=True)),
            ),
            reduced=cost - matrix.T @ duals,
        )

    def _spread(self, merged: Packing, prices: FloatArray) -> FloatArray:
        """Return the prices of all rows; a program's price is shared by the rows it represents."""
        problem = self.columns.problem
        share = problem.row_weights[merged.rows]
        total = np.bincount(merged.stands_in, weights=share, minlength=len(prices))
        row_prices = np.zeros(problem.num_rows)
        row_prices[merged.rows] = prices[merged.stands_in] * share / total[merged.stands_in]
        return row_prices


def _largest_gain(kinds: Kinds, cost: FloatArray, owner: IntArray) -> float:
    """Return the sum over requests, started or not, of the largest absolute value of a column."""
    largest = np.zeros(len(kinds.most))
    np.maximum.at(largest, owner, np.abs(cost))
    return float(largest[kinds.first].sum())
