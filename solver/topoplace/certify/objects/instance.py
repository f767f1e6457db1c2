"""The checker's own reading of an instance of objects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.mapping.instance import Instance as Plain
from topoplace.certify.mapping.instance import Volumes, mutual_volumes, read_instance
from topoplace.certify.report import RefusedError
from topoplace.snapshot.objects import ObjectsInstance
from topoplace.snapshot.schema import GraphApplication, MappingInstance
from topoplace.types import IntArray

MOST_LOAD = 1 << 60
"""All loads together stay below, so that sums of some of them fit 64 bits."""


class Tree(NamedTuple):
    """A multicast from a root to members, or a reduction of what they have, and its bytes."""

    reduces: bool
    root: int
    members: IntArray
    size: int


@dataclass(frozen=True)
class Instance:
    """Objects and the nodes they may go to (docs/proofs/objects.md, "The problem").

    `plain` is the same without loads and trees; `fixed` has the node of every object that has no
    choice.
    """

    plain: Plain
    loads: IntArray
    cap: int
    pooled: bool
    fixed: dict[int, int]
    trees: tuple[Tree, ...]

    @property
    def unit(self) -> int:
        """What the bytes over any link are a multiple of; 0 if nothing is sent."""
        return math.gcd(*self.plain.sizes.tolist(), *(tree.size for tree in self.trees))

    @property
    def num_objects(self) -> int:
        """Number of objects."""
        return len(self.loads)

    @cached_property
    def total(self) -> int:
        """Load of all objects."""
        return sum(self.loads.tolist())

    @cached_property
    def room(self) -> IntArray:
        """Most load on every router, shape ``(num_routers,)``; no more than all there is."""
        nodes = self.plain.usable_nodes.tolist()
        return np.array([min(self.cap * n, self.total) for n in nodes], dtype=np.int64)

    @cached_property
    def volumes(self) -> Volumes:
        """Bytes of every object with each partner, both ways together."""
        return mutual_volumes(self.plain)

    def groups(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the number of what shares a cap, per node, and how many nodes each group has."""
        if not self.pooled:
            return nodes, self.plain.usable.astype(np.int64)
        return nodes // self.plain.machine.nodes_per_router, self.plain.usable_nodes


def read_objects(model: ObjectsInstance) -> Instance:
    """Return the checker's view of an instance."""
    graph = GraphApplication(
        num_tasks=len(model.loads), sources=model.sources, targets=model.targets, bytes=model.bytes
    )
    plain = read_instance(
        MappingInstance(
            schema_version="topoplace.mapping/1",
            name=model.name,
            machine=model.machine,
            nodes=model.nodes,
            tasks_per_node=min(1 << 20, len(model.loads)),
            application=graph,
        )
    )
    if not plain.machine.is_symmetric:
        raise RefusedError("distances differ by direction, those of objects may not")
    fixed: dict[int, int] = {}
    for one in model.fixed:
        if one.object >= len(model.loads) or one.object in fixed:
            raise RefusedError(f"object {one.object} is fixed twice, or is none")
        if one.node >= len(plain.usable) or not plain.usable[one.node]:
            raise RefusedError(f"object {one.object} is fixed to node {one.node}, not in the set")
        fixed[one.object] = one.node
    if model.arrays and sum(math.prod(a.shape) for a in model.arrays) != len(model.loads):
        raise RefusedError("the arrays do not have as many elements as there are loads")
    if sum(model.loads) >= MOST_LOAD:
        raise RefusedError("the loads together do not fit")
    loads = np.asarray(model.loads, dtype=np.int64)
    return Instance(plain, loads, model.cap, model.pooled, fixed, _trees(model, plain))


def _trees(model: ObjectsInstance, plain: Plain) -> tuple[Tree, ...]:
    """Return the trees of an instance, on the links of a torus, whose bytes fit."""
    found = []
    for one in model.trees:
        if max(one.root, *one.members) >= len(model.loads):
            raise RefusedError(f"a tree has object {max(one.root, *one.members)}, there is none")
        members = np.asarray(one.members, dtype=np.int64)
        found.append(Tree(one.kind == "reduction", one.root, members, one.bytes))
    if found:
        torus = plain.torus
        total = plain.total * sum(torus.shape) + sum(t.size for t in found) * torus.num_routers
        require_room(total, "the bytes of messages and trees times all links they may take")
    return tuple(found)
