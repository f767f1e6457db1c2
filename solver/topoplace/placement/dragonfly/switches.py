"""Switch trees of other tools that stand for a dragonfly: leaves are routers, below groups."""

from __future__ import annotations

import itertools
from typing import Any

from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list, format_host_list, format_node_set
from topoplace.result.dragonfly import DragonflyModel, network_of
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import Snapshot, TreeModel

_LEVELS = {"leaf": "router", "switch1": "group"}
_OF_LEVELS = ("level", "required", "preferred", "exclusive", "balance")


def dragonfly_of_tree(tree: TreeModel) -> DragonflyModel:
    """Return the dragonfly whose groups are the switches right above leaves.

    Groups and routers that have fewer nodes than the largest are filled up with missing nodes. The
    arrangement of global links is not in such a file; it is the absolute one.

    Raises
    ------
    InputError
        If a leaf is below no switch, or right below several, or not all groups are connected.
    """
    if hierarchy_of(tree).fabrics:
        raise InputError("one switch above all others", field="machine.switches", found="several")
    routers = {own.name: expand_host_list(own.nodes) for own in tree.switches if own.nodes}
    above = {own.name: expand_host_list(own.switches) for own in tree.switches if own.switches}
    groups = {name: own for name, own in above.items() if all(one in routers for one in own)}
    found = sorted(one for own in groups.values() for one in own)
    if found != sorted(routers):
        expected = "one switch right above each leaf switch, that of its group"
        wrong = next(one for one in routers if found.count(one) != 1)
        raise InputError(expected, field="machine.switches", value=wrong)
    size, each = max(map(len, groups.values())), max(map(len, routers.values()))
    names, missing = list[str](), list[int]()
    padded = (own + [""] * (size - len(own)) for own in groups.values())
    rows = [routers.get(one, []) for own in padded for one in own]
    for first, nodes in zip(itertools.count(0, each), rows):
        names += nodes
        missing += range(first + len(nodes), first + each)
    model = DragonflyModel(
        kind="dragonfly",
        name=tree.name,
        groups=len(groups),
        routers=[size],
        nodes=each,
        missing=format_node_set(missing),
        names=format_host_list(names),
        source=tree.source,
    )
    network_of(model)
    return model


def of_switches(found: TreeModel | Snapshot) -> DragonflyModel | Snapshot:
    """Return a switch tree, or a snapshot of one, as a dragonfly, on which nodes are numbers."""
    if not isinstance(found, Snapshot):
        tree = found.only(TreeModel, "a switch tree, for a dragonfly", field="--to")
        return dragonfly_of_tree(tree)
    machine = dragonfly_of_tree(found.on(TreeModel, "a switch tree"))
    number = {name: node for node, name in enumerate(machine.node_names) if name}

    def nodes(text: str) -> str:
        return format_node_set(number[host] for host in (expand_host_list(text) if text else ()))

    def translated(value: Any, key: str = "") -> Any:
        """Return a field with numbers of nodes, and with the names that levels have."""
        if isinstance(value, dict):  # what is planned is for reservations, which are not offered
            return {name: translated(own, name) for name, own in value.items() if name != "planned"}
        if isinstance(value, list):
            return [translated(own) for own in value]
        if key in ("nodes", "excluded", "down") and isinstance(value, str):
            return nodes(value)
        return _LEVELS.get(value, value) if key in _OF_LEVELS else value

    rest: dict[str, Any] = {"by_alias": True, "exclude_none": True, "exclude": {"machine", "sets"}}
    document = translated(found.model_dump(mode="json", **rest)) | {"machine": machine}
    document["sets"] = {name: nodes(text) for name, text in found.sets.items()}
    return Snapshot.model_validate(document)
