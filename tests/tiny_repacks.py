"""Tiny machines whose jobs may move: at random, the best plan by trying all, and steps replayed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from brute_force import Choice, Job, Tiny, numbers
from random_instances import KINDS, random_prism, routers_inside
from topoplace.machine import format_node_set
from topoplace.result import Interference
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    KeepShape,
    PrismModel,
    RepackInstance,
    Request,
    RunningJob,
    ShapeWeights,
    Snapshot,
    TorusModel,
)

SHAPES = ([6], [9], [3, 3], [2, 5], [4, 3], [2, 2, 3])
RULES = (Interference.STRICT, Interference.TOLERANT, Interference.OFF)


@cache
def tiny_repack(seed: int) -> tuple[RepackInstance, Interference]:
    """Return the first of some cases in which not all requests start as things are, if one is."""
    for attempt in range(10):
        case = _drawn(random.Random(f"{seed}/{attempt}"))
        if TinyRepack(*case).best() != (len(case[0].start), 0, 0):
            break
    return case


def _drawn(rng: random.Random) -> tuple[RepackInstance, Interference]:
    """Return a machine crowded with jobs, most of which may move, and one or two requests."""
    shape = rng.choice(SHAPES)
    wrap = [rng.random() < 0.6 for _ in shape]
    per_router = rng.choice((1, 1, 2))
    num_routers = 1
    for n in shape:
        num_routers *= n
    num = num_routers * per_router
    few = rng.choice((0, 0, 0, 0.15))
    gpu = [node for node in range(num) if rng.random() < few]
    machine = TorusModel(
        name="tiny",
        shape=shape,
        wrap=wrap,
        nodes_per_router=per_router,
        classes={"gpu": format_node_set(gpu)} if gpu else {},
    )
    running, held = [], set()
    for idx in range(rng.randint(2, 5)):
        prism: PrismModel | None = random_prism(rng, shape, wrap, largest=rng.choice((1, 2, 2, 3)))
        assert prism is not None
        routers = routers_inside(prism, shape)
        if held & set(routers):
            continue
        of = [r * per_router + k for r in routers for k in range(per_router)]
        wanted = rng.random() < 0.5 and any(node in gpu for node in of)
        nodes = [node for node in of if (node in gpu) == wanted or rng.random() < 0.1]
        if not nodes:
            continue
        if rng.random() < 0.1:
            prism, routers = None, [node // per_router for node in nodes]
        held |= set(routers)
        job = {"id": f"run{idx}", "nodes": format_node_set(nodes), "prism": prism}
        running.append(RunningJob(**job, communication=rng.choice(KINDS)))
    down = [node for node in range(num) if rng.random() < 0.03]
    free = [n for n in range(num) if n // per_router not in held and n not in (*gpu, *down)]
    num_wanted = rng.choice((1, 1, 2))
    queue = [
        Request(
            id=f"new{idx}",
            nodes=max(1, len(free) * rng.randint(5, 10) // (10 * num_wanted)),
            node_class=None,
            communication=rng.choice(KINDS),
        )
        for idx in range(num_wanted)
    ]
    snapshot = Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="tiny-repack",
        machine=machine,
        down=format_node_set(down),
        running=running,
        queue=queue,
        weights=ShapeWeights(
            bisection=rng.randint(0, 4), volume=rng.randint(0, 2), hops=rng.randint(0, 4)
        ),
    )
    names = [job.id for job in running]
    instance = RepackInstance(
        name="tiny-repack",
        snapshot=snapshot,
        start=[request.id for request in queue],
        fixed=[name for name in names if rng.random() < 0.1],
        costs={name: rng.randint(1, 3) for name in names if rng.random() < 0.4},
        keep_shape=rng.choice([*KeepShape]),
    )
    return instance, rng.choice(RULES)


class TinyRepack:
    """An instance by plain sets, from the definitions of docs/proofs/placement.md."""

    def __init__(self, instance: RepackInstance, rule: Interference) -> None:
        self.instance, snapshot = instance, instance.snapshot
        whole = Tiny(snapshot, rule)
        self.now = dict(zip((job.id for job in snapshot.running), whole.jobs, strict=True))
        classes: dict[int, str] = {}
        assert isinstance(snapshot.machine, TorusModel)
        for name, text in snapshot.machine.classes.items():
            classes.update(dict.fromkeys(numbers(text), name))
        self.movers = []
        for job in snapshot.running:
            kinds = {classes.get(node, "") for node in numbers(job.nodes)}
            mine = self.now[job.id]
            others = (self.now[o.id] for o in snapshot.running if o is not job)
            breaks = any(
                mine.links & o.links and not mine.kind == o.kind == "tolerant" for o in others
            )
            if job.prism and job.id not in instance.fixed and len(kinds) == 1 and not breaks:
                self.movers.append((job, kinds.pop()))
        moving = {job.id for job, _ in self.movers}
        stay = [job for job in snapshot.running if job.id not in moving]
        self.left = Tiny(snapshot.model_copy(update={"running": stay}), rule)
        self.choices: dict[str, list[Choice]] = {}
        for job, kind in self.movers:
            request = Request(
                id=job.id,
                nodes=len(numbers(job.nodes)),
                node_class=kind or None,
                communication=job.communication,
            )
            self.choices[job.id] = [c for c in self.left.choices(request) if self.keeps(job, c)]
        for request in snapshot.queue:
            if request.id in instance.start:
                self.choices[request.id] = self.left.choices(request)

    def keeps(self, job: RunningJob, choice: Choice) -> bool:
        """Tell whether a prism is of a shape that a job may move to."""
        assert job.prism is not None
        own = tuple(job.prism.origin), tuple(job.prism.extents)
        if self.instance.keep_shape is KeepShape.SAME:
            return choice.box[1] == own[1]
        score = self.left.score
        return self.instance.keep_shape is KeepShape.ANY or score(choice.box, 0) >= score(own, 0)

    def best(self) -> tuple[int, int, int]:
        """Return how many requests can start, and what the moves cost and hold at least."""
        names, start = [job.id for job, _ in self.movers], self.instance.start
        sizes = {job.id: len(numbers(job.nodes)) for job, _ in self.movers}
        plans = []
        for moved in _subsets(names):
            cost = sum(self.instance.costs.get(name, 1) for name in moved)
            plans.append((cost, sum(sizes[name] for name in moved), moved))
        for num in range(len(start), -1, -1):
            for cost, nodes, moved in sorted(plans):
                stay = [self.now[name] for name in names if name not in moved]
                for started in itertools.combinations(start, num):
                    if self.fits([*moved, *started], stay):
                        return num, cost, nodes
        raise AssertionError("nothing moves, nothing starts")

    def fits(self, names: Sequence[str], there: list[Job]) -> bool:
        """Tell whether all of some have a place beside jobs."""
        if not names:
            return True
        return any(
            self.fits(names[1:], [*there, choice])
            for choice in self.choices[names[0]]
            if not any(choice.meets(other) for other in there)
        )


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from itertools.combinations(names, size)


def replayed(document: dict[str, Any]) -> tuple[int, int, int] | None:
    """Return what a plan is worth, carried out step by step; None if it breaks a rule.

    What it says is suspended has to be, and no two jobs may meet after any step.
    """
    instance = RepackInstance.model_validate(document["instance"])
    rule = Interference(document["limits"]["interference"])
    case, solution = TinyRepack(instance, rule), document["solution"]
    sizes = {job.id: len(numbers(job.nodes)) for job, _ in case.movers}
    moved = [p["request"] for p in solution["moves"]]
    started = [p["request"] for p in solution["placements"]]
    if not set(moved) <= set(sizes) or not set(started) <= set(instance.start):
        return None
    target: dict[str, Job] = {}
    for placement in [*solution["moves"], *solution["placements"]]:
        name, prism = placement["request"], placement["prism"]
        box = prism and (tuple(prism["origin"]), tuple(prism["extents"]))
        found = [c for c in case.choices[name] if c.box == box]
        if not found or name in target or not _holds(case, name, found[0], placement["nodes"]):
            return None
        target[name] = found[0]
    present, suspended, done = dict(case.now), set(), set()
    for step in solution["steps"]:
        name, action = step["job"], step["action"]
        if name not in target or (action == "start") != (name in started):
            return None
        if action == "suspend" and (name in suspended or name in done):
            return None
        if action in ("move", "start") and (name in suspended or name in done):
            return None
        if action == "resume" and (name not in suspended or name in done):
            return None
        if action == "suspend":
            suspended.add(name)
            del present[name]
            continue
        if any(target[name].meets(other) for other in present.values()):
            return None
        present[name] = target[name]
        done.add(name)
    if done != set(target) or sorted(suspended) != sorted(solution["suspended"]):
        return None
    cost = sum(instance.costs.get(name, 1) for name in moved)
    return len(started), cost, sum(sizes[name] for name in moved)


def _holds(case: TinyRepack, name: str, choice: Choice, text: str) -> bool:
    """Tell whether nodes are as many as wanted, of the class, free, and in the prism."""
    nodes = numbers(text)
    requests = {r.id: r for r in case.instance.snapshot.queue}
    if name in requests:
        size = requests[name].nodes
        kind = requests[name].node_class or case.left.default_class
    else:
        job, own = next((j, k) for j, k in case.movers if j.id == name)
        size, kind = len(numbers(job.nodes)), own or case.left.default_class
    return len(nodes) == size and all(
        case.left.class_of.get(n) == kind and case.left.router_of(n) in choice.routers
        for n in nodes
    )


def fewest_suspended(document: dict[str, Any]) -> int:
    """Return how few jobs of a plan have to be suspended, by trying all sets in all orders."""
    instance = RepackInstance.model_validate(document["instance"])
    case = TinyRepack(instance, Interference(document["limits"]["interference"]))
    target = {}
    for placement in document["solution"]["moves"]:
        prism = placement["prism"]
        box = tuple(prism["origin"]), tuple(prism["extents"])
        target[placement["request"]] = next(
            c for c in case.choices[placement["request"]] if c.box == box
        )

    def possible(order: Sequence[str], aside: Sequence[str]) -> bool:
        present = {name: job for name, job in case.now.items() if name not in aside}
        for name in order:
            if any(target[name].meets(other) for other in present.values()):
                return False
            present[name] = target[name]
        return True

    for aside in _subsets([*target]):
        rest = [name for name in target if name not in aside]
        if any(possible(order, aside) for order in itertools.permutations(rest)):
            return len(aside)
    raise AssertionError("all suspended is possible")
