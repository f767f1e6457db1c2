"""A switch tree as the hierarchy that it is read as, from the roots down.

See docs/proofs/hierarchy.md, "Switch trees".
"""

from __future__ import annotations

from topoplace.certify.report import RefusedError
from topoplace.machine.hierarchy import Hierarchy, build_hierarchy
from topoplace.machine.hostlist import NodeLists
from topoplace.machine.switches import Switches, switches_of
from topoplace.snapshot.schema import TreeModel

Leaves = tuple[int, ...]


def machine_of_switches(model: TreeModel) -> Hierarchy:
    """Return a switch tree as a hierarchy; raise `RefusedError` if its switches overlap."""
    switches = _switches(model)
    name_of: dict[Leaves, str] = {}
    for name, leaves in switches.leaves.items():  # of several that hold the same nodes, the first
        name_of.setdefault(leaves, name)
    above = _parents(list(name_of), len(switches.nodes))
    height = dict.fromkeys(name_of, 1)
    for own in sorted(name_of, key=len):
        upper = above[own]
        if upper is not None:
            height[upper] = max(height[upper], height[own] + 1)
    top = max(height.values())
    several = sum(upper is None for upper in above.values()) > 1
    hosts: list[tuple[str, list[str], tuple[int]]] = []
    for leaf, nodes in enumerate(switches.nodes):
        over: list[Leaves] = []  # the sets that hold the leaf, the largest first
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
        hosts += [(name, path, (1,)) for name in nodes]
    between = [f"switch{h - 1}" for h in range(top - 1, 1, -1)]
    levels = [*(["fabric"] if several else []), *between, "leaf", "node"]
    return build_hierarchy(levels, ["slots"], hosts, fabrics=several)


def _switches(model: TreeModel) -> Switches:
    leaves: list[tuple[str, list[str]]] = []
    uppers: list[tuple[str, list[str]]] = []
    lists = NodeLists()
    for switch in model.switches:
        if (switch.nodes is None) == (switch.switches is None):
            raise RefusedError(f"switch {switch.name} needs either nodes or switches")
        text = switch.switches if switch.nodes is None else switch.nodes
        below = lists.hosts(text or "", switch.name)
        (uppers if switch.nodes is None else leaves).append((switch.name, below))
    return switches_of(leaves, uppers)


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
