"""Slurm's topology/torus3d and topology/ring: nodes by name on a torus of ours.

Slurm counts the cells of a torus with x fastest, we count routers with the last dimension fastest.
Dimensions and coordinates are the same: the cell (x, y, z) is our router (x, y, z).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import InputError, number_of
from topoplace.machine.hostlist import (
    count_hosts,
    expand_host_list,
    format_host_list,
    format_node_set,
    parse_node_set,
    require_each_once,
)
from topoplace.snapshot.schema import AnchoredModel, TorusModel
from topoplace.snapshot.state import torus_of
from topoplace.types import BoolArray

Xyz = tuple[int, int, int]


@dataclass(frozen=True)
class Region:
    """A box of cells with as many nodes, x fastest; it does not wrap."""

    anchor: Xyz
    dims: Xyz
    nodes: str


Names = NDArray[np.object_]


def torus_of_regions(
    name: str, dims: Xyz, regions: Iterable[Region], anchored: Sequence[AnchoredModel]
) -> TorusModel:
    """Return the torus of Slurm's regions; cells without a node are service nodes.

    Raises
    ------
    InputError
        With the field ``regions[i].nodes`` and so on.
    """
    bare = TorusModel(name=name, shape=list(dims), source="a Slurm topology.yaml")
    torus_of(bare)
    names: Names = np.full(dims, "", dtype=object)
    known: set[str] = set()
    for idx, region in enumerate(regions):
        _fill(names, region, known, f"regions[{idx}]")
    for idx, placement in enumerate(anchored):
        _require_inside(placement, dims, f"placements[{idx}]")
    by_router = names.ravel()
    empty = np.flatnonzero(_without_node(by_router))
    if len(empty) == len(by_router):
        raise InputError("at least one node", field="nodes", found="none")
    said = {
        "service": format_node_set(empty),
        "names": format_host_list(filter(None, by_router)),
        "anchored": list(anchored) or None,
    }
    return bare.model_copy(update=said)


def _fill(names: Names, region: Region, known: set[str], field: str) -> None:
    for axis, at, length, limit in zip("xyz", region.anchor, region.dims, names.shape, strict=True):
        if at + length > limit:
            expected = f"a region inside the {limit} of the torus, without wrapping"
            raise InputError(expected, field=f"{field}.anchor.{axis}", value=at)
    count = count_hosts(region.nodes, f"{field}.nodes")
    if count != math.prod(region.dims):
        expected = f"{number_of(math.prod(region.dims), 'node')}, as dims has"
        raise InputError(expected, field=f"{field}.nodes", found=str(count))
    own = expand_host_list(region.nodes)
    for node in own:
        if node in known:
            raise InputError("each node once", field=f"{field}.nodes", value=node)
        known.add(node)
    cells = tuple(
        slice(at, at + length) for at, length in zip(region.anchor, region.dims, strict=True)
    )
    if not _without_node(names[cells]).all():
        raise InputError("regions that do not overlap", field=f"{field}.anchor")
    x_fastest: Names = np.array(own, dtype=object).reshape(region.dims[::-1])
    names[cells] = x_fastest.transpose()


def _without_node(names: Names) -> BoolArray:
    return np.asarray(names == "", dtype=bool)


def _require_inside(placement: AnchoredModel, dims: Xyz, field: str) -> None:
    for name, own, least in (
        ("dims", placement.dims, 1),
        ("anchor_seed", placement.seed or (0, 0, 0), 0),
        ("anchor_spacing", placement.spacing or placement.dims, 1),
    ):
        for axis, value, limit in zip("xyz", own, dims, strict=True):
            most = limit - 1 if name == "anchor_seed" else limit
            if not least <= value <= most:
                expected = f"an integer from {least} to {most}, on this torus"
                raise InputError(expected, field=f"{field}.{name}.{axis}", value=value)


def ring_of(name: str, nodes: str) -> TorusModel:
    """Return a ring of nodes in their order, as a torus of one dimension."""
    count = count_hosts(nodes)
    if not 1 <= count <= _MAX_RING:
        raise InputError(f"1 to {_MAX_RING} nodes", field="nodes", found=str(count))
    names = expand_host_list(nodes)
    require_each_once(names, "nodes")
    source = "a Slurm topology.yaml"
    return TorusModel(name=name, shape=[len(names)], names=format_host_list(names), source=source)


_MAX_RING = 16


def regions_of(torus: TorusModel) -> list[Region]:
    """Return the nodes of a torus as regions, as few as growing boxes from the first cell make."""
    shape = (torus.shape[0], torus.shape[1], torus.shape[2])
    names: Names = np.array(torus.node_names, dtype=object).reshape(shape)
    left = ~_without_node(names)
    found = []
    while left.any():
        z, y, x = np.unravel_index(int(left.transpose().argmax()), shape[::-1])
        anchor = (int(x), int(y), int(z))
        cells = _grown(left, anchor)
        left[cells] = False
        dims = (cells[0].stop - anchor[0], cells[1].stop - anchor[1], cells[2].stop - anchor[2])
        own = names[cells].transpose().ravel()
        found.append(Region(anchor, dims, format_host_list(own)))
    return found


def _grown(left: BoolArray, anchor: Xyz) -> tuple[slice, slice, slice]:
    """Return a box of cells that are left, grown from its first along x, then y, then z."""
    box = [slice(at, at + 1) for at in anchor]
    for axis in range(3):
        while box[axis].stop < left.shape[axis]:
            following = list(box)
            following[axis] = slice(box[axis].stop, box[axis].stop + 1)
            if not left[tuple(following)].all():
                break
            box[axis] = slice(box[axis].start, box[axis].stop + 1)
    return box[0], box[1], box[2]


def named_torus(machine: TorusModel) -> TorusModel:
    """Return a torus of three rings, or a ring with names, whose nodes have names.

    Nodes without any are ``n0``, ``n1``, .. by number, but for service ones.

    Raises
    ------
    InputError
        If Slurm has no such torus: of other dimensions, a mesh, or of several nodes on a router.
    """
    torus = torus_of(machine)
    if machine.names is not None and len(machine.shape) == 1:
        return machine
    if len(machine.shape) != 3:
        raise InputError("3 dimensions", field="shape", value=machine.shape)
    if not all(machine.wrap or [True]):
        raise InputError("a torus that wraps everywhere", field="wrap", value=machine.wrap)
    if machine.nodes_per_router != 1:
        expected = "one node on every router"
        raise InputError(expected, field="nodes_per_router", value=machine.nodes_per_router)
    if machine.names is not None:
        return machine
    service = set(parse_node_set(machine.service, torus.num_routers, "service").tolist())
    names = (f"n{k}" for k in range(torus.num_routers) if k not in service)
    return machine.model_copy(update={"names": format_host_list(names)})
