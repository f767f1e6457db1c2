"""Whether a machine given by name is one that the rest of a snapshot speaks of."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from topoplace.errors import InputError
from topoplace.snapshot.schema import PrismModel, Snapshot, TorusModel, TreeModel

_LETTER = re.compile(r"[A-Za-z_]")
_NUMBER = re.compile(r"\d+")


def require_suited(snapshot: Snapshot, machine: TorusModel | TreeModel) -> None:
    """Raise `InputError` if all else in a snapshot is about another machine than the one it names.

    Else every node and prism of the snapshot would be blamed for what is wrong with the machine.
    """
    spec = str(snapshot.machine)
    fault = _tree_fault(snapshot) if isinstance(machine, TreeModel) else _fault(snapshot, machine)
    if fault:
        raise InputError(fault, field="machine", value=spec)


def _tree_fault(snapshot: Snapshot) -> str | None:
    first = next(_prisms(snapshot), None)
    return None if first is None else f"a torus or mesh, as {first[0]} is a prism"


def _fault(snapshot: Snapshot, machine: TorusModel) -> str | None:
    """Return what machine would suit; None if this torus may be the one meant."""
    dims = [(field, len(prism.extents)) for field, prism in _prisms(snapshot)]
    if dims and all(d == dims[0][1] != len(machine.shape) for _, d in dims):
        field, wanted = dims[0]
        return f"a machine of {wanted} dimensions, as {field} has"
    sets = list(_node_sets(snapshot))
    if sets and all(_LETTER.search(text) for _, text in sets):
        return f"a tree machine, as {sets[0][0]} has names of nodes"
    num_nodes = math.prod(machine.shape) * machine.nodes_per_router
    most = [(max(map(int, _NUMBER.findall(text)), default=0), field) for field, text in sets]
    if sum(high >= num_nodes for high, _ in most) > len(most) / 2:
        high, field = max(most)
        return f"a machine of more than {num_nodes} nodes, as {field} has node {high}"
    return None


def _prisms(snapshot: Snapshot) -> Iterator[tuple[str, PrismModel]]:
    for idx, job in enumerate(snapshot.running):
        if job.prism is not None:
            yield f"running[{idx}].prism", job.prism
    for name, prisms in snapshot.regions.items():
        yield from ((f"regions.{name}[{idx}]", prism) for idx, prism in enumerate(prisms))


def _node_sets(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the node sets that are not empty, each with its field."""
    sets = [("down", snapshot.down)]
    sets += [(f"running[{idx}].nodes", job.nodes) for idx, job in enumerate(snapshot.running)]
    yield from ((field, text) for field, text in sets if text.strip())
