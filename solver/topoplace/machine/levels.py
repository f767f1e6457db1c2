"""Trees and hierarchies as machines to map to: the cost of a byte is that of its highest level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine import torus as base
from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.matrix import MAX_DISTANCE, MatrixMachine
from topoplace.machine.torus import Torus
from topoplace.types import IntArray

HOPS_PER_LEVEL = 2
"""Hops that a level adds by default: one up and one down (Mishra 2020, eq. 4)."""


@dataclass(frozen=True, eq=False)
class LevelMachine(base.Network):
    """Leaves in domains within domains; leaf and node and router are one here.

    Two leaves *meet* at level k if they share a domain of that level and none below. A byte between
    them costs ``costs[k - 1]``, nothing on one leaf.

    Attributes
    ----------
    hierarchy
        The tree or hierarchy, whose hosts are the leaves.
    domain_of
        By level, lowest first and the leaves themselves before it, the domain of every leaf; in the
        last row there is one domain. Shape ``(num_levels + 1, num_leaves)``.
    costs
        The cost of a byte by the level at which its ends meet, lowest first and never falling;
        shape ``(num_levels,)``.
    """

    hierarchy: Hierarchy
    domain_of: IntArray
    costs: IntArray
    nodes_per_router: int = 1

    def __post_init__(self) -> None:
        costs = self.costs
        if len(costs) != self.num_levels:
            expected = f"{self.num_levels} costs, one for every level, the lowest first"
            raise InputError(expected, field="level_costs", value=costs.tolist())
        if costs.min() < 0 or costs.max() > MAX_DISTANCE or (np.diff(costs) < 0).any():
            expected = f"costs from 0 to {MAX_DISTANCE} that do not fall from level to level"
            raise InputError(expected, field="level_costs", value=costs.tolist())

    @property
    def levels(self) -> LevelMachine:
        """The machine itself."""
        return self

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the leaves."""
        return self.hierarchy.host_names

    @property
    def num_levels(self) -> int:
        """Number of levels at which leaves can meet."""
        return len(self.domain_of) - 1

    @property
    def num_nodes(self) -> int:
        """Number of leaves."""
        return len(self.node_names)

    @property
    def num_routers(self) -> int:
        """Number of leaves, which are routers of one node here."""
        return len(self.node_names)

    @cached_property
    def steps(self) -> IntArray:
        """By level the additional cost of a byte that leaves its domains; shape ``(num_levels,)``.

        Entry k is that of ``domain_of[k]``: the first one for leaving a leaf.
        """
        return np.diff(self.costs, prepend=0)

    @property
    def diameter(self) -> int:
        """Largest cost of a byte."""
        return int(self.costs[-1])

    @property
    def text(self) -> str:
        """Short form such as ``192 leaves in 6 > 48 domains``, the domains top first."""
        counts = [len(np.unique(row)) for row in self.domain_of[-2:0:-1]]
        domains = "domain" if counts[-1:] == [1] else "domains"
        inside = f" in {' > '.join(map(str, counts))} {domains}" if counts else ""
        return f"{number_of(self.num_nodes, 'leaf')}{inside}"

    def places_of(self, nodes: IntArray) -> IntArray:
        """Return the coordinates of leaves: their numbers."""
        return nodes[..., None]

    def hops(self, sources: IntArray, targets: IntArray) -> IntArray:
        """Return the cost of a byte between leaves, elementwise."""
        ends = np.broadcast_arrays(sources, targets)
        total = np.zeros(ends[0].shape, dtype=np.int64)
        for step, domain in zip(self.steps.tolist(), self.domain_of[:-1], strict=True):
            total += step * (domain[ends[0]] != domain[ends[1]])
        return total

    def meeting(self, sources: IntArray, targets: IntArray) -> IntArray:
        """Return the level at which leaves meet, elementwise; 0 for a leaf and itself."""
        ends = np.broadcast_arrays(sources, targets)
        apart = self.domain_of[:, ends[0]] != self.domain_of[:, ends[1]]
        found: IntArray = apart.sum(axis=0)
        return found

    def distances_from(self, router: int) -> IntArray:
        """Return the cost of a byte from a leaf to every leaf."""
        return self.hops(np.array(router), np.arange(self.num_routers))


Network = Torus | MatrixMachine | LevelMachine
"""What tasks are mapped to."""


def levels_of_hierarchy(machine: Hierarchy, costs: Sequence[int] | None = None) -> LevelMachine:
    """Return a tree or hierarchy as levels: those of its domains, and one above all of them.

    Raises `InputError` for fabrics, which are unconnected.
    """
    if machine.fabrics and len(machine.domain_names[0]) > 1:
        expected = "a machine with a network above its top level"
        raise InputError(expected, field="fabrics", found=", ".join(machine.domain_names[0]))
    rows = [*machine.domain_of[::-1], np.zeros(machine.num_hosts, dtype=np.int64)]
    by_default = range(HOPS_PER_LEVEL, HOPS_PER_LEVEL * len(rows), HOPS_PER_LEVEL)
    given = np.array([*(by_default if costs is None else costs)], dtype=np.int64)
    return LevelMachine(machine, np.stack(rows), given)
