"""Random hierarchies small enough for brute force, which is here as well."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from random_certificates import Column, Packing
from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import expand_host_list
from topoplace.placement.hierarchy.free import FreePacking, positions_of
from topoplace.placement.hierarchy.layout import Layout
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.placement.hierarchy.tables import Uses
from topoplace.snapshot.held import candidates_of
from topoplace.snapshot.hierarchy_state import (
    HierarchyRequest,
    HierarchyState,
    PartState,
    prepare_hierarchy,
)
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Apart, Part, Request, Snapshot
from values import add_value, value_of

Place = tuple[Mapping[int, int], ...]


def random_hierarchy(rng: random.Random) -> dict[str, Any]:
    """Return a snapshot document of up to seven hosts and three requests."""
    levels = ["block", "rack", "host"][-rng.choice([1, 2, 2, 3, 3]) :]
    resources = rng.choice([["slots"], ["slots"], ["gpus", "memory"]])
    single = rng.random() < 0.4
    hosts: list[dict[str, Any]] = []
    for k in range(rng.choice((1, 2, 4, 5, 6, 7))):
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
    down = ",".join(host for host in names if rng.random() < 0.08)
    most = 1 if single else 2
    queue = [_request(rng, f"j{k}", levels, resources, most) for k in range(rng.randint(1, 3))]
    if rng.random() < 0.3:
        queue.append(queue[0] | {"id": "again"})
    machine = {"kind": "hierarchy", "name": "tiny", "levels": levels, "hosts": hosts}
    if len(levels) > 1 and rng.random() < 0.2:
        machine["fabrics"] = True
    document = {
        "schema": SNAPSHOT_SCHEMA,
        "name": "tiny",
        "machine": machine,
        "down": down,
        "running": running,
        "queue": queue,
    }
    if rng.random() < 0.4:
        _add_sets(rng, document, names)
    if rng.random() < 0.3:
        _add_apart(rng, document, levels)
    add_value(document)
    own = random.Random(repr(document))  # what is drawn after it stays as it was
    if own.random() < 0.25:
        _add_contiguous(own, document, names)
    return document


SETS = ("a", "partition:b", "c/d=e")
EXPRESSIONS = (
    "{0}",
    "!{0}",
    "{0} & {1}",
    "{0}|{1}",
    "{0} | {1} & !{2}",
    "({0}|{1})&!({2} & {0})",
    "! !{0}&{1}|{2}",
)


def _add_sets(rng: random.Random, document: dict[str, Any], names: Sequence[str]) -> None:
    """Add named sets of hosts, and parts that may have some hosts alone."""
    document["sets"] = {name: ",".join(h for h in names if rng.random() < 0.7) for name in SETS}
    for request in document["queue"]:
        for part in request.get("parts", [request]):
            if rng.random() < 0.6:
                part["eligible"] = rng.choice(EXPRESSIONS).format(*rng.sample(SETS, 3))
            if rng.random() < 0.2:
                part["excluded"] = rng.choice(names)
        if rng.random() < 0.3:
            some = [rng.choice(EXPRESSIONS).format(*rng.sample(SETS, 3)) for _ in range(3)]
            request["one_of"] = some[: rng.randint(1, 3)]


def _add_contiguous(rng: random.Random, document: dict[str, Any], names: Sequence[str]) -> None:
    """Have requests without parts get hosts that follow each other in some order."""
    order = rng.sample(names, max(1, len(names) - (rng.random() < 0.3)))
    document.setdefault("sets", {})["table"] = ",".join(order)
    for request in document["queue"]:
        if "parts" not in request and rng.random() < 0.7:
            for name in ("segments", "spread", "balance", "exclusive"):
                request.pop(name, None)
            request["nodes"] = rng.choice((1, 2, 2, 3, 3, 4))
            request["contiguous"] = "table"


def _add_apart(rng: random.Random, document: dict[str, Any], levels: Sequence[str]) -> None:
    """Have jobs of a name share no domain of a level with each other."""
    keys = [{"level": rng.choice(levels), "name": name} for name in "uv"]
    for job in (*document["queue"], *document["running"]):
        apart = [key for key in keys if rng.random() < 0.6]
        for part in job.get("parts", [job]):
            part["apart"] = apart


def _request(
    rng: random.Random, name: str, levels: list[str], resources: list[str], most: int
) -> dict[str, Any]:
    """Return a request whose units take so much of a resource at most."""
    priority = rng.choice([1, 1, 1, 3])
    exclusive = rng.choice(levels) if rng.random() < 0.15 else None
    if rng.random() < 0.75:
        part = _part(rng, levels, resources, exclusive, most)
        if rng.random() < 0.2:
            part["at_most"] = {"size": rng.randint(1, 3), "level": rng.choice(levels)}
        return {"id": name, "priority": priority, **part}
    parts = [_part(rng, levels, resources, exclusive, most, units=2) for _ in range(2)]
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
    most: int,
    units: int = 6,
) -> dict[str, Any]:
    units = rng.choice([n for n in (1, 2, 2, 2, 3, 4, 4, 6) if n <= units])
    part: dict[str, Any] = {"nodes": units, "exclusive": exclusive}
    wide = [*levels[:-1], *levels]  # of a host, most rules leave nothing
    part["takes"] = {
        r: rng.choice([1, 1, most]) for r in rng.sample(resources, rng.randint(1, len(resources)))
    }
    if rng.random() < 0.25:
        part["required"] = rng.choice(wide)
    sizes = [n for n in range(2, units + 1) if units % n == 0]
    if sizes and rng.random() < 0.5:
        size = rng.choice(sizes)
        part["segments"] = [{"size": size, "level": rng.choice(wide)}]
        at = levels.index(part["segments"][0]["level"])
        if at and rng.random() < 0.3:
            part["segments"].append({"size": units, "level": rng.choice(levels[:at])})
    if rng.random() < 0.2:
        part["spread"] = {"size": rng.randint(1, units), "level": rng.choice(levels)}
    if rng.random() < 0.2:
        part["balance"] = rng.choice(levels)
    return part


def prepared(document: dict[str, Any]) -> HierarchyState:
    """Return the snapshot of a document, ready to solve."""
    return prepare_hierarchy(Snapshot.model_validate(document))


def problem_of(
    machine: Mapping[str, Any], request: Mapping[str, Any], **state: Any
) -> HierarchyProblem:
    """Return the problem of one request on a machine."""
    given = {"schema": SNAPSHOT_SCHEMA, "name": "small", "machine": machine, "queue": [request]}
    return HierarchyProblem(prepared(given | state))


def racks(*rooms: list[int]) -> dict[str, Any]:
    """Return a machine of racks in rows of two, by rack the units that its hosts have room for."""
    hosts = [
        {"hosts": f"r{r}h{h}", "domains": [f"row{r // 2}", f"r{r}"], "capacity": {"slots": units}}
        for r, own in enumerate(rooms)
        for h, units in enumerate(own)
    ]
    levels = ["row", "rack", "host"]
    return {"kind": "hierarchy", "name": "racks", "levels": levels, "hosts": hosts}


def named(problem: HierarchyProblem, hosts: Mapping[int, int]) -> dict[str, int]:
    """Return units by the name of the host."""
    return {problem.machine.host_names[host]: units for host, units in hosts.items()}


def random_single(rng: random.Random) -> HierarchyProblem:
    """Return the problem of one request of one part, in any number of domains, on one fabric."""
    document = {"queue": [{"parts": []}]}
    while "parts" in document["queue"][0]:
        document = random_hierarchy(rng)
    document["machine"].pop("fabrics", None)
    document["queue"][0].pop("at_most", None)
    return HierarchyProblem(prepared(document | {"queue": document["queue"][:1]}))


def lively_hierarchy(name: str, most: int) -> dict[str, Any]:
    """Return a snapshot on which something can start, in so many ways at most."""
    for k in itertools.count():
        document = random_hierarchy(random.Random(f"{name}-{k}"))
        if 1 < num_placements(prepared(document)) <= most:
            return document
    raise AssertionError


# ---- Brute force ---------------------------------------------------------------------------------


def places_of(state: HierarchyState, request: HierarchyRequest) -> Iterator[Place]:
    """Yield all places of a request on an else empty machine."""
    (asked,) = (own for own in state.snapshot.queue if own.id == request.id)
    documents = [asked] if asked.parts is None else asked.parts
    choices = [
        list(_splits(state, part, _may_have(state.snapshot, own)))
        for part, own in zip(request.parts, documents, strict=True)
    ]
    for place in itertools.product(*choices):
        legal = is_legal(state, [(request, place)]) and _in_one_set(state, asked, place)
        legal = legal and _in_a_row(state, asked, place)
        if legal and _groups_hold(state.machine, request, place):
            yield place


def _in_one_set(state: HierarchyState, asked: Request, place: Place) -> bool:
    names = [state.machine.host_names[host] for units in place for host in units]
    some = (_holds(state.snapshot, expression) for expression in asked.one_of or ())
    return asked.one_of is None or any(all(map(may, names)) for may in some)


def _in_a_row(state: HierarchyState, asked: Request, place: Place) -> bool:
    """Return whether hosts, each with one unit, are somewhere in a list with nothing between."""
    if asked.contiguous is None:
        return True
    order = expand_host_list(state.snapshot.sets[asked.contiguous])
    names = {state.machine.host_names[host] for host in place[0]}
    runs = [{*order[k : k + len(names)]} for k in range(len(order))]
    return {*place[0].values()} == {1} and names in runs


def _may_have(snapshot: Snapshot, asked: Request | Part) -> Callable[[str], bool]:
    """Return whether a part may have a host."""
    holds = _holds(snapshot, asked.eligible or "True")
    return lambda host: holds(host) and host not in expand_host_list(asked.excluded or "")


def _holds(snapshot: Snapshot, expression: str) -> Callable[[str], bool]:
    """Return whether a host is in what an expression stands for, by Python's and, or, not."""
    sets = {name: set(expand_host_list(hosts)) for name, hosts in snapshot.sets.items()}
    words = {"&": " and ", "|": " or ", "!": " not "}

    def may(host: str) -> bool:
        def word(match: re.Match[str]) -> str:
            name = match[0]
            return words[name] if name in words else str(host in sets.get(name, ()))

        return expression == "True" or bool(eval(re.sub(r"[&|!]|[^\s&|!()]+", word, expression)))

    return may


