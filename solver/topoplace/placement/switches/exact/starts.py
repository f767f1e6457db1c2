"""Which requests start: the most priority-weighted nodes, then the least sum of bounds.

And the proofs of how many nodes can start (docs/proofs/tree.md, "Certificates").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.result.tree import (
    AllStartCertificate,
    CountingCertificate,
    DomainsCertificate,
    TreeCertificate,
)
from topoplace.snapshot.tree_state import TreeRequest
from topoplace.types import IntArray

_LARGEST = 1 << 50
_LEAST_SECONDS = 0.2

_MOST_COUNTED = (1 << 31) - 1
"""Free nodes times requests that the checker counts."""

_MOST_PACKED = 1 << 26
"""Free nodes times requests of the programs that look for prices."""

_MOST_CHOICES = 1 << 18
"""Pairs of nodes and value that the checker follows, over all requests."""

_MOST_ROUNDS = 60
_SCALE = 1 << 16
_LARGEST_TOTAL = 1 << 60
_MOST_SUMS = 1 << 22


@dataclass(frozen=True)
class Choice:
    """Requests that start, by number, the optimised value, and a bound on it for any choice.

    `reserved` are nodes per leaf that are enough for all of them; empty where any free nodes do.
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
        """Return a choice of that value with the least sum of bounds, and a bound on the sum."""
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
        solver, status = solved(self._model, max(seconds, _LEAST_SECONDS))
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


def solved(
    model: cp_model.CpModel, seconds: float, *, presolve: bool = True
) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
    """Return the solver of a model after at most a number of seconds, and its status."""
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(seconds, 0.01)
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False
    solver.parameters.cp_model_presolve = presolve
    with clock.ended_by(solver.stop_search):
        status = solver.solve(model)
    return solver, status


# ---- Proofs of the nodes that start --------------------------------------------------------------


def certificate_of(
    bound: int,
    requests: Sequence[TreeRequest],
    domains: Sequence[IntArray],
    free: IntArray,
    seconds: float,
) -> TreeCertificate | None:
    """Return the proof of a bound of the nodes that start; None if none was found in time.

    Domains are the leaves below every root.
    """
    if bound >= sum(request.value for request in requests):
        return AllStartCertificate()
    room, parts = int(free.sum()), _parts(domains, free)
    together = max((part.together for part in parts), default=0)
    able = [r for r in requests if r.nodes <= together]
    if (room + 1) * len(able) <= _MOST_COUNTED:
        if len(domains) == 1:
            return CountingCertificate()
        everywhere = [np.arange(len(free))]
        if not able or StartModel(able, everywhere, free).most_nodes(seconds / 2).bound <= bound:
            return CountingCertificate()
    if (room + 1) * len(requests) > _MOST_PACKED:
        return None
    return _Prices(requests, parts, bound).found(seconds)


def cheapest_choice(
    requests: Sequence[TreeRequest], costs: Sequence[Fraction], room: int, worth: int
) -> Fraction | None:
    """Return the least cost of a choice of requests of value `worth` that fits.

    It is None if the choices are too many to be followed.
    """
    scale = math.lcm(*(cost.denominator for cost in costs))
    rest = sum(request.value for request in requests)
    reached, total = {(0, 0): 0}, 0
    for request, cost in zip(requests, costs, strict=True):
        rest -= request.value
        own = int(cost * scale)
        found: dict[tuple[int, int], int] = {}
        for (nodes, value), paid in reached.items():
            if value + rest >= worth:
                found[nodes, value] = min(paid, found.get((nodes, value), paid))
            more = (nodes + request.nodes, min(worth, value + request.value))
            if more[0] <= room and more[1] + rest >= worth:
                found[more] = min(paid + own, found.get(more, paid + own))
        reached = found
        total += len(reached)
        if total > _MOST_CHOICES or not reached:
            return None
    return Fraction(min(reached.values()), scale)


@dataclass(frozen=True)
class _Part:
    """Free nodes of leaves that switches connect, perhaps over others of them.

    `together` are the most below one root.
    """

    free: int
    together: int


def _parts(domains: Sequence[IntArray], free: IntArray) -> list[_Part]:
    """Return the leaves with free nodes, domains that share some of them as one."""
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - heavy, and rare

    near = np.zeros((len(free), len(free)), dtype=bool)
    for domain in domains:
        near[np.ix_(domain, domain)] = True
    used = np.flatnonzero(free)
    number, part = connected_components(near[np.ix_(used, used)])
    of_part = [used[part == k] for k in range(number)]
    return [
        _Part(
            int(free[own].sum()),
            max(int(free[np.intersect1d(own, domain)].sum()) for domain in domains),
        )
        for own in of_part
    ]


