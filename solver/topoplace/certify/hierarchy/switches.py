"""A switch tree as the hierarchy that it is read as, from the roots down.

See docs/proofs/hierarchy.md, "Switch trees".
"""

from __future__ import annotations

from topoplace.certify.report import RefusedError
from topoplace.certify.switches.instance import tree_of
from topoplace.machine.hierarchy import Hierarchy, build_hierarchy
from topoplace.snapshot.schema import TreeModel

Leaves = tuple[int, ...]


def machine_of_switches(model: TreeModel) -> Hierarchy:
    """Return a switch tree as a hierarchy; raise `RefusedError` if its switches overlap."""
    tree = tree_of(model)
    name_of: dict[Leaves, str] = {}
    for switch in tree.switches:  # of several that hold the same nodes, the first
        name_of.setdefault(switch.leaves, switch.name)
    above = _parents(list(name_of), tree.num_leaves)
    height = dict.fromkeys(name_of, 1)
    for own in sorted(name_of, key=len):
        upper = above[own]
        if upper is not None:
            height[upper] = max(height[upper], height[own] + 1)
    top = max(height.values())
    several = sum(upper is None for upper in above.values()) > 1
    hosts: list[tuple[str, list[str], tuple[int]]] = []
    for name, leaf in zip(tree.node_names, tree.leaf_of_node.tolist(), strict=True):
        over: list[Leaves] = []  # the sets that hold the node, the largest first
        last: Leaves | None = (leaf,)
        while last is not None:
            over.insert(0, last)
            last = above[last]
        at = [next(one for one in over if height[one] <= h) for h in range(top, 0, -1)]
        path = [name_of[one] for one in at]
        if several:  # the roots, above all levels but their own
            path = [path[0], *(path[1:] or path)]
        elif top > 1:
            path = path[1:]
        hosts.append((name, path, (1,)))
    between = [f"switch{h - 1}" for h in range(top - 1, 1, -1)]
    levels = [*(["fabric"] if several else []), *between, "leaf", "node"]
    return build_hierarchy(levels, ["slots"], hosts, fabrics=several)


def _parents(sets: list[Leaves], num_leaves: int) -> dict[Leaves, Leaves | None]:
    """Return by set of leaves the smallest one that holds it and more; None of roots."""
    found: dict[Leaves, Leaves | None] = {}
    innermost: list[Leaves | None] = [None] * num_leaves
    for own in sorted(sets, key=len, reverse=True):
        around = {innermost[leaf] for leaf in own}
        if len(around) > 1:
            raise RefusedError("two switches share some of their nodes, but not all of either")
        found[own] = around.pop()
        for leaf in own:
            innermost[leaf] = own
    return found