def _splits(
    state: HierarchyState, part: PartState, may: Callable[[str], bool]
) -> Iterator[Mapping[int, int]]:
    num = state.machine.num_hosts
    rooms = [
        min(int(have) // each for have, each in zip(own, part.takes, strict=True) if each)
        * may(state.machine.host_names[host])
        for host, own in enumerate(state.free)
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


def is_legal(state: HierarchyState, placed: list[tuple[HierarchyRequest, Place]]) -> bool:
    machine, taken = state.machine, Counter[tuple[int, int]]()
    for request, place in placed:
        for part, units in zip(request.parts, place, strict=True):
            for host, n in units.items():
                for r, each in enumerate(part.takes):
                    taken[host, r] += n * each
    if any(amount > state.free[host, r] for (host, r), amount in taken.items()):
        return False
    users = [{h for units in place for h in units} for _, place in placed]
    if not is_apart(state, placed):
        return False
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


def is_apart(state: HierarchyState, placed: list[tuple[HierarchyRequest, Place]]) -> bool:
    """Return whether nobody shares a domain with a job that it is apart from."""
    machine = state.machine
    near = Counter(
        (one.level, one.name, d)
        for one, hosts in _that_are_apart(state, placed)
        for d in {int(machine.domain_of[machine.levels.index(one.level)][h]) for h in hosts}
    )
    return all(count == 1 for count in near.values())


def _that_are_apart(
    state: HierarchyState, placed: list[tuple[HierarchyRequest, Place]]
) -> Iterator[tuple[Apart, set[int]]]:
    """Yield what jobs that start say of being apart, or run, and their hosts."""
    asked = {own.id: own if own.parts is None else own.parts[0] for own in state.snapshot.queue}
    for request, place in placed:
        for key in {(one.level, one.name) for one in asked[request.id].apart or ()}:
            yield Apart(level=key[0], name=key[1]), {h for units in place for h in units}
    running: dict[tuple[str, str], set[int]] = {}
    for job, own in zip(state.snapshot.running, state.running, strict=True):
        for one in job.apart or ():
            running.setdefault((one.level, one.name), set()).update(own.hosts.tolist())
    for (level, name), hosts in running.items():
        yield Apart(level=level, name=name), hosts


def worth_of(state: HierarchyState, request: HierarchyRequest, place: Place) -> list[int]:
    """Return the values of a place in maximising sense, balance whether asked for or not."""
    (asked,) = (own for own in state.snapshot.queue if own.id == request.id)
    value = value_of(state.snapshot, asked)
    machine, values = state.machine, [value, 0 if value else asked.priority * asked.nodes]
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
    return list(max(outcomes(state)))


def outcomes(state: HierarchyState) -> set[tuple[int, ...]]:
    """Return what all placements are worth on the levels there are, in maximising sense."""
    found: set[tuple[int, ...]] = set()
    every = [
        [(place, worth_of(state, request, place)) for place in places_of(state, request)]
        for request in state.requests
    ]
    nothing = (0,) * (state.machine.num_levels + 4)

    def place(q: int, placed: list[tuple[HierarchyRequest, Place]], values: Sequence[int]) -> None:
        if q == len(every):
            found.add(with_free(state, placed, on_levels(state, values)))
            return
        place(q + 1, placed, values)
        for own, worth in every[q]:
            more = [*placed, (state.requests[q], own)]
            if not placed or is_legal(state, more):
                place(q + 1, more, [a + b for a, b in zip(values, worth, strict=True)])

    place(0, [], nothing)
    return found


def on_levels(state: HierarchyState, values: Sequence[int]) -> tuple[int, ...]:
    """Return values without those of fabrics, and of levels that no request is part of."""
    balanced = any(p.balance is not None for r in state.requests for p in r.parts)
    mixed = any(not value_of(state.snapshot, r) for r in candidates_of(state.snapshot))
    values = (*values[: 1 + mixed], *values[2 + state.machine.fabrics :])
    return tuple(values) if balanced else (*values[:-2], values[-1])


def with_free(
    state: HierarchyState,
    placed: Sequence[tuple[HierarchyRequest, Place]] | None,
    values: tuple[int, ...],
) -> tuple[int, ...]:
    """Return values with how many domains stay free, where these count; 0 without a placement."""
    snapshot, machine = state.snapshot, state.machine
    if snapshot.free is None:
        return values
    left = 0
    if placed is not None:
        used = {h for _, place in placed for units in place for h in units}
        used |= {machine.host_names.index(name) for name in expand_host_list(snapshot.down)}
        used |= {host for job in state.running for host in job.hosts.tolist()}
        of = machine.domain_of[machine.levels.index(snapshot.free)].tolist()
        left = len({*of} - {of[host] for host in used})
    mixed = any(not value_of(snapshot, r) for r in candidates_of(snapshot))
    return (*values[: 1 + mixed], left, *values[1 + mixed :])


def freeing(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document in which free domains of a level count."""
    levels = document["machine"]["levels"]
    parts = [part for request in document["queue"] for part in request.get("parts", [request])]
    alone = [levels.index(part["exclusive"]) for part in parts if part.get("exclusive")]
    return document | {"free": rng.choice(levels[: min(alone, default=len(levels)) + 1])}


def num_placements(state: HierarchyState) -> int:
    """Return how many choices brute force has."""
    return math.prod(1 + sum(1 for _ in places_of(state, r)) for r in state.requests)


# ---- Packings, for random certificates -----------------------------------------------------------


def packing_of(
    document: dict[str, Any],
    earlier: Sequence[int] = (),
    chosen: Sequence[tuple[str, str]] | None = None,
) -> Packing:
    """Return a snapshot as a packing, of some requests with others' places if these are chosen."""
    state = prepared(document)
    problem = HierarchyProblem(state)
    counts = problem.free_level is not None
    solver = FreePacking(problem) if counts else HierarchyPacking(problem)
    number = {request.id: q for q, request in enumerate(state.requests)}
    pairs = [(name, name) for name in solver.names] if chosen is None else list(chosen)
    family_of = [(name, k) for name, own in solver.families.items() for k in range(_length(own))]
    columns: dict[object, Column] = {}
    kinds: dict[object, list[str]] = {}
    for name, other in pairs:
        if name not in number:  # a spare: what domains take, and a row of theirs
            kinds.setdefault("spare", []).append(name)
            for k, (own, _) in enumerate(positions_of(problem, solver.layout)):
                taken = Counter(family_of[row] for row in own.tolist()) + Counter({("free", k): 1})
                nothing = (0,) * (len(solver.senses) - 1)
                values = (*nothing[: problem.free_level], 1, *nothing[problem.free_level :])
                columns[name, k] = Column(name, taken, frozenset(own.tolist()), values)
            continue
        request = state.requests[number[other]]
        (mine,) = (own for own in state.snapshot.queue if own.id == name)
        value = value_of(state.snapshot, mine)
        for place in places_of(state, request):
            rows = solver.rows_of(Candidate(number[other], uses_of(solver.layout, place))).tolist()
            taken = Counter(family_of[row] for row in rows)
            values = (value, *on_levels(state, worth_of(state, request, place))[1:])
            values = with_free(state, None, values)
            covers = frozenset(row for row in rows if row < solver.num_covers)
            columns[name, tuple(rows), values] = Column(name, taken, covers, values)
    for name, other in pairs:
        if name not in number:
            continue
        ways = state.requests[number[other]].ways
        asked = tuple(tuple(replace(p, name=None, preferred=None) for p in way) for way in ways)
        kinds.setdefault(asked, []).append(name)
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


def _length(rows: slice) -> int:
    return int(rows.stop - rows.start)


def uses_of(layout: Layout, place: Place) -> Uses:
    found: Counter[tuple[int, int]] = Counter()
    for part, units in enumerate(place):
        for host, n in units.items():
            found[part, layout.node_of_host[host]] += n
    return tuple((part, leaf, n) for (part, leaf), n in sorted(found.items()))