class _Prices:
    """Seeks prices of starts and of free nodes at which the value of domains is within a bound.

    A linear program has the prices, and as rows the best sets of requests of domains at earlier
    prices.
    """

    def __init__(
        self, requests: Sequence[TreeRequest], domains: Sequence[_Part], bound: int
    ) -> None:
        self._requests = requests
        self._domains = domains
        self._bound = bound
        self._sizes = np.array([r.nodes for r in requests], dtype=np.int64)
        self._values = np.array([r.value for r in requests], dtype=np.int64)
        widest = max((domain.together for domain in domains), default=0)
        self._able = self._sizes <= widest
        nobody = np.zeros(len(requests))
        self._rows = [(number, nobody) for number in range(len(domains))]

    def found(self, seconds: float) -> DomainsCertificate | None:
        """Return prices that prove the bound, or None if none were found in time."""
        total = int(self._values.sum())
        scale = min(_SCALE, _LARGEST_TOTAL // max(1, total))
        if scale < 1:
            return None
        end = clock.now() + seconds
        target = _next_sum(self._values[self._able].tolist(), self._bound)
        prices, node_price = [0.0] * len(self._requests), 0.0
        for _ in range(_MOST_ROUNDS):
            own = [max(0, round(price * scale)) for price in prices]
            each = max(0, round(node_price * scale))
            if self._proven(own, each, scale) < target * scale:
                return DomainsCertificate(scale=scale, prices=own, node_price=each)
            better = self._solved() if clock.now() <= end else None
            if better is None:
                break
            prices, node_price = better
        return None

    def _proven(self, prices: Sequence[int], each: int, scale: int) -> int:
        """Return the bound of prices, and keep the best set of every domain as a row."""
        left = scale * self._values - each * self._sizes
        total = sum(each * domain.free for domain in self._domains)
        starts = self._able
        total += int(np.array(prices, dtype=np.int64)[starts].sum())
        for number, domain in enumerate(self._domains):
            able = np.flatnonzero(starts & (self._sizes <= domain.together))
            worths = (left - np.array(prices, dtype=np.int64))[able]
            worth, chosen = _packed(domain.free, self._sizes[able], worths)
            row = np.zeros(len(prices))
            row[able[chosen]] = 1.0
            self._rows.append((number, row))
            total += worth
        return total

    def _solved(self) -> tuple[list[float], float] | None:
        """Return the best prices against the rows so far.

        The variables are the price of every start, the price of a node, and the value of every
        domain.
        """
        from scipy.optimize import linprog  # noqa: PLC0415 - heavy, and rare

        num, domains = len(self._requests), self._domains
        size = num + 1 + len(domains)
        rows, rights = [], []
        for number, row in self._rows:
            # worth + prices >= values - node price x nodes, and the nodes left over pay as well
            line = np.zeros(size)
            line[:num] = row
            line[num] = row @ self._sizes - domains[number].free
            line[num + 1 + number] = 1.0
            rows.append(-line)
            rights.append(-float(row @ self._values))
        costs = np.concatenate([self._able.astype(float), [0.0], np.ones(len(domains))])
        found = linprog(costs, A_ub=np.array(rows), b_ub=np.array(rights), method="highs")
        if found.status != 0:
            return None
        return found.x[:num].tolist(), float(found.x[num])


def _packed(room: int, sizes: IntArray, worths: IntArray) -> tuple[int, list[int]]:
    """Return the largest value of items that fit into a capacity, and these items."""
    able = [k for k in range(len(sizes)) if worths[k] > 0 and sizes[k] <= room]
    best = np.zeros(room + 1, dtype=np.int64)
    taken = np.zeros((len(able), room + 1), dtype=bool)
    for row, k in enumerate(able):
        with_it = np.full(room + 1, -1, dtype=np.int64)
        with_it[sizes[k] :] = best[: room + 1 - sizes[k]] + worths[k]
        taken[row] = with_it > best
        best = np.maximum(best, with_it)
    chosen, left = [], room
    for row in reversed(range(len(able))):
        if taken[row, left]:
            chosen.append(able[row])
            left -= int(sizes[able[row]])
    return int(best[room]), chosen


def _next_sum(values: Sequence[int], bound: int) -> int:
    """Return a number above a bound with no sum of values from the bound to below it."""
    unit = math.gcd(*values)
    if unit == 0 or sum(values) // unit > _MOST_SUMS:
        return bound + 1
    sums = 1
    for value in values:
        sums |= sums << (value // unit)
    above = sums >> (bound // unit + 1)
    if above == 0:
        return sum(values) + 1
    return (bound // unit + 1 + ((above & -above).bit_length() - 1)) * unit
