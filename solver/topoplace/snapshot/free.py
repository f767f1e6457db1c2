"""Domains that stay free as a whole, as a level of the objective: ``free_racks`` and so on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topoplace.errors import InputError, plural_of, unknown_name
from topoplace.snapshot.schema import Order, Snapshot

PREFIX = "free_"


def free_name(level: str) -> str:
    """Return what the objective calls free domains of a level, such as ``free_racks``."""
    return f"{PREFIX}{plural_of(level)}"


def free_in(names: Iterable[str]) -> str | None:
    """Return the first of the names of levels that is one of free domains; None without any."""
    return next((name for name in names if name.startswith(PREFIX)), None)


def free_of(objective: str | None) -> str | None:
    """Return the second level of an objective such as ``nodes,free_racks``; None of others."""
    first, _, second = (objective or "").replace(" ", "").partition(",")
    return second if first == "nodes" and second.startswith(PREFIX) else None


def freeing(snapshot: Snapshot, name: str, levels: Sequence[str]) -> Snapshot:
    """Return a snapshot in which free domains count, of the machine's level that a name is of.

    Raises
    ------
    InputError
        If the machine has no such level.
    """
    named = {free_name(level): level for level in levels}
    if name not in named:
        raise unknown_name(name, named, field="objective")
    return snapshot.model_copy(update={"free": named[name]})


def require_free_level(snapshot: Snapshot, levels: Sequence[str] = ()) -> None:
    """Raise `InputError` if free domains count and are not of one of some levels, or in an order.

    There are none by contention, and on machines other than hierarchies and trees. No request may
    have a domain above them for itself: those that it leaves empty would be neither used nor free.
    """
    if snapshot.free is None:
        return
    if not levels:
        expected = "no level but on hierarchies, and on trees by domains"
        raise InputError(expected, field="free", value=snapshot.free)
    if snapshot.free not in levels:
        raise unknown_name(snapshot.free, levels, field="free")
    if snapshot.order is not Order.VALUE:
        expected = "value where free domains count"
        raise InputError(expected, field="order", value=str(snapshot.order))
    above = levels[: levels.index(snapshot.free)]
    for idx, request in enumerate(snapshot.queue):
        for part in request.parts or (request,):
            if part.exclusive in above:
                expected = f"no level above {snapshot.free}, of which free ones count"
                raise InputError(expected, field=f"queue[{idx}].exclusive", value=part.exclusive)
