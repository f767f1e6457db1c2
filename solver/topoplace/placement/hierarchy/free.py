"""Domains of a level that stay free as a whole, by spares (docs/proofs/hierarchy.md).

A spare is no request: it keeps a domain free, which counts on one level alone, as on pods spares
keep cubes free. It takes all of the rows of hosts and pools that units in the domain take of.
Domains that take the same of the same rows are one position, with a row for how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from topoplace.packing.positions import Form, PositionPacking, Positions, spare_names
from topoplace.packing.problem import Priced, Query, Subproblem, capacities_left
from topoplace.placement.hierarchy.layout import Layout
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed
from topoplace.types import FloatArray, IntArray

FREE = "free"
"""The family of the rows of positions."""


def positions_of(problem: HierarchyProblem, layout: Layout) -> list[tuple[IntArray, int]]:
    """Return the rows of the layout that free domains take, repeated by the amount, each once.

    With them is how many domains take these. They are in the order of their first domains.
    """
    taken: dict[int, Counter[int]] = {int(domain): Counter() for domain in problem.free_domains}
    of = problem.machine.domain_of[problem.machine.levels.index(problem.state.snapshot.free or "")]
    for host, leaf in layout.node_of_host.items():
        own, pool = taken.get(int(of[host])), layout.nodes[leaf].pool
        if own is not None and pool is not None:
            own[pool] += 1
        elif own is not None:
            rows = [first + host for first in layout.first_row.values()]
            own.update({row: int(layout.capacities[row]) for row in rows})
    sizes = Counter(tuple(sorted(own.elements())) for own in taken.values())
    return [(np.array(rows, dtype=np.int64), number) for rows, number in sizes.items()]


class _Spares(PositionPacking):
    """The spares alone, on the rows of all."""

    def work(self, level: int) -> float:
        """Return that a call takes nothing beside that of the requests."""
        return 0.0


class FreePacking(HierarchyPacking):
    """The queue, and as many spares as there are free domains.

    The uses of a spare have the number of its position instead of a node.

    Parameters
    ----------
    part
        For a problem that is a part of another: that one, the amounts left of its rows, and which
        of its requests and spares this has, ascending.
    """

    def __init__(
        self,
        problem: HierarchyProblem,
        part: tuple[FreePacking, IntArray, Sequence[int]] | None = None,
    ) -> None:
        if part is None:
            super().__init__(problem)
            positions, first = positions_of(problem, self.layout), len(self.capacities)
            sizes = np.array([number for _, number in positions], dtype=np.int64)
            self.capacities = np.concatenate([self.capacities, sizes])
            self.families = {**self.families, FREE: slice(first, len(self.capacities))}
            names = spare_names(self.names, int(sizes.sum()))
            worth = np.zeros((len(names), len(self.senses)), dtype=np.int64)
            worth[:, problem.free_level] = 1
            self._spares = _Spares(
                names,
                worth,
                [Form(np.arange(len(positions)))] * len(names),
                [np.append(rows, first + k) for k, (rows, _) in enumerate(positions)],
                self.families,
                self.capacities,
                num_jobs=0,
            )
        else:
            whole, left, kept = part
            num = len(whole.requests)
            requests = [whole.requests[q] for q in kept if q < num]
            super().__init__(problem, whole.layout, left, requests)
            self.families = whole.families
            self._spares = whole._spares.left_by([], [q - num for q in kept if q >= num])
            self._spares = self._spares.where(left, self._spares.forms)
        self.names = [*self.names, *self._spares.names]
        self.values = np.concatenate([self.values, self._spares.values])

    def _here(self, spares: Iterable[Positions]) -> list[Candidate]:
        num = len(self.requests)
        return [Candidate(num + c.request_idx, ((0, c.positions[0], 1),)) for c in spares]

    def _spare(self, candidate: Candidate) -> Positions | None:
        """Return a candidate as that of a spare, if it is one."""
        [(_, position, _), *_], q = candidate.uses, candidate.request_idx - len(self.requests)
        return None if q < 0 else Positions(q, (position,))

    def _jobs(self, placement: Iterable[Candidate]) -> list[Candidate]:
        return [c for c in placement if c.request_idx < len(self.requests)]

    @cached_property
    def kinds(self) -> Sequence[object]:
        """All fields of requests except their names; spares are of one kind."""
        return [*super().kinds, *[FREE for _ in self._spares.names]]

    def rows_of(self, candidate: Candidate) -> IntArray:
        """Return the rows that a candidate uses, each repeated by the amount."""
        spare = self._spare(candidate)
        return super().rows_of(candidate) if spare is None else self._spares.rows_of(spare)

    def values_of(self, candidates: Sequence[Candidate]) -> IntArray:
        """Return the values of candidates on all levels, costs negated."""
        found = np.zeros((len(candidates), len(self.senses)), dtype=np.int64)
        spares = np.array([self._spare(c) is not None for c in candidates], dtype=bool)
        found[~spares] = super().values_of(self._jobs(candidates))
        found[spares, self.hierarchy.free_level] = 1
        return found

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Return those of the requests alone; rows of positions are free."""
        found = super().first_prices(sub)
        if found is None:
            return None
        prices, factors = np.zeros(self.num_rows), found[1]
        prices[: len(found[0])] = found[0]
        return prices, factors

    def largest(self, level: int) -> int:
        """Return an upper bound on a candidate's value, whatever the sign."""
        return 1 if level == self.hierarchy.free_level else super().largest(level)

    def most(self, level: int) -> int:
        """Return an upper limit of a later level."""
        own = level == self.hierarchy.free_level
        return len(self._spares.names) if own else super().most(level)

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates of every request and spare."""
        num = len(self.requests)
        jobs = super().price(row_prices, query)
        covers = [replace(c, request_idx=c.request_idx - num) for c in query.covers]
        own = replace(query, covers=tuple(c for c in covers if c.request_idx >= 0), exact_for=None)
        spares = self._spares.price(row_prices, own)
        columns = [
            [(gain, c) for (gain, _), c in zip(some, self._here(c for _, c in some), strict=True)]
            for some in spares.columns
        ]
        best = np.concatenate([jobs.best[:num], spares.best])
        return Priced(best, [*jobs.columns[:num], *columns])

    def completed(self, placement: Iterable[Candidate]) -> list[Candidate]:
        """Return the jobs of a placement, with a spare for every domain that they leave free."""
        jobs = self._jobs(placement)
        rest = self._spares.where(capacities_left(self, jobs), self._spares.forms)
        return sorted([*jobs, *self._here(rest.completed([]))])

    def started(self, placement: Sequence[Candidate]) -> dict[int, Placed]:
        """Return a placement as units on hosts."""
        return super().started(self._jobs(placement))

    def _of(self, kept: Sequence[int], left: IntArray) -> HierarchyPacking:
        found = FreePacking(self.hierarchy, (self, left, kept))
        found.deadline = self.deadline
        return found
