"""Tiny hierarchies whose jobs may move or end: at random, the best plan by trying all, replayed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from tiny_hierarchies import Place, _request, is_legal, places_of, prepared, random_hierarchy
from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list
from topoplace.placement.repack.spares import with_spares
from topoplace.snapshot.hierarchy_state import HierarchyState, prepare_hierarchy
from topoplace.snapshot.schema import SPARE_PREFIX, Budget, KeepShape, RepackInstance, Snapshot

Document = dict[str, Any]
MOST_PLACES = 60


@dataclass(frozen=True)
class Case:
    """An instance, and what it is made of: movers as requests, and where they are.

    `state` is the machine without the movers, whose requests are these and those that start. `kept`
    has the units of replaced jobs on hosts that are up, `spares` the hosts of each spare.
    """

    instance: RepackInstance
    state: HierarchyState
    present: Mapping[str, Place]
    kept: Mapping[str, Place] = field(default_factory=dict)
    spares: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def requests(self) -> dict[str, Any]:
        return {request.id: request for request in self.state.requests}

    def places(self, name: str) -> Iterator[Place]:
        """Yield where a mover or request may be."""
        return places_of(self.state, self.requests[name])

    def legal(self, placed: Sequence[tuple[str, Place]]) -> bool:
        """Return whether some can be there together."""
        return is_legal(self.state, [(self.requests[name], place) for name, place in placed])

    def keeps(self, name: str, place: Place) -> bool:
        """Return whether a job has all units that it keeps."""
        pairs = zip(place, self.kept.get(name, ()), strict=False)
        return all(units.get(host, 0) >= n for units, kept in pairs for host, n in kept.items())

    def used(self, place: Place) -> set[int]:
        """Return the hosts of a place."""
        return {host for units in place for host in units}

    def claimed(self, name: str, place: Place) -> set[int]:
        """Return the hosts that nobody else has: where it is, or all of a domain of its own."""
        level, used = self.requests[name].exclusive, self.used(place)
        if level is None:
            return used
        of = self.state.machine.domain_of[level].tolist()
        return {host for host, domain in enumerate(of) if domain in {of[own] for own in used}}

    def read(self, placement: Document) -> Place:
        """Return the place of a document."""
        names = {n: k for k, n in enumerate(self.state.machine.host_names)}
        return tuple(
            {names[h]: s["units"] for s in p["shares"] for h in expand_host_list(s["hosts"])}
            for p in placement["parts"]
        )


@cache
def tiny_moves(seed: int) -> Case:
    """Return the first of some cases in which moving, or ending, is of use; else the last."""
    for attempt in range(12):
        case = _drawn(random.Random(f"moves-{seed}/{attempt}"))
        if case is not None and best_plan(case)[1:-1] not in ((0,), (0, 0)):
            return case
    return case or tiny_moves(seed + 10_000)


def _drawn(rng: random.Random) -> Case | None:
    document = random_hierarchy(rng)
    document.pop("value", None)
    levels, resources = document["machine"]["levels"], _resources(document)
    rules = document["queue"]
    most = 1 + (rng.random() < 0.5)
    rules += [_request(rng, f"more{k}", levels, resources, most) for k in range(rng.randint(1, 3))]
    rng.shuffle(rules)
    num_wanted = rng.choice((1, 1, 2))
    wanted, begun = rules[:num_wanted], rules[num_wanted:][:3]
    present: dict[str, Place] = {}
    queued: list[Document] = []
    plains: dict[str, bool] = {}
    for number, request in enumerate(begun):
        asked = request | {"id": f"run{number}"}
        plain = rng.random() < 0.3
        if plain:
            asked = {k: v for k, v in asked.items() if k in ("id", "nodes", "takes")}
            if "takes" not in asked:
                continue
        state = prepared(document | {"queue": [*queued, asked]})
        if len(state.requests) <= len(queued):
            continue
        *others, own = state.requests
        beside = [(r, present[r.id]) for r in others]
        places = list(itertools.islice(places_of(state, own), MOST_PLACES))
        places = [place for place in places if is_legal(state, [*beside, (own, place)])]
        if plain:  # one unit on each host
            places = [p for p in places if all(n == 1 for units in p for n in units.values())]
        if places:
            present[own.id] = rng.choice(places)
            queued.append(asked)
            plains[asked["id"]] = plain
    if not present:
        return None
    keep = rng.choice([KeepShape.AS_GOOD, KeepShape.ANY])
    running, fixed = [*document["running"]], [job["id"] for job in document["running"]]
    movers = []
    for asked in queued:
        plain = plains[asked["id"]]
        entries = _entries(document, asked, present[asked["id"]], plain=plain)
        running += entries
        if plain and keep is KeepShape.AS_GOOD:
            movers.append(asked | _as_good(document, present[asked["id"]]))
            continue
        movers.append(asked)
    down = set(expand_host_list(document["down"]))
    assert not any(down & {*expand_host_list(e["nodes"])} for e in running if e.get("gang"))
    snapshot = document | {"running": running, "queue": wanted, "name": "moves"}
    names = [asked["id"] for asked in movers]
    moving = rng.random() < 0.8
    ends = {n: rng.randint(1, 3) for n in names if rng.random() < 0.5}
    if not moving and not ends:
        ends = {names[0]: 2}
    more_fixed = [n for n in names if rng.random() < 0.1]
    instance = RepackInstance(
        name="moves",
        snapshot=Snapshot.model_validate(snapshot),
        start=[request["id"] for request in wanted],
        fixed=[*fixed, *more_fixed],
        costs={n: rng.randint(1, 3) for n in names if rng.random() < 0.4},
        ends=ends,
        moving=moving,
        budgets=budgets_of(rng, names) if rng.random() < 0.3 else [],
        keep_shape=keep,
    )
    held = {n for b in instance.budgets if not b.most for n in b.jobs}
    stays = {n for n in names if n in more_fixed or n in held or not (moving or n in ends)}
    rest = [job for job in running if job.get("gang", job["id"]) not in {*names} - stays]
    asked = [one for one in movers if one["id"] not in stays]
    state = prepared(snapshot | {"running": rest, "queue": [*asked, *wanted]})
    there = {n: place for n, place in present.items() if n not in stays}
    sizes = [
        sum(1 for _ in itertools.islice(places_of(state, r), MOST_PLACES)) for r in state.requests
    ]
    if max(sizes) >= MOST_PLACES:
        return None
    return Case(instance, state, there)


def _resources(document: Document) -> list[str]:
    return sorted({r for host in document["machine"]["hosts"] for r in host["capacity"]})


def budgets_of(rng: random.Random, names: list[str]) -> list[Budget]:
    some = [name for name in names if rng.random() < 0.7] or names[:1]
    return [Budget(jobs=some, most=rng.randint(0, 1))]


def _entries(document: Document, asked: Document, place: Place, *, plain: bool) -> list[Document]:
    """Return a job on hosts: an entry for each unit, in one gang; or one for all hosts."""
    names = [name for host in document["machine"]["hosts"] for name in [host["hosts"]]]
    if plain:
        hosts = ",".join(names[h] for h in sorted(place[0]))
        return [{"id": asked["id"], "nodes": hosts, "takes": asked["takes"]}]
    found = []
    for part, units in zip(asked.get("parts", [asked]), place, strict=True):
        takes = part.get("takes", {"slots": 1})
        for host, number in units.items():
            for _ in range(number):
                entry = {"id": f"{asked['id']}.{len(found)}", "gang": asked["id"]}
                entry |= {"nodes": names[host], "takes": takes, "asked": asked}
                if part.get("apart"):
                    entry["apart"] = part["apart"]
                found.append(entry)
    return found


def _as_good(document: Document, place: Place) -> Document:
    levels, hosts = document["machine"]["levels"], document["machine"]["hosts"]
    if len(place[0]) < 2:
        return {}
    paths = [(*hosts[h]["domains"], hosts[h]["hosts"]) for h in place[0]]
    common = [k for k in range(len(levels)) if len({path[: k + 1] for path in paths}) == 1]
    return {"required": levels[common[-1]]} if common else {}


# ---- Brute force ---------------------------------------------------------------------------------


def best_plan(case: Any) -> tuple[int, ...]:
    """Return the best value of the levels: starts, ends if some may, moves, nodes that change."""
    return min(_plans(case, figures), key=lambda plan: (-plan[0], *plan[1:]))


def best_rooms(case: Case, most: int) -> list[int]:
    """Return by what moves may cost the most value that starts, by trying all."""
    best = [0] * (most + 1)

    def room(case: Case, ways: Mapping[str, str], _: Any) -> tuple[int, ...]:
        moved = (name for name, way in ways.items() if way == "move")
        cost = sum(case.instance.costs.get(name, 1) for name in moved)
        return cost, sum(case.requests[n].value for n, way in ways.items() if way == "start")

    for cost, value in _plans(case, room):
        if cost <= most:
            best[cost] = max(best[cost], value)
    return list(itertools.accumulate(best, max))


def most_free(case: Any, most: int, blocks: Sequence[Collection[int]]) -> list[int]:
    """Return by what moves may cost how many blocks of hosts or chips movers leave free at most."""
    best = [0] * (most + 1)

    def free(
        case: Any, ways: Mapping[str, str], placed: Sequence[tuple[str, Any]]
    ) -> tuple[int, ...]:
        used = {own for _, place in placed for own in case.used(place)}
        moved = (name for name, way in ways.items() if way == "move")
        cost = sum(case.instance.costs.get(name, 1) for name in moved)
        return cost, sum(used.isdisjoint(block) for block in blocks)

    for cost, number in _plans(case, free, every_place=True):
        if cost <= most:
            best[cost] = max(best[cost], number)
    return list(itertools.accumulate(best, max))


def _plans(
    case: Any, count: Callable[..., tuple[int, ...]], *, every_place: bool = False
) -> Iterator[tuple[int, ...]]:
    """Yield what is counted of every plan, of who does what and the places.

    Of places of the last job that use the same spares it is one, unless they all count.
    """
    instance = case.instance
    names, requests = list(case.present), case.requests
    choices: list[list[tuple[str, Place | None]]] = []
    for name in names:
        own: list[tuple[str, Place | None]] = [("stay", case.present[name])]
        if instance.moving:
            own += [("move", place) for place in case.places(name)]
        if name in instance.ends:
            own.append(("end", None))
        choices.append(own)
    for name in (*instance.start, *instance.replace):
        places: list[tuple[str, Place | None]] = [("wait", None)]
        if name in requests:
            places += [("start", place) for place in case.places(name) if case.keeps(name, place)]
        choices.append(places)
    every = [*names, *instance.start, *instance.replace]

    def go(k: int, done: list[str], placed: list[Any]) -> Iterator[tuple[int, ...]]:
        if k == len(every):
            ways = dict(zip(every, done, strict=True))
            yield count(case, ways, placed)
            return
        seen: set[tuple[str, frozenset[str]]] = set()
        for way, place in choices[k]:
            spares = _spares_in(case, every[k], place) if place is not None else ()
            mark = way, frozenset(spares)
            if k == len(every) - 1 and mark in seen and not every_place:
                continue
            more = [*placed, (every[k], place)] if place is not None else placed
            if place is None or case.legal(more):
                seen.add(mark)
                yield from go(k + 1, [*done, way], more)

    yield from go(0, [], [])


@cache
def tiny_replacement(seed: int) -> Case | None:
    """Return a case in which a host of a job is down, and the job gets another; None if none is."""
    case, rng = tiny_moves(seed), random.Random(f"replaced-{seed}")
    name = rng.choice([*case.present]) if case.present else None
    if name is None:
        return None
    of = {n: {h for units in place for h in units} for n, place in case.present.items()}
    down = sorted(of[name] - set().union(*(own for n, own in of.items() if n != name)))
    whole, instance = case.instance.snapshot, case.instance
    names = case.state.machine.host_names
    if not down or len(of[name]) < 2:
        return None
    host = rng.choice(down)
    snapshot = whole.model_copy(update={"down": ",".join(filter(None, [whole.down, names[host]]))})
    update = {
        "snapshot": snapshot,
        "replace": [name],
        "start": instance.start[:1],
        "ends": {n: cost for n, cost in instance.ends.items() if n != name},
        "fixed": sorted({job.gang or job.id for job in whole.running} - {*case.present}),
        "moving": True,
    }
    rest = case.state.snapshot
    [own] = [r for r in rest.queue if r.id == name]
    others = [r for r in rest.queue if r.id not in (name, *instance.start[1:])]
    state = prepare_hierarchy(
        rest.model_copy(update={"queue": [*others, own], "down": snapshot.down})
    )
    there = {n: place for n, place in case.present.items() if n != name}
    kept = tuple({h: n for h, n in units.items() if h != host} for units in case.present[name])
    return Case(instance.model_copy(update=update), state, there, {name: kept})


def spared(case: Case, seed: int) -> Case | None:
    """Return a case in which some free hosts are spares; None if there is none."""
    rng, whole, machine = random.Random(f"spares-{seed}"), case.instance, case.state.machine
    free = [name for name in machine.host_names if rng.random() < 0.85]
    alone = any(case.requests[name].exclusive is not None for name in case.present)
    try:
        snapshot = with_spares(whole.snapshot, ",".join(free))
    except InputError:
        return None
    spares = [job for job in snapshot.running if job.id.startswith(SPARE_PREFIX)]
    ends = dict.fromkeys((job.id for job in spares), 1) | whole.ends
    moving = whole.moving and (alone or rng.random() < 0.5)
    update = {"snapshot": snapshot, "ends": ends, "moving": moving}
    instance = whole.model_copy(update=update)
    hosts = {job.id: frozenset([machine.numbers[job.nodes]]) for job in spares}
    return replace(case, instance=instance, spares=hosts)


@cache
def tiny_spares(seed: int) -> Case | None:
    """Return a case in which some free hosts are spares, if any: a host has failed if possible."""
    case = tiny_replacement(seed) or tiny_moves(seed)
    return spared(case, seed)


def _spares_in(case: Any, name: str, place: Any) -> set[str]:
    """Return the spares that a job uses in a place."""
    claimed = case.claimed(name, place)
    return {spare for spare, own in case.spares.items() if not own.isdisjoint(claimed)}


def figures(
    case: Any, ways: Mapping[str, str], placed: Sequence[tuple[str, Any]] = ()
) -> tuple[int, ...]:
    """Return what the levels count of who does what; beyond all if a budget is not kept.

    Spares are those that end, and those used in places.
    """
    instance = case.instance
    goes = [(name, place) for name, place in placed if ways[name] in ("move", "start")]
    used = {spare for name, place in goes for spare in _spares_in(case, name, place)}
    used |= ways.keys() & case.spares.keys()
    ways = {name: way for name, way in ways.items() if name not in case.spares}
    changed = {name for name, way in ways.items() if way in ("move", "end")}
    ended = [name for name in changed if ways[name] == "end"]
    for budget in instance.budgets:
        if len(changed & {*budget.jobs}) > budget.most:
            return (-1, *([0] * 4))
    cost = sum(instance.costs.get(name, 1) for name in changed if ways[name] == "move")
    lost = [len(used)] if case.spares else []
    if len(instance.ends) > len(case.spares):
        lost.append(sum(instance.ends[name] for name in ended))
    nodes = sum(case.requests[name].nodes for name in changed)
    return (sum(way == "start" for way in ways.values()), *lost, cost, nodes)


# ---- Plans replayed ------------------------------------------------------------------------------


def replayed(document: Document, case: Any) -> tuple[int, ...] | None:
    """Return what a plan is worth, carried out step by step; None if it breaks a rule."""
    solution = document["solution"]
    target: dict[str, Place] = {}
    for placement in [*solution["moves"], *solution["placements"]]:
        name = placement["request"]
        place = case.read(placement)
        if name in target or place not in list(case.places(name)):
            return None
        if not case.keeps(name, place):
            return None
        target[name] = place
    wanted = {*case.instance.start, *case.instance.replace}
    moved = {p["request"] for p in solution["moves"]}
    started = {p["request"] for p in solution["placements"]}
    if not moved <= {*case.present} or not started <= wanted:
        return None
    if (moved and not case.instance.moving) or not {*solution["ended"]} <= {*case.instance.ends}:
        return None
    present: list[tuple[str, Place]] = list(case.present.items())
    done: dict[str, list[str]] = {}
    for step in solution["steps"]:
        name, action = step["job"], step["action"]
        done.setdefault(name, []).append(action)
        if action not in ("end", "suspend"):
            if name not in target:
                return None
            if not case.legal([*present, (name, target[name])]):
                return None
            if not _spares_in(case, name, target[name]) <= done.keys():
                return None
        present = [(n, p) for n, p in present if n != name]
        if action not in ("end", "suspend"):
            present.append((name, target[name]))
    aside = [n for n, actions in done.items() if actions == ["suspend", "resume"]]
    for name, actions in done.items():
        right = [["start"]] if name in started else [["end"]]
        if name in moved:
            right = [["move"], ["suspend", "resume"]]
        if actions not in right or (actions == ["end"]) != (name in solution["ended"]):
            return None
    if {*done} != {*target, *solution["ended"]} or sorted(aside) != sorted(solution["suspended"]):
        return None
    ways = dict.fromkeys(started, "start") | dict.fromkeys(moved, "move")
    return figures(case, ways | dict.fromkeys(solution["ended"], "end"))
