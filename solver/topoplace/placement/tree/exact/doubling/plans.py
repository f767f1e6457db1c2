"""Thresholds of a binomial job refuted by a program over plans (docs/proofs-tree.md).

A *plan* is a state with its active ranks before every step and at the end. What is active on all
leaves together doubles step by step; and what crosses from leaves that pair badly goes to others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace.placement.tree.exact.bounding._kernels import NEVER
from topoplace.placement.tree.exact.doubling.kernels.cuts import cuts
from topoplace.placement.tree.exact.doubling.kernels.lifting import raised, rules_out
from topoplace.placement.tree.exact.doubling.kernels.lowest import lowest
from topoplace.placement.tree.exact.doubling.kernels.pricing import weigh
from topoplace.placement.tree.exact.doubling.kernels.program import fitting, program_of
from topoplace.placement.tree.exact.doubling.kernels.standing import standing
from topoplace.placement.tree.exact.doubling.tables import Cuts, Standing, Tables
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

UNIT = 1 << 16
_LARGEST = 1 << 12
"""Multipliers are kept so small that sums of their products stay within 64 bits."""

_MOST_PLANS = 200
_MOST_ROUNDS = 60
_ZERO = 1e-7
_GLOP = "use_preprocessing: false use_dual_simplex: true use_scaling: false"
"""The slack basis is dual feasible here, and the numbers are small."""


class Refutation(NamedTuple):
    """Why thresholds are impossible: integer multipliers of what must hold.

    Attributes
    ----------
    shares
        Of the active ranks before every step and at the end.
    step, least, senders, receivers
        Per inequality its step and the least key of its states; multipliers of both sides.
    """

    shares: IntArray
    step: IntArray
    least: IntArray
    senders: IntArray
    receivers: IntArray


@dataclass(frozen=True)
class Mix:
    """Plans with weights: a solution of the program."""

    weight: FloatArray
    state: IntArray
    path: IntArray


def tables_of(job: Job) -> Tables:
    """Return the states and steps of a job whose only pattern is binomial."""
    states = job.states
    pairs = np.array([len(step.pairs) for step in job.steps], dtype=np.int64)
    active = np.concatenate([[1], 1 + np.cumsum(pairs)]).astype(np.int64)
    lone = (states.multiplicity == 1)[states.type]
    same = states.type[:, None] == states.type
    return Tables(
        first=states.first.astype(np.int64),
        ranks=states.count.astype(np.int64),
        leaf_type=states.type.astype(np.int64),
        inside=states.inside[states.kind].astype(np.int64),
        key=states.key.astype(np.int64),
        pair=np.where(same & lone, NEVER, states.crossing[np.ix_(states.kind, states.kind)]),
        multiplicity=states.multiplicity,
        active=active,
        idle=active[:-1] - pairs,
    )


class Plans:
    """All plans met so far, and programs over them."""

    def __init__(self, job: Job) -> None:
        self.tables = tables_of(job)
        self.ranks = job.ranks
        num_steps = len(self.tables.idle)
        self._state = np.zeros(0, dtype=np.int64)
        self._path = np.zeros((0, num_steps + 1), dtype=np.int64)
        self._used = np.zeros(0, dtype=np.int64)
        self._number: dict[tuple[int, bytes], int] = {}
        self.num_programs = 0

    def test(self, thresholds: IntArray) -> Refutation | Mix | None:
        """Return why thresholds are impossible, or plans that have them; None if neither."""
        tables = self.tables
        view = standing(tables, thresholds)
        none = np.zeros(0, dtype=np.int64)
        if view.spare < 0:
            # each rank on a leaf is worth 1: no choice of states has enough
            shares = np.zeros(len(tables.active), dtype=np.int64)
            shares[-1] = 1
            return Refutation(shares, none, none, none, none)
        rows = cuts(tables, view, thresholds)
        for _ in range(_MOST_ROUNDS):
            found = self._round(view, rows)
            if not isinstance(found, bool):
                return found
            if not found:
                return None
        return None

    def refutes(self, proof: Refutation, thresholds: IntArray) -> bool:
        """Tell whether multipliers rule out thresholds, in integers."""
        return bool(rules_out(self.tables, proof, thresholds))

    def raised(
        self, proof: Refutation, values: IntArray, at: IntArray, top: IntArray, order: IntArray
    ) -> IntArray:
        """Return the thresholds by number that multipliers still rule out, step by step."""
        found: IntArray = raised(self.tables, proof, values, at, top, order)
        return found

    def least(self, values: IntArray, at: IntArray, mix: Mix) -> IntArray:
        """Return the least values that some plans can have, by number."""
        found: IntArray = lowest(self.tables, values, at, mix.weight, mix.state, mix.path)
        return found

    def _round(self, view: Standing, rows: Cuts) -> Refutation | Mix | bool:
        """Solve over the plans known; return whether there are new ones if that settles nothing."""
        known = np.flatnonzero(fitting(view, self._state, self._path))
        if len(known) > _MOST_PLANS:
            known = known[np.argsort(-self._used[known], kind="stable")[:_MOST_PLANS]]
        state, path = self._state[known], self._path[known]
        program = self._solved(view, rows, state, path)
        if program is None:
            return False
        weight = np.array(program.variable_values())[: len(state)]
        there = weight > _ZERO
        self._used[known[there]] = self.num_programs
        if program.objective_value() < _ZERO:
            return Mix(weight[there], state[there], path[there])
        duals = np.array(program.dual_values())
        duals *= min(1.0, _LARGEST / np.abs(duals).max())  # a proof at any scale
        shares, senders, receivers, refuted, better, paths = weigh(
            self.tables, view, rows, duals, UNIT
        )
        if refuted:
            kept = (senders > 0) | (receivers > 0)
            step, least = rows.step[kept], rows.least[kept]
            return Refutation(shares, step, least, senders[kept], receivers[kept])
        return self._add(better.tolist(), paths, known)

    def _solved(self, view: Standing, rows: Cuts, state: IntArray, path: IntArray) -> Any:
        """Return the solved program over some plans, None if the solver failed."""
        tables = self.tables
        lower, upper, objective, packed = program_of(tables, view, rows, state, path)
        helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
        helper.fill_model_from_sparse_data(
            np.zeros(len(objective)),
            np.full(len(objective), np.inf),
            objective,
            lower,
            upper,
            sp.csr_matrix(packed, shape=(len(upper), len(objective))),
        )
        program = mbh.ModelSolverHelper("glop")
        program.set_solver_specific_parameters(_GLOP)
        program.solve(helper)
        self.num_programs += 1
        return program if program.status() == mbh.SolveStatus.OPTIMAL else None

    def _add(self, states: list[int], paths: IntArray, there: IntArray) -> bool:
        """Add plans, or let known ones come next; return whether any was not there."""
        names = [(s, paths[s].tobytes()) for s in states]
        new = [s for s, name in zip(states, names, strict=True) if name not in self._number]
        self._number |= {(s, paths[s].tobytes()): len(self._state) + i for i, s in enumerate(new)}
        self._state = np.concatenate([self._state, np.array(new, dtype=np.int64)])
        self._path = np.concatenate([self._path, paths[new]])
        self._used = np.concatenate([self._used, np.zeros(len(new), dtype=np.int64)])
        wanted = np.array([self._number[name] for name in names], dtype=np.int64)
        self._used[wanted] = self.num_programs
        return not np.isin(wanted, there).all()
