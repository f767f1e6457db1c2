"""Switch trees and fat trees: leaves, common switches, distances (Mishra 2020, section 3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.types import IntArray

APART = 1 << 40
"""The distance of nodes without a common switch."""


@dataclass(frozen=True)
class Switch:
    """A switch, its level (leaves are 1), and the leaves below it (numbers, ascending)."""

    name: str
    level: int
    leaves: tuple[int, ...]


@dataclass(frozen=True)
class SwitchTree:
    """Compute nodes on leaf switches under a hierarchy of switches.

    Nodes are numbered leaf by leaf, in the order of the description.

    Attributes
    ----------
    node_names
        Names of the nodes.
    leaf_of_node
        Leaf of every node, ascending, shape ``(num_nodes,)``.
    switches
        All switches, leaves first in leaf order, then by level and the order of the description.
        A switch's level is one more than the highest of its children.
    common_level
        Level of the lowest switch above two leaves; 1 on the diagonal, 0 where there is none.
        Shape ``(num_leaves, num_leaves)``.
    """

    node_names: tuple[str, ...]
    leaf_of_node: IntArray
    switches: tuple[Switch, ...]
    common_level: IntArray
    nodes_per_router: ClassVar[int] = 1

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_names)

    @property
    def num_leaves(self) -> int:
        """Number of leaf switches."""
        return len(self.common_level)

    @property
    def nodes_per_leaf(self) -> IntArray:
        """Nodes on every leaf, shape ``(num_leaves,)``."""
        return np.bincount(self.leaf_of_node, minlength=self.num_leaves)

    @cached_property
    def roots(self) -> tuple[tuple[int, ...], ...]:
        """The leaves of every switch whose leaves are not all below another, larger one.

        A job lies below one of them.
        """
        found: list[tuple[int, ...]] = []
        holding: list[list[frozenset[int]]] = [[] for _ in range(self.num_leaves)]
        for switch in sorted(self.switches, key=lambda own: -len(own.leaves)):
            own = frozenset(switch.leaves)
            if not any(own <= other for other in holding[switch.leaves[0]]):
                found.append(switch.leaves)
                for leaf in own:
                    holding[leaf].append(own)
        return tuple(sorted(found))

    @property
    def text(self) -> str:
        """Short form such as ``tree of 24 leaves``."""
        return f"tree of {number_of(self.num_leaves, 'leaf')}"

    @property
    def place_shape(self) -> tuple[int, ...]:
        """The number of leaves, and the most nodes of one."""
        return self.num_leaves, int(self.nodes_per_leaf.max())

    def places_of(self, nodes: IntArray) -> IntArray:
        """Return the coordinates of nodes: their leaf, and their number there."""
        leaf = self.leaf_of_node[nodes]
        first = np.searchsorted(self.leaf_of_node, np.arange(self.num_leaves))
        return np.stack([leaf, nodes - first[leaf]], axis=-1)

    def node_hops(self, nodes: IntArray, others: IntArray) -> IntArray:
        """Return the hops between nodes (eq. 4), elementwise; `APART` without a common switch."""
        level = self.common_level[self.leaf_of_node[nodes], self.leaf_of_node[others]]
        hops = np.where(level > 0, 2 * level, APART)
        return np.where(np.equal(nodes, others), 0, hops)

    def distance(self, a: int, b: int) -> int:
        """Return d(a, b) of two nodes: twice the level of their lowest common switch (eq. 4).

        Raises
        ------
        InputError
            If no switch is above both.
        """
        level = int(self.common_level[self.leaf_of_node[a], self.leaf_of_node[b]])
        if level == 0:
            raise InputError(
                "nodes below a common switch",
                field="nodes",
                value=f"{self.node_names[a]}, {self.node_names[b]}",
            )
        return 2 * level


def build_tree(
    leaves: Sequence[tuple[str, Sequence[str]]], uppers: Sequence[tuple[str, Sequence[str]]]
) -> SwitchTree:
    """Return the tree of leaf switches (name, nodes) and upper switches (name, children).

    Raises
    ------
    InputError
        For an empty leaf, a node on two leaves, a switch named twice or unknown, or a cycle.
    """
    numbers: dict[str, int] = {}
    node_names: list[str] = []
    leaf_of_node: list[int] = []
    seen: set[str] = set()
    for name, nodes in leaves:
        if name in numbers:
            raise InputError("each switch once", field="switch", value=name)
        if not nodes:
            raise InputError("at least one node", field=f"switch {name}", value="")
        for node in nodes:
            if node in seen:
                raise InputError("each node on one leaf", field=f"switch {name}", value=node)
            seen.add(node)
        leaf_of_node += [len(numbers)] * len(nodes)
        node_names += nodes
        numbers[name] = len(numbers)
    if not numbers:
        raise InputError("at least one leaf switch", field="switches", value="")
    below = {name: Switch(name, 1, (idx,)) for name, idx in numbers.items()}
    children = dict(uppers)
    if len(children) < len(uppers) or children.keys() & below.keys():
        counts = Counter([*below, *(name for name, _ in uppers)])
        twice = next(name for name, times in counts.items() if times > 1)
        raise InputError("each switch once", field="switch", value=twice)
    _resolve(children, below)
    ordered = sorted(
        (below[name] for name, _ in uppers), key=lambda switch: switch.level
    )  # stable: keeps the description's order within a level
    common = np.zeros((len(numbers), len(numbers)), dtype=np.int64)
    for switch in reversed(ordered):
        common[np.ix_(switch.leaves, switch.leaves)] = switch.level
    np.fill_diagonal(common, 1)
    return SwitchTree(
        tuple(node_names),
        np.asarray(leaf_of_node, dtype=np.int64),
        (*(below[name] for name in numbers), *ordered),
        common,
    )


def _resolve(children: dict[str, Sequence[str]], below: dict[str, Switch]) -> None:
    """Fill in the level and the leaves of all upper switches."""
    for name, own in children.items():
        unknown = [child for child in own if child not in below and child not in children]
        if unknown:
            expected = "a switch that is described"
            raise InputError(expected, field=f"switch {name}", value=unknown[0])
        if not own:
            raise InputError("at least one child switch", field=f"switch {name}", value="")
    try:
        order = [*TopologicalSorter(children).static_order()]
    except CycleError as error:
        child, parent, *_ = error.args[1]
        raise InputError("no cycle of switches", field=f"switch {parent}", value=child) from None
    for name in order:
        if name not in below:
            parts = [below[child] for child in children[name]]
            leaves = sorted({leaf for part in parts for leaf in part.leaves})
            below[name] = Switch(name, 1 + max(part.level for part in parts), tuple(leaves))
