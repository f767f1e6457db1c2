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

A job that is contiguous gets the first nodes of the shortest row of free ones that holds it.

Where jobs share nodes (`topoplace.machine.hierarchy.PLACES`), those with room for what a job wants
of each are its free ones. A job of tasks alone puts as many on each node as that has room for. A
switch can hold it that has enough nodes and enough room; Slurm does not count room down while it
takes leaves.

`default` takes the leaves below that switch by their free nodes alone, the fewest first. It gives
whole nodes only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from topoplace.errors import InputError
from topoplace.machine.hierarchy import PLACES, Hierarchy
from topoplace.placement.hierarchy.heuristics.queue import Vacancy, asks_only, register_rule
from topoplace.placement.hierarchy.problem import Placed, room
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState
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
    if choose is Leaves.fullest and any(shares_nodes(machine, part) for part in request.parts):
        raise InputError("jobs of whole nodes, as select/linear gives them", found=request.id)
    for part in request.parts:  # a fabric is not a rule of the request, and these methods know it
        if part.required is not None and not (machine.fabrics and part.required == 0):
            return None
    placed = []
    for part in request.parts:
        hosts = room(vacancy.free, part)
        if part.order is not None and choose is Leaves.choose and not part.apart:
            units = _in_a_row(machine, part, hosts)
        elif has_tasks(machine, part):
            units = _Tasks(machine, hosts, part).placed()
        elif asks_only(replace(request, parts=(by_node(machine, part),)), "required"):
            units = _on_nodes(machine, hosts, choose, part.units)
        else:
            units = None
        if units is None:
            return None
        placed.append(units)
        vacancy.take(part, units)
    return tuple(placed)


def _on_nodes(
    machine: Hierarchy, hosts: IntArray, choose: Choose, nodes: int
) -> dict[int, int] | None:
    free = np.flatnonzero(hosts > 0)
    leaf_of = machine.leaf_of[free]
    counts = np.bincount(leaf_of, minlength=machine.num_leaves)
    leaves = choose(Leaves(machine, counts), nodes)
    if leaves is None:
        return None
    own = np.concatenate([free[leaf_of == leaf][:taken] for leaf, taken in leaves])
    return dict.fromkeys(own.tolist(), 1)


def _in_a_row(machine: Hierarchy, part: PartState, hosts: IntArray) -> dict[int, int] | None:
    """Return the first nodes of the shortest row of free ones that is long enough, of the first.

    Slurm does not look at switches for a job that is contiguous.
    """
    assert part.order is not None
    order = part.order.hosts
    free = np.concatenate([[False], hosts[order] > 0, [False]])
    first, end = np.flatnonzero(np.diff(free)).reshape(-1, 2).T
    enough = np.flatnonzero(end - first >= part.units)
    if not len(enough):
        return None
    at = first[enough[np.argmin((end - first)[enough])]]
    chosen = order[at : at + part.units]
    if machine.fabrics and len(np.unique(machine.domain_of[0][chosen])) > 1:
        return None
    return dict.fromkeys(chosen.tolist(), 1)


def shares_nodes(machine: Hierarchy, part: PartState) -> bool:
    """Return whether a part takes less than all of the nodes that Slurm's jobs share."""
    if PLACES not in machine.resources:
        return False
    places = machine.resources.index(PLACES)
    return part.takes[places] < int(machine.capacity[:, places].max())


def has_tasks(machine: Hierarchy, part: PartState) -> bool:
    """Return whether units are tasks of a Slurm job, of which a node that is shared gets several.

    They are nodes else, and a job of several shared ones has a unit on each.
    """
    return shares_nodes(machine, part) and part.units > 1 and by_node(machine, part) is part


