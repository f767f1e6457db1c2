"""The free nodes of a tree and the jobs on its leaves, as jobs start and end."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from topoplace.placement.switches.cost import CostModel
from topoplace.snapshot.schema import PatternUse
from topoplace.types import BoolArray, IntArray

Takes = Sequence[tuple[int, int]]
"""Leaves and how many nodes to take on each, in order; a leaf may come again."""


class Occupancy:
    """The state that allocators read: nodes and leaves of one tree at one moment.

    Parameters
    ----------
    costs
        The cost model of the machine.
    free
        Nodes a job may take, shape ``(num_nodes,)``.
    busy, comm
        L_busy and L_comm of every leaf, shape ``(num_leaves,)``.

    Attributes
    ----------
    free_per_leaf
        Free nodes of every leaf, shape ``(num_leaves,)``.
    """

    def __init__(self, costs: CostModel, free: BoolArray, busy: IntArray, comm: IntArray) -> None:
        self.costs = costs
        self.tree = costs.tree
        self.free = free.copy()
        self.busy = busy.copy()
        self.comm = comm.copy()
        self.free_per_leaf = self._per_leaf(np.flatnonzero(free))
        self._first_node = np.searchsorted(
            self.tree.leaf_of_node, np.arange(self.tree.num_leaves + 1)
        )

    def copy(self) -> Occupancy:
        """Return an independent copy."""
        return Occupancy(self.costs, self.free, self.busy, self.comm)

    def start(self, nodes: IntArray, intensive: bool) -> None:
        """Give free nodes to a job."""
        self._move(nodes, intensive, 1)

    def end(self, nodes: IntArray, intensive: bool) -> None:
        """Take back the nodes of a job that `start` gave it."""
        self._move(nodes, intensive, -1)

    def _move(self, nodes: IntArray, intensive: bool, sign: int) -> None:
        assert (self.free[nodes] == (sign > 0)).all()
        self.free[nodes] = sign < 0
        change = sign * self._per_leaf(nodes)
        self.free_per_leaf -= change
        self.busy += change
        if intensive:
            self.comm += change

    def _per_leaf(self, nodes: IntArray) -> IntArray:
        leaves = self.tree.leaf_of_node[nodes]
        return np.bincount(leaves, minlength=self.tree.num_leaves)

    def leaves_that_fit(self, num_nodes: int) -> IntArray | None:
        """Return the leaves with free nodes below the lowest switch with enough of them.

        Of several such switches of one level the one with the fewest free nodes, then the first
        described. This is line 2 of Algorithms 1 and 2 (Mishra 2020), which leaves ties open; Slurm
        breaks them in this way.

        Returns
        -------
        Leaves in the order of their description; None if no switch has enough free nodes.
        """
        free = self.free_per_leaf
        enough = np.flatnonzero(free >= num_nodes)
        if len(enough):
            return enough[[np.argmin(free[enough])]]
        best: tuple[tuple[int, int], IntArray] | None = None
        for level, leaves in self.costs.upper_switches:
            if best is not None and level > best[0][0]:
                break
            there = int(free[leaves].sum())
            if there >= num_nodes and (best is None or (level, there) < best[0]):
                best = ((level, there), leaves)
        return None if best is None else best[1][free[best[1]] > 0]

    def widest_leaves(self) -> IntArray:
        """Return the leaves below the switch with the most free nodes; of several, the first."""
        single = np.array([np.argmax(self.free_per_leaf)])
        below = [single, *(leaves for _, leaves in self.costs.upper_switches)]
        return max(below, key=lambda leaves: int(self.free_per_leaf[leaves].sum()))

    def nodes_of(self, takes: Takes) -> IntArray:
        """Return the nodes that such takes choose: on each leaf the lowest-numbered free ones.

        They come in the order of the takes, which is the order of the ranks on them.
        """
        taken: dict[int, int] = {}
        parts = []
        for leaf, count in takes:
            first = self._first_node[leaf]
            there = first + np.flatnonzero(self.free[first : self._first_node[leaf + 1]])
            begin = taken.get(leaf, 0)
            taken[leaf] = begin + count
            parts.append(there[begin : begin + count])
        nodes: IntArray = np.concatenate(parts)
        return nodes

    def cost_with(
        self, nodes: IntArray, patterns: Sequence[PatternUse], intensive: bool = True
    ) -> Fraction:
        """Return the cost of a job if it starts on free nodes (eq. 6).

        An intensive one counts itself in L_comm (Mishra 2020, figure 5).
        """
        comm = self.comm + self._per_leaf(nodes) if intensive else self.comm
        return self.costs.job_cost(patterns, self.tree.leaf_of_node[nodes], comm)
