"""What a byte costs between the leaves of a tree or hierarchy, by the definition."""

from __future__ import annotations

import numpy as np

from topoplace.machine.hostlist import expand_host_list
from topoplace.snapshot.schema import HierarchyModel, MappingInstance, TreeModel
from topoplace.types import IntArray

# How far up two leaves have to go to be below one thing.


def level_hops(instance: MappingInstance) -> IntArray:
    """Return what a byte costs between all pairs of nodes."""
    machine, costs = instance.machine, instance.level_costs
    assert isinstance(machine, TreeModel | HierarchyModel)
    meets = _meets_in_tree(machine) if isinstance(machine, TreeModel) else _meets(machine)
    table = [0, *(costs or [2 * level for level in range(1, num_levels(machine) + 1)])]
    return np.array([[table[level] for level in row] for row in meets], dtype=np.int64)


def num_levels(machine: TreeModel | HierarchyModel) -> int:
    """Return the number of levels at which two leaves can meet."""
    if isinstance(machine, HierarchyModel):
        return len(machine.levels)
    return max(_heights(machine).values())


def _heights(machine: TreeModel) -> dict[frozenset[str], int]:
    """Return the height of every set of nodes that a switch holds: switches of one are one."""
    nodes: dict[str, frozenset[str]] = {}
    for switch in machine.switches:  # children come first here
        below = [nodes[child] for child in expand_host_list(switch.switches or "")]
        nodes[switch.name] = frozenset(expand_host_list(switch.nodes or "")).union(*below)
    heights: dict[frozenset[str], int] = {}
    for own in sorted({*nodes.values()}, key=len):
        heights[own] = 1 + max((n for other, n in heights.items() if other < own), default=0)
    return heights


def _meets_in_tree(machine: TreeModel) -> list[list[int]]:
    heights = _heights(machine)
    nodes = [n for s in machine.switches for n in expand_host_list(s.nodes or "")]

    def level(a: str, b: str) -> int:
        return 0 if a == b else min(n for own, n in heights.items() if {a, b} <= own)

    return [[level(a, b) for b in nodes] for a in nodes]


def _meets(machine: HierarchyModel) -> list[list[int]]:
    paths = [[*group.domains, group.hosts] for group in machine.hosts]

    def level(a: list[str], b: list[str]) -> int:
        same = [x == y for x, y in zip(a, b, strict=True)]
        return len(same) - [*same, False].index(False)

    return [[level(a, b) for b in paths] for a in paths]