def by_node(machine: Hierarchy, part: PartState) -> PartState:
    """Return a part without the rule that each host gets one unit, which Slurm's plug-ins know."""
    return replace(part, spread=None) if part.spread == (machine.num_levels - 1, 1) else part


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
        self._distance = np.zeros(len(self.ways), dtype=np.int64)

    def choose(self, nodes: int) -> list[tuple[int, int]] | None:
        """Return leaves, and how many nodes of each, or None if no switch can hold the job."""
        below = leaves_that_fit(self.ways.T, self.counts[-1], nodes)
        if below is None:
            return None
        found = []
        while nodes:
            best = self._best(below, nodes)
            assert best is not None
            taken = min(nodes, int(self.counts[-1][best]))
            found.append((best, taken))
            nodes -= taken
            self._close(best)
        return found

    def _best(self, below: IntArray, rest: int) -> int | None:
        """Return the leaf to take next; None if none of these has free nodes left."""
        best = None
        for leaf in below.tolist():
            if self.counts[-1][leaf] and self._is_better(leaf, best, rest):
                best = leaf
        return best

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

    def _is_better(self, leaf: int, best: int | None, rest: int) -> bool:
        if best is None:
            return True
        merit, holds = self._merits(leaf, best, rest)
        if self._distance[leaf] == self._distance[best]:
            return merit > 0
        return bool(self._distance[leaf] < self._distance[best]) and holds

    def _holds(self, level: int, switch: int, rest: int) -> bool:
        """Return whether a switch has enough for the rest of the job."""
        return int(self.counts[level][switch]) >= rest

    def _merits(self, leaf: int, other: int, rest: int) -> tuple[int, bool]:
        """Compare two leaves: the sign says which is better, the flag if the first's side holds."""
        own = theirs = 0
        for level in reversed(range(len(self.counts))):
            mine, its = int(self.ways[leaf, level]), int(self.ways[other, level])
            if mine == its:
                break
            own, theirs = int(self.counts[level][mine]), int(self.counts[level][its])
            holds, other_holds = (self._holds(level, switch, rest) for switch in (mine, its))
            if holds and other_holds:
                return theirs - own, True
            if holds or other_holds:
                return (1, True) if holds else (-1, False)
        return own - theirs, False

    def _close(self, leaf: int) -> None:
        """Leave nothing of a leaf to take, and count how far the others are from it."""
        self._distance += (self.ways != self.ways[leaf]).sum(axis=1)
        count = self.counts[-1][leaf]
        for level, switch in enumerate(self.ways[leaf].tolist()):
            self.counts[level][switch] -= count


class _Tasks(Leaves):
    """Leaves for tasks of a job, several of which may be on a node.

    Parameters
    ----------
    hosts
        How many tasks each has room for.
    """

    def __init__(self, machine: Hierarchy, hosts: IntArray, part: PartState) -> None:
        most = part.units if part.spread is None else part.spread[1]
        self._hosts = np.minimum(hosts, most)
        leaf_of, num = machine.leaf_of, machine.num_leaves
        super().__init__(machine, np.bincount(leaf_of[hosts > 0], minlength=num))
        room_of = np.bincount(leaf_of, weights=self._hosts, minlength=num)
        self._room = [np.bincount(of, weights=room_of).astype(np.int64) for of in self.ways.T]
        self._leaf_of, self._tasks, self._nodes = leaf_of, part.units, -(-part.units // most)

    def placed(self) -> dict[int, int] | None:
        """Return how many tasks hosts get; None if no switch can hold the job."""
        below, found = self._below(), dict[int, int]()
        while self._tasks:
            leaf = None if below is None else self._best(below, self._nodes)
            if leaf is None:
                return None
            for host in np.flatnonzero((self._leaf_of == leaf) & (self._hosts > 0)).tolist():
                self._nodes -= 1  # those still to come get a task at least
                found[host] = min(int(self._hosts[host]), self._tasks - max(0, self._nodes))
                self._tasks -= found[host]
                if not self._tasks:
                    break
            self._close(leaf)
        return found

    def _below(self) -> IntArray | None:
        for level in reversed(range(len(self.counts))):
            counts = self.counts[level]
            fits = [s for s in range(len(counts)) if self._holds(level, s, self._nodes)]
            if fits:
                best = min(fits, key=counts.__getitem__)
                return np.flatnonzero((self.ways[:, level] == best) & (self.counts[-1] > 0))
        return None

    def _holds(self, level: int, switch: int, rest: int) -> bool:
        enough = int(self._room[level][switch]) >= self._tasks
        return enough and super()._holds(level, switch, rest)


Choose = Callable[[Leaves, int], "list[tuple[int, int]] | None"]
"""Chooses leaves, and how many nodes of each, for a number of nodes."""
