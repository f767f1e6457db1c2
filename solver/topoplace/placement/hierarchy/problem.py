"""The problem that methods solve: a prepared snapshot of a hierarchy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import NodeLists
from topoplace.snapshot.free import free_name
from topoplace.snapshot.hierarchy_state import HierarchyRequest, HierarchyState, PartState
from topoplace.snapshot.schema import WITHOUT_GPUS
from topoplace.snapshot.sets import HostSet
from topoplace.solving.registry import Options
from topoplace.types import BoolArray, IntArray, Levels

Placed = tuple[Mapping[int, int], ...]
"""For a request that starts, by part: how many units are on which hosts, each at least one."""

Started = Mapping[int, Placed]
"""The started requests, by their number in the queue."""


@dataclass(frozen=True)
class HierarchyProblem:
    """A snapshot, for which methods decide what starts, with how many units on which hosts."""

    state: HierarchyState
    kind: ClassVar[str] = "hierarchy"

    @property
    def machine(self) -> Hierarchy:
        """The machine."""
        return self.state.machine

    @property
    def beside(self) -> Mapping[str, Mapping[str, Any]]:
        """By name, the MiniZinc models that add rules to `hierarchy.mzn`, each with its data."""
        return {}

    @property
    def requests(self) -> tuple[HierarchyRequest, ...]:
        """The queue, in its order."""
        return self.state.requests

    @cached_property
    def levels(self) -> Levels:
        """Name and sense of every level of the objective (docs/guide/hierarchies.md)."""
        requests = self.requests
        balanced = any(part.balance is not None for own in requests for part in own.parts)
        mixed = any(own.without_gpus for own in requests)
        return levels_of(self.machine, balanced, mixed, self.state.snapshot.free)

    @property
    def free_name(self) -> str | None:
        """What the level of the objective is called that counts free domains, or None."""
        free = self.state.snapshot.free
        return None if free is None else free_name(free)

    @cached_property
    def free_level(self) -> int | None:
        """The number of this level, or None."""
        return None if self.free_name is None else self.levels.index((self.free_name, "max"))

    @cached_property
    def free_domains(self) -> IntArray:
        """The domains that are free as a whole now, of the level of which these count."""
        snapshot, machine = self.state.snapshot, self.machine
        if snapshot.free is None:
            return np.zeros(0, dtype=np.int64)
        down = [machine.numbers[name] for name in NodeLists().hosts(snapshot.down, "down")]
        busy = [*down, *np.flatnonzero(self.state.occupied).tolist()]
        return np.flatnonzero(machine.without(machine.levels.index(snapshot.free), busy))

    @cached_property
    def free_hosts(self) -> frozenset[int]:
        """Those of these domains, where each is a host of its own."""
        is_last = self.state.snapshot.free == self.machine.levels[-1]
        return frozenset(self.free_domains.tolist() if is_last else ())

    def num_free(self, started: Started) -> int:
        """Return how many of these domains get no unit."""
        free, machine = self.state.snapshot.free, self.machine
        if free is None:
            return 0
        used = {host for placed in started.values() for hosts in placed for host in hosts}
        left = machine.without(machine.levels.index(free), sorted(used))
        return int(left[self.free_domains].sum())

    def values_of(self, request: HierarchyRequest, placed: Placed) -> tuple[int, ...]:
        """Return the contribution of a started request to every level, as it is reported.

        A domain counts once for every group of parts that has units in it. Balance is the sum over
        the parts that ask for it of the fewest units in a domain used. Stranded is the room left,
        before any other request starts, for units of a part on the hosts that it uses, of which
        each is eligible. To free domains a request adds nothing (`num_free`).
        """
        machine, free = self.machine, self.state.free
        together = list(zip(request.parts, placed, strict=True))
        used = [
            len({(part.group, int(of[host])) for part, hosts in together for host in hosts})
            for of in machine.domain_of
        ]
        balance = sum(
            min(units_by_domain(machine, part.balance, hosts).values())
            for part, hosts in together
            if part.balance is not None
        )
        stranded = sum(
            int(held(free[list(hosts)], part.takes).sum()) - part.units for part, hosts in together
        )
        found = {"nodes": request.value, WITHOUT_GPUS: request.without_gpus}
        found |= {"balance": balance, "stranded": stranded}
        found |= dict(zip(machine.levels, used, strict=True))
        return tuple(found.get(name, 0) for name, _ in self.levels)


def levels_of(machine: Hierarchy, balanced: bool, mixed: bool, free: str | None = None) -> Levels:
    """Return name and sense of the levels.

    Parameters
    ----------
    balanced
        Whether a part asks for balance.
    mixed
        Whether GPUs count, and requests have none.
    free
        The level of which free domains count, or None.
    """
    domains = ((name, "min") for name in machine.counted)
    balance = (("balance", "max"),) if balanced else ()
    without = ((WITHOUT_GPUS, "max"),) if mixed else ()
    room = () if free is None else ((free_name(free), "max"),)
    return (("nodes", "max"), *without, *room, *domains, *balance, ("stranded", "min"))


def gains_of(requests: Sequence[HierarchyRequest]) -> list[int]:
    """Return what requests add to one figure: the value started, then that of those without."""
    times = 1 + sum(request.without_gpus for request in requests)
    return [times * request.value + request.without_gpus for request in requests]


def units_by_domain(machine: Hierarchy, level: int, hosts: Mapping[int, int]) -> Counter[int]:
    """Return the number of units in every domain of a level that has some."""
    found: Counter[int] = Counter()
    for host, units in hosts.items():
        found[int(machine.domain_of[level, host])] += units
    return found


def room(free: IntArray, part: PartState) -> IntArray:
    """Return how many units of a part hosts can hold in their free amounts; 0 if not eligible.

    Parameters
    ----------
    free
        Shape ``(num_hosts, num_resources)``.
    """
    found = held(free, part.takes)
    return found if part.eligible is None else np.asarray(found * part.eligible.mask)


def held(free: IntArray, takes: Sequence[int]) -> IntArray:
    """Return how many units that take some amounts each host holds, shape ``(num_hosts,)``."""
    each = np.array(takes)
    return np.asarray((free[:, each > 0] // each[each > 0]).min(axis=1))


def windows_of(machine: Hierarchy, part: PartState, may: BoolArray) -> IntArray:
    """Return where a request that is contiguous can be: hosts in a row, a unit on each.

    Parameters
    ----------
    may
        Whether it may have a unit on each host, shape ``(num_hosts,)``.

    Returns
    -------
    Shape ``(num_windows, units)``, in the order in which they begin.
    """
    order = np.zeros(0, dtype=np.int64) if part.order is None else part.order.hosts
    if len(order) < part.units:
        return np.zeros((0, part.units), dtype=np.int64)
    fits = sliding_window_view(may[order], part.units).all(axis=1)
    found = sliding_window_view(order, part.units)[fits]
    limits = [] if part.required is None else [(part.required, 1)]
    for level, most in (*limits, *([] if part.at_most is None else [part.at_most])):
        domains = np.sort(machine.domain_of[level][found], axis=1)
        found = found[1 + (np.diff(domains, axis=1) > 0).sum(axis=1) <= most]
    return np.asarray(found)


def written_out(problem: HierarchyProblem) -> HierarchyProblem:
    """Return the problem with each request that is contiguous as one of several sets of hosts."""
    state = problem.state
    if all(request.parts[0].order is None for request in problem.requests):
        return problem
    requests = tuple(_written_out(problem, request) for request in problem.requests)
    return HierarchyProblem(replace(state, requests=requests))


def _written_out(problem: HierarchyProblem, request: HierarchyRequest) -> HierarchyRequest:
    if request.parts[0].order is None:
        return request
    ways: dict[tuple[PartState, ...], None] = {}
    for (part,) in request.ways:
        for hosts in windows_of(problem.machine, part, room(problem.state.free, part) > 0):
            mask = np.zeros(problem.machine.num_hosts, dtype=bool)
            mask[hosts] = True
            ways[replace(part, eligible=HostSet(mask), order=None),] = None
    nowhere = HostSet(np.zeros(problem.machine.num_hosts, dtype=bool))
    first, *others = ways or [(replace(request.parts[0], eligible=nowhere, order=None),)]
    return replace(request, parts=first, others=tuple(others))


def problem_of(state: HierarchyState, options: Options) -> HierarchyProblem:
    """Return the problem of placing the queue; options do not change it."""
    return HierarchyProblem(state)
