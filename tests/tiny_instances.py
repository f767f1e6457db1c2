"""Random tiny instances of the three problems, many of them degenerate.

Placement on tori, allocation on trees and mapping: each generator returns the same instance for
the same seed, small enough for brute force, and `MARKS` say what is degenerate about it.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from baseline_instances import matrix_problem, problem_on
from brute_force import numbers
from random_instances import KINDS, random_prism, random_snapshot, routers_inside
from tiny_hierarchies import EXPRESSIONS, SETS
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.errors import InputError
from topoplace.machine import format_node_set
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import (
    MAX_PRIORITY,
    MAX_WEIGHT,
    Communication,
    GraphApplication,
    GridApplication,
    Pattern,
    PrismModel,
    Request,
    RunningJob,
    ShapeWeights,
    Snapshot,
    SwitchModel,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.state import prepare
from tree_exact_cases import tiny_machine

Json = Any
Random = random.Random
Change = Callable[[random.Random, Snapshot], Snapshot]


# ---- Jobs on tori -----------------------------------------------------------------------------


def torus_model(snapshot: Snapshot) -> TorusModel:
    assert isinstance(snapshot.machine, TorusModel)
    return snapshot.machine


def random_torus(
    rng: random.Random, sizes: Sequence[int] = (2, 4, 6, 9), *, alike: bool = False
) -> Snapshot:
    """Return a tiny snapshot, often one that is extreme in some way, or with requests alike."""
    way = rng.choice(("any", "any", "any", "ring", "one", "open", "full"))
    if way == "full" or (alike and rng.random() < 0.3):
        return _full(rng)
    snapshot = random_snapshot(rng, max_routers=rng.choice(sizes))
    if way in ("ring", "one"):
        shapes = {"ring": ([11], [8], [2, 5], [3, 4]), "one": ([1], [2], [1, 2], [2, 2], [1] * 3)}
        snapshot = _bare(rng, rng.choice(shapes[way]))
    if way == "open":
        snapshot = snapshot.model_copy(update={"running": [], "down": ""})
    queue = list(snapshot.queue)
    if queue and rng.random() < (0.9 if alike else 0.4):
        queue = _look_alikes(rng, snapshot, rng.choice(queue))
    if rng.random() < 0.3:
        priorities = (1, MAX_PRIORITY - 1, MAX_PRIORITY)
        queue = [r.model_copy(update={"priority": rng.choice(priorities)}) for r in queue]
    if rng.random() < 0.1:
        nodes = rng.choice(((1 << 31) - 1, 1 << 31))
        queue.append(Request(id="vast", nodes=nodes, priority=rng.choice((1, MAX_PRIORITY))))
    weights = snapshot.weights
    if rng.random() < 0.3:
        of = rng.choice(((0,), (MAX_WEIGHT,), (0, 1, MAX_WEIGHT)))
        weights = ShapeWeights(**{name: rng.choice(of) for name in ShapeWeights.model_fields})
    queue = [] if rng.random() < 0.05 else queue
    return snapshot.model_copy(update={"queue": queue, "weights": weights})


def with_sets(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with named sets of nodes, and requests that may have some alone."""
    machine = torus_model(snapshot)
    num_nodes = math.prod(machine.shape) * machine.nodes_per_router
    sets = {
        name: format_node_set(n for n in range(num_nodes) if rng.random() < 0.7) for name in SETS
    }
    queue = []
    for request in snapshot.queue:
        update: dict[str, Any] = {}
        if rng.random() < 0.7:
            update["eligible"] = rng.choice(EXPRESSIONS).format(*rng.sample(SETS, 3))
        if rng.random() < 0.3:
            update["excluded"] = str(rng.randrange(num_nodes))
        if rng.random() < 0.4:
            some = [rng.choice(EXPRESSIONS).format(*rng.sample(SETS, 3)) for _ in range(2)]
            update["one_of"] = [*some, rng.choice(SETS)][: rng.randint(1, 3)]
        queue.append(request.model_copy(update=update))
    return snapshot.model_copy(update={"sets": sets, "queue": queue})


def _on(name: str, machine: TorusModel, queue: list[Request]) -> Snapshot:
    return Snapshot(schema_version="topoplace.snapshot/1", name=name, machine=machine, queue=queue)


