"""What the value of a request counts, as the checker reads it (docs/reference/formats.md)."""

from __future__ import annotations

import re

from topoplace.certify.report import RefusedError
from topoplace.snapshot.schema import (
    Counted,
    HierarchyModel,
    Order,
    Request,
    Snapshot,
    TreeModel,
)

_GPU = re.compile(r"(?:.*/)?gpus?")


def require_value(snapshot: Snapshot) -> None:
    """Refuse what cannot count: values in an order, GPUs or free domains where there are none."""
    counted, machine = snapshot.value, snapshot.written
    if snapshot.free is not None and not isinstance(machine, HierarchyModel | TreeModel):
        raise RefusedError("free domains of a level on a machine without levels")
    if counted is not Counted.NODES and snapshot.order is not Order.VALUE:
        raise RefusedError(f"a value in {counted} where an order decides who starts")
    if counted is Counted.GPUS:
        hosts = machine.hosts if isinstance(machine, HierarchyModel) else []
        if not any(n and _GPU.fullmatch(name) for h in hosts for name, n in h.capacity.items()):
            raise RefusedError("a value in GPUs on a machine without any")


def value_of(request: Request, counted: Counted) -> tuple[int, int]:
    """Return the value of a request, and its weighted nodes if it has none of what is counted."""
    if counted is Counted.JOBS:
        each = 1
    elif counted is Counted.NODES:
        each = request.nodes
    else:
        each = 0
        for part in [request] if request.parts is None else request.parts:
            taken = (part.takes or {}).items()
            each += part.nodes * sum(n for name, n in taken if _GPU.fullmatch(name))
    return request.priority * each, 0 if each else request.priority * request.nodes
