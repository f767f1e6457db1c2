"""Switch trees written out as hierarchies, whose documents audits work on."""

from __future__ import annotations

from topoplace.errors import InputError
from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import (
    Communication,
    HierarchyModel,
    HostsModel,
    Snapshot,
    TreeModel,
)

MAX_LEVELS = 16
"""Of a document of a hierarchy."""


def hierarchy_of_tree(model: TreeModel) -> HierarchyModel:
    """Return the hierarchy that a switch tree is read as, written out.

    Its levels are those of `topoplace.machine.hierarchy.hierarchy_of_switches`.

    Raises
    ------
    InputError
        If the switches have no levels, or too many.
    """
    machine = hierarchy_of(model)
    if machine.num_levels > MAX_LEVELS:
        expected = f"at most {MAX_LEVELS} levels of switches and nodes"
        raise InputError(expected, field="switches", found=str(machine.num_levels))
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *path in zip(machine.host_names, *machine.paths, strict=True):
        names.setdefault(tuple(path), []).append(name)
    return HierarchyModel(
        kind="hierarchy",
        name=model.name,
        levels=list(machine.levels),
        hosts=[
            HostsModel(hosts=format_host_list(own), domains=list(path))
            for path, own in names.items()
        ],
        fabrics=machine.fabrics,
        source=model.source,
    )


def on_switches(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of a switch tree as one of its hierarchy; others are returned as they are.

    Its machine is resolved (`topoplace.snapshot.machines.resolve_machine`). How jobs communicate
    has no form there, and is left out.

    Raises
    ------
    InputError
        As of `hierarchy_of_tree`.
    """
    if not isinstance(snapshot.machine, TreeModel):
        return snapshot
    plain = {"patterns": None, "communication": Communication.STRICT}
    return snapshot.model_copy(
        update={
            "machine": hierarchy_of_tree(snapshot.machine),
            "running": [job.model_copy(update=plain) for job in snapshot.running],
            "queue": [request.model_copy(update=plain) for request in snapshot.queue],
        }
    )
