"""What the restricted master solves: columns, packing rows as a matrix, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topoplace.placement.exact import _kernels
from topoplace.placement.exact.relaxation import DualPoint
from topoplace.placement.problem import Candidate, PlacementProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
