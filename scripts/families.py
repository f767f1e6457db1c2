"""Families of generated snapshots: what exact methods do where nobody looked.

Same family and seed, same snapshot. Seeds from 900 are for tuning, those from 500 for what is
reported. Tori and meshes are filled by the generator of the shipped snapshots (Blue Waters 60 %
busy where nothing else is said); other machines get the workload of Enos 2014 in proportion to
their size. Clusters, pods and tori with anchored prisms have generators of their own, in which jobs
come and go.

    python scripts/families.py FAMILY --seeds N N .. [-o FOLDER] [--jobs N] [--load PERCENT]
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from build_instances import build_machines
from generate_snapshots import generate_snapshot, prism_shapes, workload_for
from study import ROOT, parsed
from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, format_node_set
from topoplace.machine.hostlist import format_host_list
from topoplace.placement.cubes.problem import CubesProblem, Room
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.files import write_document
from topoplace.snapshot.machines import load_machine
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    AnchoredModel,
    Communication,
    HierarchyModel,
    HostsModel,
    MachineModel,
    PrismModel,
    Request,
    RunningJob,
    Segment,
    Snapshot,
    TorusModel,
)

Job = TypeVar("Job", RunningJob, Request)
T = TypeVar("T")

USUAL_FILL = 60
_MOST_OF_REGION = 3_000  # nodes: a region has some 6,750, of which the usual fill leaves 2,700
_TRIES = 50
_SEED_STEP = 10_000


@dataclass(frozen=True)
class Family:
    """Snapshots of one kind.

    Attributes
    ----------
    name
        Also of files.
    title
        What its snapshots have in common, for tables.
    generate
        Returns the snapshot of a seed.
    interference
        The mode they are solved in.
    """

    name: str
    title: str
    generate: Callable[[int], Snapshot]
    interference: str = "strict"


# ---- Tori and meshes, filled ---------------------------------------------------------------------


def _filled(machine: TorusModel, seed: int, percent: int = USUAL_FILL, **share: int) -> Snapshot:
    """Return a machine so full; of the seeds from this one on, in steps, the first that gets there.

    On a small or crowded machine no job may be left whose size is right for the last hole.
    """
    workload = workload_for(machine)
    for draw in range(seed, seed + _TRIES * _SEED_STEP, _SEED_STEP):
        try:
            found = generate_snapshot(machine, workload, percent, draw, **share)
        except InputError:
            continue
        shipped = machine.name in build_machines()
        return found if shipped else found.model_copy(update={"machine": machine})
    raise InputError(f"a seed that fills {machine.name} to {percent} %", value=seed)


def _blue_waters(percent: int, seed: int, **share: int) -> Snapshot:
    return _filled(build_machines()["blue_waters"], seed, percent, **share)


def _scattered(seed: int) -> Snapshot:
    """Return Blue Waters filled along its node order, with no prism among the running jobs."""
    return _blue_waters(USUAL_FILL, seed, scattered_percent=100)


def _bluegene_q(seed: int) -> Snapshot:
    """Return five dimensions of Blue Gene/Q, a torus or a mesh in each of the long ones."""
    rng = random.Random(seed)
    wrap = [rng.random() < 0.5 for _ in range(4)] + [True]
    return _filled(TorusModel(name="bluegene_q", shape=[8, 8, 8, 8, 2], wrap=wrap), seed)


def _fugaku(seed: int) -> Snapshot:
    """Return Fugaku's six dimensions: all wrap but two of length 2."""
    shape, wrap = [24, 23, 24, 2, 3, 2], [True, True, True, False, True, False]
    return _filled(TorusModel(name="fugaku", shape=shape, wrap=wrap), seed)


def _cube(extent: int, wrap: bool, seed: int) -> Snapshot:
    name = f"{'torus' if wrap else 'mesh'}_{extent}"
    return _filled(TorusModel(name=name, shape=[extent] * 3, wrap=[wrap] * 3), seed)


def _many(seed: int) -> Snapshot:
    """Return Blue Waters with 200 requests, sizes between those of the workload."""
    rng = random.Random(seed)
    found = _blue_waters(USUAL_FILL, seed)
    queue = []
    for idx in range(200):
        like = rng.choice(found.queue)
        nodes = max(1, round(like.nodes * rng.uniform(0.5, 1.0)))
        queue.append(like.model_copy(update={"id": f"q{idx:03d}-{like.id}", "nodes": nodes}))
    return found.model_copy(update={"queue": queue})