def _bare(rng: random.Random, shape: list[int]) -> Snapshot:
    """Return a machine of a shape with nothing on it, and up to three requests."""
    per_router = rng.choice((1, 1, 2, 40))
    most = max(1, per_router * math.prod(shape) // 2)
    kind = rng.choice((Communication.STRICT, Communication.TOLERANT))
    queue = [
        Request(id=f"q{k}", nodes=rng.randint(1, most), communication=kind)
        for k in range(rng.randint(1, 3))
    ]
    more: dict[str, Any] = {}
    if rng.random() < 0.3:
        more["bandwidth"] = [rng.choice((1, 2, 1 << 21)) for _ in shape]
    if rng.random() < 0.4:
        more["wrap"] = [rng.random() < 0.5 for _ in shape]
    machine = TorusModel(name="bare", shape=shape, nodes_per_router=per_router, **more)
    return _on("bare", machine, queue)


def _full(rng: random.Random) -> Snapshot:
    """Return a machine that equal requests fill, or one more than can start."""
    shape = rng.choice(([2], [3], [4], [2, 2], [5], [2, 3]))
    size = math.prod(shape)
    nodes = rng.choice([n for n in (1, 1, 2, 3) if n <= size])
    kind = rng.choice(tuple(Communication))
    num = min(5, size // nodes + rng.choice((0, 0, 0, 1)))
    queue = [Request(id=f"q{k}", nodes=nodes, communication=kind) for k in range(num)]
    if rng.random() < 0.3:
        queue[0] = queue[0].model_copy(update={"priority": rng.choice((2, MAX_PRIORITY))})
    if rng.random() < 0.3:  # two of one value, for the same places
        small = rng.randint(1, max(1, size // 2))
        queue = [
            Request(id="large", nodes=2 * small, communication=kind),
            Request(id="small", nodes=small, priority=2, communication=kind),
        ]
        rng.shuffle(queue)
    wrap = [rng.random() < 0.5 for _ in shape]
    return _on("full", TorusModel(name="full", shape=shape, wrap=wrap), queue)


def _look_alikes(rng: random.Random, snapshot: Snapshot, first: Request) -> list[Request]:
    """Return some requests that are equal or differ in little, and some of the others."""
    machine = torus_model(snapshot)
    also = [r for r in snapshot.queue if r is not first and rng.random() < 0.3]
    nodes = min(first.nodes, rng.choice((1, 2, 4)))
    equal = [
        first.model_copy(
            update={
                "id": f"like{k}",
                "shapes": None,
                "nodes": nodes + rng.choice((0, 0, 0, 1)),
                "priority": rng.choice((first.priority, first.priority, 1)),
            }
        )
        for k in range(rng.randint(2, 4))
    ]
    if rng.random() < 0.35:  # of one value, for more nodes
        equal[0] = equal[0].model_copy(update={"nodes": nodes, "priority": 2})
        equal[1] = equal[1].model_copy(update={"nodes": 2 * nodes, "priority": 1})
    if rng.random() < 0.4:  # one that cannot stand for the others
        ways: list[dict[str, Any]] = [{"communication": kind} for kind in Communication]
        ways += [{"region": name} for name in (None, *snapshot.regions)]
        ways += [{"node_class": name} for name in (None, *machine.classes)]
        ways.append({"shapes": "x".join(map(str, machine.shape)), "nodes": 1})
        at = rng.randrange(len(equal))
        equal[at] = equal[at].model_copy(update=rng.choice(ways))
    return rng.sample(equal + also, len(equal + also))


def tiny_placement(seed: int | str) -> Snapshot:
    """Return a random snapshot of a torus or mesh, up to two degenerate things changed in it."""
    rng = random.Random(f"tiny-placement-{seed}")
    base = random_torus(rng, (4, 12, 20), alike=rng.random() < 0.2)
    state = prepare(base.model_copy(update={"queue": []}))  # requests have to fit the machine
    most = {name: int((state.node_class == k).sum()) for k, name in enumerate(state.classes)}
    default = torus_model(base).default_class
    queue = [r for r in base.queue if r.nodes <= most[r.node_class or default]]
    base = base.model_copy(update={"queue": queue})
    for change in rng.sample(TORUS_CHANGES, rng.choice((0, 0, 1, 1, 2))):
        base = change(rng, base)
    return base


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
    per = machine.nodes_per_router
    nodes = {r * per + k for r in routers_inside(prism, machine.shape) for k in range(per)}
    job = RunningJob(
        id="holder",
        nodes=format_node_set(nodes - numbers(machine.service)),
        prism=prism,
        communication=rng.choice(KINDS),
    )
    return snapshot.model_copy(update={"running": [job] if job.nodes else []})


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
    """Return the snapshot with geometries for all requests, some deeper than they have to be."""
    machine = torus_model(snapshot)
    queue = []
    for request in snapshot.queue:
        extents = [rng.randint(1, n) for n in machine.shape]
        if math.prod(extents) * machine.nodes_per_router < request.nodes:
            extents = list(machine.shape)
        text = "x".join(map(str, extents))
        texts = (text, f"{text}:maxz={rng.randint(extents[-1], machine.shape[-1])}")
        shapes = "/".join(rng.sample(texts, rng.choice((1, 1, 2))))
        queue.append(request.model_copy(update={"shapes": shapes}))
    return snapshot.model_copy(update={"queue": queue})


TORUS_CHANGES: tuple[Change, ...] = (all_down, all_held, empty_region, shapes_of_all)


# ---- Jobs on trees ----------------------------------------------------------------------------


def random_tree(
    rng: random.Random, patterns: Sequence[Pattern], sizes: Sequence[int], *, others: float
) -> Json:
    """Return a tiny tree with a request of some size and patterns, and perhaps others."""
    wanted = rng.choice(sizes)
    while True:
        machine = tiny_machine(rng, rng.choice((1, 2, 2, 3, 3, 4)))
        names = [n for switch in machine.switches if switch.nodes for n in switch.nodes.split(",")]
        if len(names) >= wanted:
            break
    num_nodes = len(names)
    rng.shuffle(names)
    most = 10 if wanted > 5 else 8
    room = max(wanted, min(most, num_nodes) - (rng.random() < 0.5) * rng.randint(0, 3))
    down, held = [], []
    for name in names[room:]:
        (down if rng.random() < 0.2 else held).append(name)
    queue = [_request(rng, 0, wanted, patterns)]
    if wanted <= 4 and rng.random() < others:
        for n in range(1, rng.choice((2, 2, 3))):
            any_patterns = rng.sample(list(Pattern), rng.choice((0, 1, 1, 2)))
            size = min(num_nodes, rng.choice((1, 2, 2, 3)))
            queue.append(_request(rng, n, size, any_patterns))
    running = []
    while held:
        own = [held.pop() for _ in range(min(len(held), rng.randint(1, 3)))]
        kind = rng.choice(("strict", "strict", "tolerant", "none"))
        running.append({"id": f"r{len(held)}", "nodes": ",".join(own), "communication": kind})
    return {
        "schema": "topoplace.snapshot/1",
        "name": "tiny",
        "machine": machine.model_dump(mode="json", exclude_none=True),
        "down": ",".join(down),
        "running": running,
        "queue": queue,
    }


def _request(rng: random.Random, n: int, nodes: int, patterns: Sequence[Pattern]) -> Json:
    share = 100 // max(1, len(patterns))
    uses = [
        {
            "pattern": pattern.value,
            "share": rng.choice((share, share, rng.randint(1, share))),
            "message_bytes": rng.choice((1, 1, 1, 3, 1 << 20, 1 << 40)),
        }
        for pattern in patterns
    ]
    found: Json = {"id": f"q{n}", "nodes": nodes}
    found["priority"] = rng.choice((1, 1, 1, 2, 3, 1_000_000))
    found["communication"] = rng.choice(("strict", "tolerant", "none" if n else "strict"))
    found["patterns"] = uses or None
    return found


def full_tree(rng: random.Random, *, apart: float) -> Json:
    """Return a tiny tree, perhaps without common switches, and more requests than fit at most."""
    patterns = rng.sample(list(Pattern), 1)
    document = random_tree(rng, patterns, (1, 2, 3, 4), others=0.9)
    switches = document["machine"]["switches"]
    if rng.random() < apart:
        leaves = [one for one in switches if "nodes" in one]
        uppers = _pairs(rng, [one["name"] for one in leaves])
        document["machine"]["switches"] = [*leaves, *uppers]
    num_nodes = sum(one["nodes"].count(",") + 1 for one in switches if "nodes" in one)
    while len(document["queue"]) < 4 and rng.random() < 0.8:
        any_patterns = rng.sample(list(Pattern), rng.choice((0, 1, 1)))
        most = document["queue"][0]["nodes"] if any_patterns else num_nodes
        size = rng.randint(1, min(6, most))
        document["queue"].append(_request(rng, len(document["queue"]), size, any_patterns))
    return document


def _pairs(rng: random.Random, names: list[str]) -> Json:
    """Return switches over one or two leaves each."""
    names = rng.sample(names, len(names))
    found = [{"name": f"t{k}", "switches": ",".join(names[k : k + 2])} for k in range(0, 4, 2)]
    return [one for one in found if one["switches"]]


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
    return snapshot.model_copy(update={"queue": queue})


def equal_jobs(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with two or three requests alike, of six ranks together at most."""
    if not snapshot.queue:
        return snapshot
    number, first = rng.randint(2, 3), snapshot.queue[0]
    nodes = min(first.nodes, 6 // number)
    same = [first.model_copy(update={"id": f"same{k}", "nodes": nodes}) for k in range(number)]
    return snapshot.model_copy(update={"queue": same})


def no_jobs(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    del rng
    return snapshot.model_copy(update={"queue": []})


def chained_switches(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its leaves at the ends of a chain of switches, some single."""
    assert isinstance(snapshot.machine, TreeModel)
    switches, below = [], ""
    for leaf in [one for one in snapshot.machine.switches if one.nodes]:
        switches.append(leaf)
        below = f"{below},{leaf.name}" if below else leaf.name
        for level in range(rng.randint(1, 2)):
            upper = f"u{leaf.name}-{level}"
            switches.append(SwitchModel(name=upper, switches=below))
            below = upper
    return snapshot.model_copy(
        update={"machine": snapshot.machine.model_copy(update={"switches": switches})}
    )


TREE_CHANGES: tuple[Change, ...] = (
    equal_jobs,
    no_jobs,
    nodes_down,
    silent_requests,
    chained_switches,
)


def tiny_allocation(seed: int | str) -> Snapshot:
    """Return a random snapshot of a tree machine, up to two degenerate things changed in it."""
    rng = random.Random(f"tiny-allocation-{seed}")
    patterns = rng.sample(list(Pattern), rng.choice((0, 1, 1, 2, len(Pattern))))
    sizes = rng.choice(((1, 2, 3, 4, 5), (2, 3)))
    document = random_tree(rng, patterns, sizes, others=0.0 if 5 in sizes else 1.0)
    base = Snapshot.model_validate_json(json.dumps(document))
    for change in rng.sample(TREE_CHANGES, rng.choice((0, 0, 1, 1, 2))):
        base = change(rng, base)
    return base


# ---- Tasks on routers -------------------------------------------------------------------------

MOST_MAPPINGS = 5_040
PALETTES = (
    (1,),
    (0, 1, 1, 2, 5),
    (1, 3, 12, 97),
    (6, 12, 18),
    (1, 1 << 20),
    ((1 << 31) - 1, 1 << 31, (1 << 31) + 1),
    ((1 << 49) - 1, 1 << 49),
    ((1 << 52) - 1, 1 << 52, (1 << 53) - 1, 1 << 53),
    (1, 1 << 53),
)


def palette(rng: Random) -> tuple[int, ...]:
    """Return sizes of messages, now and then near the ends of what fits."""
    return rng.choice(PALETTES[:4] if rng.random() < 0.7 else PALETTES)


def random_grid(rng: Random, most_tasks: int = 6) -> GridApplication:
    """Return a grid, some dimensions of which close, with one or two tasks, with diagonals."""
    while True:
        shape = [rng.choice((1, 2, 2, 3, 4, 5, 6)) for _ in range(rng.randint(1, 4))]
        if 2 <= math.prod(shape) <= most_tasks:
            break
    sizes, full = palette(rng), rng.random() < 0.4
    return GridApplication(
        shape=shape,
        periodic=[rng.random() < 0.5 for _ in shape],
        bytes=[rng.choices(sizes, k=2) for _ in shape],
        stencil="full" if full else "nearest",
        diagonal_bytes=rng.choices(sizes, k=len(shape) - 1) if full else [],
    )


def random_graph(rng: Random) -> GraphApplication:
    """Return messages, some repeated or to oneself: at random, or in a pattern."""
    n = rng.choice((1, 2, 3, 4, 4, 5, 6))
    every = list(itertools.product(range(n), repeat=2))
    patterns = [
        [rng.choice(every) for _ in range(rng.randint(0, 3 * n))],
        [(k, (k + 1) % n) for k in range(n)],
        [(0, k) for k in range(n)],
        [(a, b) for a, b in every if a < b],
    ]
    return graph_of(rng, n, rng.choice(patterns))


def graph_of(rng: Random, num_tasks: int, pairs: list[tuple[int, int]]) -> GraphApplication:
    """Return messages of random bytes along pairs of tasks."""
    sources, targets = ([pair[k] for pair in pairs] for k in (0, 1))
    sizes = rng.choices(palette(rng), k=len(pairs))
    return GraphApplication(num_tasks=num_tasks, sources=sources, targets=targets, bytes=sizes)


def random_problem(rng: Random, kind: str) -> MappingProblem:
    """Return a problem of few enough mappings to try all, which a kind of certificate is for."""
    while True:
        is_grid = kind == "blocks" or rng.random() < 0.3
        application = random_grid(rng) if is_grid else random_graph(rng)
        try:
            problem = _placed(rng, application, kind)
            places = int(problem.capacity.sum())
            if math.perm(places, problem.num_tasks) <= MOST_MAPPINGS:
                read_instance(problem.instance)
                return problem
        except (InputError, RefusedError, OverflowError):
            continue


def _placed(
    rng: Random, application: GridApplication | GraphApplication, kind: str
) -> MappingProblem:
    """Return a problem on a torus, a mesh, a long ring of few nodes, or a matrix."""
    if isinstance(application, GridApplication):
        n = math.prod(application.shape)
    else:
        n = application.num_tasks
    per_node = rng.choice((1, 1, 1, 2, 3, n))
    spare = rng.choice((0, 0, 1, 2))
    if kind in ("star", "total", "pairs", "tree") and rng.random() < 0.4:
        if isinstance(application, GridApplication):
            application = random_graph(rng)
        size = rng.randint(1, 7)
        lengths = rng.choice(((1, 2, 3, 5), (1, 1, 2), (0, 1, 1, 2), (0, 1, 1 << 20)))
        table = np.array(rng.choices(lengths, k=size * size)).reshape(size, size)
        table = np.minimum(table, table.T) if rng.random() < 0.5 else table
        table *= 1 - np.eye(size, dtype=np.int64)
        return matrix_problem(application, table, tasks_per_node=per_node)
    shape = [rng.choice((1, 2, 2, 3, 4, 5)) for _ in range(rng.randint(1, 3))]
    if kind == "cuts" and rng.random() < 0.6:
        shape = [rng.choice((6, 7, 12, 16, 33, 64, 64, 64, 128)), *rng.choice(([], [], [1], [2]))]
    per_router = rng.choice((1, 1, 2, 3))
    every, wanted = math.prod(shape) * per_router, -(-n // per_node) + spare
    nodes = sorted(rng.sample(range(every), min(wanted, every)))
    if rng.random() < 0.6:  # evenly
        nodes = [k * every // len(nodes) for k in range(len(nodes))]
    return problem_on(
        application,
        shape,
        tasks_per_node=per_node,
        wrap=[rng.random() < 0.6 for _ in shape],
        nodes_per_router=per_router,
        nodes=format_node_set(nodes),
    )


def tiny_mapping(seed: int | str) -> MappingProblem:
    """Return a random grid or graph and a machine with room for it."""
    rng = Random(f"tiny-mapping-{seed}")
    return random_problem(rng, rng.choice(("blocks", "blocks", "star")))
