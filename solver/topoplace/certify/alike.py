"""Alike requests, which a certificate counts as needing the fewest nodes among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from topoplace.certify.instance import Instance, Wish
from topoplace.certify.report import RefusedError


@dataclass(frozen=True)
class _LoweredWish(Wish):
    """A request that counts as needing fewer nodes; its value stays."""

    worth: int = 0

    @property
    def value(self) -> int:
        """Its level-1 value."""
        return self.worth


def with_alike(instance: Instance, groups: Sequence[Sequence[str]]) -> Instance:
    """Return the instance in which requests need the fewest nodes of their group.

    Raises
    ------
    RefusedError
        If the members of a group differ in more than nodes and priority, or are no requests, or a
        request is in two.
    """
    wishes = list(instance.wishes)
    grouped: set[int] = set()
    for names in groups:
        members = []
        for name in names:
            if name not in instance.by_id:
                raise RefusedError(f"{name} among alike requests, which is no request")
            if (idx := instance.by_id[name]) in grouped:
                raise RefusedError(f"{name} twice among alike requests")
            grouped.add(idx)
            members.append(idx)
        kinds = {(wishes[i].class_idx, wishes[i].region, wishes[i].sharing) for i in members}
        if len(kinds) > 1 or any(wishes[i].geometries for i in members):
            raise RefusedError(f"requests {', '.join(names)} are not alike")
        fewest = min((wishes[i].nodes for i in members), default=0)
        for i in members:
            w = wishes[i]
            wishes[i] = _LoweredWish(
                w.id, fewest, w.class_idx, w.priority, w.geometries, w.region, w.sharing,
                worth=w.value,
            )  # fmt: skip
    return replace(instance, wishes=tuple(wishes))
