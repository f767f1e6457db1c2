"""Regular machines from shorthands such as ``torus:8x8x8`` or ``tree:4x6x16``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from topoplace.errors import InputError
from topoplace.machine.hostlist import MAX_HOSTS
from topoplace.snapshot.faults import faults_of
from topoplace.snapshot.hierarchy_state import MAX_LEAVES
from topoplace.snapshot.schema import (
    CubesModel,
    HierarchyModel,
    HostsModel,
    SwitchModel,
    TorusModel,
    TreeModel,
)

_MAX_LEVELS = 16

Made = TypeVar("Made", TorusModel, CubesModel)


def regular_tree(sizes: Sequence[int], spec: str) -> TreeModel:
    """Return the tree with these numbers of children at every level, from the root down.

    The last number is the nodes of a leaf: ``[24, 16]`` has 24 leaves of 16 nodes below a root.
    Switch ``s2-0`` is the first of level 2 (leaves are level 1), node ``n0`` the first of leaf
    ``s1-0``.
    The shorthand `spec` names the machine, and stands in errors.
    """
    num_leaves = math.prod(sizes[:-1])
    if min(sizes) < 1 or len(sizes) > _MAX_LEVELS:
        raise InputError(f"1 to {_MAX_LEVELS} numbers from 1", field="machine", value=spec)
    if num_leaves > MAX_LEAVES or num_leaves * sizes[-1] > MAX_HOSTS // 2:
        expected = f"at most {MAX_LEAVES} leaves and {MAX_HOSTS // 2} nodes"
        raise InputError(expected, field="machine", value=spec)
    switches: list[SwitchModel] = []
    for level, size in enumerate(reversed(sizes), start=1):
        for k in range(math.prod(sizes[: len(sizes) - level])):
            below = f"[{k * size}-{(k + 1) * size - 1}]"
            children = (
                {"nodes": f"n{below}"} if level == 1 else {"switches": f"s{level - 1}-{below}"}
            )
            switches.append(SwitchModel(name=f"s{level}-{k}", **children))
    return TreeModel(kind="tree", name=spec.replace(":", "-"), switches=switches)


def tree_of(
    prefix: str, sizes: Sequence[int], after: Sequence[int] | None, spec: str
) -> TreeModel | None:
    """Return the tree of a shorthand."""
    return regular_tree(sizes, spec) if after is None else None


LEVELS = ("zone", "block", "rack", "host")
"""Names of the levels of a shorthand, from the last number up."""


def regular_hierarchy(
    sizes: Mapping[str, int], capacity: Mapping[str, int], name: str
) -> HierarchyModel:
    """Return the hierarchy with these numbers of domains in every domain of the level above.

    The last level is that of the hosts, which are called ``h0``, ``h1``, ...; the third domain in
    its parent of a level ``rack`` is ``rack2``.

    Raises
    ------
    InputError
        If a number is below 1 or there are too many hosts.
    """
    numbers = list(sizes.values())
    if min(numbers, default=0) < 1 or math.prod(numbers) > MAX_HOSTS // 2:
        expected = f"numbers from 1, and at most {MAX_HOSTS // 2} hosts"
        raise InputError(expected, field="machine", value=name)
    *above, last = numbers
    levels, hosts = list(sizes), []
    for k, at in enumerate(itertools.product(*map(range, above))):
        first = k * last
        domains = [f"{level}{n}" for level, n in zip(levels, at, strict=False)]
        own = f"h[{first}-{first + last - 1}]"
        hosts.append(HostsModel(hosts=own, domains=domains, capacity=dict(capacity)))
    return HierarchyModel(kind="hierarchy", name=name, levels=levels, hosts=hosts)


def hierarchy_of(
    prefix: str, sizes: Sequence[int], after: Sequence[int] | None, spec: str
) -> HierarchyModel | None:
    """Return the hierarchy of a shorthand, ``hierarchy:4x8x18:4`` with four slots on a host."""
    slots = after or [1]
    if len(slots) > 1 or len(sizes) > len(LEVELS):
        return None
    named = dict(zip(LEVELS[-len(sizes) :], sizes, strict=True))
    return regular_hierarchy(named, {"slots": slots[0]}, spec.replace(":", "-"))


def torus_of(
    prefix: str, shape: Sequence[int], after: Sequence[int] | None, spec: str
) -> TorusModel | None:
    """Return the torus or mesh of a shorthand, ``torus:8x8x8:2`` with two nodes on a router."""
    nodes, wraps = after or [1], prefix == "torus"
    if len(nodes) > 1:
        return None
    fields = {"shape": [*shape], "nodes_per_router": nodes[0]}
    return _made(TorusModel, "torus:8x8x8", spec, fields, wrap=[wraps] * len(shape))


def pod_of(
    prefix: str, cubes: Sequence[int], after: Sequence[int] | None, spec: str
) -> CubesModel | None:
    """Return the pod of a shorthand, ``cubes:64:4x4x4`` with 64 cubes of 64 chips."""
    side = [*(after or (4, 4, 4))]
    if len(cubes) > 1:
        return None
    fields = {"cubes": cubes[0], "side": side}
    return _made(CubesModel, "cubes:64:4x4x4", spec, fields, kind="cubes")


def _made(
    model: type[Made], example: str, spec: str, fields: Mapping[str, Any], **more: Any
) -> Made:
    """Return a machine of fields that a shorthand has; what is wrong with one is said of that."""
    try:
        return model(name=spec.replace(":", "-"), **fields, **more)
    except ValidationError as error:
        fault = faults_of(error, model, fields)
        expected = f"a shorthand such as {example}, its {fault.field} {fault.expected}"
        raise InputError(expected, field="machine", value=spec) from None
