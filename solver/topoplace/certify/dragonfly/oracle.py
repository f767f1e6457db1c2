"""The best candidate of a request where links between groups have prices."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace.certify.dragonfly.instance import DragonflyInstance, Pair
from topoplace.certify.hierarchy.oracle import HierarchyOracle
from topoplace.certify.packing import Covers, Prices
from topoplace.types import IntArray

MOST_GROUPS = 6
"""Groups between which links have prices or are taken, up to which these count."""


@dataclass(frozen=True)
class DragonflyOracle(HierarchyOracle):
    """Requests that take links alone, as `certify.packing` asks for them.

    Rows of links are those of the pairs of groups, in their order.
    """

    @property
    def dragonfly(self) -> DragonflyInstance:
        """The instance."""
        assert isinstance(self.table.instance, DragonflyInstance)
        return self.table.instance

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of groups, in the order of their rows."""
        return list(itertools.combinations(range(self.dragonfly.num_groups), 2))

    @property
    def rows(self) -> Mapping[str, IntArray]:
        """Capacities by family."""
        free = [int(pair not in self.dragonfly.taken) for pair in self.pairs]
        return {**super().rows, "links": np.array(free, dtype=np.int64)}

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether two requests ask for the same, and both take links or neither does."""
        alike = self.requests[one].silent == self.requests[other].silent
        return alike and super().may_replace(one, other)

    @cached_property
    def _rows_of_group(self) -> list[frozenset[int]]:
        """By group the rows of its hosts and pools."""
        found: list[set[int]] = [set() for _ in range(self.dragonfly.num_groups)]
        of = self.table.instance.machine.domain_of[0]
        for place in self.table.places:
            found[int(of[place.hosts[0]])].update(place.rows.values())
        return [frozenset(rows) for rows in found]

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return the most that each request gains.

        Where few groups matter, each set of these that may be together is tried, with the others
        closed. Where many do, links are left out, which bounds the gain from above.
        """
        price = prices.rows.get("links")
        cost = {
            pair: 0 if price is None else int(price[k])
            for k, pair in enumerate(self.pairs)
            if pair in self.dragonfly.taken or (price is not None and price[k])
        }
        others = {family: own for family, own in prices.rows.items() if family != "links"}
        plain = replace(prices, rows=others)
        found = super().best(plain, wanted)
        groups = sorted({group for pair in cost for group in pair})
        if not groups or len(groups) > MOST_GROUPS:
            return found
        sets: list[tuple[int, frozenset[int]]] = []
        for size in range(len(groups) + 1):
            for some in itertools.combinations(groups, size):
                own = [pair for pair in itertools.combinations(some, 2) if pair in cost]
                if not self.dragonfly.taken.intersection(own):
                    sets.append((sum(cost[pair] for pair in own), frozenset(some)))
        sets.sort(key=lambda one: (one[0], -len(one[1])))
        talks = (q for q in found if not self.requests[q].silent)
        limit = {q: gain for q in talks for gain in [found[q]] if gain is not None}
        best: dict[int, int] = {}
        done: list[frozenset[int]] = []
        for paid, inside in sets:
            if any(inside <= more for more in done):
                continue  # one with more groups costs no more
            done.append(inside)
            left = [q for q, most in limit.items() if q not in best or most - paid > best[q]]
            if not left:
                break
            closed = frozenset[int]().union(
                *(self._rows_of_group[group] for group in groups if group not in inside)
            )
            own_covers = {q: replace(wanted[q], outside=wanted[q].outside | closed) for q in left}
            for q, gain in super().best(plain, own_covers).items():
                if gain is not None:
                    best[q] = max(best.get(q, gain - paid), gain - paid)
        return {q: best.get(q) if q in limit else gain for q, gain in found.items()}
