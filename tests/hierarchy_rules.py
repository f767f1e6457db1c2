"""Random tiny hierarchies, and the rules of placements on them in the plainest words.

Nothing here uses what methods and checker do: it is what both are held against.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from hierarchy_decisions import problem_of
from topoplace.machine.hostlist import expand_host_list
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed, Started
from topoplace.snapshot.hierarchy_state import PartState


def broken_rule(problem: HierarchyProblem, started: Started) -> str | None:
    """Return which hard rule requests that start break, in words; None if they keep all."""
    free = problem.state.free.tolist()
    for number, placed in started.items():
        request = problem.requests[number]
        for part, hosts in zip(request.parts, placed, strict=True):
            for host, units in hosts.items():
                if units < 1:
                    return f"{request.id}: {units} units on a host"
                for resource, amount in enumerate(part.takes):
                    free[host][resource] -= units * amount
            found = _broken_by_part(problem, part, hosts)
            if found:
                return f"{request.id}: {found}"
        found = _broken_together(problem, number, started)
        if found:
            return f"{request.id}: {found}"
    if any(amount < 0 for own in free for amount in own):
        return "more taken than is free"
    return None


def _by_domain(problem: HierarchyProblem, hosts: Mapping[int, int], level: int) -> Counter[int]:
    found: Counter[int] = Counter()
    for host, units in hosts.items():
        found[int(problem.machine.domain_of[level][host])] += units
    return found


def _broken_by_part(
    problem: HierarchyProblem, part: PartState, hosts: Mapping[int, int]
) -> str | None:
    if sum(hosts.values()) != part.units:
        return "not all units"
    for level, size in part.segments:
        if any(units % size for units in _by_domain(problem, hosts, level).values()):
            return "a segment in two domains"
    if part.spread is not None:
        level, size = part.spread
        if any(units > size for units in _by_domain(problem, hosts, level).values()):
            return "not spread"
    if part.required is not None and len(_by_domain(problem, hosts, part.required)) > 1:
        return "several required domains"
    return None


def _broken_together(problem: HierarchyProblem, number: int, started: Started) -> str | None:
    request, placed = problem.requests[number], started[number]
    numbers = {name: host for host, name in enumerate(problem.machine.host_names)}
    others = {
        numbers[name]
        for job in problem.state.snapshot.running
        for name in expand_host_list(job.nodes, "nodes")
    }
    for other, theirs in started.items():
        if other != number:
            others |= {host for hosts in theirs for host in hosts}
    for part, hosts in zip(request.parts, placed, strict=True):
        if part.required is not None:
            group = [
                h for p, own in zip(request.parts, placed, strict=True)
                if p.group == part.group for h in own
            ]  # fmt: skip
            if len(_by_domain(problem, dict.fromkeys(group, 1), part.required)) > 1:
                return "a group in several required domains"
        if part.exclusive is not None:
            own = _by_domain(problem, hosts, part.exclusive)
            if own.keys() & _by_domain(problem, dict.fromkeys(others, 1), part.exclusive).keys():
                return "a shared domain"
    return None


def placements(problem: HierarchyProblem) -> Iterator[Placed]:
    """Yield all ways to put the units of the only part of the first request on hosts."""
    part = problem.requests[0].parts[0]
    for units in product(range(part.units + 1), repeat=problem.machine.num_hosts):
        if sum(units) == part.units:
            yield ({host: own for host, own in enumerate(units) if own},)


def can_start(problem: HierarchyProblem) -> bool:
    """Whether the first request alone, of one part, can start at all."""
    return any(broken_rule(problem, {0: placed}) is None for placed in placements(problem))


# ---- Random problems


def random_problem(rng: random.Random, queue: int = 4, parts: int = 3) -> HierarchyProblem:
    """Return a tiny problem in which every rule occurs."""
    levels = [f"level{k}" for k in range(rng.randint(1, 4))]
    resources = ["slots", "gpus"][: rng.randint(1, 2)]
    hosts: list[dict[str, Any]] = []
    for host in range(rng.randint(1, 6)):
        path = [rng.choice("ab") for _ in levels[1:]]
        capacity = {name: rng.randint(0, 4) for name in resources}
        hosts.append({"hosts": f"h{host}", "domains": path, "capacity": capacity})
    machine: dict[str, Any] = {"kind": "hierarchy", "name": "tiny", "levels": levels}
    if rng.random() < 0.3:
        machine["block_sizes"] = rng.choice([[1, 2], [2, 4], [1, 4], [2]])
    running, down = [], []
    for own in hosts:
        if rng.random() < 0.2:
            takes = {name: rng.randint(0, amount) for name, amount in own["capacity"].items()}
            running.append({"id": f"run-{own['hosts']}", "nodes": own["hosts"], "takes": takes})
        if rng.random() < 0.15:
            down.append(own["hosts"])
    requests = [_request(rng, f"job{k}", levels, resources, parts) for k in range(queue)]
    state = {"running": running, "down": ",".join(down), "queue": requests}
    return problem_of({**machine, "hosts": hosts}, requests[0], **state)


def _request(
    rng: random.Random, name: str, levels: list[str], resources: list[str], parts: int
) -> dict[str, Any]:
    exclusive = rng.choice(levels) if rng.random() < 0.15 else None
    if rng.random() < 0.6 or parts == 1:
        return {"id": name, **_part(rng, levels, resources, exclusive)}
    required: dict[str, str | None] = {
        group: rng.choice(levels) if rng.random() < 0.4 else None for group in "gh"
    }
    found = []
    for k in range(rng.randint(1, parts)):
        part = {"id": f"part{k}", **_part(rng, levels, resources, exclusive)}
        group = rng.choice(["g", "h", None])
        if group is not None:
            part |= {"group": group, "required": required[group]}
        if rng.random() < 0.3:
            part |= {"nodes": 1, "segments": []}
        found.append(part)
    return {"id": name, "nodes": sum(part["nodes"] for part in found), "parts": found}


def _part(
    rng: random.Random, levels: list[str], resources: list[str], exclusive: str | None
) -> dict[str, Any]:
    sizes = [rng.randint(1, 2)]
    for _ in range(rng.choice([0, 0, 1])):
        sizes.append(sizes[-1] * rng.randint(1, 2))
    above = sorted(rng.sample(range(len(levels)), min(len(sizes), len(levels))), reverse=True)
    segments = [
        {"size": size, "level": levels[level]} for size, level in zip(sizes, above, strict=False)
    ]
    part: dict[str, Any] = {"nodes": sizes[-1] * rng.randint(1, 3)}
    if rng.random() < 0.5:
        part["segments"] = segments
    part["takes"] = {name: rng.randint(0, 2) for name in resources}
    part["takes"][rng.choice(resources)] = 1
    for name in ("required", "preferred"):
        if rng.random() < 0.25:
            part[name] = rng.choice(levels)
    if rng.random() < 0.15:
        part["spread"] = {"size": rng.randint(1, 3), "level": rng.choice(levels)}
    if exclusive is not None:
        part["exclusive"] = exclusive
    return part
