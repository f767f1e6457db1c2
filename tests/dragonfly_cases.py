"""Tiny dragonflies, and their best placements by trying all."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import tiny_hierarchies
from random_certificates import Column, Packing
from topoplace.machine import format_node_set
from topoplace.placement.dragonfly.packing import DragonflyPacking
from topoplace.placement.dragonfly.problem import DragonflyProblem, prepare
from topoplace.placement.hierarchy.packing import Candidate
from topoplace.result import Interference
from topoplace.snapshot.schema import Snapshot

Place = tuple[int, ...]
"""By cell, how many of its nodes a job has."""


def drawn(seed: object, *, rules: bool = True, most: int = 16) -> dict[str, Any]:
    """Return a random snapshot."""
    rng = random.Random(f"dragonfly-{seed}")
    groups, routers, nodes = (
        rng.randint(2, 4),
        rng.choice([[1], [2], [3], [2, 2]]),
        rng.randint(1, 3),
    )
    while groups * math.prod(routers) * nodes > most:
        groups, nodes = max(2, groups - 1), max(1, nodes - 1)
    num = groups * math.prod(routers) * nodes
    arrangement = rng.choice(["absolute", "relative", "circulant"])
    machine = {"kind": "dragonfly", "name": "tiny", "groups": groups, "routers": routers}
    machine |= {"nodes": nodes, "arrangement": arrangement}
    every = rng.sample(range(num), num)
    if rng.random() < 0.2:
        machine["missing"] = str(every.pop())
    running = []
    for k in range(rng.randint(0, 2)):
        size = min(rng.randint(1, max(1, num // 5)), len(every) - 1)
        if not size:
            break
        own = {"id": f"r{k}", "nodes": format_node_set([every.pop() for _ in range(size)])}
        running.append(own | ({"communication": "none"} if rng.random() < 0.2 else {}))
    down = format_node_set(every[: rng.choice([0, 0, 1, 2])])
    sets = {}
    if rules and rng.random() < 0.4:
        step = rng.choice([1, nodes, nodes])
        picked = [n for n in range(0, num, step) if rng.random() < 0.6] or [0]
        own = [n + k for n in picked for k in range(step)]
        sets["s"] = format_node_set(own)
    queue = []
    for k in range(rng.randint(1, 4)):
        one: dict[str, Any] = {"id": f"j{k}", "nodes": rng.randint(1, max(2, num // 2))}
        one["priority"] = rng.choice([1, 1, 2, 3])
        if rng.random() < 0.15:
            one["communication"] = "none"
        if rules and sets and rng.random() < 0.6:
            one["eligible"] = rng.choice(["s", "!s"])
        if rules and rng.random() < 0.2:
            one["required"] = rng.choice(["group", "router"])
        elif rules and rng.random() < 0.2:
            one["at_most"] = {"level": rng.choice(["group", "router"]), "size": rng.randint(1, 3)}
        elif rules and rng.random() < 0.1:
            one["exclusive"] = rng.choice(["group", "router"])
        queue.append(one)
    return {
        "schema": "topoplace.snapshot/1", "name": f"tiny-{seed}", "machine": machine,
        "running": running, "down": down, "sets": sets, "queue": queue,
    }  # fmt: skip


class Tiny:
    """A snapshot of a tiny dragonfly; nodes of one router and in the same sets are a cell."""

    def __init__(self, snapshot: dict[str, Any], *, strict: bool) -> None:
        self.strict, machine = strict, snapshot["machine"]
        self.each = machine["nodes"]
        self.size = self.each * math.prod(machine["routers"])
        num = machine["groups"] * self.size
        self.queue = snapshot["queue"]
        self.sets = {name: set(_numbers(text)) for name, text in snapshot.get("sets", {}).items()}
        closed = {*_numbers(snapshot["down"]), *_numbers(machine.get("missing", ""))}
        self.busy_groups: set[int] = set()
        self.busy_routers: set[int] = set()
        self.taken: set[tuple[int, int]] = set()
        for job in snapshot["running"]:
            own = _numbers(job["nodes"])
            closed |= {*own}
            self.busy_groups |= {n // self.size for n in own}
            self.busy_routers |= {n // self.each for n in own}
            if job.get("communication") != "none":
                self.taken |= set(itertools.combinations(sorted({n // self.size for n in own}), 2))
        self.free = [n for n in range(num) if n not in closed]
        cells: dict[tuple[int, bool], int] = Counter()
        for node in self.free:
            cells[node // self.each, node in self.sets.get("s", ())] += 1
        self.cells = sorted(cells.items())
        masks = [self.sets["s"]] if any("eligible" in one for one in self.queue) else []
        cut = [Counter(n // self.each for n in mask).values() for mask in masks]
        self.whole = all(count == self.each for own in cut for count in own)

    def places(self, one: dict[str, Any]) -> Iterator[Place]:
        """Yield all places of a request that keep its own rules."""
        wanted = one.get("eligible")
        rooms = [
            0 if wanted and inside != (wanted == "s") else count
            for (_, inside), count in self.cells
        ]
        for place in itertools.product(*(range(room + 1) for room in rooms)):
            if sum(place) != one["nodes"]:
                continue
            groups, routers = self.groups(place), self.routers(place)
            by_level = {"group": groups, "router": routers}
            if "required" in one and len(by_level[one["required"]]) > 1:
                continue
            limit = one.get("at_most")
            if limit and len(by_level[limit["level"]]) > limit["size"]:
                continue
            busy = {"group": self.busy_groups, "router": self.busy_routers}
            alone = one.get("exclusive")
            if alone and by_level[alone] & busy[alone]:
                continue
            yield place

    def routers(self, place: Place) -> set[int]:
        """Return the routers of a place."""
        return {self.cells[k][0][0] for k, n in enumerate(place) if n}

    def groups(self, place: Place) -> set[int]:
        """Return the groups of a place."""
        return {router * self.each // self.size for router in self.routers(place)}

    def worth(self, one: dict[str, Any], place: Place) -> tuple[int, ...]:
        """Return the value of a place by level, all to be maximised."""
        groups, routers = len(self.groups(place)), len(self.routers(place))
        value = one["nodes"] * one.get("priority", 1)
        if not self.whole:
            return value, -groups, -routers, -one["nodes"], 0
        there = self.routers(place)
        free = sum(count for (router, _), count in self.cells if router in there)
        return value, -groups, -routers, one["nodes"] - free

    def best(self) -> tuple[int, ...]:
        """Return the best values by level, as they are reported."""
        zero = (0,) * (4 if self.whole else 5)
        best = [zero]

        def go(
            k: int,
            left: tuple[int, ...],
            taken: set[tuple[int, int]],
            placed: list[tuple[dict[str, Any], Place]],
            value: tuple[int, ...],
        ) -> None:
            if k == len(self.queue):
                best[0] = max(best[0], value)
                return
            one = self.queue[k]
            rest = sum(o["nodes"] * o.get("priority", 1) for o in self.queue[k:])
            if value[0] + rest < best[0][0]:
                return
            links = self.strict and one.get("communication") != "none"
            for place in self._every[k]:
                if any(n > room for n, room in zip(place, left, strict=True)):
                    continue
                pairs = (
                    set(itertools.combinations(sorted(self.groups(place)), 2)) if links else set()
                )
                if pairs & taken or any(self._clash(one, place, *other) for other in placed):
                    continue
                now = tuple(a - b for a, b in zip(left, place, strict=True))
                more = tuple(a + b for a, b in zip(value, self.worth(one, place), strict=True))
                go(k + 1, now, taken | pairs, [*placed, (one, place)], more)
            go(k + 1, left, taken, placed, value)

        self._every = [
            sorted(self.places(one), key=lambda p: self.worth(one, p), reverse=True)
            for one in self.queue
        ]
        go(0, tuple(count for _, count in self.cells), self.taken, [], zero)
        return tuple(-v if level else v for level, v in enumerate(best[0]))

    def outcomes(self) -> set[tuple[int, ...]]:
        """Return the values of all placements by level, all to be maximised."""
        start = tuple(count for _, count in self.cells), frozenset(self.taken), ()
        states: set[Any] = {(start, (0,) * (4 if self.whole else 5))}
        alone = any("exclusive" in other for other in self.queue)
        for number, one in enumerate(self.queue):
            own = list(self.places(one))
            links = self.strict and one.get("communication") != "none"
            for (left, taken, placed), value in list(states):
                others = [(self.queue[k], there) for k, there in placed]
                for place in own:
                    pairs = itertools.combinations(sorted(self.groups(place)), 2)
                    now = frozenset(pairs) if links else frozenset()
                    rest = tuple(a - b for a, b in zip(left, place, strict=True))
                    if min(rest) < 0 or now & taken:
                        continue
                    if any(self._clash(one, place, *other) for other in others):
                        continue
                    more = tuple(a + b for a, b in zip(value, self.worth(one, place), strict=True))
                    here = (*placed, (number, place)) if alone else ()
                    states.add(((rest, taken | now, here), more))
        return {value for _, value in states}

    def judged(self, placements: list[dict[str, str]]) -> tuple[int, ...] | None:
        """Return the values of a placement by level, all maximised; None if it breaks a rule."""
        asked = {one["id"]: one for one in self.queue}
        value, taken = (0,) * (4 if self.whole else 5), set(self.taken)
        placed: list[tuple[dict[str, Any], Place]] = []
        cells = {cell: k for k, (cell, _) in enumerate(self.cells)}
        used: set[int] = set()
        for own in placements:
            one, nodes = asked.pop(own["request"], None), _numbers(own["nodes"])
            if one is None or {*nodes} & used or not {*nodes} <= {*self.free}:
                return None
            used |= {*nodes}
            inside = self.sets.get("s", set())
            at = Counter(cells[node // self.each, node in inside] for node in nodes)
            place = tuple(at[k] for k in range(len(cells)))
            if place not in set(self.places(one)):
                return None
            pairs = set(itertools.combinations(sorted(self.groups(place)), 2))
            if any(self._clash(one, place, *other) for other in placed):
                return None
            if self.strict and one.get("communication") != "none":
                if pairs & taken:
                    return None
                taken |= pairs
            placed.append((one, place))
            value = tuple(a + b for a, b in zip(value, self.worth(one, place), strict=True))
        return value

    def _clash(
        self, one: dict[str, Any], place: Place, other: dict[str, Any], there: Place
    ) -> bool:
        """Return whether two jobs share a group or router that one of them wants alone."""
        return any(
            of(place) & of(there)
            for job in (one, other)
            for level, of in (("group", self.groups), ("router", self.routers))
            if job.get("exclusive") == level
        )


def _numbers(text: str) -> list[int]:
    found = []
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def _barred(document: dict[str, Any], host_of: list[int]) -> dict[str, set[int]]:
    """Return by request the hosts with a node that it may not have."""
    inside = {*_numbers(document["sets"].get("s", ""))}
    may_not = {None: set[int](), "s": {*range(len(host_of))} - inside, "!s": inside}
    asked = {one["id"]: one.get("eligible") for one in document["queue"]}
    return {name: {host_of[node] for node in may_not[text]} for name, text in asked.items()}


def packing_of(
    document: dict[str, Any],
    earlier: Sequence[int] = (),
    chosen: Sequence[tuple[str, str]] | None = None,
) -> Packing:
    """Return a snapshot as a packing, of some requests with others' places if these are chosen."""
    snapshot = Snapshot.model_validate(document)
    state = prepare(snapshot)
    problem = DragonflyProblem(state.inside, state, Interference.STRICT)
    solver, barred = DragonflyPacking(problem), _barred(document, state.host_of.tolist())
    anywhere = [one.model_copy(update={"eligible": None}) for one in snapshot.queue]
    inside = replace(state.inside, snapshot=snapshot.model_copy(update={"queue": anywhere}))
    number = {request.id: q for q, request in enumerate(state.requests)}
    pairs = [(name, name) for name in number] if chosen is None else list(chosen)
    family_of = [
        (name, k) for name, own in solver.families.items() for k in range(own.stop - own.start)
    ]
    columns: dict[object, Column] = {}
    kinds: dict[object, list[str]] = {}
    for name, other in pairs:
        request = state.requests[number[other]]
        for place in tiny_hierarchies.places_of(inside, request):
            if barred[other] & {host for units in place for host in units}:
                continue
            uses = tiny_hierarchies.uses_of(solver.layout, place)
            rows = solver.rows_of(Candidate(number[other], uses)).tolist()
            if any(not solver.capacities[row] for row in rows):
                continue
            worth = tiny_hierarchies.worth_of(inside, request, place)
            later = tiny_hierarchies.on_levels(inside, worth)[1:]
            values = (state.requests[number[name]].value, *later)
            covers = frozenset(row for row in rows if row < solver.num_covers)
            taken = Counter(family_of[row] for row in rows)
            columns[name, tuple(rows), values] = Column(name, taken, covers, values)
        asked = tuple(replace(part, name=None, preferred=None) for part in request.parts)
        kinds.setdefault((asked, problem.uses_links(request)), []).append(name)
    return Packing(
        [name for name, _ in pairs],
        {name: solver.capacities[own].tolist() for name, own in solver.families.items()},
        list(columns.values()),
        solver.num_covers,
        [solver.largest(level) for level in range(len(solver.senses))],
        list(kinds.values()),
        lambda some: packing_of(document, earlier, some),
        earlier,
    )
