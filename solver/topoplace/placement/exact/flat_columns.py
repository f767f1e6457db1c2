"""The master's columns as arrays, for the compiled loops of the bundle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact._bundle import minimise_near
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.program import Column, owners_of, values_of
from topoplace.placement.exact.relaxation import DualPoint, Subproblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LEVEL_REACH = 10.0  # how much softer the row of an earlier level is than those of routers


class FlatColumns:
    """The columns that a subproblem admits, with the amounts that belong to the last prices.

    Parameters
    ----------
    free
        Marks the packing rows that a column may occupy.
    """

    def __init__(self, master: Master, sub: Subproblem, free: NDArray[np.bool_]) -> None:
        self._master, self._sub, self._free = master, sub, free
        self._num_requests = len(master.rows.problem.requests)
        self._forced = np.zeros(self._num_requests, dtype=bool)
        self._forced[list(sub.forced)] = True
        requests = master.rows.problem.requests
        self._fixed = sum(requests[c.request_idx].value for c in sub.fixed)
        self._start()

    def _start(self) -> None:
        self._columns, self._num_seen = self._master.columns, 0
        self._taken: list[Column] = []
        self._positions = np.zeros(0, dtype=np.int64)
        self._owner = np.zeros(0, dtype=np.int64)
        self._values = np.zeros((self._sub.level + 1, 0))
        self._amounts = np.zeros(0)
        self._tight = np.zeros(len(self._free), dtype=bool)
        self._priced = np.zeros(len(self._free), dtype=bool)
        self._rows = np.zeros(0, dtype=np.uint32)
        self._starts = np.zeros(1, dtype=np.uint32)

    def begin(self, start: DualPoint) -> None:
        """Start from the amounts that the columns have, and near some prices.

        Rows that have a price there take part, whether or not the master knows a column that makes
        them matter: their prices count in the model, so what columns pay for them must, too.
        """
        if self._columns is not self._master.columns:
            self._start()
        self._priced |= start.row_prices > 0
        self._amounts = np.array([column.amount for column in self._taken])

    def end(self) -> None:
        """Give the columns the amounts found."""
        for column, amount in zip(self._taken, self._amounts.tolist(), strict=True):
            column.amount = amount

    def update(self) -> bool:
        """Take in the master's new columns; tell whether there are any."""
        num_taken = len(self._taken)
        self._take_in()
        tight = self._master.tight_rows() | self._priced
        if not np.array_equal(tight, self._tight):
            self._tight = tight
            self._starts, self._rows = self._master.rows_among(self._positions, tight)
        elif num_taken < len(self._taken):
            starts, rows = self._master.rows_among(self._positions[num_taken:], tight)
            self._starts = np.concatenate([self._starts, self._starts[-1] + starts[1:]])
            self._rows = np.concatenate([self._rows, rows])
        return num_taken < len(self._taken)

    def _take_in(self) -> None:
        """Take in the new columns that the subproblem admits."""
        taken, positions = [], []
        for position in range(self._num_seen, len(self._master.columns)):
            column = self._master.columns[position]
            if self._sub.admits(column.candidate) and self._free[column.rows].all():
                taken.append(column)
                positions.append(position)
            else:
                column.amount = 0.0
        self._num_seen = len(self._master.columns)
        self._taken += taken
        self._positions = np.concatenate([self._positions, np.array(positions, dtype=np.int64)])
        values = values_of(self._master.rows.problem, taken, self._sub.level + 1)
        self._owner = np.concatenate([self._owner, owners_of(taken)])
        self._values = np.concatenate([self._values, values.T], axis=1)
        self._amounts = np.concatenate([self._amounts, [c.amount for c in taken]])

    def minimise_near(
        self, best: Bounded, softness: float, accuracy: float, most_rounds: int
    ) -> tuple[DualPoint, float, bool]:
        """Return where the model plus the squared distance to the best point is least.

        Returns the model's value there as well, and whether it is near the least: see
        `_bundle.minimise_near`.
        """
        level, num = self._sub.level, len(self._taken)
        members = np.argsort(self._owner, kind="stable")
        first = np.searchsorted(self._owner[members], np.arange(self._num_requests + 1))
        self._normalise(first, members)
        earlier = self._values[:level]
        # a level's row has one price where a column has many routers': let it go farther
        size = np.maximum(1.0, (earlier**2).mean(axis=1)) if num else np.ones(level)
        usual = _LEVEL_REACH * softness * max(1, len(self._rows)) / max(1, num)
        prices, multipliers, model, solved = minimise_near(
            first, members, self._forced, self._values[level], earlier,
            np.array(self._sub.reached, dtype=float), self._starts, self._rows,
            best.point.row_prices, softness, self._free,
            np.array(best.point.multipliers, dtype=float), usual / size, self._amounts,
            best.value.bound - self._fixed, accuracy, most_rounds,
        )  # fmt: skip
        return DualPoint(prices, tuple(multipliers.tolist())), model + self._fixed, solved

    def _normalise(self, first: IntArray, members: IntArray) -> None:
        """Make the amounts of every request sum to at most 1, to exactly 1 where forced."""
        total = np.bincount(self._owner, weights=self._amounts, minlength=self._num_requests)
        self._amounts /= np.maximum(1.0, total)[self._owner]
        for q in np.flatnonzero(self._forced & (total < 1)).tolist():
            if first[q] < first[q + 1]:
                self._amounts[members[first[q]]] += 1 - total[q]
