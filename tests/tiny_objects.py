"""Tiny instances of objects, and all their mappings one by one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from operator import ne

import numpy as np

from topoplace.machine import Torus
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.snapshot.schema import (
    FixedObject,
    GraphApplication,
    MatrixModel,
    MessageTree,
    Moves,
    ObjectsGraph,
    TreeKind,
)

MACHINES = ("torus:2x3", "mesh:2x2", "torus:4", "torus:2x2:2", "mesh:5", "torus:3x2:2")


def tiny_objects(seed: int, *, trees: bool = False, once: bool = False) -> MappingProblem:
    """Return an instance of at most 6 objects on at most 6 nodes; some are fixed, or pooled.

    With `trees` there are multicasts and reductions beside fewer messages; some or (at times) all
    go once to a node if `once`, and the machine may then be a matrix of distances.
    """
    rng = random.Random(seed)
    num = rng.randint(2, 6)
    places = load_places(rng.choice(MACHINES))
    if rng.random() < 0.4 and len(places.nodes) > 4:
        keep = sorted(rng.sample(places.nodes.tolist(), 4))
        places = places.only(",".join(map(str, keep)))
    if len(places.nodes) > 6:
        places = places.only("0-5")
    ends = [(rng.randrange(num), rng.randrange(num)) for _ in range(rng.randint(0, 10))]
    unit = rng.choice((1, 1, 3))
    sent: dict[str, list[int]] = {
        "sources": [a for a, _ in ends],
        "targets": [b for _, b in ends],
        "bytes": [unit * rng.randint(0, 6) for _ in ends],
    }
    loads = [rng.choice((0, 1, 1, 2, 3, 5)) for _ in range(num)]
    pooled = rng.random() < 0.3
    cap = max(*loads, -(-sum(loads) // len(places.nodes))) + rng.choice((0, 0, 1, 4))
    fixed = []
    if rng.random() < 0.3:
        fixed = [FixedObject(object=rng.randrange(num), node=int(rng.choice(places.nodes)))]
    joined: list[MessageTree] = []
    if trees:
        kept = rng.randint(0, 3)
        sent = {name: values[:kept] for name, values in sent.items()}
        joined = [tiny_tree(rng, num, unit) for _ in range(rng.randint(1, 4))]
    if once:
        some = rng.choice((0.5, 1.0, 1.0))
        joined = [
            t.model_copy(update={"once": "node"}) if rng.random() < some else t for t in joined
        ]
        if all(t.once == "node" for t in joined) and rng.random() < 0.3:
            machine = Torus((len(places.nodes),))
            distances = machine.hops(*np.ix_(range(len(places.nodes)), range(len(places.nodes))))
            listed = (distances * rng.randint(1, 3)).tolist()
            places = load_places(MatrixModel(kind="matrix", name="tiny", distances=listed))
            fixed = [FixedObject(object=one.object, node=0) for one in fixed]
    graph = ObjectsGraph(loads=loads, trees=joined, **sent)
    return problem_on(places, graph, None, cap=cap, pooled=pooled, fixed=fixed)


def tiny_moves(seed: int) -> MappingProblem:
    """Return an instance of which only some objects, or tasks, may move from any mapping."""
    rng = random.Random(seed)
    if seed % 2:
        problem = tiny_objects(seed, trees=rng.random() < 0.5, once=rng.random() < 0.3)
    else:
        places = load_places(rng.choice((*MACHINES, "tree:2x3", "mesh:2x3")))
        places = places.only(",".join(map(str, places.nodes.tolist()[:6])))
        num, per_node = rng.randint(2, 6), rng.randint(1, 2)
        num = min(num, per_node * len(places.nodes))
        ends = [(rng.randrange(num), rng.randrange(num)) for _ in range(rng.randint(1, 10))]
        graph = GraphApplication(
            num_tasks=num,
            sources=[a for a, _ in ends],
            targets=[b for _, b in ends],
            bytes=[rng.randint(0, 6) for _ in ends],
        )
        problem = problem_on(places, graph, per_node)
    mappings = list(all_mappings(problem))
    if not mappings:
        return tiny_moves(seed + 10_000)
    moves = Moves(nodes=list(rng.choice(mappings)), most=rng.randint(0, problem.num_tasks))
    return prepare_mapping(problem.instance.model_copy(update={"moves": moves}))


def tiny_tree(rng: random.Random, num: int, unit: int) -> MessageTree:
    """Return a tree of some objects, its root among the members at times."""
    kind: TreeKind = "reduction" if rng.random() < 0.5 else "multicast"
    members = [rng.randrange(num) for _ in range(rng.randint(1, 4))]
    size = unit * rng.randint(1, 5)
    return MessageTree(kind=kind, root=rng.randrange(num), members=members, bytes=size)


Link = tuple[tuple[int, ...], int, int]
"""A link: where it starts, its dimension, and whether it goes up or down."""


def links_of(torus: Torus, root: int, members: Iterable[int]) -> set[Link]:
    """Return all links of the routes from a router to others, step by step."""
    links = set()
    for member in members:
        at, goal = (torus.coordinates[router].tolist() for router in (root, member))
        for d, n in enumerate(torus.shape):
            ahead = (goal[d] - at[d]) % n if torus.wrap[d] else goal[d] - at[d]
            step = 1 if ahead > 0 and (2 * ahead <= n or not torus.wrap[d]) else -1
            while at[d] != goal[d]:
                links.add((tuple(at), d, step))
                at[d] = (at[d] + step) % n
    return links


def all_mappings(problem: MappingProblem) -> Iterator[tuple[int, ...]]:
    """Yield all mappings within the caps, and the limit of moves."""
    instance, per = problem.instance, problem.machine.nodes_per_router
    cap = instance.tasks_per_node if instance.cap is None else instance.cap
    groups = {n: n // per if instance.pooled else n for n in problem.nodes.tolist()}
    widths = {g: list(groups.values()).count(g) for g in groups.values()}
    choices: list[list[int]] = [problem.nodes.tolist()] * problem.num_tasks
    for one in instance.fixed:
        choices[one.object] = [one.node]
    for nodes in itertools.product(*choices):
        filled = dict.fromkeys(widths, 0)
        for node, load in zip(nodes, problem.loads.tolist(), strict=True):
            filled[groups[node]] += load
        if any(filled[g] > cap * widths[g] for g in widths):
            continue
        moves = instance.moves
        if moves is None or sum(map(ne, nodes, moves.nodes)) <= moves.most:
            yield nodes


def brute_force(problem: MappingProblem) -> tuple[int, ...] | None:
    """Return the least (hop-bytes, largest load) of all mappings; None without any.

    Without a cap no load counts.
    """
    instance, graph = problem.instance, problem.graph
    per = problem.machine.nodes_per_router
    hops = {
        (a, b): int(problem.machine.hops(np.array([a // per]), np.array([b // per]))[0])
        for a in problem.nodes.tolist()
        for b in problem.nodes.tolist()
    }
    messages = list(
        zip(graph.sources.tolist(), graph.targets.tolist(), graph.bytes.tolist(), strict=True)
    )
    groups = {n: n // per if instance.pooled else n for n in problem.nodes.tolist()}
    widths = {g: list(groups.values()).count(g) for g in groups.values()}
    known: dict[tuple[int, frozenset[int]], int] = {}
    best: tuple[int, ...] | None = None
    for nodes in all_mappings(problem):
        filled = dict.fromkeys(widths, 0)
        for node, load in zip(nodes, problem.loads.tolist(), strict=True):
            filled[groups[node]] += load
        cost = sum(size * hops[nodes[a], nodes[b]] for a, b, size in messages)
        for tree in problem.listed_trees:
            if tree.once == "node":
                there = {groups[nodes[one]]: nodes[one] for one in tree.members}
                cost += tree.bytes * sum(hops[nodes[tree.root], node] for node in there.values())
                continue
            key = nodes[tree.root] // per, frozenset(nodes[one] // per for one in tree.members)
            if key not in known:
                known[key] = len(links_of(problem.torus, *key))
            cost += tree.bytes * known[key]
        worth = cost, max(-(-filled[g] // widths[g]) for g in widths)
        worth = worth[: len(problem.levels)]
        if best is None or worth < best:
            best = worth
    return best
