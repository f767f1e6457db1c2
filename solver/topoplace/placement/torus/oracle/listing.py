"""Pricing from a list of all candidates: for machines small enough to write them all down."""

from __future__ import annotations

import itertools
import math
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from topoplace import clock
from topoplace.machine import Prism, all_origins
from topoplace.placement.exact.groups import PlaceLimit
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.torus.oracle.pricing import NO_VALUE, Priced, Prices, Weights
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.types import IntArray

MAX_PRISMS = 4_000
"""Machines with more prisms than this are scanned instead (`ScanPricer`)."""

MAX_CANDIDATES = 400_000
"""Prisms times requests, likewise: listing so many takes a few seconds."""

_PART = 1000  # candidates whose values are computed at once, for the memory it takes


def num_prisms(problem: PlacementProblem) -> int:
    """Count the prisms of a machine."""
    total = 1
    for n, wraps in zip(problem.torus.shape, problem.torus.wrap, strict=True):
        total *= n * (n - 1) + 1 if wraps else n * (n + 1) // 2
    return total


class ListPricer:
    """Prices a complete list of candidates."""

    def __init__(
        self, problem: PlacementProblem, rows: PackingRows, deadline: float = math.inf
    ) -> None:
        self.problem, self.deadline, self._rows = problem, deadline, rows

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Every candidate of every request."""
        return all_candidates(self.problem, self.deadline)

    @cached_property
    def _tables(self) -> tuple[IntArray, IntArray, sp.csr_matrix]:
        """The values of all candidates, their requests, and the rows they hold."""
        problem, rows = self.problem, self._rows
        num = len(self.candidates)
        values, covered = [np.zeros((0, 3), dtype=np.int64)], []
        for k in range(0, num, _PART):
            clock.check(self.deadline)
            part = self.candidates[k : k + _PART]
            values.append(problem.values_of(part))
            covered += [rows.of(c) for c in part]
        owner = np.array([c.request_idx for c in self.candidates], dtype=np.int64)
        lengths = [len(r) for r in covered]
        flat = np.concatenate(covered) if covered else np.zeros(0, dtype=np.int64)
        cover = sp.csr_matrix(
            (np.ones(len(flat), dtype=np.int64), (np.repeat(np.arange(num), lengths), flat)),
            shape=(num, rows.num_rows),
        )
        return np.concatenate(values), owner, cover

    def beside(self, taken: Prices) -> ListPricer:
        """Return this pricer: looking at all candidates is cheap."""
        return self

    def price(
        self,
        prices: Prices,
        weights: Weights,
        per_request: int = 24,
        limits: tuple[PlaceLimit, ...] = (),
        *,
        exact_for: frozenset[int] | None = None,
    ) -> Priced:
        """Return the best candidates of every request.

        Raises
        ------
        OutOfTimeError
            At the deadline, while candidates are listed.
        """
        all_values, owner, cover = self._tables
        num_requests = len(self.problem.requests)
        best = np.full(num_requests, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Candidate]]] = [[] for _ in range(num_requests)]
        factors = np.array([weights.nodes, weights.shape, weights.fragmentation])
        gains = all_values @ factors - cover @ self._row_prices(prices)
        allowed = np.ones(len(gains), dtype=bool)
        for limit in limits:
            allowed &= np.array([limit.admits(c) for c in self.candidates], dtype=bool)
        for k in np.argsort(-gains, kind="stable").tolist():
            idx = int(owner[k])
            if allowed[k] and len(columns[idx]) < per_request:
                columns[idx].append((int(gains[k]), self.candidates[k]))
                best[idx] = max(best[idx], gains[k])
        return Priced(best, columns)

    def _row_prices(self, prices: Prices) -> IntArray:
        rows = self._rows
        num_links = self.problem.torus.num_links
        flat = np.zeros(rows.num_rows, dtype=np.int64)
        flat[: rows.num_routers] = prices.routers
        for k, family in enumerate(rows.families):
            if family in prices.links:
                start = rows.num_routers + k * num_links
                flat[start : start + num_links] = prices.links[family]
        return flat


def are_few(problem: PlacementProblem) -> bool:
    """Tell whether a machine's prisms, and candidates, are few enough to be listed."""
    num = num_prisms(problem)
    return num <= MAX_PRISMS and num * len(problem.requests) <= MAX_CANDIDATES


def all_candidates(problem: PlacementProblem, deadline: float = math.inf) -> list[Candidate]:
    """Return every candidate of every request (docs/proofs.md, "The problem").

    Raises
    ------
    OutOfTimeError
        At the deadline.
    """
    torus = problem.torus
    found = []
    prisms = [
        Prism(origin, extents)
        for extents in itertools.product(*(range(1, n + 1) for n in torus.shape))
        for origin in all_origins(torus, extents)
    ]
    for idx, request in enumerate(problem.requests):
        allowed = problem.allowed_routers(request)
        closed = problem.closed_links(request.communication)
        clock.check(deadline)
        for prism in prisms:
            candidate = Candidate(idx, prism)
            if not allowed[prism.routers(torus)].all():
                continue
            if request.geometries:
                if problem.matching_geometry(candidate) is None:
                    continue
            elif problem.usable_inside(candidate) < request.nodes:
                continue
            if closed.any() and closed[problem.links_of(candidate)].any():
                continue
            found.append(candidate)
    return found
