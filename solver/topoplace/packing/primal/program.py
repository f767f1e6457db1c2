"""Integer programs written as expressions, and solved by CP-SAT on one thread.

OR-Tools has a class for that, in `cp_model`, which loads pandas: that takes as long as a small
problem as a whole. This one has what is needed here, of the same expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model_helper as cp

from topoplace import clock

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1  # no limit


@dataclass(frozen=True)
class Answer:
    """A solution.

    Attributes
    ----------
    values
        Of all variables, by number.
    optimal
        Whether no other one is better.
    """

    values: Sequence[int]
    optimal: bool

    def value(self, expression: Any) -> int:
        """Return the value of a variable or of a sum."""
        sums, offset = _flat(expression)
        return offset + sum(n * int(self.values[v]) for v, n in sums)


class Program:
    """A program over integers, with an objective to be minimised."""

    def __init__(self) -> None:
        self._proto: Any = cp.CpModelProto()

    def integer(self, least: int, most: int) -> Any:
        """Return a new variable with a value between two limits, these included."""
        self._proto.variables.add().domain.extend([least, most])
        return cp.IntVar(self._proto, len(self._proto.variables) - 1)

    def binary(self) -> Any:
        """Return a new variable with value 0 or 1."""
        return self.integer(0, 1)

    def add(self, condition: Any) -> None:
        """Require a comparison of sums; a bool holds for all solutions, or for none."""
        if condition is True:
            return
        row = self._proto.constraints.add().linear
        if condition is False:
            row.domain.extend([1, 1])  # a sum of nothing
            return
        row.vars.extend([var.index for var in condition.vars])
        row.coeffs.extend(condition.coeffs)
        for limit in condition.bounds.flattened_intervals():
            row.domain.append(limit if limit in (_LEAST, _MOST) else limit - condition.offset)

    def implies(self, one: Any, other: Any) -> None:
        """Require that a binary variable is 1 if another is."""
        row = self._proto.constraints.add()
        row.enforcement_literal.append(one.index)
        row.bool_and.literals.append(other.index)

    def minimise(self, objective: Any) -> None:
        """Set the objective, in place of any before."""
        self._proto.clear_objective()
        sums, offset = _flat(objective)
        own = self._proto.objective
        own.vars.extend([v for v, _ in sums])
        own.coeffs.extend([n for _, n in sums])
        own.offset = offset

    def hint(self, values: Mapping[int, int]) -> None:
        """Begin the next search at the values of variables by number, in place of any before."""
        self._proto.clear_solution_hint()
        self._proto.solution_hint.vars.extend(values.keys())
        self._proto.solution_hint.values.extend(values.values())

    def solve(self, parameters: str, seconds: float) -> Answer | None:
        """Return the best solution found, None if none was.

        Parameters
        ----------
        parameters
            Of CP-SAT, as its text.
        seconds
            Limit of the time.
        """
        answer = solved(self._proto, parameters, seconds)
        if answer.status not in (cp.OPTIMAL, cp.FEASIBLE):
            return None
        return Answer(list(answer.solution), answer.status == cp.OPTIMAL)


class Cancel:
    """Ends searches of CP-SAT that another thread makes, and all that it begins later."""

    def __init__(self) -> None:
        self._ends: list[Callable[[], object]] = []
        self.called = False

    def ends(self, end: Callable[[], object]) -> None:
        """Take what ends a search that begins."""
        self._ends = [end]
        if self.called:
            end()

    def __call__(self) -> None:
        """End the search under way, if there is one."""
        self.called = True
        for end in self._ends:
            end()


def solved(model: Any, parameters: str, seconds: float, cancel: Cancel | None = None) -> Any:
    """Return what CP-SAT answers on a model within some seconds, or until the search is stopped."""
    own = cp.SatParameters()
    # one worker: the same answer whatever the load
    own.parse_text_format(f"{parameters} num_workers: 1 catch_sigint_signal: false")
    if seconds < float("inf"):
        own.max_time_in_seconds = max(0.01, seconds)
    solver: Any = cp.SolveWrapper()  # its stub names no types
    solver.set_parameters(own)
    if cancel is not None:
        cancel.ends(solver.stop_search)
    with clock.ended_by(solver.stop_search):
        return solver.solve(model)


def _flat(expression: Any) -> tuple[list[tuple[int, int]], int]:
    """Return the numbers of the variables in a sum with their factors, and the constant."""
    if isinstance(expression, int):
        return [], expression
    flat = cp.FlatIntExpr(expression)
    indices = [var.index for var in flat.vars]
    return list(zip(indices, flat.coeffs, strict=True)), flat.offset
