"""Placements by an integer program over the units on every host and pool, level by level.

The program states all rules at once and has no columns, so CP-SAT soon finds good placements, and
proves little on the later levels; the engine starts from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topoplace import clock
from topoplace.packing.primal.program import Answer, Program
from topoplace.placement.hierarchy.layout import Layout
from topoplace.placement.hierarchy.problem import gains_of, windows_of
from topoplace.placement.hierarchy.tables import Uses
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.types import IntArray

MOST_VARIABLES = 60_000
"""Units on hosts and pools beyond which the program takes long to write."""

_WORK = 2.0
"""CP-SAT's deterministic time for each level; one of them is about half a second."""


class Assignment:
    """The program of some requests.

    Parameters
    ----------
    left
        The amounts left of every row.
    deadline
        When the whole search ends, by `topoplace.clock`.
    own
        By row what the first requests take if they *stay*, which is another way to be there.

    Raises
    ------
    topoplace.clock.OutOfTimeError
        If it is not written by then.
    """

    def __init__(
        self,
        layout: Layout,
        requests: Sequence[HierarchyRequest],
        left: IntArray,
        levels: int,
        deadline: float,
        own: Sequence[Mapping[int, int]] = (),
    ) -> None:
        self._deadline = deadline
        self._layout, self._requests, self._left = layout, requests, left
        self._model = Program()
        self._leaves = layout.below[-1]
        self._starts = [self._model.binary() for _ in requests]
        self._units: list[list[dict[int, Any]]] = []
        self._loads: dict[int, list[Any]] = {}
        self._domains: list[list[Any]] = [[] for _ in range(levels)]
        for q, request in enumerate(requests):
            clock.check(deadline)
            self._add(q, request)
        self._stays = [self._model.binary() for _ in own]
        for start, stays, taken in zip(self._starts, self._stays, own, strict=False):
            self._model.add(start + stays <= 1)
            for row, amount in taken.items():
                self._loads.setdefault(row, []).append(amount * stays)
        for row, load in self._loads.items():
            self._model.add(sum(load) <= int(left[row]))

    @staticmethod
    def num_variables(layout: Layout, requests: Sequence[HierarchyRequest]) -> int:
        """Return how many units on hosts and pools the program of some requests has."""
        return len(layout.below[-1]) * sum(len(request.parts) for request in requests)

    def placements(self, seed: int) -> Iterator[list[tuple[int, Uses]]]:
        """Yield better and better placements, one for each level until one is not solved.

        The levels are the value of the started requests, and the domains used, top first.
        """
        gains = zip(gains_of(self._requests), self._starts, strict=True)
        value = sum(gain * start for gain, start in gains)
        levels = [(1, value), *((-1, sum(used)) for used in self._domains)]
        return map(self._found, self._solved(levels, seed, _WORK))

    def _solved(
        self, levels: Sequence[tuple[int, Any]], seed: int, work: float
    ) -> Iterator[Answer]:
        """Yield a solution for each level, a sense and an objective, until one is not solved."""
        for sense, objective in levels:
            seconds = self._deadline - clock.now()
            if seconds <= 0:
                return
            self._model.minimise(-sense * objective)
            parameters = f"max_deterministic_time: {work} random_seed: {seed % (1 << 31)}"
            answer = self._model.solve(parameters, seconds)
            if answer is None:
                return
            yield answer
            self._model.add(sense * objective >= sense * answer.value(objective))
            self._model.hint(dict(enumerate(answer.values)))

    # ---- The rules

    def _add(self, q: int, request: HierarchyRequest) -> None:
        layout, start = self._layout, self._starts[q]
        own: list[dict[int, Any]] = []
        loads: dict[int, list[Any]] = {}
        for p, part in enumerate(request.parts):
            kinds = [layout.kind_of[way[p].kind] for way in request.ways]
            units: dict[int, Any] = {}
            for leaf in self._leaves:
                node = layout.nodes[leaf]
                rows = self._rows(leaf, kinds[0])
                most = min([part.units, *(int(self._left[row]) // n for row, n in rows)])
                if not layout.rooms[node.hosts[0], kinds].any():
                    most = 0
                if most > 0:
                    units[leaf] = self._model.integer(0, most)
                    for row, n in rows:
                        loads.setdefault(row, []).append(n * units[leaf])
            self._model.add(sum(units.values()) == part.units * start)
            own.append(units)
        for row, load in loads.items():
            if request.exclusive is None:
                self._loads.setdefault(row, []).extend(load)
            else:  # otherwise the whole row is taken, by no other request
                self._model.add(sum(load) <= int(self._left[row]))
        self._units.append(own)
        if request.parts[0].order is not None:
            self._contiguous(request, own[0], start)
        else:
            self._one_way(request, own, start)
        self._rules(request, own)

    def _contiguous(self, request: HierarchyRequest, own: dict[int, Any], start: Any) -> None:
        """Keep a request to hosts that follow each other, in one of its sets of hosts."""
        layout = self._layout
        beside: dict[int, list[Any]] = {leaf: [] for leaf in own}
        windows = []
        for (part,) in request.ways:
            may = layout.rooms[:, layout.kind_of[part.kind]] > 0
            for hosts in windows_of(layout.machine, part, may).tolist():
                leaves = [layout.node_of_host[host] for host in hosts]
                if own.keys() >= {*leaves}:
                    windows.append(self._model.binary())
                    for leaf in leaves:
                        beside[leaf].append(windows[-1])
        self._model.add(sum(windows) == start)
        for leaf, units in own.items():
            self._model.add(units <= sum(beside[leaf]))

    def _one_way(self, request: HierarchyRequest, own: list[dict[int, Any]], start: Any) -> None:
        """Keep a request to one of its sets of hosts."""
        layout, taken = self._layout, [self._model.binary() for _ in request.others]
        for way, used in zip(request.ways, [start - sum(taken), *taken], strict=True):
            for part, units in zip(way, own, strict=True):
                room = layout.rooms[:, layout.kind_of[part.kind]]
                outside = [n for k, n in units.items() if not room[layout.nodes[k].hosts[0]]]
                self._model.add(sum(outside) <= part.units * (1 - used))
        self._model.add(start >= sum(taken))

    def _rows(self, leaf: int, kind: int) -> list[tuple[int, int]]:
        """Return the rows that a unit takes of on a host or in a pool, and how much."""
        node = self._layout.nodes[leaf]
        if node.pool is not None:
            return [(node.pool, 1)]
        takes = self._layout.kinds[kind].tolist()
        first = self._layout.first_row.items()
        return [(row + node.hosts[0], takes[r]) for r, row in first if takes[r]]

    def _rules(self, request: HierarchyRequest, own: list[dict[int, Any]]) -> None:
        layout, limit = self._layout, request.parts[0].at_most
        counted: list[Any] = []
        for number, node in enumerate(layout.nodes):
            below = list(layout.below[number])
            if node.level < 0 or not any(leaf in units for units in own for leaf in below):
                continue
            groups = self._domain(request, own, number)
            if limit is not None and limit[0] == node.level:
                counted += groups.values()
            if node.level == request.exclusive:
                self._alone(number, request, groups)
            for key in request.parts[0].apart:
                if key[0] == node.level:
                    row = layout.apart[key] + node.domain
                    self._loads.setdefault(row, []).append(self._any(groups))
        if limit is not None:
            self._model.add(sum(counted) <= limit[1])

    def _domain(
        self, request: HierarchyRequest, own: list[dict[int, Any]], number: int
    ) -> dict[int, Any]:
        """State the rules of a domain; return by group whether it has units in it."""
        node, last = self._layout.nodes[number], self._layout.machine.num_levels - 1
        groups: dict[int, Any] = {}
        barred: set[int] = set()  # groups that would have to be in it as a whole, and do not fit
        for part, units in zip(request.parts, own, strict=True):
            inside = [units[leaf] for leaf in self._layout.below[number] if leaf in units]
            if not inside:
                if node.level == part.required:
                    barred.add(part.group)
                continue
            total = sum(inside)
            if node.pool is not None:
                self._domains[last].append(total)
                continue
            if part.group not in groups:
                groups[part.group] = self._model.binary()
                self._domains[node.level].append(groups[part.group])
            used = groups[part.group]
            self._model.add(total <= part.units * used)
            if node.level == part.required:
                self._model.add(total == part.units * used)
            for level, size in part.segments:
                if level == node.level:
                    times = self._model.integer(0, part.units // size)
                    self._model.add(total == size * times)
            if part.spread is not None and part.spread[0] == node.level:
                self._model.add(total <= part.spread[1])
        for group in barred & groups.keys():
            self._model.add(groups[group] == 0)
        return groups

    def _alone(self, number: int, request: HierarchyRequest, groups: dict[int, Any]) -> None:
        """Have a request that needs a domain for itself take all of it."""
        layout = self._layout
        kinds = [layout.kind_of[part.kind] for part in request.parts]
        rows, is_occupied = layout.alone(number, kinds)
        free = (self._left[rows] == layout.capacities[rows]).all()
        if not free or is_occupied:
            for used in groups.values():
                self._model.add(used == 0)
            return
        whole = self._any(groups)
        for row in rows:
            if row < layout.num_base:
                held = int(layout.capacities[row])
                self._loads.setdefault(row, []).append(held * whole)

    def _any(self, groups: dict[int, Any]) -> Any:
        """Return a variable that is true if any group is in a domain."""
        found = self._model.binary()
        for used in groups.values():
            self._model.implies(used, found)
        return found

    # ---- What was found

    def _found(self, answer: Answer) -> list[tuple[int, Uses]]:
        found = []
        for q, own in enumerate(self._units):
            if answer.value(self._starts[q]):
                uses = [
                    (p, leaf, answer.value(var))
                    for p, units in enumerate(own)
                    for leaf, var in units.items()
                ]
                found.append((q, tuple(sorted(use for use in uses if use[2]))))
        return found
