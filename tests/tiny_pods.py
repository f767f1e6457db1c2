"""Tiny pods of cubes whose jobs may move or end: at random, with the places of each listed."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from tiny_moves import best_plan, budgets_of
from topoplace.machine import parse_node_set
from topoplace.placement.repack.spares import with_spares
from topoplace.snapshot.schema import SPARE_PREFIX, KeepShape, RepackInstance, Snapshot

Document = dict[str, Any]
Chips = frozenset[int]
Shape = tuple[int, ...]
SIDES = ((2, 2, 1), (2, 2, 2), (4, 2), (2, 2), (3, 2))


@dataclass(frozen=True)
class Asked:
    """A job as a request: whole cubes, or a part of some shapes."""

    nodes: int
    value: int
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class PodCase:
    """As `tiny_moves.Case`: an instance, who may move and where they are, and who asks for what."""

    instance: RepackInstance
    side: Shape
    free: Chips
    requests: Mapping[str, Asked]
    present: Mapping[str, Chips]
    kept: Mapping[str, Chips] = field(default_factory=dict)
    spares: Mapping[str, Chips] = field(default_factory=dict)

    def places(self, name: str) -> Iterator[Chips]:
        """Yield where a mover or request may be."""
        return (c for c in places_of(self.side, self.requests[name], self.num) if c <= self.free)

    @property
    def num(self) -> int:
        """How many cubes there are."""
        machine: Any = self.instance.snapshot.machine
        return int(machine.cubes)

    def legal(self, placed: Sequence[tuple[str, Chips]]) -> bool:
        """Return whether some can be there together."""
        every = [chip for _, chips in placed for chip in chips]
        return len(set(every)) == len(every)

    def keeps(self, name: str, place: Chips) -> bool:
        """Return whether a job has all cubes that it keeps."""
        return self.kept.get(name, frozenset()) <= place

    def used(self, place: Chips) -> Chips:
        """Return the chips of a place."""
        return place

    def claimed(self, name: str, place: Chips) -> Chips:
        """Return the chips that nobody else has."""
        return place

    def read(self, placement: Document) -> Chips:
        """Return the chips of a document."""
        volume, prism = math.prod(self.side), placement["prism"]
        if prism is None:
            return frozenset(c * volume + k for c in placement["cubes"] for k in range(volume))
        at = placement["cubes"][0], tuple(prism["origin"]), tuple(prism["extents"])
        return _part(self.side, *at)


def _part(side: Shape, cube: int, origin: Shape, shape: Shape) -> Chips:
    found = set()
    for at in itertools.product(*map(range, shape)):
        number = cube
        for n, o, x in zip(side, origin, at, strict=True):
            number = number * n + o + x
        found.add(number)
    return frozenset(found)


def places_of(side: Shape, asked: Asked, num: int) -> Iterator[Chips]:
    """Yield all places of a request on an empty pod."""
    volume = math.prod(side)
    if not asked.shapes:
        for cubes in itertools.combinations(range(num), asked.nodes // volume):
            yield frozenset(c * volume + k for c in cubes for k in range(volume))
        return
    for shape in asked.shapes:
        ranges = (range(0, n - e + 1, e) for n, e in zip(side, shape, strict=True))
        for origin in itertools.product(*ranges):
            yield from (_part(side, cube, origin, shape) for cube in range(num))


def _shapes(side: Shape, nodes: int) -> list[Shape]:
    every = itertools.product(*(range(1, n + 1) for n in side))
    return [shape for shape in every if math.prod(shape) == nodes]


def _asked(rng: random.Random, side: Shape, num: int) -> Asked:
    volume = math.prod(side)
    if rng.random() < 0.3:
        return Asked(volume * rng.randint(1, min(2, num)), 1, ())
    nodes = rng.choice([n for n in range(1, volume) if _shapes(side, n)])
    return Asked(nodes, 1, tuple(rng.sample(_shapes(side, nodes), 1)))


@cache
def tiny_pod(seed: int, *, replaced: bool = False) -> PodCase:
    """Return the first of some cases in which moving, or ending, is of use; else the last."""
    for attempt in range(40):
        case = _drawn(random.Random(f"pod-{seed}/{attempt}"), replaced=replaced)
        if case is not None and best_plan(case)[1:-1] not in ((0,), (0, 0)):
            return case
    return case or tiny_pod(seed + 10_000, replaced=replaced)


@cache
def tiny_pod_of_spares(seed: int) -> PodCase:
    """Return a case with a cube more, and spares; with an odd seed a job is replaced."""
    case, rng = tiny_pod(seed, replaced=bool(seed % 2)), random.Random(f"spare-cubes-{seed}")
    whole, volume = case.instance, math.prod(case.side)
    num = case.num + 1
    machine = whole.snapshot.machine.model_copy(update={"cubes": num})
    snapshot = whole.snapshot.model_copy(update={"machine": machine})
    snapshot = with_spares(snapshot, f"{rng.randint(0, num - 1) * volume}-{num * volume - 1}")
    jobs = [job for job in snapshot.running if job.id.startswith(SPARE_PREFIX)]
    ends = dict.fromkeys((job.id for job in jobs), 1) | whole.ends
    update = {"snapshot": snapshot, "ends": ends, "moving": whole.moving and rng.random() < 0.7}
    free = case.free | frozenset(range(case.num * volume, num * volume))
    held = {job.id: frozenset(parse_node_set(job.nodes, num * volume).tolist()) for job in jobs}
    return replace(case, instance=whole.model_copy(update=update), free=free, spares=held)


def _drawn(rng: random.Random, *, replaced: bool) -> PodCase | None:
    side, num = rng.choice(SIDES), rng.choice((2, 2, 3))
    volume = math.prod(side)
    chips = range(num * volume)
    left = set(chips) - set(rng.sample(chips, rng.choice((0, 0, 1))))
    down = set(chips) - left
    present: dict[str, Chips] = {}
    asked: dict[str, Asked] = {}
    for k in range(rng.randint(1, 4)):
        own = _asked(rng, side, num)
        places = [place for place in places_of(side, own, num) if place <= left]
        if places:
            present[f"run{k}"], asked[f"run{k}"] = rng.choice(places), own
            left -= present[f"run{k}"]
    if not present:
        return None
    queue = [_asked(rng, side, num) for _ in range(rng.choice((1, 1, 2)))]
    starts = [f"w{k}" for k in range(len(queue))]
    failed: list[str] = []
    kept: dict[str, Chips] = {}
    if replaced:
        name = rng.choice([*present])
        chip = rng.choice(sorted(present[name]))
        down.add(chip)
        failed, starts, queue = [name], starts[:1], queue[:1]
        own_cube = frozenset(range(chip - chip % volume, chip - chip % volume + volume))
        kept[name] = frozenset() if asked[name].shapes else present[name] - own_cube
    names = [name for name in present if name not in failed]
    moving = replaced or rng.random() < 0.8
    ends = {n: rng.randint(1, 3) for n in names if rng.random() < 0.5}
    if not moving and not ends:
        return None
    keep = rng.choice(list(KeepShape))
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "pod",
        "machine": {"kind": "cubes", "name": "pod", "cubes": num, "side": side},
        "down": ",".join(map(str, sorted(down))),
        "running": [
            {"id": name, "nodes": ",".join(map(str, sorted(own)))} for name, own in present.items()
        ],
        "queue": [
            {"id": name, "nodes": own.nodes}
            | (
                {"shapes": "/".join("x".join(map(str, s)) for s in own.shapes)}
                if own.shapes
                else {}
            )
            for name, own in zip(starts, queue, strict=True)
        ],
    }
    instance = RepackInstance(
        name="pod",
        snapshot=Snapshot.model_validate(document, strict=False),
        start=starts,
        replace=failed,
        fixed=[n for n in names if rng.random() < 0.1],
        costs={n: rng.randint(1, 3) for n in names if rng.random() < 0.4},
        ends=ends,
        moving=moving,
        budgets=budgets_of(rng, names) if names and rng.random() < 0.3 else [],
        keep_shape=keep,
    )
    held = {n for b in instance.budgets if not b.most for n in b.jobs} | {*instance.fixed}
    stays = {n for n in names if n in held or not (moving or n in ends)}
    for name, own in asked.items():  # a job has its shape, and elsewhere others as it keeps that
        if own.shapes:
            every = tuple(_shapes(side, own.nodes))
            turned = tuple(s for s in every if sorted(s) == sorted(own.shapes[0]))
            shapes = {KeepShape.SAME: own.shapes, KeepShape.AS_GOOD: turned, KeepShape.ANY: every}
            asked[name] = Asked(own.nodes, 1, shapes[keep])
    fixed = frozenset().union(*(present[n] for n in stays))
    free = frozenset(chips) - down - fixed
    requests = asked | dict(zip(starts, queue, strict=True))
    there = {n: present[n] for n in names if n not in stays}
    return PodCase(instance, side, free, requests, there, kept)
