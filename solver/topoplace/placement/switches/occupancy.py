"""The free nodes of a tree and the jobs on its leaves, as jobs start and end."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from topoplace.placement.hierarchy.heuristics.slurm_tree import leaves_that_fit
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
        self.machine = costs.machine
        self.free = free.copy()
        self.busy = busy.copy()
        self.comm = comm.copy()
        self.free_per_leaf = self._per_leaf(np.flatnonzero(free))
        self._first_node = np.searchsorted(
            self.machine.leaf_of, np.arange(self.machine.num_leaves + 1)
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
        leaves = self.machine.leaf_of[nodes]
        return np.bincount(leaves, minlength=self.machine.num_leaves)

    def leaves_that_fit(self, num_nodes: int) -> IntArray | None:
        """Return the leaves that heuristics choose from; None if the nodes do not fit."""
        return leaves_that_fit(self.machine.above_leaves, self.free_per_leaf, num_nodes)

    def widest_leaves(self) -> IntArray:
        """Return the leaves below the root with the most free nodes; of several, the first."""
        return max(self.machine.roots, key=lambda leaves: int(self.free_per_leaf[leaves].sum()))

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
        return self.costs.job_cost(patterns, self.machine.leaf_of[nodes], comm)
