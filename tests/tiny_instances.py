"""Random tiny instances of the three problems, many of them degenerate.

Placement on tori, allocation on trees and mapping: each generator returns the same instance for
the same seed, small enough for brute force, and `MARKS` say what is degenerate about it.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import numpy as np

from baseline_instances import random_graph
from random_grids import random_grid
from random_instances import KINDS, random_prism, random_snapshot
from topoplace.machine import format_node_set
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.snapshot.schema import (
    MAPPING_SCHEMA,
    MAX_PRIORITY,
    MAX_WEIGHT,
    SNAPSHOT_SCHEMA,
    Communication,
    GraphApplication,
    GridApplication,
    MappingInstance,
    MatrixModel,
    Pattern,
    PatternUse,
    PrismModel,
    Request,
    RunningJob,
    ShapeWeights,
    Snapshot,
    SwitchModel,
    TorusModel,
    TreeModel,
)
from tree_cases import model_of, snapshot_on
from tree_exact_cases import tiny_snapshot

Change = Callable[[random.Random, Snapshot], Snapshot]

MOST_MAPPINGS = 40_000
"""Ways to give routers to tasks that `optimum_of` goes through, at most."""


# ---- Jobs on tori -----------------------------------------------------------------------------


def tiny_placement(seed: int | str) -> Snapshot:
    """Return a random snapshot of a torus or mesh, up to three degenerate things changed in it."""
    rng = random.Random(f"tiny-placement-{seed}")
    base = rng.choice((_mixed_torus, _mixed_torus, _flat_torus, _ring))(rng)
    for change in rng.sample(TORUS_CHANGES, rng.choice((0, 0, 1, 1, 2, 3))):
        base = change(rng, base)
    return base


def _mixed_torus(rng: random.Random) -> Snapshot:
    return random_snapshot(rng, rng.choice((4, 12, 20)))


def _flat_torus(rng: random.Random) -> Snapshot:
    """Return a machine whose dimensions have one, two or three routers, up to eight of them."""
    shape = [rng.choice((1, 1, 2, 2, 3)) for _ in range(rng.choice((1, 2, 3, 4, 8)))]
    while math.prod(shape) > 16:
        shape[shape.index(max(shape))] = 1
    return _plain(rng, shape, [rng.random() < 0.5 for _ in shape], rng.choice((1, 1, 2, 4)))


def _ring(rng: random.Random) -> Snapshot:
    return _plain(rng, [rng.randint(1, 12)], [rng.random() < 0.8], 1)


def _plain(rng: random.Random, shape: list[int], wrap: list[bool], per_router: int) -> Snapshot:
    """Return an idle machine with requests that ask for exact shapes now and then."""
    num_nodes = math.prod(shape) * per_router
    queue = []
    for idx in range(rng.randint(1, 4)):
        nodes = rng.randint(1, num_nodes)
        queue.append(
            Request(
                id=f"job{idx}",
                nodes=nodes,
                priority=rng.choice((1, 1, 2, 3)),
                shapes=exact_shape(rng, shape, per_router, nodes) if rng.random() < 0.4 else None,
                communication=rng.choice(KINDS),
            )
        )
    weights = ShapeWeights(
        bisection=rng.choice((0, 4)),
        volume=rng.choice((0, 1)),
        hops=rng.choice((0, 4)),
        idle=rng.choice((0, 1, 30)),
        wrap=rng.choice((0, 100)),
    )
    machine = TorusModel(name="plain", shape=shape, wrap=wrap, nodes_per_router=per_router)
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA, name="plain", machine=machine, queue=queue, weights=weights
    )


def exact_shape(rng: random.Random, shape: list[int], per_router: int, nodes: int) -> str:
    """Return alternatives that hold so many nodes, some deeper than they have to be."""
    parts = []
    while not parts or rng.random() < 0.3:
        extents = [rng.randint(1, n) for n in shape]
        if math.prod(extents) * per_router < nodes:
            extents = shape
        depth = f":maxz={rng.randint(extents[-1], shape[-1])}" if rng.random() < 0.4 else ""
        parts.append("x".join(map(str, extents)) + depth)
    return "/".join(parts)


def torus_model(snapshot: Snapshot) -> TorusModel:
    assert isinstance(snapshot.machine, TorusModel)
    return snapshot.machine


def with_queue(snapshot: Snapshot, queue: list[Request]) -> Snapshot:
    return snapshot.model_copy(update={"queue": queue})


def empty_queue(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    del rng
    return with_queue(snapshot, [])


def equal_requests(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with two to four requests alike."""
    first = snapshot.queue[:1] * rng.randint(2, 4)
    return with_queue(
        snapshot, [r.model_copy(update={"id": f"same{k}"}) for k, r in enumerate(first)]
    )


