"""Snapshots that are changed a little: nodes down or free, a job more or less, other weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.machine.hierarchy import PLACES, Hierarchy
from topoplace.machine.hostlist import (
    expand_host_list,
    format_host_list,
    format_node_set,
    parse_node_set,
)
from topoplace.snapshot.files import parse_object, validated
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.running import job_name
from topoplace.snapshot.schema import (
    HierarchyModel,
    MachineModel,
    Model,
    Request,
    ShapeWeights,
    Snapshot,
    TorusModel,
    TreeModel,
)

Change = tuple[str, Any]
"""What is changed, a name of `KINDS`, and how: as texts, or as a request and weights."""

Made = TypeVar("Made", bound=Model)

_LONGEST = 40  # characters of a name


def changed(snapshot: Snapshot, changes: Sequence[Change]) -> Snapshot:
    """Return a snapshot after some changes, one after the other; `prepare_any` checks it.

    The machine of the snapshot, which is valid, is written out, not named.

    Raises
    ------
    InputError
        If there is no such change, or nothing to which it could be made.
    """
    for kind, value in changes:
        if kind not in KINDS:
            raise unknown_name(kind, KINDS, field="changes")
        snapshot = KINDS[kind](snapshot, value)
    return snapshot


def named(changes: Sequence[Change]) -> str:
    """Return a name for changes, such as ``without-job a``."""
    return " + ".join(f"{kind.replace('_', '-')} {_short(value)}" for kind, value in changes)


def request_of(value: Request | Mapping[str, Any] | str) -> Request:
    """Return a request from its fields, or from the text of a JSON object with these."""
    return value if isinstance(value, Request) else _made(Request, value)


def weights_of(value: ShapeWeights | Mapping[str, int], before: ShapeWeights) -> ShapeWeights:
    """Return the weights of before, except for those given."""
    if isinstance(value, ShapeWeights):
        return value
    if not isinstance(value, Mapping):
        raise InputError("weights by their names", value=value)
    return _made(ShapeWeights, {**before.model_dump(), **value})


def _made(model: type[Made], value: Mapping[str, Any] | str) -> Made:
    text = (value if isinstance(value, str) else json.dumps(value, default=str)).encode()
    return validated(text, parse_object(text, ""), model, "")


def _short(value: Any) -> str:
    if isinstance(value, Request):
        text = value.id
    elif isinstance(value, ShapeWeights):
        text = _short(value.model_dump())
    elif isinstance(value, Mapping):
        weights = ",".join(f"{name}={number}" for name, number in value.items())
        text = str(value.get("id", weights))
    else:
        text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def known_nodes(machine: MachineModel, text: str) -> list[Any]:
    """Return the nodes of a text: their numbers, or names where nodes have names.

    A domain stands for all nodes below it: by its name, such as a switch, or by the names on its
    path, such as ``row1/rack2``.
    """
    if not isinstance(text, str):
        raise InputError("nodes as text, such as 0-3,8", value=text)
    if isinstance(machine, TreeModel | HierarchyModel):
        hierarchy = hierarchy_of(machine)
        items = text.split(",")
        paths = [item.strip() for item in items if "/" in item]
        names = expand_host_list(",".join(item for item in items if "/" not in item), "")
        return [node for name in (*paths, *names) for node in _below(hierarchy, name)]
    if machine.num_nodes is None:
        return expand_host_list(text, "")
    return list(parse_node_set(text, machine.num_nodes, "").tolist())


def _below(machine: Hierarchy, name: str) -> list[str]:
    """Return a node, or those of a domain, by its name."""
    if name in machine.numbers:
        return [name]
    found = [
        machine.domain_of[level] == domain
        for level, own in enumerate(machine.own_names)
        for domain, short in enumerate(own)
        if name in (short, machine.domain_names[level][domain])
    ]
    if any((one != found[0]).any() for one in found):
        raise InputError("the whole path of a domain, as several have the name", value=name)
    if not found:
        raise InputError("nodes, switches or domains of the machine", value=name)
    return [machine.host_names[host] for host in np.flatnonzero(found[0]).tolist()]


def _text_of(machine: MachineModel, nodes: Iterable[Any]) -> str:
    return (format_host_list if machine.num_nodes is None else format_node_set)(nodes)


def _add_down(snapshot: Snapshot, value: str) -> Snapshot:
    machine = snapshot.written
    before, more = (known_nodes(machine, text) for text in (snapshot.down, value))
    down = dict.fromkeys([*before, *more])
    return snapshot.model_copy(update={"down": _text_of(machine, down)})


def _free(snapshot: Snapshot, value: str) -> Snapshot:
    machine = snapshot.written
    freed = set(known_nodes(machine, value))
    down = known_nodes(machine, snapshot.down)
    serving: str | None = getattr(machine, "service", None)
    service = [] if serving is None else known_nodes(machine, serving)
    for node in sorted(freed.difference(down, service)):
        expected = f"nodes that are down{'' if serving is None else ' or service nodes'}"
        raise InputError(expected, found=f"node {node}")
    left, serve = ([node for node in one if node not in freed] for one in (down, service))
    if serve != service:
        machine = machine.model_copy(update={"service": _text_of(machine, serve)})
    return snapshot.model_copy(update={"down": _text_of(machine, left), "machine": machine})


def _without_job(snapshot: Snapshot, value: str) -> Snapshot:
    names = [*map(job_name, snapshot.running), *(job.id for job in snapshot.queue)]
    if value not in names:
        raise InputError("a job that runs or waits", value=value, known=names)
    running = [job for job in snapshot.running if job_name(job) != value]
    queue = [job for job in snapshot.queue if job.id != value]
    left_out = [one for one in snapshot.left_out if one.request != value]
    update = {"running": running, "queue": queue, "left_out": left_out}
    return snapshot.model_copy(update=update)


def _with_request(snapshot: Snapshot, value: Request | Mapping[str, Any] | str) -> Snapshot:
    request = request_of(value)
    if request.takes is None and request.parts is None:
        machine = snapshot.written
        names = {name for one in getattr(machine, "hosts", ()) for name in one.capacity}
        if names and not names & {"slots", PLACES}:
            expected = f"what a unit takes, of {', '.join(sorted(names))}"
            raise InputError(expected, field="takes", found="nothing")
        request = request.model_copy(update={"takes": _whole_node(machine)})
    return snapshot.model_copy(update={"queue": [*snapshot.queue, request]})


def _whole_node(machine: MachineModel) -> dict[str, int] | None:
    """Return what a whole node is where Slurm's jobs share nodes; None on other machines."""
    hosts = getattr(machine, "hosts", ())
    places = max((group.capacity.get(PLACES, 0) for group in hosts), default=0)
    return {PLACES: places} if places else None


def _weights(snapshot: Snapshot, value: ShapeWeights | Mapping[str, int]) -> Snapshot:
    snapshot.on(TorusModel, "no weights but on tori and meshes")
    return snapshot.model_copy(update={"weights": weights_of(value, snapshot.weights)})


KINDS: dict[str, Callable[[Snapshot, Any], Snapshot]] = {
    "add_down": _add_down,
    "free": _free,
    "without_job": _without_job,
    "with_request": _with_request,
    "weights": _weights,
}
"""What can be changed in a snapshot, and who does it."""
