"""An oracle that has all candidates written down: for problems small enough for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from topoplace import clock
from topoplace.packing.problem import NO_VALUE, Cover, PackingProblem, Priced
from topoplace.types import IntArray

_PART = 1000  # candidates whose values are computed at once, for the memory it takes


class ListedOracle:
    """Prices a complete list of candidates.

    Parameters
    ----------
    listed
        Returns every candidate of every request; asked once.
    """

    def __init__(self, problem: PackingProblem, listed: Callable[[], list[Any]]) -> None:
        self._problem, self._listed = problem, listed

    @cached_property
    def _tables(self) -> tuple[list[Any], IntArray, IntArray, sp.csr_matrix]:
        """All candidates, their values and requests, and what they take of every row."""
        problem, every = self._problem, self._listed()
        num = len(every)
        values, taken = [np.zeros((0, len(problem.senses)), dtype=np.int64)], []
        for k in range(0, num, _PART):
            clock.check(problem.deadline)
            part = every[k : k + _PART]
            values.append(problem.values_of(part))
            taken += [problem.rows_of(c) for c in part]
        owner = np.array([c.request_idx for c in every], dtype=np.int64)
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *taken])
        of = np.repeat(np.arange(num), [len(rows) for rows in taken])
        ones = np.ones(len(flat), dtype=np.int64)
        amounts = sp.csr_matrix((ones, (of, flat)), shape=(num, problem.num_rows))
        return every, np.concatenate(values), owner, amounts

    def price(
        self,
        row_prices: IntArray,
        weights: Sequence[int],
        per_request: int,
        covers: tuple[Cover, ...] = (),
    ) -> Priced:
        """Return the best candidates of every request (see `PackingProblem.price`)."""
        every, values, owner, amounts = self._tables
        num_requests = len(self._problem.names)
        best = np.full(num_requests, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Any]]] = [[] for _ in range(num_requests)]
        gains = values[:, : len(weights)] @ np.array(weights) - amounts @ row_prices
        allowed = np.ones(len(gains), dtype=bool)
        for cover in covers:
            inside = amounts[:, [cover.row]].toarray().ravel() > 0
            allowed &= (owner != cover.request_idx) | (inside == cover.inside)
        for k in np.argsort(-gains, kind="stable").tolist():
            q = int(owner[k])
            if allowed[k] and len(columns[q]) < per_request:
                columns[q].append((int(gains[k]), every[k]))
                best[q] = max(best[q], gains[k])
        return Priced(best, columns)
