"""The normal form of an instance, by which two files are told to ask the same question."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TypeVar

from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.hostlist import MAX_HOSTS, NodeLists, format_host_list
from topoplace.snapshot.schema import (
    DefragmentInstance,
    MachineDocument,
    MappingInstance,
    RepackInstance,
    Request,
    Snapshot,
    Tidy,
)

Machine = TypeVar("Machine", bound=MachineDocument)


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
    machine, tidy = _normal_machine(machine)
    running = [job.model_copy(update={"nodes": tidy(job.nodes)}) for job in snapshot.running]
    update = {
        "machine": machine,
        "down": tidy(snapshot.down),
        "running": running,
        "sets": {name: tidy(nodes) for name, nodes in snapshot.sets.items()},
        "queue": [_normal_request(request, tidy) for request in snapshot.queue],
    }
    return snapshot.model_copy(update=update)


def _normal_request(request: Request, tidy: Tidy) -> Request:
    update: dict[str, object] = {}
    if request.excluded is not None:
        update["excluded"] = tidy(request.excluded)
    if request.parts is not None and any(part.excluded is not None for part in request.parts):
        update["parts"] = [
            part.model_copy(update={"excluded": tidy(part.excluded)}) if part.excluded else part
            for part in request.parts
        ]
    return request.model_copy(update=update) if update else request


def normal_mapping(instance: MappingInstance) -> MappingInstance:
    """Return an instance of a mapping with its node sets in their shortest form."""
    machine, _ = _normal_machine(instance.machine)
    numbers = parse_node_set(instance.nodes, machine.num_nodes or MAX_HOSTS)
    nodes = format_node_set(numbers.tolist())
    return instance.model_copy(update={"machine": machine, "nodes": nodes})


def sha256_of(
    instance: Snapshot | MappingInstance | RepackInstance | DefragmentInstance,
) -> str:
    """Return the SHA-256 sum of the normal form of an instance, in hexadecimal digits.

    It is that of the JSON document of the normal form with its keys sorted, no spaces, and every
    default written out.

    Raises
    ------
    InputError
        If the instance has no normal form.
    """
    normal: Snapshot | MappingInstance | RepackInstance | DefragmentInstance
    if isinstance(instance, Snapshot):
        normal = normal_snapshot(instance)
    elif isinstance(instance, RepackInstance | DefragmentInstance):
        normal = instance.model_copy(update={"snapshot": normal_snapshot(instance.snapshot)})
    else:
        normal = normal_mapping(instance)
    document = normal.model_dump(mode="json")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _normal_machine(machine: Machine) -> tuple[Machine, Tidy]:
    """Return a machine in its normal form, and what shortens sets of its nodes."""
    num_nodes = machine.num_nodes
    lists, names = NodeLists(), NodeLists()
    if num_nodes is not None:
        lists = NodeLists(3 * num_nodes)  # classes, jobs and nodes that are down have each once

    def tidy(nodes: str) -> str:
        if num_nodes is None:
            return format_host_list(sorted(lists.hosts(nodes), key=_by_numbers))
        return format_node_set(lists.numbers(nodes, num_nodes).tolist())

    return machine.normal(tidy, lambda text: format_host_list(names.hosts(text))), tidy


def _by_numbers(name: str) -> list[str | int]:
    """Return what sorts n2 before n10: text and numbers in turn."""
    return [int(part) if k % 2 else part for k, part in enumerate(re.split("([0-9]+)", name))]
