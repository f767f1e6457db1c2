"""Linear programs over the leaves of a cube, and what their duals prove."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace import clock
from topoplace.placement.tree.exact.cubes.proof import Branch, Empty, Needs, Proof, refutes
from topoplace.placement.tree.exact.cubes.sides import Side, sides_of
from topoplace.placement.tree.exact.lines.tables import (
    Guess,
    Standing,
    Tables,
    branches,
    no_guess,
    standing,
)

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_UNIT = 1 << 16
_LARGEST = 1 << 12
"""Multipliers are kept so small that their sums stay within 64 bits."""

_ZERO = 1e-7


class CubeProgram:
    """Programs for leaves that hold all ranks and leave no bad state without neighbours.

    Parameters
    ----------
    key
        Per state, hops between two leaves in it.
    """

    def __init__(self, tables: Tables, key: IntArray) -> None:
        self.tables, self.key = tables, key
        self._left, self._deadline = 0, 0.0

    def test(self, thresholds: IntArray, most_programs: int, deadline: float) -> Proof | None:
        """Return why thresholds per distance, ascending, are impossible; None if unknown."""
        self._left, self._deadline = most_programs, deadline
        return self._tested(thresholds, no_guess(self.tables))

    def _tested(self, thresholds: IntArray, guess: Guess) -> Proof | None:
        view = standing(self.tables, thresholds, guess)
        if view is None:
            return Empty()
        if self._left == 0 or clock.now() > self._deadline:
            return None
        self._left -= 1
        sides = list(sides_of(self.tables, self.key, view, thresholds))
        leaves, multipliers = self._solved(view, guess, [row for _, row in sides])
        if leaves is None:
            proof = _needs([side for side, _ in sides], multipliers)
            return proof if refutes(self.tables, self.key, proof, thresholds, guess) else None
        part = np.abs(leaves - np.rint(leaves))
        if part.max() < 10 * _ZERO:
            return None
        # small counts first: they are what others need, and rarely many at once
        ranks = self.tables.ranks
        state = int(np.argmax(part * (1 + ranks.max() - ranks)))
        arms = branches(guess, state)
        nearer = int(leaves[state] % 1 > 0.5)  # if there is a solution, rather there
        proofs: dict[int, Proof] = {}
        for arm in (nearer, 1 - nearer):
            result = self._tested(thresholds, arms[arm])
            if result is None:
                return None
            proofs[arm] = result
        return Branch(state, proofs[0], proofs[1])

    def _solved(
        self, view: Standing, guess: Guess, sides: list[IntArray]
    ) -> tuple[FloatArray | None, FloatArray]:
        """Return leaves per state that meet everything, None if there are none, and the duals.

        Rows: all ranks, leaves per type, leaves assumed, sides. Columns: leaves per state, ranks
        and leaves assumed that are missing; the fewest.
        """
        tables = self.tables
        alive = np.flatnonzero(view.alive)
        sure = alive[(guess.forced[alive] > 0) | guess.done[alive]]
        num_types = len(tables.multiplicity)
        matrix = np.zeros((1 + num_types + len(sure) + len(sides), len(alive) + 1 + len(sure)))
        matrix[0, : len(alive)] = tables.ranks[alive]
        matrix[1 + tables.leaf_type[alive], np.arange(len(alive))] = 1
        of_sure = 1 + num_types + np.arange(len(sure))
        matrix[of_sure, np.searchsorted(alive, sure)] = 1
        matrix[[0, *of_sure], len(alive) + np.arange(1 + len(sure))] = 1
        for number, row in enumerate(sides, start=of_sure.size + 1 + num_types):
            matrix[number, : len(alive)] = row[alive]
        forced = guess.forced[sure]
        never = np.full(len(sides), -np.inf)
        lower = np.concatenate([[tables.cells], np.zeros(num_types), forced, never])
        most = np.where(guess.done[sure], forced, np.inf)
        upper = np.concatenate([[tables.cells], tables.multiplicity, most, np.zeros(len(sides))])
        objective = np.zeros(matrix.shape[1])
        objective[len(alive) :] = [1.0, *tables.ranks[sure]]
        helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
        helper.fill_model_from_sparse_data(
            np.zeros(matrix.shape[1]),
            np.full(matrix.shape[1], np.inf),
            objective,
            lower,
            upper,
            sp.csr_matrix(matrix),
        )
        program = mbh.ModelSolverHelper("glop")
        program.set_solver_specific_parameters("use_preprocessing: false")
        program.solve(helper)
        if program.status() != mbh.SolveStatus.OPTIMAL:
            return None, np.zeros(len(sides))
        duals = np.array(program.dual_values())[len(lower) - len(sides) :]
        if program.objective_value() > _ZERO:
            return None, -duals
        leaves = np.zeros(len(tables.ranks))
        leaves[alive] = np.array(program.variable_values())[: len(alive)]
        return leaves, -duals


def _needs(sides: list[Side], multipliers: FloatArray) -> Needs:
    """Return multipliers in integers; a proof is one at any scale."""
    scale = min(float(_UNIT), _UNIT * _LARGEST / max(1.0, np.abs(multipliers).max(initial=0.0)))
    whole = np.rint(multipliers * scale).astype(np.int64).tolist()
    return Needs(tuple((side, m) for side, m in zip(sides, whole, strict=True) if m > 0))
