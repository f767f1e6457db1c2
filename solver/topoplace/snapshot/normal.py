"""The normal form of an instance, by which two files are told to ask the same question."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.hostlist import MAX_HOSTS, NodeLists, format_host_list, sorted_host_list
from topoplace.snapshot.schema import (
    DEFRAGMENT_SCHEMA,
    MAPPING_SCHEMA,
    REPACK_SCHEMA,
    SNAPSHOT_SCHEMA,
    DefragmentInstance,
    MachineDocument,
    MappingInstance,
    Model,
    RepackInstance,
    Request,
    Snapshot,
    Tidy,
)

Machine = TypeVar("Machine", bound=MachineDocument)
Moving = TypeVar("Moving", RepackInstance, DefragmentInstance)


def normal_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot, whose machine is written out, with node sets in their shortest form.

    Raises
    ------
    InputError
        If it only names its machine.
    """
    machine, tidy = _normal_machine(snapshot.written)
    running = [job.model_copy(update={"nodes": tidy(job.nodes)}) for job in snapshot.running]
    listed = {request.contiguous for request in _requests(snapshot)}  # their order counts

    def of_set(name: str, nodes: str) -> str:
        return format_host_list(NodeLists().hosts(nodes)) if name in listed else tidy(nodes)

    update = {
        "machine": machine,
        "down": tidy(snapshot.down),
        "running": running,
        "sets": {name: of_set(name, nodes) for name, nodes in snapshot.sets.items()},
        "queue": [_normal_request(request, tidy) for request in snapshot.queue],
    }
    return snapshot.model_copy(update=update)


def _requests(snapshot: Snapshot) -> Iterator[Request]:
    """Yield what waits, and what running jobs asked for."""
    yield from snapshot.queue
    yield from (job.asked for job in snapshot.running if job.asked is not None)


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


def normal_moves(instance: Moving) -> Moving:
    """Return an instance of moves with its snapshot in the normal form."""
    return instance.model_copy(update={"snapshot": normal_snapshot(instance.snapshot)})


_FORMS: dict[str, Callable[[Any], Model]] = {
    SNAPSHOT_SCHEMA: normal_snapshot,
    MAPPING_SCHEMA: normal_mapping,
    REPACK_SCHEMA: normal_moves,
    DEFRAGMENT_SCHEMA: normal_moves,
}
"""What brings an instance into its normal form, by its schema."""


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
    document = _FORMS[instance.schema_version](instance).model_dump(mode="json")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


_MOST_DIFFERENCES, _MOST_SHOWN = 3, 60


def differences(one: Any, other: Any) -> list[str]:
    """Return the first fields in which the normal forms of two instances differ, with both values.

    There are none if one has no normal form.
    """
    try:
        documents = [_FORMS[x.schema_version](x).model_dump(mode="json") for x in (one, other)]
    except InputError:
        return []
    found = list(itertools.islice(_differing("", *documents), _MOST_DIFFERENCES + 1))
    return [*found[:_MOST_DIFFERENCES], *["..."] * (len(found) > _MOST_DIFFERENCES)]


def _differing(field: str, one: Any, other: Any) -> Iterator[str]:
    """Yield the fields inside a field in which two documents differ."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys([*one, *other]):
            yield from _differing(f"{field}.{name}".lstrip("."), one.get(name), other.get(name))
        return
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for k, pair in enumerate(zip(one, other, strict=True)):
            yield from _differing(f"{field}[{k}]", *pair)
        return
    yield f"{field} is {_shown(one)}, not {_shown(other)}"


def _shown(value: Any) -> str:
    if isinstance(value, list) and len(value) > _MOST_DIFFERENCES:
        return f"a list of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _normal_machine(machine: Machine) -> tuple[Machine, Tidy]:
    """Return a machine in its normal form, and what shortens sets of its nodes."""
    num_nodes = machine.num_nodes
    lists, names = NodeLists(), NodeLists()
    if num_nodes is not None:
        lists = NodeLists(3 * num_nodes)  # classes, jobs and nodes that are down have each once

    def tidy(nodes: str) -> str:
        if num_nodes is None:
            return sorted_host_list(lists.hosts(nodes))
        return format_node_set(lists.numbers(nodes, num_nodes).tolist())

    return machine.normal(tidy, lambda text: format_host_list(names.hosts(text))), tidy