def single_nodes(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with requests of one node each."""
    del rng
    return with_queue(snapshot, [r.model_copy(update={"nodes": 1}) for r in snapshot.queue])


def largest_priorities(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    highest = [
        r.model_copy(update={"priority": rng.choice((1, MAX_PRIORITY))}) for r in snapshot.queue
    ]
    return with_queue(snapshot, highest)


def all_quiet(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with requests of one kind of communication."""
    kind = rng.choice(KINDS)
    return with_queue(
        snapshot, [r.model_copy(update={"communication": kind}) for r in snapshot.queue]
    )


def no_weights(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    del rng
    nothing = ShapeWeights(bisection=0, volume=0, hops=0, idle=0, wrap=0)
    return snapshot.model_copy(update={"weights": nothing})


def largest_weights(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    weights = [rng.choice((0, MAX_WEIGHT)) for _ in range(5)]
    names = ("bisection", "volume", "hops", "idle", "wrap")
    return snapshot.model_copy(
        update={"weights": ShapeWeights(**dict(zip(names, weights, strict=True)))}
    )


def all_down(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with all nodes down, or all but one."""
    machine = torus_model(snapshot)
    num_nodes = math.prod(machine.shape) * machine.nodes_per_router
    up = rng.choice((-1, rng.randrange(num_nodes)))
    down = format_node_set(n for n in range(num_nodes) if n != up)
    return snapshot.model_copy(update={"down": down})


def all_held(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with one job that holds the whole machine, a plane or a router of it."""
    machine = torus_model(snapshot)
    wrap = machine.wrap or [True] * len(machine.shape)
    whole = PrismModel(origin=[0] * len(machine.shape), extents=list(machine.shape))
    prism = rng.choice((whole, random_prism(rng, list(machine.shape), wrap)))
    job = RunningJob(
        id="holder",
        nodes=format_node_set(_nodes_for_jobs(machine, prism)),
        prism=prism,
        communication=rng.choice(KINDS),
    )
    return snapshot.model_copy(update={"running": [job] if job.nodes else []})


def _nodes_for_jobs(machine: TorusModel, prism: PrismModel) -> list[int]:
    """Return the nodes in a prism that are no service nodes."""
    axes = [
        [(o + i) % n for i in range(e)]
        for o, e, n in zip(prism.origin, prism.extents, machine.shape, strict=True)
    ]
    per = machine.nodes_per_router
    routers = [
        int(np.ravel_multi_index(coords, machine.shape)) for coords in itertools.product(*axes)
    ]
    service = set(_numbers(machine.service))
    nodes = [r * per + k for r in routers for k in range(per)]
    return [node for node in nodes if node not in service]


def _numbers(text: str) -> list[int]:
    ranges = [part.partition("-") for part in text.split(",") if part]
    return [n for low, _, high in ranges for n in range(int(low), int(high or low) + 1)]


def wide_links(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with links as wide as can be written in some dimensions."""
    machine = torus_model(snapshot)
    widths = [rng.choice((1, 1 << 21)) for _ in machine.shape]
    return snapshot.model_copy(update={"machine": machine.model_copy(update={"bandwidth": widths})})


def empty_region(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with requests for a region without routers, and for one of all."""
    shape = torus_model(snapshot).shape
    whole = PrismModel(origin=[0] * len(shape), extents=list(shape))
    queue = [
        r.model_copy(update={"region": rng.choice(("nowhere", "anywhere", None))})
        for r in snapshot.queue
    ]
    regions = {"nowhere": [], "anywhere": [whole, whole]}
    return snapshot.model_copy(update={"queue": queue, "regions": regions})


def shapes_of_all(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with geometries for all requests."""
    machine = torus_model(snapshot)
    shape, per = list(machine.shape), machine.nodes_per_router
    queue = [
        r.model_copy(update={"shapes": exact_shape(rng, shape, per, r.nodes)})
        for r in snapshot.queue
    ]
    return with_queue(snapshot, queue)


TORUS_CHANGES: tuple[Change, ...] = (
    empty_queue,
    equal_requests,
    single_nodes,
    largest_priorities,
    all_quiet,
    no_weights,
    no_weights,
    largest_weights,
    all_down,
    all_held,
    wide_links,
    empty_region,
    shapes_of_all,
)


# ---- Jobs on trees ----------------------------------------------------------------------------


def tiny_allocation(seed: int | str) -> Snapshot:
    """Return a random snapshot of a tree machine, up to two degenerate things changed in it."""
    rng = random.Random(f"tiny-allocation-{seed}")
    num_requests = rng.choice((1, 1, 2, 3))
    ranks = {1: 5, 2: 3, 3: 2}[num_requests]
    base = rng.choice((_mixed_tree, _mixed_tree, _flat_tree, _deep_tree))(rng, num_requests, ranks)
    for change in rng.sample(TREE_CHANGES, rng.choice((0, 0, 1, 1, 2))):
        base = change(rng, base)
    return base


def _mixed_tree(rng: random.Random, num_requests: int, most_ranks: int) -> Snapshot:
    seed = rng.randrange(1 << 30)
    return tiny_snapshot(seed, most_ranks=most_ranks, num_requests=num_requests)


def _flat_tree(rng: random.Random, num_requests: int, most_ranks: int) -> Snapshot:
    """Return leaves of few nodes, often all of one node, below one switch."""
    most = rng.choice((1, 1, 2, 3))
    sizes = [rng.randint(1, most) for _ in range(rng.randint(1, 4))]
    return _queue_on(rng, model_of(sizes), sum(sizes), num_requests, most_ranks)


def _deep_tree(rng: random.Random, num_requests: int, most_ranks: int) -> Snapshot:
    """Return leaves at the ends of a chain of switches, some with a single child."""
    sizes = [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
    switches, below, node = [], "", 0
    for leaf, size in enumerate(sizes):
        names = [f"n{node + k}" for k in range(size)]
        node += size
        switches.append(SwitchModel(name=f"s{leaf}", nodes=",".join(names)))
        below = f"{below},s{leaf}" if below else f"s{leaf}"
        for level in range(rng.randint(1, 2)):
            upper = f"u{leaf}-{level}"
            switches.append(SwitchModel(name=upper, switches=below))
            below = upper
    machine = TreeModel(kind="tree", name="deep", switches=switches)
    return _queue_on(rng, machine, sum(sizes), num_requests, most_ranks)


def _queue_on(
    rng: random.Random, machine: TreeModel, num_nodes: int, num_requests: int, most_ranks: int
) -> Snapshot:
    held = [
        (f"n{node}", rng.choice((Communication.STRICT, Communication.NONE)))
        for node in range(num_nodes)
        if rng.random() < 0.2
    ]
    queue = [
        (rng.randint(1, min(num_nodes, most_ranks)), any_patterns(rng)) for _ in range(num_requests)
    ]
    down = "n0" if not held and rng.random() < 0.2 else ""
    return snapshot_on(machine, held, queue, down)


def any_patterns(rng: random.Random) -> list[PatternUse]:
    """Return none to six patterns with shares that add up to 100 at most."""
    chosen = rng.sample(list(Pattern), rng.choice((0, 1, 1, 2, len(Pattern))))
    sizes = rng.choice(((1,), (1, 2, 7), (1, 1 << 40)))
    return [
        PatternUse(pattern=p, share=rng.randint(1, 16), message_bytes=rng.choice(sizes))
        for p in chosen
    ]


def nodes_down(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with all nodes down, or all but a few."""
    assert isinstance(snapshot.machine, TreeModel)
    names = [n for s in snapshot.machine.switches if s.nodes for n in s.nodes.split(",")]
    up = rng.sample(names, rng.choice((0, min(2, len(names)))))
    down = ",".join(name for name in names if name not in up)
    return snapshot.model_copy(update={"down": down})


def silent_requests(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with requests whose patterns are none, or do not count."""
    silent = ({"patterns": []}, {"patterns": None}, {"communication": Communication.NONE})
    queue = [r.model_copy(update=rng.choice(silent)) for r in snapshot.queue]
    return with_queue(snapshot, queue)


def equal_jobs(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with two or three requests alike, of six ranks together at most."""
    number = rng.randint(2, 3)
    first = [
        r.model_copy(update={"nodes": min(r.nodes, 6 // number)}) for r in snapshot.queue[:1]
    ] * number
    return with_queue(
        snapshot, [r.model_copy(update={"id": f"same{k}"}) for k, r in enumerate(first)]
    )


TREE_CHANGES: tuple[Change, ...] = (
    empty_queue,
    equal_jobs,
    single_nodes,
    largest_priorities,
    nodes_down,
    silent_requests,
)


# ---- Tasks on routers -------------------------------------------------------------------------


def tiny_mapping(seed: int | str) -> MappingProblem:
    """Return a random grid or graph and a machine with room for it."""
    rng = np.random.default_rng(random.Random(f"tiny-mapping-{seed}").randrange(1 << 62))
    application = _application(rng)
    tasks = _num_tasks(application)
    per_node, per_router = int(rng.choice([1, 1, 2, 3, 7])), int(rng.choice([1, 1, 2, 3]))
    needed = -(-tasks // per_node)
    kind = rng.choice(["torus", "torus", "torus", "matrix"])
    if kind == "matrix":
        per_router = 1
    most = max(-(-needed // per_router), _most_routers(tasks))
    shape = _shape(rng, -(-needed // per_router), most)
    num_nodes = math.prod(shape) * per_router
    spare = int(rng.choice([0, 0, 1, 2, num_nodes]))
    usable = np.sort(rng.permutation(num_nodes)[: min(num_nodes, needed + spare)])
    machine: TorusModel | MatrixModel
    if kind == "matrix":
        machine = MatrixModel(kind="matrix", name="tiny", distances=_distances(rng, num_nodes))
    else:
        wrap = (rng.random(len(shape)) < 0.6).tolist()
        machine = TorusModel(name="tiny", shape=shape, wrap=wrap, nodes_per_router=per_router)
    return prepare_mapping(
        MappingInstance(
            schema_version=MAPPING_SCHEMA,
            name="tiny",
            machine=machine,
            nodes=format_node_set(usable.tolist()),
            tasks_per_node=per_node,
            application=application,
        )
    )


def _num_tasks(application: GridApplication | GraphApplication) -> int:
    if isinstance(application, GridApplication):
        return math.prod(application.shape)
    return application.num_tasks


def _most_routers(tasks: int) -> int:
    """Return with how many routers brute force ends soon."""
    return max(1, min(9, math.floor(MOST_MAPPINGS ** (1 / tasks) + 1e-9)))


def _application(rng: np.random.Generator) -> GridApplication | GraphApplication:
    """Return a grid or a graph of one to eight tasks."""
    kind = rng.choice(["grid", "grid", "cells", "graph", "graph", "silent", "pairs", "heavy"])
    if kind == "grid":
        return random_grid(rng, 8)
    if kind == "cells":  # sides of one and two, closed or not
        dims = int(rng.integers(1, 4))
        shape = rng.choice([1, 2], size=dims).tolist()
        sizes = rng.choice([0, 1, 5], size=(dims, 2)).tolist()
        closed = (rng.random(dims) < 0.5).tolist()
        return GridApplication(shape=shape, periodic=closed, bytes=sizes)
    tasks = int(rng.choice([1, 2, 3, 4, 5, 6, 7]))
    if kind == "graph":
        return random_graph(rng, tasks, int(rng.integers(0, 3 * tasks + 1)))
    if kind == "silent":
        ends = rng.integers(tasks, size=(2, 3)).tolist()
        return GraphApplication(num_tasks=tasks, sources=ends[0], targets=ends[1], bytes=[0] * 3)
    pairs = [(a, b) for a in range(tasks) for b in range(tasks) if a != b]
    size = 1 if kind == "pairs" else int(rng.choice([1 << 40, 1 << 53]))
    return GraphApplication(
        num_tasks=tasks,
        sources=[a for a, _ in pairs],
        targets=[b for _, b in pairs],
        bytes=[size] * len(pairs),
    )


def _shape(rng: np.random.Generator, least: int, most: int) -> list[int]:
    """Return the shape of a machine of at least and, if that can be, at most so many routers."""
    for _ in range(200):
        shape: list[int] = rng.integers(1, 5, size=int(rng.integers(1, 5))).tolist()
        if least <= math.prod(shape) <= most:
            return shape
    return [least, 1] if rng.random() < 0.5 else [least]


def _distances(rng: np.random.Generator, size: int) -> list[list[int]]:
    """Return distances: of a line, all alike, all zero, any symmetric ones, or just any."""
    number = np.arange(size)
    any_of_them = rng.integers(0, 6, size=(size, size))
    found = [
        np.abs(number[:, None] - number),
        np.ones((size, size), dtype=np.int64),
        np.zeros((size, size), dtype=np.int64),
        any_of_them + any_of_them.T,
        any_of_them,
    ][int(rng.integers(5))]
    rows: list[list[int]] = (found * ~np.eye(size, dtype=bool)).tolist()
    return rows
