"""Requests whose hosts follow each other in an order: all their places, with what each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from topoplace.packing.problem import Cover
from topoplace.placement.hierarchy.layout import Layout
from topoplace.placement.hierarchy.tables import FAR, Costs, Steps, Uses
from topoplace.types import IntArray


class Windows:
    """The places of a request in one of its sets of hosts, for any prices.

    Parameters
    ----------
    hosts
        The hosts of each place, each with one unit, shape ``(num_windows, units)``.
    rows
        By place the rows that it uses, each repeated by the amount.
    values
        What each place is worth by level, costs negated, shape ``(num_windows, num_levels)``.
    """

    def __init__(
        self, layout: Layout, hosts: IntArray, rows: Sequence[IntArray], values: IntArray
    ) -> None:
        self._layout, self._values, self.num = layout, values, len(hosts)
        self._leaves = np.array([layout.node_of_host[h] for h in hosts.ravel().tolist()], dtype=int)
        self._leaves = self._leaves.reshape(hosts.shape)
        pairs = [np.unique(own, return_counts=True) for own in rows]
        self._starts = np.cumsum([0, *(len(own) for own, _ in pairs)])[:-1]
        self._rows = np.concatenate([own for own, _ in pairs])
        self._amounts = np.concatenate([amounts for _, amounts in pairs])

    def best(
        self, costs: Costs, weights: Mapping[str, int], names: Sequence[str],
        covers: Sequence[Cover], steps: Steps,
    ) -> tuple[int, Uses] | None:  # fmt: skip
        """Return the largest gain at prices, and where it is; None if no place has room."""
        factors = np.array([weights.get(name, 0) for name in names], dtype=np.int64)
        gains = self._values @ factors - self._sums(costs.of_row[self._rows] * self._amounts)
        paid = self._paid(steps)
        barred = (paid >= FAR) | (self._sums(self._amounts > costs.left[self._rows]) > 0)
        for cover in covers:
            barred |= (self._sums(self._rows == cover.row) > 0) != cover.inside
        if barred.all():
            return None
        gains = np.where(barred, gains.min() - paid.max() - 1, gains - paid)
        best = int(gains.argmax())
        return int(gains[best]), tuple((0, leaf, 1) for leaf in sorted(self._leaves[best].tolist()))

    def _sums(self, entries: IntArray) -> IntArray:
        """Return the sum of what each place has of the rows that it uses."""
        return np.asarray(np.add.reduceat(entries.astype(np.int64), self._starts))

    def _paid(self, steps: Steps) -> IntArray:
        """Return what places cost by the units that they have in some nodes."""
        found = np.zeros(len(self._leaves), dtype=np.int64)
        for node, limit, cost, below in zip(
            *(steps.nodes, steps.limits, steps.costs, steps.below), strict=True
        ):
            units = np.isin(self._leaves, self._layout.below[node]).sum(axis=1)
            found += np.where((units <= limit) == below, cost, 0)
        return found
