"""The dual function of a subproblem: any prices give a bound (docs/proofs.md, "A leaf")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from topoplace.clock import OutOfTimeError
from topoplace.placement.exact.cut_pool import CutPool
from topoplace.placement.exact.groups import PlaceLimit
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.torus.oracle.pricing import NO_VALUE, Priced, Prices, Weights
from topoplace.placement.torus.problem import (
    Candidate,
    PlacementProblem,
    largest_shape_part,
    shape_parts,
)
from topoplace.result import Leaf
from topoplace.types import FloatArray, IntArray

_ROOM = 1 << 57
"""Half of what a leaf's prices and multipliers may add up to (docs/proofs.md, "Integers").

The other half is for rounding."""

_FINE = 10**6
"""Scale of prices, if there is room."""

_PER_REACHED = 20
"""But at least that many times what earlier levels must reach, so that rounded multipliers move a
bound by a fortieth at most."""

MAX_SUM = 1 << 24
"""Largest sum of request values for which bounds are rounded to reachable sums."""


@dataclass(frozen=True)
class Subproblem:
    """A level of the objective, with what earlier levels must reach and what branching fixed.

    `fixed` are jobs in their places, whose requests are among the excluded; a subproblem with
    fixed jobs has no certificate.
    """

    level: int = 0
    reached: tuple[int, ...] = ()
    forced: frozenset[int] = frozenset()
    excluded: frozenset[int] = frozenset()
    limits: tuple[PlaceLimit, ...] = ()
    fixed: tuple[Candidate, ...] = ()

    def admits(self, candidate: Candidate) -> bool:
        """Tell whether a candidate may be part of a solution."""
        return candidate.request_idx not in self.excluded and all(
            limit.admits(candidate) for limit in self._limits_of.get(candidate.request_idx, ())
        )

    @cached_property
    def _limits_of(self) -> dict[int, list[PlaceLimit]]:
        found: dict[int, list[PlaceLimit]] = {}
        for limit in self.limits:
            found.setdefault(limit.request_idx, []).append(limit)
        return found


@dataclass(frozen=True)
class DualPoint:
    """Prices per packing row and multipliers of the earlier levels, in true units."""

    row_prices: FloatArray
    multipliers: tuple[float, ...] = ()


def usable_prices(rows: PackingRows) -> DualPoint:
    """Return the prices that bound the nodes started by the usable nodes there are."""
    prices = np.zeros(rows.num_rows)
    usable = rows.problem.state.usable_per_router.sum(axis=0)
    highest = max((-(-r.value // r.nodes) for r in rows.problem.requests), default=1)
    prices[: rows.num_routers] = usable * highest
    return DualPoint(prices)


@dataclass(frozen=True)
class DualValue:
    """A dual point made integer and evaluated.

    Attributes
    ----------
    bound
        The exact bound it proves, as a float for steering.
    certified
        The leaf's bound, rounded down as docs/proofs.md says; None if the leaf is empty.
    priced
        The pricing pass behind it, in `scale`-fold units.
    """

    bound: float
    certified: int | None
    leaf_parts: tuple[int, IntArray, tuple[int, ...]]
    priced: Priced

    @property
    def scale(self) -> int:
        """What prices, multipliers and gains are multiplied by."""
        return self.leaf_parts[0]


class Pricer(Protocol):
    """Finds the best candidates of every request at given prices; gives up at its deadline."""

    deadline: float

    def price(
        self,
        prices: Prices,
        weights: Weights,
        per_request: int,
        limits: tuple[PlaceLimit, ...],
        *,
        exact_for: frozenset[int] | None,
    ) -> Priced:
        """Price every request (see `ScanPricer.price`)."""

    def beside(self, taken: Prices) -> Pricer:
        """Return a pricer that may leave out what pays a price (see `ScanPricer.beside`)."""


class Relaxation:
    """Evaluates dual points of the subproblems of one placement problem."""

    def __init__(self, problem: PlacementProblem, rows: PackingRows, pricer: Pricer) -> None:
        self.problem = problem
        self.rows = rows
        self.pricer = pricer
        self.pool: CutPool | None = None
        """Takes in what is evaluated on the first level under the pool's limits on places."""

    @cached_property
    def scale(self) -> int:
        """Integer scale of prices on the first level, as fine as sums allow."""
        return max(1, min(_FINE, self._finest))

    @cached_property
    def _finest(self) -> int:
        """The scale at which sums over all rows and requests still fit 64 bits."""
        largest = 1 + sum(r.value for r in self.problem.requests)
        return min((1 << 52) // largest, (1 << 60) // (largest * self.rows.num_rows))

    @cached_property
    def _largest(self) -> tuple[int, int, int]:
        """Upper bounds on what a candidate is worth on the levels, whatever the sign."""
        torus, weights = self.problem.torus, self.problem.state.snapshot.weights
        shape = largest_shape_part(torus, weights) + weights.idle * torus.num_nodes
        nodes = max((r.value for r in self.problem.requests), default=0)
        return nodes, shape, 2 * torus.num_dims * torus.num_routers

    def _scales(self, sub: Subproblem, point: DualPoint) -> tuple[int, float]:
        """Return the integer scale of a point, and what to multiply the point by before rounding.

        The two differ only where the point would not fit 64 bits at any scale: all of it is made
        smaller then, which weakens the bound and leaves it one.
        """
        if not sub.level:
            return self.scale, float(self.scale)
        factors = (*point.multipliers, 1.0)
        worth = float(np.maximum(point.row_prices, 0).sum())
        worth += sum(max(0.0, m) * c for m, c in zip(factors, self._largest, strict=False))
        fine = max(_FINE, _PER_REACHED * sum(abs(v) for v in sub.reached))
        scale = max(1, min(fine, self._finest, int(_ROOM / max(1.0, worth))))
        return scale, scale * min(1.0, _ROOM / max(1.0, scale * worth))

    def rows_of(self, started: Sequence[Candidate]) -> IntArray:
        """Return the packing rows that some jobs hold."""
        parts = [self.rows.of(c) for c in started]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def beside(self, fixed: Sequence[Candidate]) -> Relaxation:
        """Return the relaxation for subproblems that all have some jobs fixed, cheaper to evaluate.

        Points it evaluates join no pool.
        """
        taken = np.zeros(self.rows.num_rows, dtype=np.int64)
        taken[self.rows_of(fixed)] = 1
        return Relaxation(self.problem, self.rows, self.pricer.beside(self.rows.prices(taken)))

    def filling(self, pool: CutPool) -> Relaxation:
        """Return the relaxation whose points join another pool."""
        relaxation = Relaxation(self.problem, self.rows, self.pricer)
        relaxation.pool = pool
        return relaxation

    def evaluate(self, sub: Subproblem, point: DualPoint, per_request: int = 24) -> DualValue:
        """Round a dual point to integers and compute the bound it proves.

        If the pricer runs out of time, the answer is that of other prices (`without_pricing`).
        """
        scale, factor = self._scales(sub, point)
        row_prices = np.rint(np.maximum(point.row_prices, 0) * factor).astype(np.int64)
        multipliers = tuple(max(0, round(m * factor)) for m in point.multipliers)
        weights = Weights(*[*multipliers, scale, 0, 0][:3])
        total, own_prices = int(row_prices.sum()), row_prices
        if sub.fixed:
            # at a price above any value, no candidate takes what a fixed job holds
            blocked = self.rows_of(sub.fixed)
            total -= int(row_prices[blocked].sum())
            own_prices = row_prices.copy()
            own_prices[blocked] = 0
            row_prices[blocked] = scale * (1 + max(r.value for r in self.problem.requests))
            total += scale * sum(self.problem.requests[c.request_idx].value for c in sub.fixed)
        prices = self.rows.prices(row_prices)
        pool = None if sub.level else self.pool
        if pool is not None and (pool.limits, pool.fixed) != (sub.limits, sub.fixed):
            pool = None
        known = sub.forced if pool is None else sub.forced | pool.startable
        try:
            priced = self.pricer.price(
                prices, weights, per_request, sub.limits, exact_for=None if sub.level else known
            )
        except OutOfTimeError:
            return self.without_pricing(sub, pool)
        if pool is not None:
            pool.add(own_prices, priced.best)
        total -= sum(m * v for m, v in zip(multipliers, sub.reached, strict=True))
        empty = False
        for idx in range(len(self.problem.requests)):
            best = int(priced.best[idx])
            if idx in sub.forced:
                empty |= best == NO_VALUE
                total += best if best != NO_VALUE else 0
            elif idx not in sub.excluded:
                total += max(0, best)
        certified = None if empty else self.round_down(sub, total // scale)
        bound = -np.inf if empty else total / scale
        return DualValue(bound, certified, (scale, row_prices, multipliers), priced)

    def without_pricing(self, sub: Subproblem, pool: CutPool | None = None) -> DualValue:
        """Bound a subproblem without a pricing pass, by what requests are worth at the most.

        The bound is no better than that of the leaf with all prices 0, which certifies it. On the
        first level, the usable nodes at the highest priority bound what starts as well: at those
        prices no request gains.

        Parameters
        ----------
        pool
            Takes in the prices of 0.
        """
        num, bound = len(self.problem.requests), 0
        values = np.array([r.value for r in self.problem.requests], dtype=np.int64)
        row_prices = np.zeros(self.rows.num_rows, dtype=np.int64)
        if not sub.level:
            gone = sub.excluded - {c.request_idx for c in sub.fixed}
            bound = sum(r.value for q, r in enumerate(self.problem.requests) if q not in gone)
            if pool is not None:
                pool.add(row_prices, values * pool.scale)
            usable = usable_prices(self.rows)
            if not sub.fixed and bound > usable.row_prices.sum():
                row_prices = usable.row_prices.astype(np.int64)
                bound = int(row_prices.sum())
        elif sub.level == 1:
            torus = self.problem.torus
            parts = shape_parts(torus, self.problem.state.snapshot.weights)
            nodes = np.full(torus.shape, torus.nodes_per_router, dtype=np.int64)
            for d, n in enumerate(torus.shape):
                along = [1] * torus.num_dims
                along[d] = n
                nodes = nodes * np.arange(1, n + 1).reshape(along)
            for request in self.problem.requests:
                bound += int(parts[nodes >= request.nodes].max(initial=0))
        best = np.zeros_like(values) if sub.level else values
        priced = Priced(best, [[] for _ in range(num)])
        certified = self.round_down(sub, bound)
        return DualValue(float(bound), certified, (1, row_prices, (0,) * sub.level), priced)

    def round_down(self, sub: Subproblem, bound: int) -> int | None:
        """Round a first-level bound down to a sum of request values; None if there is none."""
        requests = self.problem.requests
        if sub.level or sum(r.value for r in requests) > MAX_SUM:
            return bound
        base = sum(requests[i].value for i in sub.forced)
        base += sum(requests[c.request_idx].value for c in sub.fixed)
        sums = 1 << base
        for idx, request in enumerate(requests):
            if idx not in sub.forced and idx not in sub.excluded:
                sums |= sums << request.value
        if bound < 0:
            return None
        sums &= (1 << (bound + 1)) - 1
        return sums.bit_length() - 1 if sums else None

    def leaf(self, value: DualValue) -> Leaf:
        """Return the evaluated point as a certificate leaf."""
        return self.leaf_of(*value.leaf_parts)

    def leaf_of(self, scale: int, row_prices: IntArray, multipliers: tuple[int, ...] = ()) -> Leaf:
        """Return integer prices as a certificate leaf."""
        prices = self.rows.prices(row_prices)
        written = {"routers": run_lengths(prices.routers)}
        for family, row in prices.links.items():
            whose = "" if family is None else f" of {self.problem.requests[family].id}"
            written[f"links{whose}"] = run_lengths(row)
        return Leaf(scale=scale, prices=written, multipliers=list(multipliers))


def run_lengths(values: IntArray) -> str:
    """Write integers as ``value`` or ``value*count`` items, spaces between."""
    if not len(values):
        return ""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    counts = np.diff(np.concatenate([starts, [len(values)]]))
    return " ".join(
        str(v) if c == 1 else f"{v}*{c}"
        for v, c in zip(values[starts].tolist(), counts.tolist(), strict=True)
    )
