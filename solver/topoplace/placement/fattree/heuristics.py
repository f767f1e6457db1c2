"""First fit, and the rules of Jigsaw and LaaS: each request in turn, where it may be at first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from topoplace.machine.fattree import FatTree
from topoplace.packing.listed import Listed
from topoplace.placement.fattree.places import Room, Shape, shapes
from topoplace.placement.fattree.state import FatTreeState
from topoplace.solving import Options, Outcome, in_turn, register

Rule = Callable[[FatTree, int], Iterable[Shape]]
"""The shapes that a request may have, in the order in which they are tried."""


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
        found = Room(tree, left).first(rule(tree, request.nodes))
        if found is None:
            return None
        np.subtract.at(left, list(found), 1)
        if len(found) - tree.num_links(found) > request.nodes:  # the rest of it stays unused
            within = np.bincount(found, minlength=tree.num_rows)
            found = Room(tree, within).first(whole_leaves(tree, request.nodes))
            assert found is not None, "a place has room for fewer nodes"
        return Listed(q, found, (request.value, -tree.num_links(found)))

    return in_turn(len(state.requests), options, place)


for _name, _rule in (("first-fit", shapes), ("jigsaw", whole_leaves), ("laas", _rounded)):
    register("fattree", _name)(partial(_in_turn, _rule))
