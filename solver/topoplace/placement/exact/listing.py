"""Pricing from a list of all candidates: for machines small enough to write them all down."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topoplace.machine import Prism, all_origins
from topoplace.placement.exact.limits import PlaceLimit
from topoplace.placement.exact.pricing import NO_VALUE, Priced, Prices, Weights
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.problem import Candidate, PlacementProblem

MAX_PRISMS = 4_000
"""Machines with more prisms than this are scanned instead (`ScanPricer`)."""

_PART = 1000  # candidates whose values are computed at once, for the memory it takes


def num_prisms(problem: PlacementProblem) -> int:
    """Count the prisms of a machine."""
    total = 1
    for n, wraps in zip(problem.torus.shape, problem.torus.wrap, strict=True):
        total *= n * (n - 1) + 1 if wraps else n * (n + 1) // 2
    return total


class ListPricer:
    """Prices a complete list of candidates."""

    def __init__(self, problem: PlacementProblem, rows: PackingRows) -> None:
        self.problem = problem
        self.candidates = list(all_candidates(problem))
        num = len(self.candidates)
        parts = [self.candidates[k : k + _PART] for k in range(0, num, _PART)]
        nothing = np.zeros((0, 3), dtype=np.int64)
        self._values = np.concatenate([nothing, *(problem.values_of(part) for part in parts)])
        self._owner = np.array([c.request_idx for c in self.candidates], dtype=np.int64)
        covered = [rows.of(c) for c in self.candidates]
        lengths = [len(r) for r in covered]
        flat = np.concatenate(covered) if covered else np.zeros(0, dtype=np.int64)
        self._cover = sp.csr_matrix(
            (np.ones(len(flat), dtype=np.int64), (np.repeat(np.arange(num), lengths), flat)),
            shape=(num, rows.num_rows),
        )
        self._rows = rows

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
        """Return the best candidates of every request."""
        num_requests = len(self.problem.requests)
        best = np.full(num_requests, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Candidate]]] = [[] for _ in range(num_requests)]
        factors = np.array([weights.nodes, weights.shape, weights.fragmentation])
        gains = self._values @ factors - self._cover @ self._row_prices(prices)
        allowed = np.ones(len(gains), dtype=bool)
        for limit in limits:
            allowed &= np.array([limit.admits(c) for c in self.candidates], dtype=bool)
        for k in np.argsort(-gains, kind="stable").tolist():
            idx = int(self._owner[k])
            if allowed[k] and len(columns[idx]) < per_request:
                columns[idx].append((int(gains[k]), self.candidates[k]))
                best[idx] = max(best[idx], gains[k])
        return Priced(best, columns)

    def _row_prices(self, prices: Prices) -> NDArray[np.int64]:
        rows = self._rows
        num_links = self.problem.torus.num_links
        flat = np.zeros(rows.num_rows, dtype=np.int64)
        flat[: rows.num_routers] = prices.routers
        for k, family in enumerate(rows.families):
            if family in prices.links:
                start = rows.num_routers + k * num_links
                flat[start : start + num_links] = prices.links[family]
        return flat


def all_candidates(problem: PlacementProblem) -> list[Candidate]:
    """Return every candidate of every request (docs/proofs.md, "The problem")."""
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
