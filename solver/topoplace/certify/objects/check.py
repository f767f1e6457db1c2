"""The claims of a mapping of objects (docs/proofs/objects.md)."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from topoplace.certify.mapping.check import figures_between, read_nodes
from topoplace.certify.mapping.links import Guests, add_link_load
from topoplace.certify.objects.bounds import (
    enumerated,
    object_cuts_value,
    shares_value,
    spread_value,
    tree_hops,
)
from topoplace.certify.objects.instance import Instance, read_objects
from topoplace.certify.report import Claims, Number, Problem, RefusedError
from topoplace.errors import number_of
from topoplace.result.mapping import MappingSolution
from topoplace.result.objects import (
    EnumerationCertificate,
    ObjectCutsCertificate,
    ObjectsFigures,
    ObjectsResult,
    ObjectsSolution,
    SharesCertificate,
    SpreadCertificate,
)
from topoplace.types import IntArray

_HOP_BYTES = 0


class Objects(Problem[ObjectsResult]):
    """A mapping of objects, as the frame asks for it."""

    levels = (("hop-bytes", "min"), ("largest-load", "min"))
    searches = "alone"
    _instance: Instance

    def read(self) -> str:
        """Read the instance and return what it is."""
        self._instance = read_objects(self.result.instance)
        return (
            f"{self._instance.plain.machine.text}, "
            f"{number_of(self._instance.num_objects, 'object')}"
        )

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        instance, solution = self._instance, self.result.solution
        if solution is None:
            return True
        nodes = claims.add(
            "solution",
            lambda: read_places(instance, solution),
            lambda _: "every object has a node, none has too much load, who is fixed stays",
        )
        if nodes is None:
            return False
        values = claims.add(
            "figures",
            lambda: check_figures(instance, nodes, solution.figures),
            lambda found: f"hop-bytes {found[0]}, largest load {found[1]}",
        )
        if values is None:
            return False
        self.values = list(values)
        return True

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves."""
        return self._first if level_idx == _HOP_BYTES else self._proven(level_idx)

    def beside(self, claims: Claims) -> None:
        """Add the claim about the largest link load."""
        own = self._instance
        guests = partial(Guests, own.plain, own.loads, own.room, own.total, own.unit)
        add_link_load(claims, self.result, guests, lambda: self._first[0])

    @cached_property
    def _first(self) -> tuple[int, str]:
        return self._proven(_HOP_BYTES)

    def _proven(self, level_idx: int) -> tuple[int, str]:
        level = self.result.levels[level_idx]
        certificate, claimed, instance = level.certificate, level.bound, self._instance
        if isinstance(certificate, EnumerationCertificate):
            if claimed is None:
                raise RefusedError("a certificate without a bound")
            hops, load = claimed, None
            if level_idx != _HOP_BYTES:
                reached = self.values[_HOP_BYTES]
                assert reached is not None, "asked only with a solution"
                hops, load = int(reached) + 1, claimed - 1
            return claimed, f": {enumerated(instance, certificate, hops, load)}"
        if level_idx != _HOP_BYTES:
            if isinstance(certificate, SpreadCertificate):
                return spread_value(instance), ""
        elif isinstance(certificate, SharesCertificate):
            return shares_value(instance, certificate), ""
        elif isinstance(certificate, ObjectCutsCertificate):
            return object_cuts_value(instance, certificate), ""
        raise RefusedError("the certificate is none of this level")


def read_places(instance: Instance, solution: ObjectsSolution) -> IntArray:
    """Return the node of every object; refuse too much load, and fixed objects elsewhere."""
    nodes = read_nodes(instance.plain, MappingSolution.model_construct(nodes=solution.nodes))
    for one, node in instance.fixed.items():
        if nodes[one] != node:
            raise RefusedError(f"object {one} is on node {nodes[one]}, fixed to node {node}")
    loads = loads_of(instance, nodes)
    for group, (load, width) in loads.items():
        if load > instance.cap * width:
            what = "router" if instance.pooled else "node"
            raise RefusedError(f"{what} {group} has a load of {load}, {instance.cap * width} fits")
    return nodes


def loads_of(instance: Instance, nodes: IntArray) -> dict[int, tuple[int, int]]:
    """Return the load of every node, or router with pooled caps, in use, and its nodes."""
    groups, widths = instance.groups(nodes)
    sums: dict[int, int] = {}
    for group, load in zip(groups.tolist(), instance.loads.tolist(), strict=True):
        sums[group] = sums.get(group, 0) + load
    return {group: (load, int(widths[group])) for group, load in sums.items()}


def check_figures(instance: Instance, nodes: IntArray, claimed: ObjectsFigures) -> tuple[int, int]:
    """Check all figures of a mapping, and return its hop-bytes and largest load."""
    plain, machine = instance.plain, instance.plain.machine
    routers = nodes // machine.nodes_per_router
    sent = routers[plain.sources], routers[plain.targets], plain.sizes
    parts = zip(sent, tree_hops(instance, routers), strict=True)
    sources, targets, sizes = (np.concatenate(part) for part in parts)
    found: dict[str, object] = dict(figures_between(machine, sources, targets, sizes))
    largest = max(-(-load // width) for load, width in loads_of(instance, nodes).values())
    found |= {"largest_load": largest, "used_nodes": len(np.unique(nodes))}
    for name, value in found.items():
        if getattr(claimed, name) != value:
            raise RefusedError(f"{name} is {getattr(claimed, name)}, the mapping has {value}")
    hops = found["hop_bytes"]
    assert isinstance(hops, int)
    return hops, largest
