"""The problem that methods solve: a prepared snapshot of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topoplace.machine.hierarchy import Hierarchy
from topoplace.snapshot.hierarchy_state import HierarchyRequest, HierarchyState, PartState
from topoplace.types import IntArray

Placed = tuple[Mapping[int, int], ...]
"""Of a request that starts, by part: how many units are on which hosts, each at least one."""

Started = Mapping[int, Placed]
"""What starts, by the number of the request in the queue."""


@dataclass(frozen=True)
class HierarchyProblem:
    """Which requests of a snapshot start, and how many units of each on which hosts."""

    state: HierarchyState
    kind: ClassVar[str] = "hierarchy"

    @property
    def machine(self) -> Hierarchy:
        """The machine."""
        return self.state.machine

    @property
    def requests(self) -> tuple[HierarchyRequest, ...]:
        """The queue, in its order."""
        return self.state.requests

    @property
    def levels(self) -> tuple[tuple[str, str], ...]:
        """Name and sense of every level of the objective."""
        domains = ((name, "min") for name in self.machine.levels)
        return (("nodes", "max"), *domains, ("stranded", "min"))

    def values_of(self, request: HierarchyRequest, placed: Placed) -> tuple[int, ...]:
        """Return what a request that starts adds to every level, as it is reported.

        A domain counts once for every group of parts that has units in it. Stranded is the room
        left, before any other request starts, for units of a part on the hosts that it uses.
        """
        used = []
        for domain_of in self.machine.domain_of:
            pairs = {
                (part.group, int(domain_of[host]))
                for part, hosts in zip(request.parts, placed, strict=True)
                for host in hosts
            }
            used.append(len(pairs))
        stranded = 0
        for part, hosts in zip(request.parts, placed, strict=True):
            own = np.fromiter(hosts, dtype=np.int64, count=len(hosts))
            stranded += int(room(self.state.free[own], part).sum()) - part.units
        return (request.value, *used, stranded)


def room(free: IntArray, part: PartState) -> IntArray:
    """Return how many units of a part hosts hold, of what is free on each.

    Parameters
    ----------
    free
        Shape ``(num_hosts, num_resources)``.
    """
    takes = np.array(part.takes)
    return np.asarray((free[:, takes > 0] // takes[takes > 0]).min(axis=1))
