"""Thresholds of a grid refuted by a program over lines and leaves (docs/proofs-tree.md).

Every line of the grid is cut into segments of leaves, and every leaf's ranks are, along every
dimension, in at least as many segments as they meet lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace.placement.tree.exact.lines.kernels.program import (
    dearest,
    entries,
    fitting,
    fitting_layouts,
)
from topoplace.placement.tree.exact.lines.known import KnownLines
from topoplace.placement.tree.exact.lines.proof import Branch, Empty, Prices, Proof, weigh
from topoplace.placement.tree.exact.lines.tables import (
    Guess,
    Standing,
    Tables,
    branches,
    met,
    no_guess,
    standing,
)

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

UNIT = 1 << 16
_LARGEST = 1 << 12
"""Prices are kept so small that their sums stay within 64 bits."""

_MOST_ROUNDS = 200
_ZERO = 1e-7
_GLOP = "use_preprocessing: false use_scaling: false"


@dataclass(frozen=True)
class Mix:
    """Lines and leaves that add up.

    Attributes
    ----------
    leaves
        Leaves per state, perhaps in parts.
    least
        Per dimension, the least threshold that the lines stand.
    """

    leaves: FloatArray
    least: IntArray


class LineProgram:
    """Programs over the lines met so far."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.num_programs = 0
        self._lines = [KnownLines(extent) for extent in tables.extents.tolist()]
        self._since = self._guesses_left = 0
        self._wholes = False
        self._stretch = 1.0
        extents = tuple(tables.extents.tolist())
        ranks = tables.ranks[tables.layout_state].tolist()
        pairs = zip(ranks, tables.layouts.T.tolist(), strict=True)
        self._fewest = np.array([tuple(parts) in met(x, extents) for x, parts in pairs])

    def test(
        self,
        thresholds: IntArray,
        most_guesses: int,
        *,
        wholes: bool = False,
        stretch: float = 1.0,
    ) -> Proof | Mix | None:
        """Return why thresholds per dimension are impossible, or what has them; None if neither.

        Leaves of a mix may be in parts if there is none in whole numbers after so many guesses.
        With `wholes`, segments that have all ranks of a leaf are told apart. If leaves shall have
        more segments than they need, `stretch` times as many, a mix has room to spare.
        """
        self._guesses_left = most_guesses
        self._wholes = wholes
        self._stretch = stretch
        return self._tested(thresholds, no_guess(self.tables))

    def _tested(self, thresholds: IntArray, guess: Guess) -> Proof | Mix | None:
        view = standing(self.tables, thresholds, guess)
        if view is None:
            return Empty()
        self._guesses_left -= 1
        found = self._solved(view, guess)
        if not isinstance(found, Mix):
            return found
        part = np.abs(found.leaves - np.rint(found.leaves))
        if part.max() < 10 * _ZERO or self._guesses_left <= 0:
            return found
        # small counts first: they are what others stand between, and rarely many at once
        ranks = self.tables.ranks
        state = int(np.argmax(part * (1 + ranks.max() - ranks)))
        arms = branches(guess, state)
        proofs: dict[int, Proof] = {}
        nearer = int(found.leaves[state] % 1 > 0.5)  # if there is a solution, rather there
        for arm in (nearer, 1 - nearer):
            result = self._tested(thresholds, arms[arm])
            if result is None or isinstance(result, Mix):
                return result
            proofs[arm] = result
        return Branch(state, proofs[0], proofs[1])

    def _solved(self, view: Standing, guess: Guess) -> Prices | Mix | None:
        self._since = self.num_programs
        for _ in range(_MOST_ROUNDS):
            found = self._round(view, guess)
            if not isinstance(found, bool):
                return found
            if not found:
                break
        return None

    def _round(self, view: Standing, guess: Guess) -> Prices | Mix | bool:
        """Solve over the lines known; return whether there are new ones if that settles nothing."""
        tables = self.tables
        num_dims, num = len(tables.extents), len(tables.ranks)
        known = [
            lines.latest(fitting(tables, view, dim, lines.codes), self._since)
            for dim, lines in enumerate(self._lines)
        ]
        layouts = np.flatnonzero(fitting_layouts(tables, view) & (self._fewest | self._wholes))
        alive = np.flatnonzero(view.alive)
        row_of = np.full((num_dims, num), -1, dtype=np.int64)
        per_state = np.arange(num_dims * len(alive)).reshape(num_dims, -1)
        row_of[:, alive] = num_dims + (2 + self._wholes) * per_state
        program = self._program(known, layouts, row_of, guess)
        self.num_programs += 1
        if program.status() != mbh.SolveStatus.OPTIMAL:
            return False
        amounts = np.array(program.variable_values())
        ends = np.cumsum([len(own) for own in known])
        least = np.zeros(num_dims, dtype=np.int64)
        for dim, (own, part) in enumerate(zip(known, np.split(amounts, ends), strict=False)):
            there = own[part > _ZERO]
            self._lines[dim].used[there] = self.num_programs
            least[dim] = dearest(tables, dim, self._lines[dim].codes[there])
        if program.objective_value() < _ZERO:
            weights = amounts[ends[-1] : ends[-1] + len(layouts)]
            states = tables.layout_state[layouts]
            leaves: FloatArray = np.bincount(states, weights=weights, minlength=num).astype(float)
            return Mix(leaves, least)
        duals = np.array(program.dual_values())
        duals *= min(1.0, _LARGEST / np.abs(duals).max())  # a proof at any scale
        whole = -np.rint(duals * UNIT).astype(np.int64)
        of_cell = np.zeros((num_dims, num), dtype=np.int64)
        of_segment = np.zeros((num_dims, num), dtype=np.int64)
        of_cell[:, alive] = whole[row_of[:, alive]]
        of_segment[:, alive] = np.minimum(0, whole[row_of[:, alive] + 1])
        of_whole = np.zeros_like(of_cell)
        if self._wholes:
            of_whole[:, alive] = whole[row_of[:, alive] + 2]
        prices = Prices(of_cell, of_segment, of_whole)
        weighed = weigh(tables, view, guess, prices)
        if weighed.refuted:
            return prices
        added = False
        for dim, lines in enumerate(self._lines):
            better = weighed.lines[dim] < -whole[dim] - 2
            added |= lines.add(weighed.codes[dim][better], self.num_programs, known[dim])
        return added

    def _program(
        self, known: list[IntArray], layouts: IntArray, row_of: IntArray, guess: Guess
    ) -> Any:
        """Return the solved program: the fewest lines and assumed leaves that are missing.

        Rows: lines per dimension; cells, segments and perhaps wholes per dimension and state;
        leaves per type; leaves assumed. Columns: lines, layouts, what is missing.
        """
        tables = self.tables
        num_dims = len(tables.extents)
        states = tables.layout_state[layouts]
        sure = np.flatnonzero((guess.forced > 0) | guess.done)
        per_state = 2 + self._wholes
        of_type = int(row_of.max()) + per_state
        of_sure = of_type + len(tables.multiplicity)
        num_rows = of_sure + len(sure)
        parts: list[tuple[IntArray, IntArray, Any]] = []
        column = 0
        for dim, (extent, own) in enumerate(zip(tables.extents.tolist(), known, strict=True)):
            size = per_state * len(own) * extent
            rows, columns = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
            data = np.empty(size)
            codes = self._lines[dim].codes[own]
            used = entries(
                extent, codes, tables.ranks, row_of[dim], self._wholes, column, rows, columns, data
            )
            parts.append((rows[:used], columns[:used], data[:used]))
            mine = np.arange(column, column + len(own))
            parts.append((np.full(len(own), dim), mine, np.ones(len(own))))
            column += len(own)
        mine = np.arange(column, column + len(layouts))
        parts.append((of_type + tables.leaf_type[states], mine, np.ones(len(mine))))
        for number, state in enumerate(sure.tolist()):
            there = mine[states == state]
            parts.append((np.full(len(there), of_sure + number), there, np.ones(len(there))))
        for dim in range(num_dims):
            parts.append((row_of[dim, states], mine, -tables.ranks[states]))
            needed = self._stretch * tables.layouts[dim, layouts]
            parts.append((row_of[dim, states] + 1, mine, -needed))
            if self._wholes:
                runs = tables.layouts[dim, layouts] == 1
                parts.append((row_of[dim, states[runs]] + 2, mine[runs], -np.ones(runs.sum())))
        column += len(layouts)
        missing = np.concatenate([np.arange(num_dims), np.arange(of_sure, num_rows)])
        num_columns = column + len(missing)
        parts.append((missing, np.arange(column, num_columns), np.ones(len(missing))))
        rows, columns, data = (np.concatenate(own) for own in zip(*parts, strict=True))
        lower, upper = np.zeros(num_rows), np.zeros(num_rows)
        lower[:num_dims] = upper[:num_dims] = tables.lines
        upper[num_dims + 1 : of_type : per_state] = np.inf
        lower[of_type:of_sure] = -np.inf
        upper[of_type:of_sure] = tables.multiplicity
        lower[of_sure:] = guess.forced[sure]
        upper[of_sure:] = np.where(guess.done[sure], guess.forced[sure], np.inf)
        objective = np.zeros(num_columns)
        objective[column:] = 1.0
        helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
        helper.fill_model_from_sparse_data(
            np.zeros(num_columns),
            np.full(num_columns, np.inf),
            objective,
            lower,
            upper,
            sp.csr_matrix((data.astype(float), (rows, columns)), shape=(num_rows, num_columns)),
        )
        program = mbh.ModelSolverHelper("glop")
        program.set_solver_specific_parameters(_GLOP)
        program.solve(helper)
        return program
