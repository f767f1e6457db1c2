"""Switch trees as they are described: which nodes are below which switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from topoplace.errors import InputError


@dataclass(frozen=True)
class Switches:
    """Leaf switches with their nodes, and switches above them.

    Attributes
    ----------
    nodes
        Names of the nodes of every leaf.
    leaves
        By name of a switch the leaves below it, as ascending numbers. Leaves come first, then
        switches by their height and in the order of the description.
    """

    nodes: tuple[tuple[str, ...], ...]
    leaves: dict[str, tuple[int, ...]]


def switches_of(
    leaves: Sequence[tuple[str, Sequence[str]]], uppers: Sequence[tuple[str, Sequence[str]]]
) -> Switches:
    """Return what is below leaf switches (name, nodes) and upper switches (name, children).

    Raises
    ------
    InputError
        For an empty leaf, a node on two leaves, a switch named twice or unknown, or a cycle.
    """
    below: dict[str, tuple[int, ...]] = {}
    seen: set[str] = set()
    for name, nodes in leaves:
        if name in below:
            raise InputError("each switch once", field="switch", value=name)
        if not nodes:
            raise InputError("at least one node", field=f"switch {name}", value="")
        for node in nodes:
            if node in seen:
                raise InputError("each node on one leaf", field=f"switch {name}", value=node)
            seen.add(node)
        below[name] = (len(below),)
    if not below:
        raise InputError("at least one leaf switch", field="switches", value="")
    children = dict(uppers)
    if len(children) < len(uppers) or children.keys() & below.keys():
        counts = Counter([*below, *(name for name, _ in uppers)])
        twice = next(name for name, times in counts.items() if times > 1)
        raise InputError("each switch once", field="switch", value=twice)
    height = dict.fromkeys(below, 1)
    for name in _from_below(children, below):
        below[name] = tuple(sorted({leaf for child in children[name] for leaf in below[child]}))
        height[name] = 1 + max(height[child] for child in children[name])
    order = [*(name for name, _ in leaves), *sorted(children, key=height.__getitem__)]
    nodes_of = tuple(tuple(nodes) for _, nodes in leaves)
    return Switches(nodes_of, {name: below[name] for name in order})


def _from_below(
    children: dict[str, Sequence[str]], leaves: dict[str, tuple[int, ...]]
) -> list[str]:
    """Return the upper switches, each after its children."""
    for name, own in children.items():
        unknown = [child for child in own if child not in leaves and child not in children]
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
    return [name for name in order if name in children]