def _equal(count: int, nodes: int, seed: int) -> Snapshot:
    """Return Blue Waters with a queue of equal requests."""
    queue = [Request(id=f"q{idx:02d}", nodes=nodes, node_class="xe") for idx in range(count)]
    return _blue_waters(USUAL_FILL, seed).model_copy(update={"queue": queue})


def _constrained(seed: int) -> Snapshot:
    """Return Blue Waters; a third of its requests name up to three shapes, a third a region."""
    rng = random.Random(seed)
    found = _blue_waters(USUAL_FILL, seed)
    torus = Torus((24, 24, 24), bandwidth=(2, 1, 2), nodes_per_router=2)
    regions = list(found.regions)
    queue: list[Request] = []
    for job in found.queue:
        draw = rng.random()
        shapes = prism_shapes(torus, job.nodes)[:3]
        added: dict[str, str] = {}
        if draw < 1 / 3 and shapes:
            added = {"shapes": "/".join("x".join(map(str, extents)) for extents in shapes)}
        elif draw < 2 / 3 and job.node_class == "xe" and job.nodes <= _MOST_OF_REGION:
            added = {"region": rng.choice(regions)}
        queue.append(job.model_copy(update=added))
    return found.model_copy(update={"queue": queue})


def _tolerant(seed: int) -> Snapshot:
    """Return Blue Waters; a half of all jobs tolerate each other on links, a tenth use none."""
    rng = random.Random(seed)
    found = _blue_waters(USUAL_FILL, seed)

    def drawn(job: Job) -> Job:
        kind = rng.choices(tuple(Communication), (4, 5, 1))[0]
        return job.model_copy(update={"communication": kind})

    running, queue = map(drawn, found.running), map(drawn, found.queue)
    return found.model_copy(update={"running": list(running), "queue": list(queue)})


# ---- Machines on which jobs come and go ----------------------------------------------------------

_FULL = 0.95  # of the machine: then jobs end, until the load is as wanted
_MISSES = 50


def come_and_go(
    rng: random.Random, start: Callable[[], tuple[T, int] | None], total: int, load: float
) -> list[T]:
    """Return the jobs that still run once a machine was full and some have ended in any order.

    Parameters
    ----------
    start
        Starts another job and returns it with its size; None if it finds no room.
    total, load
        Size of the machine, and the share of it that running jobs hold, at most.
    """
    held: list[tuple[T, int]] = []
    busy = misses = 0
    while busy < _FULL * total and misses < _MISSES:
        started = start()
        misses += started is None
        held += [] if started is None else [started]
        busy += 0 if started is None else started[1]
    rng.shuffle(held)
    while held and busy > load * total:
        busy -= held.pop()[1]
    return [job for job, _ in held]


def _snapshot(name: str, machine: MachineModel, seed: int, **fields: Any) -> Snapshot:
    about = {"schema_version": SNAPSHOT_SCHEMA, "name": name, "machine": machine, "seed": seed}
    return Snapshot(**about, **fields)


HOSTS = 18
"""Compute trays of a rack, of four GPUs each (NVIDIA's reference architecture of the GB200)."""

SEGMENTS = (1, 2, 4, 6, 8, 9, 12, 16, 18)
"""Hosts of a segment; 1 asks for nothing."""

_PARTS = (1, 1, 1, 2, 2, 3, 4, 6, 8)
_DOWN = 0.01


