"""Slurm's topology/tree as a hierarchy: the levels of switches are levels of domains."""

from __future__ import annotations

from topoplace.errors import InputError
from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.readers.slurm_blocks import NODE
from topoplace.snapshot.schema import (
    Communication,
    HierarchyModel,
    HostsModel,
    Snapshot,
    TreeModel,
)
from topoplace.snapshot.tree_state import tree_of


def hierarchy_of_tree(model: TreeModel) -> HierarchyModel:
    """Return the hierarchy of a switch tree: levels ``switch1``, ``switch0``, ``node``.

    Switches are numbered by level as Slurm does: those with nodes are level 0.

    Raises
    ------
    InputError
        With the field ``switch NAME``, if a switch has two parents, or leaves are not all equally
        deep.
    """
    tree = tree_of(model)
    depth = tree.switches[-1].level
    path_of: list[list[str]] = [[] for _ in range(tree.num_leaves)]
    for switch in reversed(tree.switches):
        for leaf in switch.leaves:
            if len(path_of[leaf]) != depth - switch.level:
                expected = "every leaf below one switch of each level"
                raise InputError(expected, field=f"switch {switch.name}")
            path_of[leaf].append(switch.name)
    names: list[list[str]] = [[] for _ in path_of]
    for name, leaf in zip(tree.node_names, tree.leaf_of_node.tolist(), strict=True):
        names[leaf].append(name)
    return HierarchyModel(
        kind="hierarchy",
        name=model.name,
        levels=[*(f"switch{level}" for level in reversed(range(depth))), NODE],
        hosts=[
            HostsModel(hosts=format_host_list(own), domains=path)
            for own, path in zip(names, path_of, strict=True)
        ],
        source=model.source,
    )


def on_switches(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of a switch tree as one of its hierarchy; others are returned as they are.

    Its machine is written out (`topoplace.snapshot.machines.resolve_machine`). How jobs communicate
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
