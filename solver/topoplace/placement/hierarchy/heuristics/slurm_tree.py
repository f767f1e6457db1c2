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
    placed = []
    for part in request.parts:
        free = np.flatnonzero(room(vacancy.free, part) > 0)
        leaf_of = machine.leaf_of[free]
        counts = np.bincount(leaf_of, minlength=machine.num_leaves)
        leaves = choose(Leaves(machine, counts), part.units)
        if leaves is None:
            return None
        hosts = np.concatenate([free[leaf_of == leaf][:taken] for leaf, taken in leaves])
        placed.append(dict.fromkeys(hosts.tolist(), 1))
        vacancy.take(part, placed[-1])
    return tuple(placed)


def leaves_that_fit(above: IntArray, free: IntArray, nodes: int) -> IntArray | None:
    """Return the leaves with free nodes below the lowest switch with enough of them.

    Of several such switches of one level it is the one with the fewest free nodes, then the one
    whose leaves are described first. This is line 2 of Algorithms 1 and 2 (Mishra 2020), which
    leaves ties open; Slurm breaks them in this way.

    Parameters
    ----------
    above
        `Hierarchy.above_leaves`.
    free
        Free nodes of every leaf, shape ``(num_leaves,)``.

    Returns
    -------
    Leaves in the order of their description; None if no switch has enough free nodes.
    """
    for of in above[::-1]:
        counts = np.bincount(of, weights=free)
        enough = np.flatnonzero(counts >= nodes)
        if len(enough):
            return np.flatnonzero((of == enough[np.argmin(counts[enough])]) & (free > 0))
    return None


class Leaves:
    """The leaf switches of a machine with their free nodes, by leaf, while a job takes some.

    Attributes
    ----------
    counts
        By level the free nodes of every switch, those of leaves last.
    ways
        Of every leaf the switches above it and itself, shape ``(num_leaves, num_switch_levels)``.
    """

    def __init__(self, machine: Hierarchy, free: IntArray) -> None:
        above = machine.above_leaves
        self.counts = [np.bincount(of, weights=free).astype(np.int64) for of in above]
        self.ways = above.T

    def choose(self, nodes: int) -> list[tuple[int, int]] | None:
        """Return leaves, and how many nodes of each, or None if no switch can hold the job."""
        below = leaves_that_fit(self.ways.T, self.counts[-1], nodes)
        if below is None:
            return None
        distance = np.zeros(len(self.ways), dtype=np.int64)
        found = []
        while nodes:
            best = None
            for leaf in below.tolist():
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
        below = leaves_that_fit(self.ways.T, self.counts[-1], nodes)
        if below is None:
            return None
        for leaf in below[np.argsort(self.counts[-1][below], kind="stable")].tolist():
            taken = min(nodes, int(self.counts[-1][leaf]))
            if taken:
                found.append((leaf, taken))
                nodes -= taken
        return found

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
