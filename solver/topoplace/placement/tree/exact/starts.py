"""Which requests start: the most priority-weighted nodes, then the least sum of bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.snapshot.tree_state import TreeRequest

IntArray = NDArray[np.int64]

_LARGEST = 1 << 50
_LEAST_SECONDS = 0.2


@dataclass(frozen=True)
class Choice:
    """Requests that start, and the nodes per leaf that are enough for all of them.

    Attributes
    ----------
    started
        Their numbers.
    reserved
        Per request that starts, nodes per leaf; empty where any free nodes do.
    value, bound
        What was optimised, and what no choice surpasses.
    """

    started: tuple[int, ...]
    reserved: dict[int, IntArray]
    value: int
    bound: int


class StartModel:
    """Requests, the domains they may lie in, and the nodes they take of each leaf.

    With a single domain any requests that fit in the free nodes together can start.
    """

    def __init__(
        self, requests: Sequence[TreeRequest], domains: Sequence[IntArray], free: IntArray
    ) -> None:
        self._requests = requests
        self._free = free
        self._model = cp_model.CpModel()
        self._starts = [self._model.new_bool_var(request.id) for request in requests]
        self._taken: list[dict[int, cp_model.IntVar]] = []
        if len(domains) == 1:
            wanted = sum(r.nodes * s for r, s in zip(requests, self._starts, strict=True))
            self._model.add(wanted <= int(free.sum()))
        else:
            self._add_leaves(domains)

    def _add_leaves(self, domains: Sequence[IntArray]) -> None:
        model = self._model
        leaves = np.flatnonzero(self._free).tolist()
        for request, start in zip(self._requests, self._starts, strict=True):
            taken = {
                leaf: model.new_int_var(0, min(int(self._free[leaf]), request.nodes), "")
                for leaf in leaves
            }
            model.add(sum(taken.values()) == request.nodes * start)
            self._taken.append(taken)
            if not request.intensive:
                continue
            chosen = [model.new_bool_var("") for _ in domains]
            model.add_exactly_one(chosen)
            for literal, domain in zip(chosen, domains, strict=True):
                for leaf in set(leaves) - set(domain.tolist()):
                    model.add(taken[leaf] == 0).only_enforce_if(literal)
        for leaf in leaves:
            model.add(sum(taken[leaf] for taken in self._taken) <= int(self._free[leaf]))

    def most_nodes(self, seconds: float) -> Choice:
        """Return the requests that start the most priority-weighted nodes."""
        self._model.maximize(self._value())
        return self._solve(seconds, most=sum(request.value for request in self._requests))

    def least_total(
        self, bounds: Sequence[Fraction], value: int, seconds: float
    ) -> tuple[Choice, Fraction]:
        """Return a choice of that value with the least sum of bounds, and what no sum is below."""
        scale = math.lcm(*(bound.denominator for bound in bounds))
        total = math.ceil(sum(bounds))
        if scale * total >= _LARGEST:
            scale = max(1, _LARGEST // total)  # rounded down, the sums stay bounds
        prices = [math.floor(bound * scale) for bound in bounds]
        self._model.add(self._value() >= value)
        self._model.minimize(sum(p * s for p, s in zip(prices, self._starts, strict=True)))
        choice = self._solve(seconds, most=None)
        return choice, Fraction(choice.bound, scale)

    def _value(self) -> cp_model.LinearExprT:
        return sum(r.value * s for r, s in zip(self._requests, self._starts, strict=True))

    def _solve(self, seconds: float, most: int | None) -> Choice:
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = max(seconds, _LEAST_SECONDS)
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = False
        with clock.ended_by(solver.stop_search):
            status = solver.solve(self._model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Choice((), {}, 0, 0 if most is None else most)
        value = round(solver.objective_value)
        bound = value
        if status != cp_model.OPTIMAL:
            left = solver.best_objective_bound
            bound = math.floor(left) if most is None else min(math.ceil(left), most)
        started = tuple(q for q, start in enumerate(self._starts) if solver.value(start))
        reserved = {}
        for q in started if self._taken else ():
            reserved[q] = np.zeros(len(self._free), dtype=np.int64)
            for leaf, variable in self._taken[q].items():
                reserved[q][leaf] = solver.value(variable)
        return Choice(started, reserved, value, bound)
