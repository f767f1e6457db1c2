"""First fit, and the rules of Jigsaw and LaaS: each request in turn, where it may be at first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np

from topoplace.machine.fattree import FatTree
from topoplace.packing.listed import Listed
from topoplace.placement.fattree.places import Room, Shape, shapes
from topoplace.placement.fattree.state import FatTreeState
from topoplace.solving import Options, Outcome, in_turn, register
from topoplace.types import IntArray

Rule = Callable[[FatTree, int], Iterator[Shape]]
"""The shapes that a request may have, in the order in which they are tried."""

STEPS = 3000
"""After so many steps the search of a place of one shape ends: it may be there nevertheless."""


def whole_leaves(tree: FatTree, nodes: int) -> Iterator[Shape]:
    """Yield the shapes of one pod, and those of several on whole leaves but one."""
    return (s for s in shapes(tree, nodes) if not s.alike or s.full == max(tree.sizes))


def _rounded(tree: FatTree, nodes: int) -> Iterator[Shape]:
    """Yield the shapes of one pod, and those of several with nodes rounded up to whole leaves."""
    size = max(tree.sizes)
    yield from (s for s in shapes(tree, nodes) if not s.alike)
    yield from (s for s in whole_leaves(tree, -(-nodes // size) * size) if s.alike)


def _in_turn(rule: Rule, state: FatTreeState, options: Options) -> Outcome:
    """Place requests in queue order, in the shapes of a rule."""
    tree, left = state.tree, state.left.copy()

    def place(q: int) -> Listed | None:
        request = state.requests[q]
        found = place_of(tree, left, request.nodes, rule)
        if found is None:
            return None
        np.subtract.at(left, list(found), 1)
        if len(found) - tree.num_links(found) > request.nodes:  # the rest of it stays unused
            within = np.bincount(found, minlength=tree.num_rows)
            found = place_of(tree, within, request.nodes, whole_leaves)
            assert found is not None, "a place has room for fewer nodes"
        return Listed(q, found, (request.value, -tree.num_links(found)))

    return in_turn(len(state.requests), options, place)


for _name, _rule in (("first-fit", shapes), ("jigsaw", whole_leaves), ("laas", _rounded)):
    register("fattree", _name)(partial(_in_turn, _rule))


@lru_cache(1024)
def shapes_of(tree: FatTree, nodes: int, rule: Rule = shapes) -> tuple[Shape, ...]:
    """Return the shapes that a request may have, by a rule."""
    return tuple(rule(tree, nodes))


def place_of(
    tree: FatTree, left: IntArray, nodes: int, rule: Rule = shapes
) -> tuple[int, ...] | None:
    """Return the rows of the first place of the first shape that has one; None if none is found."""
    return Room(tree, left).first(shapes_of(tree, nodes, rule), STEPS)
