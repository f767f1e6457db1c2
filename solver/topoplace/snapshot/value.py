"""What the value of a request counts: nodes, GPUs or jobs, each times its priority."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from topoplace.errors import InputError, unknown_name
from topoplace.snapshot.free import require_free_level
from topoplace.snapshot.schema import (
    WITHOUT_GPUS,
    Counted,
    HierarchyModel,
    Order,
    Request,
    Snapshot,
    TreeModel,
)

STARTED_LEVELS: Final = ("nodes", WITHOUT_GPUS)
"""The levels that depend only on who starts."""

_ALSO: Final = {"pods": Counted.NODES}


def gpus_in(amounts: Mapping[str, int]) -> int:
    """Return how many GPUs are in amounts: resources ``gpu``, ``gpus`` or ``nvidia.com/gpu``."""
    return sum(n for name, n in amounts.items() if name.rpartition("/")[2] in ("gpu", "gpus"))


def has_gpus(snapshot: Snapshot) -> bool:
    """Return whether a host of a machine has GPUs."""
    machine = snapshot.written
    return isinstance(machine, HierarchyModel) and any(gpus_in(h.capacity) for h in machine.hosts)


def valued_in(snapshot: Snapshot, value: str) -> Snapshot:
    """Return a snapshot in which the value of requests counts nodes (or pods), GPUs or jobs.

    Raises
    ------
    InputError
        If there is no such value, or in an order.
    """
    counted = _ALSO.get(value, value)
    if counted not in list(Counted):
        raise unknown_name(value, [*Counted, *_ALSO], field="value")
    if snapshot.order is not Order.VALUE:
        expected = f"none in the order {snapshot.order}, which decides who starts"
        raise InputError(expected, field="value", value=value)
    return snapshot.model_copy(update={"value": Counted(counted)})


def require_value(snapshot: Snapshot) -> None:
    """Raise `InputError` if the value of requests cannot count what it should, or free domains."""
    if snapshot.free is not None and not isinstance(snapshot.written, HierarchyModel | TreeModel):
        require_free_level(snapshot)
    if snapshot.value is Counted.NODES:
        return
    if snapshot.order is not Order.VALUE:
        expected = f"nodes in the order {snapshot.order}, which decides who starts"
        raise InputError(expected, field="value", value=str(snapshot.value))
    if snapshot.value is Counted.GPUS and not has_gpus(snapshot):
        expected = "nodes or jobs, as no host has GPUs (a resource gpu, gpus or VENDOR/gpu)"
        raise InputError(expected, field="value", value=str(snapshot.value))


def value_of(request: Request, counted: Counted) -> int:
    """Return what starting a request adds to the first level of the objective."""
    if counted is Counted.JOBS:
        return request.priority
    if counted is Counted.NODES:
        return request.priority * request.nodes
    parts = request.parts or (request,)
    return request.priority * sum(part.nodes * gpus_in(part.takes or {}) for part in parts)
