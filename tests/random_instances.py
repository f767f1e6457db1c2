"""Random tiny snapshots that use every feature of the format, for cross-checks.

Everything follows from the generator passed in, so a failing case is repeated from its seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

from topoplace.machine import Prism, Torus, format_node_set
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    Communication,
    PrismModel,
    Request,
    RunningJob,
    ShapeWeights,
    Snapshot,
    TorusModel,
)

KINDS = (Communication.STRICT, Communication.TOLERANT, Communication.NONE)
KIND_WEIGHTS = (3, 3, 1)


def random_shape(rng: random.Random, max_routers: int) -> list[int]:
    """Return the sizes of a machine of 1 to 4 dimensions, small enough for brute force."""
    num_dims = rng.choice((1, 2, 2, 3, 3, 4))
    if num_dims == 1:
        return [rng.randint(1, max_routers)]
    while True:
        shape = [rng.randint(1, 7 if num_dims == 2 else 5) for _ in range(num_dims)]
        if math.prod(shape) <= max_routers:
            return shape


def random_prism(
    rng: random.Random, shape: list[int], wrap: list[bool], largest: int | None = None
) -> PrismModel:
    """Return a canonical prism of the machine with extents up to `largest`."""
    extents = [rng.randint(1, min(n, largest or n)) for n in shape]
    origin = []
    for e, n, wraps in zip(extents, shape, wrap, strict=True):
        origin.append(0 if e == n else rng.randrange(n if wraps else n - e + 1))
    return PrismModel(origin=origin, extents=extents)


def routers_inside(prism: PrismModel, shape: list[int]) -> list[int]:
    """Return the routers of a prism."""
    found = Prism(tuple(prism.origin), tuple(prism.extents)).routers(Torus(tuple(shape)))
    return found.tolist()


def _pick(rng: random.Random, items: Iterable[int], chance: float) -> list[int]:
    return [i for i in items if rng.random() < chance]


def _machine(rng: random.Random, max_routers: int) -> tuple[TorusModel, list[bool], list[str]]:
    """Return a machine, its wraps, and the class of every node ("" for service)."""
    shape = random_shape(rng, max_routers)
    wrap = [rng.random() < 0.6 for _ in shape]
    per_router = rng.randint(1, 3)
    num_nodes = math.prod(shape) * per_router
    of_node = ["compute"] * num_nodes
    for node in _pick(rng, range(num_nodes), rng.choice((0.0, 0.0, 0.3))):
        of_node[node] = "gpu"
    if rng.random() < 0.3:
        for router in _pick(rng, range(math.prod(shape)), 0.1):
            of_node[router * per_router : (router + 1) * per_router] = [""] * per_router
    has_gpu = "gpu" in of_node
    machine = TorusModel(
        name="tiny",
        shape=shape,
        wrap=None if all(wrap) and rng.random() < 0.5 else wrap,
        bandwidth=[rng.randint(1, 4) for _ in shape] if rng.random() < 0.6 else None,
        nodes_per_router=per_router,
        classes={"gpu": _set_of(of_node, "gpu")} if has_gpu else {},
        service=_set_of(of_node, ""),
    )
    return machine, wrap, of_node


def _set_of(of_node: list[str], name: str) -> str:
    return format_node_set(i for i, c in enumerate(of_node) if c == name)


def _running(
    rng: random.Random, shape: list[int], wrap: list[bool], per_router: int, of_node: list[str]
) -> list[RunningJob]:
    held_routers: set[int] = set()
    in_prisms: set[int] = set()
    held_nodes: set[int] = set()
    jobs: list[RunningJob] = []
    for idx in range(rng.choice((0, 0, 1, 1, 2, 3))):
        prism = None
        if rng.random() < 0.6:
            prism = random_prism(rng, shape, wrap, largest=2)
            routers = routers_inside(prism, shape)
            if held_routers & set(routers):
                continue
        else:
            open_to = [r for r in range(math.prod(shape)) if r not in in_prisms]
            routers = rng.sample(open_to, min(len(open_to), rng.randint(1, 3)))
        there = [r * per_router + k for r in routers for k in range(per_router)]
        there = [n for n in there if of_node[n] and n not in held_nodes]
        nodes = _pick(rng, there, 0.8)
        if not nodes:
            continue
        held_nodes.update(nodes)
        held_routers.update(routers if prism else [n // per_router for n in nodes])
        in_prisms.update(routers if prism else [])
        jobs.append(
            RunningJob(
                id=f"run{idx}",
                nodes=format_node_set(nodes),
                prism=prism,
                communication=rng.choices(KINDS, KIND_WEIGHTS)[0],
            )
        )
    return jobs


def _geometry(rng: random.Random, shape: list[int], per_router: int, nodes: int) -> str | None:
    """Return one or two alternatives that can hold the nodes, or none if luck has it so."""
    parts = []
    for _ in range(6):
        extents = [rng.randint(1, n) for n in shape]
        if math.prod(extents) * per_router < nodes:
            continue
        text = "x".join(map(str, extents))
        if rng.random() < 0.5:
            text += f":maxz={rng.randint(extents[-1], shape[-1])}"
        parts.append(text)
    return "/".join(parts[: rng.randint(1, 2)]) if parts else None


def random_snapshot(rng: random.Random, max_routers: int = 24) -> Snapshot:
    """Return a valid snapshot of a machine of at most `max_routers` routers.

    It has 1 to 4 dimensions, rings and lines mixed, 1 to 3 nodes per router, one or two classes,
    service and down nodes, prism and scattered running jobs, regions, and 1 to 5 requests with
    geometries, priorities and all kinds of communication.
    """
    machine, wrap, of_node = _machine(rng, max_routers)
    shape, per_router = list(machine.shape), machine.nodes_per_router
    regions = {
        f"region{idx}": [random_prism(rng, shape, wrap) for _ in range(rng.randint(1, 2))]
        for idx in range(rng.choice((0, 0, 1, 2)))
    }
    running = _running(rng, shape, wrap, per_router, of_node)
    queue = []
    for idx in range(rng.randint(1, 5)):
        wanted = rng.choice([c for c in sorted(set(of_node)) if c] or ["compute"])
        there = of_node.count(wanted)
        if not there:
            continue
        nodes = rng.randint(1, max(1, there if rng.random() < 0.2 else (there + 1) // 2))
        queue.append(
            Request(
                id=f"job{idx}",
                nodes=nodes,
                node_class=None if wanted == "compute" and rng.random() < 0.5 else wanted,
                priority=rng.choice((1, 1, 1, 2, 5)),
                shapes=_geometry(rng, shape, per_router, nodes) if rng.random() < 0.3 else None,
                region=rng.choice(sorted(regions)) if regions and rng.random() < 0.4 else None,
                communication=rng.choices(KINDS, KIND_WEIGHTS)[0],
            )
        )
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="random-tiny",
        machine=machine,
        down=format_node_set(_pick(rng, range(len(of_node)), rng.choice((0.0, 0.0, 0.1)))),
        running=running,
        regions=regions,
        queue=queue,
        weights=ShapeWeights(
            bisection=rng.randint(0, 4),
            volume=rng.randint(0, 2),
            hops=rng.randint(0, 4),
            idle=rng.randint(0, 2),
            wrap=rng.choice((0, 3, 100)),
        ),
    )
