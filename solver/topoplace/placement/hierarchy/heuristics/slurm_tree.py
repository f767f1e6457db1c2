"""The node selection of Slurm's topology/tree: as of 24.11, and as Mishra 2020 describes it.

Both take equal nodes. The domains above the hosts are the switches, below one root unless they are
several fabrics.

`slurm-tree` is written from the behaviour of Slurm 24.11. Of the lowest switches that can hold the
job the one with the fewest free nodes is taken, the first of those. Below it, leaves are taken one
after another until there is enough. Two leaves are compared by themselves, then, while neither has
room for all the rest, by the switches above them up to where they meet: the side that holds the
rest wins, of two that do the one with fewer free nodes, of two that do not, at the end, the one
with more. A leaf farther from those taken never comes before a nearer one, and a nearer one that is
looked at later only if its side holds the rest. Nodes are taken by number.

`default` takes the leaves below that switch by their free nodes alone, the fewest first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topoplace.machine.hierarchy import Hierarchy
from topoplace.placement.hierarchy.heuristics.queue import Vacancy, asks_only, register_rule
from topoplace.placement.hierarchy.problem import Placed, room
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.types import IntArray


@register_rule("slurm-tree")
def slurm_tree(
    vacancy: Vacancy, request: HierarchyRequest, _: np.random.Generator
) -> Placed | None:
    """Place the parts of a request one after another, as Slurm does components of a job."""
    return _placed(vacancy, request, Leaves.choose)


@register_rule("default")
def slurm_default(
    vacancy: Vacancy, request: HierarchyRequest, _: np.random.Generator
) -> Placed | None:
    """Place the parts of a request one after another, on leaves of the fewest free nodes."""
    return _placed(vacancy, request, Leaves.fullest)


def _placed(vacancy: Vacancy, request: HierarchyRequest, choose: Choose) -> Placed | None:
    machine = vacancy.machine
    for part in request.parts:  # a fabric is not a rule of the request, and these methods know it
        if part.required is not None and not (machine.fabrics and part.required == 0):
            return None
    if not asks_only(request, "required"):
        return None
    above = switches_above(machine)
    placed = []
    for part in request.parts:
        free = np.flatnonzero(room(vacancy.free, part) > 0)
        leaves = choose(Leaves(above, free), part.units)
        if leaves is None:
            return None
        leaf_of = above[-1][free]
        hosts = np.concatenate([free[leaf_of == leaf][:taken] for leaf, taken in leaves])
        placed.append(dict.fromkeys(hosts.tolist(), 1))
        vacancy.take(part, placed[-1])
    return tuple(placed)


def switches_above(machine: Hierarchy) -> IntArray:
    """Return by level the switch above every host, first a root above all unless there are several.

    A machine without any level of switches is one leaf.
    """
    if machine.fabrics:
        return machine.domain_of[:-1]
    return np.concatenate([np.zeros_like(machine.domain_of[:1]), machine.domain_of[:-1]])


class Leaves:
    """The leaf switches of a machine with their free nodes, while a job takes some.

    Attributes
    ----------
    counts
        By level the free nodes of every switch, those of leaves last.
    ways
        Of every leaf the switches above it and itself, shape ``(num_leaves, num_switch_levels)``.
    """

    def __init__(self, above: IntArray, free: IntArray) -> None:
        self.counts = [np.bincount(of[free], minlength=int(of.max()) + 1) for of in above]
        _, firsts = np.unique(above[-1], return_index=True)
        self.ways = above[:, firsts].T

    def choose(self, nodes: int) -> list[tuple[int, int]] | None:
        """Return leaves, and how many nodes of each, or None if no switch can hold the job."""
        below = self._below_top(nodes)
        if below is None:
            return None
        distance = np.zeros(len(self.ways), dtype=np.int64)
        found = []
        while nodes:
            best = None
            for leaf in below:
                if self.counts[-1][leaf] and self._is_better(leaf, best, nodes, distance):
                    best = leaf
            assert best is not None
            taken = min(nodes, int(self.counts[-1][best]))
            found.append((best, taken))
            nodes -= taken
            distance += (self.ways != self.ways[best]).sum(axis=1)
            self._close(best)
        return found

    def fullest(self, nodes: int) -> list[tuple[int, int]] | None:
        """Return the leaves with the fewest free nodes below the switch, until there is enough."""
        found = []
        for leaf in sorted(self._below_top(nodes) or (), key=lambda own: int(self.counts[-1][own])):
            taken = min(nodes, int(self.counts[-1][leaf]))
            if taken:
                found.append((leaf, taken))
                nodes -= taken
        return found or None

    def _below_top(self, nodes: int) -> list[int] | None:
        """Return the leaves below the lowest switch that can hold a job, or None."""
        for level in reversed(range(len(self.counts))):
            counts = self.counts[level]
            enough = np.flatnonzero(counts >= nodes)
            if len(enough):
                top = enough[np.argmin(counts[enough])]
                below = np.flatnonzero(self.ways[:, level] == top)
                return [int(leaf) for leaf in below]
        return None

    def _is_better(self, leaf: int, best: int | None, rest: int, distance: IntArray) -> bool:
        if best is None:
            return True
        merit, holds = self._merits(leaf, best, rest)
        if distance[leaf] == distance[best]:
            return merit > 0
        return bool(distance[leaf] < distance[best]) and holds

    def _merits(self, leaf: int, other: int, rest: int) -> tuple[int, bool]:
        """Compare two leaves: the sign says which is better, the flag if the first's side holds."""
        own = theirs = 0
        for level in reversed(range(len(self.counts))):
            mine, its = int(self.ways[leaf, level]), int(self.ways[other, level])
            if mine == its:
                break
            own, theirs = int(self.counts[level][mine]), int(self.counts[level][its])
            if own >= rest and theirs >= rest:
                return theirs - own, True
            if own >= rest or theirs >= rest:
                return (1, True) if own >= rest else (-1, False)
        return own - theirs, False

    def _close(self, leaf: int) -> None:
        """Leave nothing of a leaf to take."""
        count = self.counts[-1][leaf]
        for level, switch in enumerate(self.ways[leaf].tolist()):
            self.counts[level][switch] -= count


Choose = Callable[[Leaves, int], "list[tuple[int, int]] | None"]
"""Chooses leaves, and how many nodes of each, for a number of nodes."""
