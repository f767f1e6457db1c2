"""The instance of a repacking that a user asks for; `InputError` names what is wrong with it."""

from __future__ import annotations

from typing import Any

from topoplace.errors import InputError, unknown_name
from topoplace.options import Repack, names_of
from topoplace.snapshot.held import candidates_of
from topoplace.snapshot.schema import (
    MAX_COST,
    MAX_MOVES,
    DefragmentInstance,
    KeepShape,
    RepackInstance,
    Room,
    Snapshot,
    TorusModel,
)


def instance_of(snapshot: Snapshot, asked: Repack) -> RepackInstance | DefragmentInstance:
    """Return an instance in which requests have to start, or moves of some cost free space.

    The space is for the queue by default, if there is one.
    """
    start, defragment, room = names_of(asked.start), asked.defragment, asked.room
    shared = _shared(snapshot, asked)
    if defragment is None:
        if not start:
            raise InputError("requests to start", field="start", found="none")
        for name, given in (("room", room), ("node_class", asked.node_class)):
            if given is not None:
                raise InputError("defragment beside it", field=name, value=given)
        return RepackInstance(start=[*start], **shared)
    if start:
        raise InputError("no requests beside defragment", field="start", value=",".join(start))
    if not 0 <= defragment <= MAX_MOVES:
        raise InputError(f"from 0 to {MAX_MOVES}", field="defragment", value=defragment)
    room = room or (Room.QUEUE if candidates_of(snapshot) else Room.PRISM)
    if room not in list(Room):
        raise unknown_name(room, Room, field="room")
    if room == Room.QUEUE and not candidates_of(snapshot):
        raise InputError("requests that wait, or room for a prism", field="room", value=room)
    node_class = asked.node_class
    if room == Room.QUEUE and node_class is not None:
        raise InputError("room for a prism", field="node_class", value=node_class)
    if node_class is not None:
        machine = snapshot.on(TorusModel, "a torus or mesh machine")
        known = [machine.default_class, *machine.classes]
        if node_class not in known:
            raise unknown_name(node_class, known, field="node_class")
    return DefragmentInstance(most=defragment, room=Room(room), node_class=node_class, **shared)


def _shared(snapshot: Snapshot, asked: Repack) -> dict[str, Any]:
    """Return the fields of all instances: the snapshot, and what running jobs may do."""
    if asked.keep_shape not in list(KeepShape):
        raise unknown_name(asked.keep_shape, KeepShape, field="keep_shape")
    for name, cost in (asked.costs or {}).items():
        if not 1 <= cost <= MAX_COST:
            raise InputError(f"from 1 to {MAX_COST}", field=f"costs.{name}", value=cost)
    return {
        "name": snapshot.name,
        "snapshot": snapshot,
        "fixed": [*names_of(asked.fixed)],
        "costs": dict(asked.costs or {}),
        "keep_shape": KeepShape(asked.keep_shape),
    }
