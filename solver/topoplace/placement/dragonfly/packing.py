"""The method `exact` on dragonflies: the packing of a hierarchy, and a row for two groups' links.

Under the strict rule, a request that has nodes in two groups takes all links between these, which
are one row (docs/proofs/dragonfly.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace import clock
from topoplace.packing.budget import Budget
from topoplace.packing.by_nodes import first_prices
from topoplace.packing.problem import NO_VALUE, Priced, Query, Subproblem
from topoplace.placement.dragonfly.orders import MOST_TRIED, by_priority
from topoplace.placement.dragonfly.problem import DragonflyProblem
from topoplace.placement.engine import Packed, exact
from topoplace.placement.hierarchy.layout import Layout
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.solving import register
from topoplace.types import FloatArray, IntArray

MOST_GROUPS = 6
"""Groups with prices on links between them up to which the best candidate is exact."""

_Column = tuple[int, Candidate]


class DragonflyPacking(HierarchyPacking):
    """A queue on a dragonfly.

    Its last rows are the pairs of groups, in the family ``links``; the others are those of the
    hierarchy. Where jobs may share links, nobody takes of them.
    """

    hierarchy: DragonflyProblem

    def __init__(
        self,
        problem: DragonflyProblem,
        layout: Layout | None = None,
        left: IntArray | None = None,
        requests: Sequence[HierarchyRequest] | None = None,
    ) -> None:
        super().__init__(problem, layout, left, requests)
        self.first_pair = len(self.layout.capacities)
        self._num_groups = problem.dragonfly.machine.num_groups
        self._pairs = np.zeros((self._num_groups,) * 2, dtype=np.int64)
        upper = np.triu_indices(self._num_groups, 1)
        self._pairs[upper] = np.arange(len(upper[0])) + self.first_pair
        self._pairs += self._pairs.T
        if left is None:
            free = (~problem.dragonfly.taken_pairs[upper]).astype(np.int64)
            self.capacities = np.concatenate([self.capacities, free])
        links = slice(self.first_pair, len(self.capacities))
        self.families = {**self.layout.families, "links": links}
        self._uses_links = [problem.uses_links(request) for request in self.requests]

    @property
    def kinds(self) -> Sequence[object]:
        """The kind of every request: also whether it uses links."""
        return list(zip(super().kinds, self._uses_links, strict=True))

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Return prices at which a subproblem begins, those of links 0.

        On the first two levels all nodes have one price (docs/proofs/dragonfly.md, "Prices").
        """
        if sub.level > 1:
            found = super().first_prices(sub)
            if found is None:
                return None
            return np.pad(found[0], (0, self.num_rows - len(found[0]))), found[1]
        room = np.sort(self.room)[::-1].cumsum()
        nodes = np.array([request.nodes for request in self.requests], dtype=np.int64)
        groups = 1 + np.searchsorted(room, nodes) if sub.level else None
        return first_prices(self, sub, nodes, self.capacities[: self.num_covers], groups)

    @cached_property
    def group_of_row(self) -> IntArray:
        """The group of every row of hosts and pools, 0 if it is empty; shape ``(num_covers,)``."""
        found = np.zeros(self.num_covers, dtype=np.int64)
        for row in np.flatnonzero(self.layout.capacities[: self.num_covers]).tolist():
            found[row] = self.group_of_leaf(self.layout.leaf_of_row(row)[0])
        return found

    @cached_property
    def room(self) -> FloatArray:
        """What is left in every group, shape ``(num_groups,)``."""
        left = self.capacities[: self.num_covers]
        found = np.bincount(self.group_of_row, weights=left, minlength=self._num_groups)
        return found.astype(np.float64)

    # ---- candidates

    def groups(self, candidate: Candidate) -> list[int]:
        """Return the groups that a candidate has nodes in, ascending."""
        return sorted({self.group_of_leaf(leaf) for _, leaf, _ in candidate.uses})

    def group_of_leaf(self, leaf: int) -> int:
        """Return the group of equal hosts."""
        return int(self.layout.machine.domain_of[0][self.layout.nodes[leaf].hosts[0]])

    def rows_of(self, candidate: Candidate) -> IntArray:
        """Return the rows that a candidate uses, each repeated by the amount."""
        found = super().rows_of(candidate)
        if not self._uses_links[candidate.request_idx]:
            return found
        own = [self._pairs[pair] for pair in itertools.combinations(self.groups(candidate), 2)]
        return np.concatenate([found, np.array(own, dtype=np.int64)])

    # ---- the oracle

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidate of every request.

        If more than `MOST_GROUPS` groups matter, `best` leaves links out, as the checker does.
        """
        found = super().price(row_prices, query)
        barred = self.capacities[self.first_pair :] == 0
        by_row = np.append(np.where(barred, -1, row_prices[self.first_pair :]), 0)
        cost = by_row[np.where(self._pairs > 0, self._pairs - self.first_pair, -1)]
        groups = np.flatnonzero(cost.any(axis=0)).tolist()
        if not groups or not any(self._uses_links):
            return found
        exact, kinds = len(groups) <= MOST_GROUPS, self.kinds
        known: dict[object, _Column | None] = {}
        for q, columns in enumerate(found.columns):
            if columns and self._uses_links[q]:
                key = kinds[q], frozenset((c.row, c.inside) for c in query.covers_of.get(q, ()))
                if key not in known:
                    covers = tuple(replace(c, request_idx=0) for c in query.covers_of.get(q, ()))
                    alone = Query(query.weights, 1, covers)
                    own = _Closing(self, q, row_prices[: self.first_pair], alone, cost)
                    known[key] = own.best(columns[0], groups) if exact else own.some(columns[0])
                best = known[key]
                own_column = [] if best is None else [(best[0], replace(best[1], request_idx=q))]
                found.columns[q] = own_column
                if exact:
                    found.best[q] = NO_VALUE if best is None else best[0]
        return found

    def starts(self, deadline: float) -> Iterator[list[Candidate]]:
        """Yield the placement in few groups, then those of a hierarchy; all filled up.

        Jobs that share links are left out before.
        """
        own = [self.candidates(by_priority(self.hierarchy))] if self._is_whole else []
        for found in itertools.chain(own, super().starts(deadline)):
            kept = self._kept(found)
            yield kept
            if own or len(kept) < len(found):
                begun, own = {candidate.request_idx for candidate in kept}, []
                order = np.argsort(-self.values, kind="stable").tolist()
                waiting = [q for q in order if q not in begun]
                yield self.with_best_fits(kept, waiting, Budget(max(0.0, deadline - clock.now())))

    def _kept(self, placement: Sequence[Candidate]) -> list[Candidate]:
        left, found = self.capacities.copy(), []
        for one in sorted(placement, key=lambda c: -int(self.values[c.request_idx])):
            amounts = self.amounts_of(one)
            if (amounts <= left).all():
                left -= amounts
                found.append(one)
        return sorted(found)


@dataclass(frozen=True)
class _Closing:
    """Best candidates of a request when links between groups have prices, or are taken.

    Attributes
    ----------
    prices, query
        Of the request alone, without links.
    cost
        The price of the links between two groups, -1 where they are taken; shape
        ``(num_groups, num_groups)``.
    """

    packing: DragonflyPacking
    q: int
    prices: IntArray
    query: Query
    cost: IntArray

    def best(self, root: _Column, groups: Sequence[int]) -> _Column | None:
        """Return the best candidate, where links matter between a few groups alone.

        It has nodes in some of these and in no others, so it is the best one if the others are
        closed, for one of the sets of groups that may be together.
        """
        at = np.ix_(*[self.packing.groups(root[1])] * 2)
        if not self.cost[at].any():
            return root
        best: _Column | None = None
        tried: list[set[int]] = []
        for cost, inside in sorted(self._together(groups), key=lambda one: (one[0], -len(one[1]))):
            if best is not None and root[0] - cost <= best[0]:
                break
            if any(inside <= other for other in tried):  # one that costs no more has them all
                continue
            tried.append(inside)
            found = self._without(frozenset(groups) - inside)
            if found is not None and (best is None or found[0] > best[0]):
                best = found
        return best

    def some(self, column: _Column) -> _Column | None:
        """Return a candidate in groups of which all links to each other may be had.

        These are chosen in turn, first those in which a candidate without links has the most nodes,
        then the emptiest; if they lack room, one of the emptiest comes before the others.
        """
        packing, room = self.packing, self.packing.room
        groups = packing.groups(column[1])
        if (self.cost[np.ix_(groups, groups)] >= 0).all():
            return self._less_paid(column)
        own = np.zeros(len(room), dtype=np.int64)
        for _, leaf, units in column[1].uses:
            own[packing.group_of_leaf(leaf)] += units
        order = np.lexsort((-room, -own)).tolist()
        emptiest = np.argsort(-room, kind="stable")[:MOST_TRIED].tolist()
        for first in (order[0], *emptiest):
            inside = list[int]()
            for group in (first, *order):
                if group not in inside and (self.cost[group, inside] >= 0).all():
                    inside.append(group)
            if room[inside].sum() >= packing.requests[self.q].nodes:
                found = self._without(frozenset(range(len(room))) - {*inside})
                if found is not None:
                    return found
        return None

    def _together(self, groups: Sequence[int]) -> Iterator[tuple[int, set[int]]]:
        for size in range(len(groups) + 1):
            for inside in itertools.combinations(groups, size):
                if (self.cost[np.ix_(inside, inside)] >= 0).all():
                    yield self._paid(inside), set(inside)

    def _paid(self, groups: Sequence[int]) -> int:
        return int(self.cost[np.ix_(groups, groups)].sum()) // 2

    def _without(self, closed: frozenset[int]) -> _Column | None:
        """Return the best candidate where some groups have no nodes, for what it gains."""
        whole = self.packing
        left = whole.capacities[: whole.first_pair].copy()
        left[: whole.num_covers][np.isin(whole.group_of_row, [*closed])] = 0
        own = HierarchyPacking(whole.hierarchy, whole.layout, left, [whole.requests[self.q]])
        own.deadline = whole.deadline
        found = own.price(self.prices, self.query).columns[0]
        return self._less_paid(found[0]) if found else None

    def _less_paid(self, column: _Column) -> _Column:
        return column[0] - self._paid(self.packing.groups(column[1])), column[1]


def packed(problem: DragonflyProblem) -> Packed:
    """Return the problem for the engine."""
    packing = DragonflyPacking(problem)
    return Packed(packing, packing.started)


register("dragonfly", "exact")(exact)
