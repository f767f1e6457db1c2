"""The normal form of an instance, by which two files are told to ask the same question."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.hostlist import MAX_HOSTS, NodeLists, format_host_list
from topoplace.snapshot.objects import ObjectsInstance
from topoplace.snapshot.schema import (
    AnchoredModel,
    DefragmentInstance,
    MappingInstance,
    MatrixModel,
    RepackInstance,
    Snapshot,
    TorusModel,
    TreeModel,
)

Tidy = Callable[[str], str]


def normal_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot, whose machine is written out, with node sets in their shortest form.

    Raises
    ------
    InputError
        If it only names its machine.
    """
    machine = snapshot.machine
    if isinstance(machine, str):
        raise InputError("a machine that is written out", field="machine", value=machine)
    lists = NodeLists()
    tidy: Tidy = partial(_tidy_hosts, lists)
    if isinstance(machine, TorusModel):
        machine, tidy = _normal_torus(machine)
    elif isinstance(machine, TreeModel):
        machine = _normal_tree(machine)
    running = [job.model_copy(update={"nodes": tidy(job.nodes)}) for job in snapshot.running]
    update = {"machine": machine, "down": tidy(snapshot.down), "running": running}
    return snapshot.model_copy(update=update)


RoutedInstance = TypeVar("RoutedInstance", MappingInstance, ObjectsInstance)


def normal_mapping(instance: RoutedInstance) -> RoutedInstance:
    """Return an instance of a mapping or of objects with its node sets in their shortest form."""
    machine = instance.machine
    if isinstance(machine, TorusModel):
        own, tidy = _normal_torus(machine)
        return instance.model_copy(update={"machine": own, "nodes": tidy(instance.nodes)})
    if isinstance(machine, TreeModel):
        machine = _normal_tree(machine)
    limit = len(machine.distances) if isinstance(machine, MatrixModel) else MAX_HOSTS
    nodes = format_node_set(parse_node_set(instance.nodes, limit).tolist())
    return instance.model_copy(update={"machine": machine, "nodes": nodes})


def sha256_of(
    instance: Snapshot | MappingInstance | ObjectsInstance | RepackInstance | DefragmentInstance,
) -> str:
    """Return the SHA-256 sum of the normal form of an instance, in hexadecimal digits.

    It is that of the JSON document of the normal form with its keys sorted, no spaces, and every
    default written out.

    Raises
    ------
    InputError
        If the instance has no normal form.
    """
    normal: Snapshot | MappingInstance | ObjectsInstance | RepackInstance | DefragmentInstance
    if isinstance(instance, Snapshot):
        normal = normal_snapshot(instance)
    elif isinstance(instance, MappingInstance):
        normal = normal_mapping(instance)
    elif isinstance(instance, RepackInstance | DefragmentInstance):
        normal = instance.model_copy(update={"snapshot": normal_snapshot(instance.snapshot)})
    else:
        normal = normal_mapping(instance)
    document = normal.model_dump(mode="json")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _normal_torus(machine: TorusModel) -> tuple[TorusModel, Tidy]:
    """Return a machine with its defaults written out, and what tidies sets of its nodes."""
    num_nodes = math.prod(machine.shape) * machine.nodes_per_router
    lists = NodeLists(3 * num_nodes)  # classes, jobs and nodes that are down have each once

    def tidy(nodes: str) -> str:
        return format_node_set(lists.numbers(nodes, num_nodes).tolist())

    dims = len(machine.shape)
    update = {
        "wrap": machine.wrap or [True] * dims,
        "bandwidth": machine.bandwidth or [1] * dims,
        "classes": {name: tidy(nodes) for name, nodes in machine.classes.items()},
        "service": tidy(machine.service),
        "anchored": machine.anchored and [_normal_anchored(one) for one in machine.anchored],
    }
    return machine.model_copy(update=update), tidy


def _normal_anchored(shape: AnchoredModel) -> AnchoredModel:
    seed, spacing = shape.seed or [0] * len(shape.dims), shape.spacing or shape.dims
    return shape.model_copy(update={"seed": seed, "spacing": spacing})


def _normal_tree(machine: TreeModel) -> TreeModel:
    """Return a machine with its host lists in their shortest form; their order has a meaning."""
    switches = []
    names = NodeLists()
    for switch in machine.switches:
        lists = switch.model_dump(include={"nodes", "switches"}, exclude_none=True)
        update = {
            field: format_host_list(names.hosts(text, switch.name)) for field, text in lists.items()
        }
        switches.append(switch.model_copy(update=update))
    return machine.model_copy(update={"switches": switches})


def _tidy_hosts(lists: NodeLists, nodes: str) -> str:
    return format_host_list(sorted(lists.hosts(nodes), key=_by_numbers))


def _by_numbers(name: str) -> list[str | int]:
    """Return what sorts n2 before n10: text and numbers in turn."""
    return [int(part) if k % 2 else part for k, part in enumerate(re.split("([0-9]+)", name))]
