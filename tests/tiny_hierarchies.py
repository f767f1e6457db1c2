"""Random hierarchies small enough for brute force, which is here as well."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from topoplace.machine.hierarchy import Hierarchy
from topoplace.snapshot import HierarchyRequest, HierarchyState, PartState, prepare_hierarchy
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot

Place = tuple[Mapping[int, int], ...]


def random_hierarchy(rng: random.Random) -> dict[str, Any]:
    """Return a snapshot document of up to seven hosts and three requests."""
    levels = ["block", "rack", "host"][-rng.choice([1, 2, 2, 3, 3]) :]
    resources = rng.choice([["slots"], ["slots"], ["gpus", "memory"]])
    single = rng.random() < 0.4
    hosts = []
    for k in range(rng.randint(1, 7)):
        domains = [f"{level[0]}{rng.randint(1, 2)}" for level in levels[:-1]]
        capacity = {r: rng.randint(1, 1 if single else 4) for r in resources}
        hosts.append({"hosts": f"n{k}", "domains": domains, "capacity": capacity})
    names = [own["hosts"] for own in hosts]
    running = []
    for k, host in enumerate(names):
        if rng.random() < 0.2:
            running.append({"id": f"r{k}", "nodes": host})
            if rng.random() < 0.5:
                running[-1]["takes"] = {resources[0]: 1}
    down = ",".join(host for host in names if rng.random() < 0.1)
    queue = [_request(rng, f"j{k}", levels, resources) for k in range(rng.randint(1, 3))]
    if rng.random() < 0.3:
        queue.append(queue[0] | {"id": "again"})
    machine = {"kind": "hierarchy", "name": "tiny", "levels": levels, "hosts": hosts}
    return {
        "schema": SNAPSHOT_SCHEMA,
        "name": "tiny",
        "machine": machine,
        "down": down,
        "running": running,
        "queue": queue,
    }


def _request(
    rng: random.Random, name: str, levels: list[str], resources: list[str]
) -> dict[str, Any]:
    priority = rng.choice([1, 1, 1, 3])
    exclusive = rng.choice(levels) if rng.random() < 0.15 else None
    if rng.random() < 0.75:
        part = _part(rng, levels, resources, exclusive)
        if rng.random() < 0.2:
            part["at_most"] = {"size": rng.randint(1, 2), "level": rng.choice(levels)}
        return {"id": name, "priority": priority, **part}
    parts = [_part(rng, levels, resources, exclusive, most=2) for _ in range(2)]
    if rng.random() < 0.5:
        for part in parts:
            part["group"] = "g"
            part["required"] = parts[0].get("required")
    total = sum(part["nodes"] for part in parts)
    named = [part | {"id": f"p{k}"} for k, part in enumerate(parts)]
    return {"id": name, "priority": priority, "nodes": total, "parts": named}


def _part(
    rng: random.Random,
    levels: list[str],
    resources: list[str],
    exclusive: str | None,
    most: int = 5,
) -> dict[str, Any]:
    units = rng.randint(1, most)
    part: dict[str, Any] = {"nodes": units, "exclusive": exclusive}
    part["takes"] = {
        r: rng.randint(1, 2) for r in rng.sample(resources, rng.randint(1, len(resources)))
    }
    if rng.random() < 0.3:
        part["required"] = rng.choice(levels)
    sizes = [n for n in range(2, units + 1) if units % n == 0]
    if sizes and rng.random() < 0.5:
        size = rng.choice(sizes)
        part["segments"] = [{"size": size, "level": rng.choice(levels)}]
        at = levels.index(part["segments"][0]["level"])
        if at and rng.random() < 0.4:
            part["segments"].append({"size": units, "level": rng.choice(levels[:at])})
    if rng.random() < 0.2:
        part["spread"] = {"size": rng.randint(1, 3), "level": rng.choice(levels)}
    if rng.random() < 0.2:
        part["balance"] = rng.choice(levels)
    return part


def prepared(document: dict[str, Any]) -> HierarchyState:
    """Return the snapshot of a document, ready to solve."""
    return prepare_hierarchy(Snapshot.model_validate(document))


# ---- Brute force ---------------------------------------------------------------------------------


def places_of(state: HierarchyState, request: HierarchyRequest) -> Iterator[Place]:
    """Yield all places of a request on an else empty machine."""
    choices = [list(_splits(state, part)) for part in request.parts]
    for place in itertools.product(*choices):
        if _fit(state, [(request, place)]) and _groups_hold(state.machine, request, place):
            yield place


def _splits(state: HierarchyState, part: PartState) -> Iterator[Mapping[int, int]]:
    num = state.machine.num_hosts
    rooms = [
        min(int(have) // each for have, each in zip(own, part.takes, strict=True) if each)
        for own in state.free
    ]

    def split(host: int, left: int) -> Iterator[dict[int, int]]:
        if not left:
            yield {}
        elif host < num:
            for n in range(min(left, rooms[host]) + 1):
                for rest in split(host + 1, left - n):
                    yield {host: n, **rest} if n else rest

    for units in split(0, part.units):
        if _keeps(state.machine, part, units):
            yield units


def _of(machine: Hierarchy, level: int, units: Mapping[int, int]) -> Counter[int]:
    found: Counter[int] = Counter()
    for host, n in units.items():
        found[int(machine.domain_of[level][host])] += n
    return found


def _keeps(machine: Hierarchy, part: PartState, units: Mapping[int, int]) -> bool:
    if any(n % size for lv, size in part.segments for n in _of(machine, lv, units).values()):
        return False
    if part.at_most is not None and len(_of(machine, part.at_most[0], units)) > part.at_most[1]:
        return False
    if part.required is not None and len(_of(machine, part.required, units)) > 1:
        return False
    return (
        part.spread is None or max(_of(machine, part.spread[0], units).values()) <= part.spread[1]
    )


def _groups_hold(machine: Hierarchy, request: HierarchyRequest, place: Place) -> bool:
    for group in {part.group for part in request.parts}:
        own = [(p, u) for p, u in zip(request.parts, place, strict=True) if p.group == group]
        level = own[0][0].required
        if level is not None and len({d for _, u in own for d in _of(machine, level, u)}) > 1:
            return False
    return True


def _fit(state: HierarchyState, placed: list[tuple[HierarchyRequest, Place]]) -> bool:
    machine, taken = state.machine, Counter[tuple[int, int]]()
    for request, place in placed:
        for part, units in zip(request.parts, place, strict=True):
            for host, n in units.items():
                for r, each in enumerate(part.takes):
                    taken[host, r] += n * each
    if any(amount > state.free[host, r] for (host, r), amount in taken.items()):
        return False
    users = [{h for units in place for h in units} for _, place in placed]
    busy = {h for h in range(machine.num_hosts) if state.occupied[h]}
    for k, (request, _) in enumerate(placed):
        level = request.parts[0].exclusive
        if level is not None:
            of = machine.domain_of[level]
            own = {int(of[h]) for h in users[k]}
            others = busy.union(*(u for j, u in enumerate(users) if j != k))
            if own & {int(of[h]) for h in others}:
                return False
    return True


def worth_of(state: HierarchyState, request: HierarchyRequest, place: Place) -> list[int]:
    """Return the values of a place in maximising sense, balance whether asked for or not."""
    machine, values = state.machine, [request.priority * request.nodes]
    pairs = list(zip(request.parts, place, strict=True))
    for level in range(machine.num_levels):
        used = {(p.group, d) for p, units in pairs for d in _of(machine, level, units)}
        values.append(-len(used))
    values.append(
        sum(min(_of(machine, p.balance, u).values()) for p, u in pairs if p.balance is not None)
    )
    left = 0
    for part, units in pairs:
        for host, n in units.items():
            free = state.free[host]
            left += min(int(f) // t for f, t in zip(free, part.takes, strict=True) if t) - n
    return [*values, -left]


def best_of(state: HierarchyState) -> list[int]:
    """Return the best values of all placements, one level after the other."""
    totals = totals_of(state)
    assert totals is not None
    return list(max(totals))


def totals_of(state: HierarchyState, most: int | None = None) -> set[tuple[int, ...]] | None:
    """Return the values of all placements; None if there are more than so many to try."""
    places = [[None, *places_of(state, request)] for request in state.requests]
    if most is not None and math.prod(map(len, places)) > most:
        return None
    balanced = any(p.balance is not None for r in state.requests for p in r.parts)
    zero = [0] * (state.machine.num_levels + 3)
    found: set[tuple[int, ...]] = set()
    for choice in itertools.product(*places):
        placed = [(r, p) for r, p in zip(state.requests, choice, strict=True) if p is not None]
        worths = [worth_of(state, request, place) for request, place in placed]
        values = [sum(column) for column in zip(zero, *worths, strict=True)]
        own = tuple(values if balanced else [*values[:-2], values[-1]])
        if own not in found and _fit(state, placed):
            found.add(own)
    return found
