"""Tiny pods of cubes, and what is best on them by trying everything."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence

from brute_force import in_each_set
from random_certificates import Column, Packing
from topoplace.placement.cubes.packing import Pool
from topoplace.placement.cubes.problem import CubesProblem
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, CubesModel, Request, RunningJob, Snapshot
from values import value_of

SIDES = ((2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 1), (4, 2), (4, 2), (3, 2), (3, 1, 2), (4,))
"""Of cubes; those of three can have parts that do not divide them."""

State = tuple[int, ...]
"""What is taken of every cube, a bit for each chip."""


def random_pod(rng: random.Random) -> Snapshot:
    """Return up to four cubes with chips down, jobs running, and up to five requests."""
    side = rng.choice(SIDES)
    volume, cubes = math.prod(side), rng.choice((1, 2, 3, 3, 4))
    model = CubesModel(kind="cubes", name="pod", cubes=cubes, side=list(side))
    chips = list(range(cubes * volume))
    down = rng.sample(chips, min(len(chips), rng.choice((0, 1, 2, len(chips) // 4))))
    running, busy = [], rng.random() * 0.6
    for cube in range(cubes):
        if rng.random() < busy:
            own = range(cube * volume, (cube + 1) * volume)
            held = rng.sample(own, rng.randint(1, volume))
            running.append(RunningJob(id=f"run{cube}", nodes=",".join(map(str, held))))
    ways = rng.choice(("any", "any", "one", "mixed", "mixed"))
    few = rng.sample([n for n in range(1, volume) if _parts(side, n)], k=min(2, volume - 1))
    queue = [_request(rng, f"job{k}", side, cubes, ways, few) for k in range(rng.randint(1, 5))]
    if rng.random() < 0.3:
        queue = [
            request.model_copy(update={"id": f"job{k}"})
            for k, request in enumerate(rng.choices(queue, k=len(queue)))
        ]
    sets: dict[str, str] = {}
    if rng.random() < 0.4:
        sets, queue = with_sets(rng, queue, cubes, volume)
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="tiny",
        sets=sets,
        machine=model,
        down=",".join(map(str, down)),
        running=running,
        queue=queue,
    )


def with_sets(
    rng: random.Random, queue: Sequence[Request], cubes: int, volume: int
) -> tuple[dict[str, str], list[Request]]:
    """Return two sets of chips, mostly of whole cubes, and requests that may have some alone."""
    sets = {}
    for name in "ab":
        some = {c for c in range(cubes) if rng.random() < 0.6}
        chips = {chip for c in some for chip in range(c * volume, (c + 1) * volume)}
        if rng.random() < 0.3:
            chips ^= {rng.randrange(cubes * volume)}
        sets[name] = ",".join(map(str, sorted(chips)))
    found = []
    for request in queue:
        own = {"eligible": rng.choice((None, "a", "b", "!a", "a & b", "a|b"))}
        if rng.random() < 0.1:
            own["excluded"] = str(rng.randrange(cubes * volume))
        if rng.random() < 0.4:
            own["one_of"] = rng.sample(("a", "b", "!a", "!b", "a|b"), rng.randint(1, 3))
        found.append(request.model_copy(update=own))
    return sets, found


def _request(
    rng: random.Random, name: str, side: tuple[int, ...], cubes: int, ways: str, few: list[int]
) -> Request:
    volume, priority = math.prod(side), rng.choice((1, 1, 2, 3))
    if rng.random() < 0.3:
        count = rng.randint(1, cubes)
        shapes = "x".join(map(str, (side[0] * count, *side[1:]))) if rng.random() < 0.5 else None
        return Request(id=name, nodes=count * volume, priority=priority, shapes=shapes)
    usual = few if rng.random() < 0.7 else list(range(1, volume))
    nodes = rng.choice([n for n in usual if _parts(side, n)])
    parts, text = _parts(side, nodes), None
    if ways == "one" or (ways == "mixed" and rng.random() < 0.6):
        some = rng.sample(parts, 1 if ways == "one" else rng.randint(1, len(parts)))
        text = "/".join("x".join(map(str, shape)) for shape in some)
    return Request(id=name, nodes=nodes, priority=priority, shapes=text)


def _parts(side: tuple[int, ...], nodes: int) -> list[tuple[int, ...]]:
    every = itertools.product(*(range(1, n + 1) for n in side))
    return [shape for shape in every if math.prod(shape) == nodes]


def model_of(snapshot: Snapshot) -> CubesModel:
    """Return the machine of a snapshot."""
    assert isinstance(snapshot.machine, CubesModel)
    return snapshot.machine


def taken_at_first(snapshot: Snapshot) -> State:
    """Return what running jobs and chips that are down take."""
    model = model_of(snapshot)
    volume = math.prod(model.side)
    taken = [0] * model.cubes
    for text in [snapshot.down, *(job.nodes for job in snapshot.running)]:
        for word in filter(None, text.split(",")):
            taken[int(word) // volume] |= 1 << int(word) % volume
    return tuple(taken)


def places(snapshot: Snapshot, request: Request) -> Iterator[dict[int, int]]:
    """Yield what a request could take of which cubes, whoever else is there."""
    each = [_may_have(snapshot, own) for own in in_each_set(request)]
    for place in _anywhere(snapshot, request):
        if any(not any(bits & ~may[cube] for cube, bits in place.items()) for may in each):
            yield place


def _may_have(snapshot: Snapshot, request: Request) -> list[int]:
    """Return the chips of every cube that a request may have, a bit for each."""
    model = model_of(snapshot)
    volume = math.prod(model.side)
    every = (1 << model.cubes * volume) - 1

    def bits(text: str) -> int:
        return sum(1 << int(word) for word in text.split(",") if word)

    sets = {name: bits(text) for name, text in snapshot.sets.items()}
    text = (request.eligible or "True").replace("!", "~")
    found = every if request.eligible is None else eval(text, {}, sets) & every
    found &= ~bits(request.excluded or "")
    return [found >> cube * volume & (1 << volume) - 1 for cube in range(model.cubes)]


def _anywhere(snapshot: Snapshot, request: Request) -> Iterator[dict[int, int]]:
    model = model_of(snapshot)
    side, volume = tuple(model.side), math.prod(model.side)
    full = (1 << volume) - 1
    if request.nodes >= volume:
        for cubes in itertools.combinations(range(model.cubes), request.nodes // volume):
            yield dict.fromkeys(cubes, full)
        return
    shapes = _parts(side, request.nodes)
    if request.shapes is not None:
        shapes = [tuple(map(int, text.split("x"))) for text in request.shapes.split("/")]
    for shape in shapes:
        for origin in itertools.product(*(range(n) for n in side)):
            ends = [o + e for o, e in zip(origin, shape, strict=True)]
            multiple = all(o % e == 0 for o, e in zip(origin, shape, strict=True))
            if multiple and all(end <= n for end, n in zip(ends, side, strict=True)):
                bits = 0
                for number, at in enumerate(itertools.product(*map(range, side))):
                    if all(o <= x < end for o, x, end in zip(origin, at, ends, strict=True)):
                        bits |= 1 << number
                yield from ({cube: bits} for cube in range(model.cubes))


def best_of(snapshot: Snapshot) -> tuple[int, int]:
    """Return the most weighted nodes that can start, and the most cubes then left free."""
    return max(outcomes(snapshot))


def outcomes(snapshot: Snapshot) -> set[tuple[int, int]]:
    """Return weighted nodes and cubes left free of placements, with the most nodes for a state."""
    model, first = model_of(snapshot), taken_at_first(snapshot)
    states = {first: 0}
    for request in snapshot.queue:
        value, every = value_of(snapshot, request), list(places(snapshot, request))
        for state, worth in list(states.items()):
            for place in every:
                if any(state[cube] & bits for cube, bits in place.items()):
                    continue
                after = list(state)
                for cube, bits in place.items():
                    after[cube] |= bits
                alike = tuple(after) if snapshot.sets else _sorted(first, after)
                states[alike] = max(states.get(alike, 0), worth + value)
    assert len(first) == model.cubes
    return {(worth, state.count(0)) for state, worth in states.items()}


def packing_of(
    snapshot: Snapshot, earlier: Sequence[int] = (), chosen: Sequence[tuple[str, str]] | None = None
) -> Packing:
    """Return a pod as a packing, for random certificates; of some requests with others' places."""
    problem = CubesProblem(prepare_cubes(snapshot))
    pool, first, volume = Pool(problem), taken_at_first(snapshot), problem.machine.volume
    spares = [Request(id=f"~{k}", nodes=volume) for k in range(first.count(0))]
    of = {request.id: request for request in [*snapshot.queue, *spares]}
    columns: list[Column] = []
    for name, other in [(name, name) for name in of] if chosen is None else chosen:
        is_spare, own = name.startswith("~"), of[name]
        values = (0, 1) if is_spare else (value_of(snapshot, own), 0)
        for place in places(snapshot, of[other]):
            if any(first[cube] & bits for cube, bits in place.items()):
                continue
            rows: dict[tuple[str, int], int] = {}
            for cube, bits in place.items():
                chips = [k for k in range(volume) if bits >> k & 1]
                rows |= {("chips", cube * volume + k): 1 for k in chips}
                whole = len(chips) == volume
                blocks = pool.blocks_of_cube if whole else pool.blocks_of(len(chips))
                for k, taken in enumerate(blocks if pool.cubes[cube] else ()):
                    if taken:
                        rows["blocks", k] = rows.get(("blocks", k), 0) + taken
            num = len(first) * volume
            covers = frozenset(k if f == "chips" else num + k for f, k in rows)
            columns.append(Column(name, rows, covers, values))
    kinds: dict[object, list[str]] = {}
    for name in of if chosen is None else [name for name, _ in chosen]:
        kinds.setdefault(frozenset(map(str, places(snapshot, of[name]))), []).append(name)
    free = [
        int(not first[chip // volume] >> chip % volume & 1) for chip in range(len(first) * volume)
    ]
    return Packing(
        list(of) if chosen is None else [name for name, _ in chosen],
        {"chips": free, "blocks": pool.blocks},
        columns,
        len(free) + len(pool.blocks),
        (max(request.nodes * request.priority for request in snapshot.queue), 1),
        list(kinds.values()),
        lambda some: packing_of(snapshot, earlier, some),
        earlier,
    )


def _sorted(first: State, after: list[int]) -> State:
    """Return a state with cubes that were alike at first in one order."""
    found = list(after)
    for own in set(first):
        cubes = [cube for cube, taken in enumerate(first) if taken == own]
        for cube, taken in zip(cubes, sorted(after[cube] for cube in cubes), strict=True):
            found[cube] = taken
    return tuple(found)
