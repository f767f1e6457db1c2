"""Finds best(q) of leaves: from a table on small machines, by sweeps on large ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from topoplace.certify.column import NONE
from topoplace.certify.covers import Covers
from topoplace.certify.direct import best_of_shapes
from topoplace.certify.instance import Instance, Wish
from topoplace.certify.leaf import Prices
from topoplace.certify.sweep import Gains, Group, Sweep
from topoplace.certify.table import TablePricer, table_size
from topoplace.snapshot.schema import Communication

LARGEST_TABLE = 4_000_000
"""Entries of the table of all prisms up to which it is faster than a sweep."""


class Pricer(Protocol):
    """Finds, for a leaf, the largest priced value of every wanted request's candidates."""

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return best(q) per request (by queue position), None where it has no candidate."""

    def of(self, instance: Instance) -> Pricer:
        """Return a pricer of the same kind for another instance."""


def pricer_of(instance: Instance) -> Pricer:
    """Return the faster of the two ways for a machine."""
    if table_size(instance) <= LARGEST_TABLE:
        return TablePricer(instance)
    return SweepPricer(instance)


class SweepPricer:
    """Finds best(q) by sweeps over all prisms, one for each set of routers to be covered."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def of(self, instance: Instance) -> SweepPricer:
        """Return a sweep pricer of another instance."""
        return SweepPricer(instance)

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return best(q) per request (by queue position), None where it has no candidate."""
        gains = Gains(prices.routers, prices.factors[1], prices.factors[2])
        found: dict[int, int] = {}
        together: dict[frozenset[int], dict[tuple[object, ...], list[int]]] = {}
        for idx, covers in wanted.items():
            wish = self._instance.wishes[idx]
            if wish.geometries:
                group = self._group([wish], prices, covers.outside)
                found[idx] = best_of_shapes(self._instance, wish, group, gains, covers.inside)
            else:
                kinds = together.setdefault(covers.inside, {})
                kinds.setdefault((covers.outside, *self._kind(wish, prices)), []).append(idx)
        for inside, kinds in together.items():
            groups = [
                self._group(
                    [self._instance.wishes[i] for i in members], prices, wanted[members[0]].outside
                )
                for members in kinds.values()
            ]
            reaches = Sweep(self._instance, groups, gains, inside).run()
            for members, group, reach in zip(kinds.values(), groups, reaches, strict=True):
                for idx in members:
                    at = np.searchsorted(group.needs, self._instance.wishes[idx].nodes)
                    found[idx] = int(reach[at])
        return {
            idx: None if gain == NONE else gain + self._own(self._instance.wishes[idx], prices)
            for idx, gain in found.items()
        }

    def _own(self, wish: Wish, prices: Prices) -> int:
        """Return the part of a request's value that all its candidates share."""
        idle_credit = self._instance.snapshot.weights.idle * wish.nodes
        return prices.factors[0] * wish.value + prices.factors[1] * idle_credit

    def _kind(self, wish: Wish, prices: Prices) -> tuple[object, ...]:
        own_row = wish.sharing is Communication.TOLERANT and wish.id in prices.tolerant
        return wish.class_idx, wish.region, wish.sharing, wish.id if own_row else None

    def _group(self, wishes: list[Wish], prices: Prices, outside: frozenset[int]) -> Group:
        first = wishes[0]
        closed = self._instance.closed(first.sharing)
        blocked = ~self._instance.allowed(first)
        blocked[sorted(outside)] = True
        return Group(
            self._instance.usable_counts[first.class_idx],
            blocked,
            closed if closed.any() else None,
            prices.links(first.id, first.sharing),
            np.unique(np.array([wish.nodes for wish in wishes], dtype=np.int64)),
        )
