"""Families of generated snapshots, for profiles: what the exact method does where nobody looked.

Same family and seed, same snapshot. The generator is that of the shipped snapshots; other machines
get the workload of Enos 2014 in proportion to their size.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from build_instances import build_machines
from generate_snapshots import generate_snapshot, prism_shapes, workload_for
from topoplace.errors import InputError
from topoplace.machine import Torus
from topoplace.snapshot.schema import Communication, Request, RunningJob, Snapshot, TorusModel

Job = TypeVar("Job", RunningJob, Request)

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
"""Blue Waters 60 % busy where nothing else is said, and so are the other machines."""