def cluster(seed: int, racks: int = 56, load: float = 0.6, jobs: int = 40) -> Snapshot:
    """Return a cluster of NVL72 racks on which jobs have come and gone, with a queue of `jobs`.

    Jobs are drawn alike whether they run or wait: one to eight segments of a size drawn first. One
    host in a hundred is down. Segments of running jobs came into any racks with room.
    """
    rng = random.Random(f"nvl72-{seed}-{racks}-{HOSTS}-{load}-{jobs}")
    names = [[f"r{r:03d}h{h:02d}" for h in range(HOSTS)] for r in range(racks)]
    every = [name for rack in names for name in rack]
    down = set(rng.sample(every, round(_DOWN * len(every))))
    free = [[name for name in rack if name not in down] for rack in names]

    def start() -> tuple[list[str], int] | None:
        request, own = _in_segments(rng, "running"), []
        size = request.segments[0].size if request.segments else 1
        for _ in range(request.nodes // size):
            fitting = [rack for rack in free if len(rack) >= size]
            if not fitting:
                break
            rack = rng.choice(fitting)
            own += [rack.pop(rng.randrange(len(rack))) for _ in range(size)]
        return (own, len(own)) if own else None

    held = come_and_go(rng, start, sum(map(len, free)), load)
    hosts = [
        HostsModel(hosts=format_host_list(rack), domains=[f"r{r:03d}"])
        for r, rack in enumerate(names)
    ]
    model = HierarchyModel(
        kind="hierarchy", name=f"nvl72_{racks}", levels=["rack", "host"], hosts=hosts
    )
    return _snapshot(
        f"nvl72_{racks}x{HOSTS}_{round(100 * load)}_{jobs}_{seed}",
        model,
        seed,
        down=format_host_list(sorted(down)),
        running=[
            RunningJob(id=f"run{k}", nodes=format_host_list(sorted(own)))
            for k, own in enumerate(held)
        ],
        queue=[_in_segments(rng, f"job{k}") for k in range(jobs)],
    )


def _in_segments(rng: random.Random, name: str) -> Request:
    size, parts = rng.choice(SEGMENTS), rng.choice(_PARTS)
    together = [Segment(size=size, level="rack")] if size > 1 else None
    return Request(id=name, nodes=size * parts, segments=together)


ANCHORED = Torus((8, 8, 8))
DIMS = ((1, 2, 2), (2, 2, 2), (2, 4, 4), (4, 4, 4), (4, 4, 8), (8, 8, 8))
STEP = 2
"""Anchors are so far from each other, or as far as the shape is long if that is less."""


def busy_torus(seed: int, load: float = 0.7, jobs: int = 12) -> Snapshot:
    """Return a torus of 8x8x8 nodes with anchored prisms, on which jobs have come and gone.

    All jobs, and the `jobs` that wait, are of a shape drawn evenly. They came to any free anchor.
    """
    rng = random.Random(f"anchored-{seed}-{load}-{jobs}")
    busy: set[int] = set()

    def start() -> tuple[Prism, int] | None:
        dims = rng.choice(DIMS[:-1])
        anchored = [Prism(origin, dims) for origin in _anchors(dims)]
        free = [p for p in anchored if busy.isdisjoint(p.routers(ANCHORED).tolist())]
        if not free:
            return None
        chosen = rng.choice(free)
        busy.update(chosen.routers(ANCHORED).tolist())
        return chosen, chosen.volume

    held = come_and_go(rng, start, ANCHORED.num_routers, load)
    anchored = [AnchoredModel(dims=list(d), spacing=[min(STEP, n) for n in d]) for d in DIMS]
    return _snapshot(
        f"torus_{round(100 * load)}_{jobs}_{seed}",
        TorusModel(name="torus_8x8x8", shape=list(ANCHORED.shape), anchored=anchored),
        seed,
        running=[
            RunningJob(
                id=f"run{k}",
                nodes=format_node_set(prism.routers(ANCHORED)),
                prism=PrismModel(origin=list(prism.origin), extents=list(prism.extents)),
            )
            for k, prism in enumerate(held)
        ],
        queue=[
            Request(id=f"job{k}", nodes=Prism((0, 0, 0), rng.choice(DIMS[:-1])).volume)
            for k in range(jobs)
        ],
    )


def _anchors(dims: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the origins of a shape; along a dimension that it spans that is 0."""
    sides = zip(dims, ANCHORED.shape, strict=True)
    ways = [range(0, length if own < length else 1, min(STEP, own)) for own, length in sides]
    return itertools.product(*ways)


PARTS = {4: "2x2x1", 8: "2x2x2", 16: "2x2x4", 32: "2x4x4"}
"""Slices of a TPU v4 that are smaller than a cube, by their chips (Google's page on TPU v4)."""

SHAPES = ("listed", "any", "mixed")
"""Whether requests for parts have those shapes, any, or some these and some any."""


def pod(seed: int, jobs: int = 200, shapes: str = "listed") -> Snapshot:
    """Return a snapshot of a pod of 64 cubes: jobs run wherever they came to stand, others wait.

    Parts are of a host's four chips to half a cube, and whole cubes up to half a pod. How many jobs
    take whole cubes, how busy the machine is, and how many chips are down is drawn first: some
    queues ask for less than is free, others for many times as much. A third of the requests has a
    priority from 2 to 4.
    """
    rng = random.Random(f"cubes-{seed}")
    empty = _snapshot(f"cubes_{shapes}_{seed}", load_machine("cubes:64"), seed)
    num_chips = prepare_cubes(empty).machine.num_chips
    busy, wholes = rng.uniform(0.2, 0.7), rng.choice([0, 0.02, 0.05, 0.1])
    drawn = partial(_for_chips, rng, shapes=shapes, num_chips=num_chips, wholes=wholes)
    queue = [drawn(f"r{k}") for k in range(num_chips // 8)]
    problem = CubesProblem(prepare_cubes(empty.model_copy(update={"queue": queue})))
    running = [
        RunningJob(id=f"run{k}", nodes=format_node_set(chips))
        for k, chips in enumerate(_anywhere(rng, problem, busy))
    ]
    down = sorted(rng.sample(range(num_chips), rng.randint(0, num_chips // 200)))
    fields = {"down": format_node_set(down), "running": running}
    return empty.model_copy(update=fields | {"queue": [drawn(f"job{k}") for k in range(jobs)]})


def _for_chips(
    rng: random.Random, name: str, shapes: str, num_chips: int, wholes: float
) -> Request:
    most = max(1, num_chips // 128)
    cubes = min(most, rng.choice([1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12, 16, 32]))
    nodes = 64 * cubes if rng.random() < wholes else rng.choice([4, 4, 4, 8, 8, 16, 16, 32])
    listed = nodes in PARTS and (shapes == "listed" or (shapes == "mixed" and rng.random() < 0.5))
    priority = 1 if rng.random() < 2 / 3 else rng.randint(2, 4)
    shape = PARTS[nodes] if listed else None
    return Request(id=name, nodes=nodes, shapes=shape, priority=priority)


def _anywhere(rng: random.Random, problem: CubesProblem, busy: float) -> Iterator[list[int]]:
    """Yield the chips of jobs that stand anywhere, until the machine is as busy as wanted."""
    room = Room(problem)
    num_cubes, want = problem.machine.num_cubes, int(busy * problem.machine.num_chips)
    for idx, request in enumerate(problem.requests):
        if want <= 0:
            break
        if request.nodes > max(64, want):
            continue
        among = np.array([rng.random() < 0.2 for _ in range(num_cubes)])
        if request.num_cubes:
            placed = room.whole(idx)
        else:
            placed = room.part(idx, request.parts, among, fullest=rng.random() < 0.5)
        if placed is not None:
            yield problem.chips_of(placed).tolist()
            want -= request.nodes


# ---- The families --------------------------------------------------------------------------------

FAMILIES: Sequence[Family] = (
    *(
        Family(f"blue_waters_{p}", f"Blue Waters, {p} % busy", partial(_blue_waters, p))
        for p in (80, 70, 60, 50, 40, 30, 20)
    ),
    Family("scattered", "Blue Waters filled along its node order", _scattered),
    Family("bluegene_q", "Blue Gene/Q, 8x8x8x8x2, torus and mesh", _bluegene_q),
    Family("fugaku", "Fugaku, 24x23x24x2x3x2", _fugaku),
    Family("mesh_24", "mesh of 24x24x24", partial(_cube, 24, False)),
    Family("torus_48", "torus of 48x48x48", partial(_cube, 48, True)),
    Family("queue_200", "200 requests", _many),
    Family("equal_20x512", "20 equal requests of 512 nodes", partial(_equal, 20, 512)),
    Family("equal_50x64", "50 equal requests of 64 nodes", partial(_equal, 50, 64)),
    Family("constrained", "requests with shapes and regions", _constrained),
    Family("tolerant", "half of the jobs tolerant", _tolerant, "tolerant"),
)
"""Of tori and meshes, for profiles."""

OTHERS = {"nvl72": cluster, "anchored": busy_torus} | {
    f"cubes_{shapes}": partial(pod, shapes=shapes) for shapes in SHAPES
}
"""What draws a snapshot of a seed; of a number of jobs too, and the first two of a load."""


def drawn(
    name: str, seeds: Iterable[int], jobs: int | None, load: int | None
) -> Iterator[Snapshot]:
    """Yield the snapshots of a family."""
    given: dict[str, Any] = {} if jobs is None else {"jobs": jobs}
    given |= {} if load is None else {"load": load / 100}
    families = {family.name: family.generate for family in FAMILIES}
    for seed in seeds:
        yield families[name](seed) if name in families else OTHERS[name](seed, **given)


def main(given: Sequence[str] | None = None) -> None:
    """Write snapshots into a folder."""
    names = (*(family.name for family in FAMILIES), *OTHERS)
    folder = ROOT / "out" / "families"
    own = parsed(__doc__, given, {"family": names}, seeds=[500], output=folder, jobs=int, load=int)
    own.output.mkdir(parents=True, exist_ok=True)
    for snapshot in drawn(own.family, own.seeds, own.jobs, own.load):
        write_document(own.output / f"{own.family}-{snapshot.seed}.json", snapshot)


if __name__ == "__main__":
    main()
