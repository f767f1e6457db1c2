"""A proof of a bound of any model, found anew: linear programs at the leaves of a tree of branches.

It is for bounds whose own certificate is not linear. What a linear program proves is a sum of rows
with integer multipliers, so that a leaf is as in `packing_proof`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.explicit.model import Model
from topoplace.explicit.script import Script, conclude, negated, numbers_of

MOST_VARIABLES = 4_000
"""Most variables of a model for which a proof is searched."""

MOST_WORK = 500_000
"""Nodes of the search for a proof, times variables, after which it is given up."""

_SCALES = (1 << 10, 1 << 20, 1 << 30)  # by which multipliers are rounded to integers
_NEAR = 1e-7


def prove_by_search(model: Model, bound: int, write: Callable[[str], object], why: str) -> None:
    """Write a proof that the objective of a model is at least a bound.

    Parameters
    ----------
    why
        What of the certificate is not expressed, for the error.

    Raises
    ------
    InputError
        If no proof is found by `MOST_WORK`.
    """
    _Search(model, bound, write, why).run()


class _Search:
    def __init__(self, model: Model, bound: int, write: Callable[[str], object], why: str) -> None:
        self.model, self.bound, self.why, self.nodes = model, bound, why, 0
        self.rows, last = numbers_of(model)
        self.script = Script(write, last, model)
        # all rows as sums that are at least a number; the last one says that the bound fails
        self.sums: list[tuple[Any, Any, int]] = []
        self.ids: list[int] = []
        for row, number in zip(model.rows, self.rows, strict=True):
            own = row.sum
            if row.sense in (">=", "="):
                self.sums.append((own.variables, own.coefficients, row.limit))
                self.ids.append(number)
            if row.sense in ("<=", "="):
                self.sums.append((own.variables, -own.coefficients, -row.limit))
                self.ids.append(number + (row.sense == "="))
        terms = {model.variables[v]: -c for v, c in model.objective.terms()}
        self.below, if_below, self.if_not = self.script.reified("below", terms, 1 - bound)
        own = model.objective
        self.sums.append((own.variables, -own.coefficients, 1 - bound))
        self.ids.append(if_below)
        self.most = sum(max(0, c) for c in terms.values()) - (1 - bound) + 1

    def run(self) -> None:
        """Prove the bound."""
        self._make_program()
        clause = self._node([])
        proven = self.script.total([(self.if_not, 1), (clause, max(0, self.most))])
        conclude(self.script, self.model, self.bound, proven)

    def _make_program(self) -> None:
        """Make the program: the least amount by which rows are missed, all by the same."""
        pywraplp: Any = importlib.import_module("ortools.linear_solver.pywraplp")

        self.solver = pywraplp.Solver.CreateSolver("GLOP")
        self.x = [self.solver.NumVar(0, 1, "") for _ in self.model.variables]
        missed = self.solver.NumVar(0, self.solver.infinity(), "")
        self.limits = []
        for variables, coefficients, least in self.sums:
            size = max(1, int(np.abs(coefficients).max(initial=1)))
            row = self.solver.Constraint(least / size, self.solver.infinity())
            row.SetCoefficient(missed, 1)
            for v, c in zip(variables.tolist(), coefficients.tolist(), strict=True):
                row.SetCoefficient(self.x[v], c / size)
            self.limits.append((row, size))
        self.missed = missed
        self.solver.Minimize(missed)

    def _node(self, path: list[str]) -> int:
        """Prove that not all of some literals are true if the bound fails."""
        self.nodes += 1
        most = MOST_WORK // max(1, len(self.x)) if len(self.x) <= MOST_VARIABLES else 0
        if self.nodes > most or self.solver.Solve() != self.solver.OPTIMAL:
            expected = "a certificate that is expressible, or a proof by few branches"
            raise InputError(expected, field="certificate", value=self.why)
        if self.missed.solution_value() > _NEAR:
            found = self._leaf(path)
            if found is not None:
                return found
        values = np.array([x.solution_value() for x in self.x])
        far = np.abs(values - np.round(values))
        open_to = [k for k, x in enumerate(self.x) if x.lb() < x.ub()]
        if not open_to:
            raise InputError("a bound that the model has", field="bound", value=self.bound)
        fractional = [k for k in open_to if far[k] > _NEAR]
        branch = fractional[0] if fractional else open_to[0]
        name, clauses = self.model.variables[branch], []
        for value in (round(float(values[branch])), 1 - round(float(values[branch]))):
            self.x[branch].SetBounds(value, value)
            clauses.append(self._node([*path, name if value else f"~{name}"]))
        self.x[branch].SetBounds(0, 1)
        return self._clause(path, clauses)

    def _clause(self, path: list[str], hints: list[int]) -> int:
        return self.script.rup([f"~{self.below}", *map(negated, path)], hints)

    def _leaf(self, path: list[str]) -> int | None:
        """Prove it by a sum of rows; None if none is found that is exact."""
        duals = np.array([row.dual_value() / size for row, size in self.limits])
        largest = duals.max(initial=0)
        for scale in _SCALES if largest > 0 else ():
            factors = np.round(np.maximum(0, duals) / largest * scale).astype(np.int64)
            used = np.flatnonzero(factors).tolist()
            total: dict[int, int] = {}
            least = 0
            for k in used:
                variables, coefficients, limit = self.sums[k]
                least += int(factors[k]) * limit
                for v, c in zip(variables.tolist(), coefficients.tolist(), strict=True):
                    total[v] = total.get(v, 0) + int(factors[k]) * c
            parts: list[tuple[int | str, int]] = [(self.ids[k], int(factors[k])) for k in used]
            for v, c in total.items():
                if self.x[v].lb() == self.x[v].ub():
                    least -= c * round(self.x[v].lb())
                elif c > 0:
                    least -= c
                    parts.append((f"~{self.model.variables[v]}", c))
            if least > 0:
                added = self.script.total(parts)
                clause = self._clause(path, [added])
                self.script.delete(added)
                return clause
        return None
