"""Packing rows: what at most one job may hold - routers, and links by family."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import uses_whole_ring
from topoplace.placement.torus.oracle import _prism_rows
from topoplace.placement.torus.oracle._prism_rows import leaves_prism, prism_rows
from topoplace.placement.torus.oracle.pricing import Prices
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.types import BoolArray, IntArray

Unsigned = NDArray[np.uint32]


class RowLists:
    """Lists of row numbers, one after the other; the arrays double when they are full.

    Numbers are unsigned: compiled loops need not ask whether an index counts from the end.

    Parameters
    ----------
    num_rows
        What row numbers are less than.
    """

    def __init__(self, num_rows: int) -> None:
        self._every_row = np.ones(num_rows, dtype=bool)
        self._num = 0
        self._starts = np.zeros(1 << 10, dtype=np.uint32)
        self._rows = np.zeros(1 << 16, dtype=np.uint32)

    def append(self, rows: IntArray) -> None:
        """Add a list."""
        start = int(self._starts[self._num])
        end = start + len(rows)
        if self._num + 2 > len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        while end > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[start:end] = rows
        self._num += 1
        self._starts[self._num] = end

    def keep(self, kept: BoolArray) -> None:
        """Forget all lists but those marked."""
        which = np.flatnonzero(kept)
        starts, rows = self.among(which, self._every_row)
        self._num = len(which)
        self._starts[: len(starts)] = starts
        self._rows[: len(rows)] = rows

    def among(self, which: IntArray, marked: BoolArray) -> tuple[Unsigned, Unsigned]:
        """Return some of the lists without the rows that are not marked: starts and rows."""
        found: tuple[Unsigned, Unsigned] = _prism_rows.marked_rows(
            self._starts, self._rows, which, marked
        )
        return found


class PackingRows:
    """Numbering of packing rows: routers first, then the links of each family.

    The families are None (all strict jobs on a link) and, under the tolerant rule, the queue
    position of every tolerant request (it and all strict jobs); see docs/proofs.md.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.families: list[int | None] = [None]
        self.families += [
            i for i, r in enumerate(problem.requests) if problem.is_tolerant(r.communication)
        ]
        self.num_routers = problem.torus.num_routers
        self.num_rows = self.num_routers + len(self.families) * problem.torus.num_links
        self.takable = np.ones(self.num_rows, dtype=bool)
        """Rows that some job may hold: not those of the routers of running jobs."""
        self.takable[: self.num_routers] = ~problem.state.occupied
        torus = problem.torus
        self._machine = np.array(torus.shape), np.array(torus.strides), np.array(torus.wrap)

    def links_of(self, k: int) -> slice:
        """Return the rows of the links of family number k."""
        num_links = self.problem.torus.num_links
        start = self.num_routers + k * num_links
        return slice(start, start + num_links)

    def of(self, candidate: Candidate) -> IntArray:
        """Return the packing rows a candidate occupies, routers first."""
        problem, prism = self.problem, candidate.prism
        request = problem.requests[candidate.request_idx]
        linked = problem.uses_links(request.communication)
        box = np.array(prism.origin), np.array(prism.extents)
        rows: IntArray = prism_rows(*self._machine, *box, linked)
        if len(self.families) == 1 or not linked:
            return rows
        tolerant = problem.is_tolerant(request.communication)
        routers, links = rows[: prism.volume], rows[prism.volume :]
        parts = [routers]
        for k, family in enumerate(self.families):
            if not tolerant or family == candidate.request_idx:
                parts.append(links + k * problem.torus.num_links)
        return np.concatenate(parts)

    def passing(self, candidate: Candidate, occupied: IntArray) -> IntArray:
        """Return those of a candidate's link rows whose link does not lie inside its prism.

        Two jobs with disjoint routers share a link only if it lies outside the prism of one of
        them, so these are the only link rows an integer program needs.
        """
        torus, prism = self.problem.torus, candidate.prism
        if all(
            e == n or not uses_whole_ring(torus, d, e)
            for d, (e, n) in enumerate(zip(prism.extents, torus.shape, strict=True))
        ):
            return np.zeros(0, dtype=np.int64)
        links = occupied[prism.volume :]
        numbers = (links - self.num_routers) % torus.num_links
        box = np.array(prism.origin), np.array(prism.extents)
        outside: IntArray = links[leaves_prism(*self._machine[:2], *box, numbers)]
        return outside

    def prices(self, row_prices: IntArray) -> Prices:
        """Return integer row prices as prices of routers and links."""
        links = {}
        for k, family in enumerate(self.families):
            part = row_prices[self.links_of(k)]
            if part.any():
                links[family] = part
        return Prices(row_prices[: self.num_routers], links)
