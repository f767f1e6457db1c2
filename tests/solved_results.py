"""Correct results of random tiny snapshots: brute-force optima with random certificates."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

from brute_force import Box, Choice, Coords, Tiny, best_placement, numbers
from random_certificates import random_certificate
from random_instances import random_snapshot
from small_snapshot import snapshot_of
from tiny_packing import packing_of
from topoplace.certify.packing import certified_bound
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.machine import Prism
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Explanation, Interference
from topoplace.snapshot.schema import PrismModel, Request, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Bound, Options, Outcome, result_of

MODES = list(Interference)

Document = dict[str, Any]
Other = tuple[str, str, set[int], set[Coords]]
"""A job that may stand in the way: its id, kind of communication, nodes and routers."""


@dataclass(frozen=True)
class Case:
    """A correct result with what a test needs to spoil it.

    `best` are the optima in maximising sense, and `chosen` the candidates that start, by request.
    """

    snapshot: Snapshot
    mode: Interference
    tiny: Tiny
    best: tuple[int, int, int]
    chosen: dict[str, Choice]
    bounds: tuple[Bound, ...]
    document: Document

    def document_of(self, chosen: dict[str, Choice]) -> Document:
        """Return a document that starts these candidates, its figures as they come."""
        return _document(self.snapshot, self.mode, chosen, self.bounds)


def _document(
    snapshot: Snapshot, mode: Interference, chosen: dict[str, Choice], bounds: tuple[Bound, ...]
) -> Document:
    problem = PlacementProblem(prepare(snapshot), mode)
    started = [
        Candidate(idx, Prism(*chosen[request.id].box))
        for idx, request in enumerate(problem.requests)
        if request.id in chosen
    ]
    outcome = Outcome(started, bounds)
    result = result_of(problem, outcome, "test", Options(interference=mode), 0.0)
    return result.model_dump(mode="json")


def _in_the_way(
    rng: random.Random, tiny: Tiny, request: Request, box: Box, others: list[Other]
) -> Document:
    """Return what an explanation says of a prism: who stands there, with how many nodes."""
    inside = tiny.inside(box)
    kind = tiny.kind(request.communication.value)
    links = tiny.links_between(inside) if kind != "none" else set()
    jobs, held = [], 0
    for name, other_kind, nodes, routers in others:
        crossing = other_kind != "none" and tiny.links_between(routers) & links
        both_tolerant = kind == other_kind == "tolerant"
        if routers & inside or (crossing and not both_tolerant):
            jobs.append(name)
        held += sum(tiny.router_of(node) in inside for node in nodes)
    rng.shuffle(jobs)
    prism = PrismModel(origin=list(box[0]), extents=list(box[1]))
    return {"prism": prism, "jobs": jobs, "nodes_to_free": held, "text": "as the figures say"}


def _nearest(
    rng: random.Random,
    tiny: Tiny,
    request: Request,
    boxes: list[Box],
    others: list[Other],
    farthest: bool,
) -> Document:
    """Return what an explanation says of one of the prisms nearest to free, or farthest."""
    held = dict.fromkeys(tiny.all_routers, 0)
    for _, _, nodes, _ in others:
        for node in nodes:
            held[tiny.router_of(node)] += 1

    def rank(box: Box) -> tuple[int, int]:
        inside = tiny.inside(box)
        return sum(held[router] for router in inside), len(inside)

    wanted = (max if farthest else min)(map(rank, boxes))
    box = rng.choice([box for box in boxes if rank(box) == wanted])
    return _in_the_way(rng, tiny, request, box, others)


def explanations(
    rng: random.Random,
    tiny: Tiny,
    chosen: dict[str, Choice],
    nodes: dict[str, set[int]],
    *,
    farthest: bool = False,
) -> list[Explanation]:
    """Return explanations of requests that wait, true unless they name the farthest prism."""
    running: list[Other] = []
    for job in tiny.snapshot.running:
        routers = {tiny.router_of(node) for node in numbers(job.nodes)}
        if job.prism is not None:
            routers = tiny.inside((tuple(job.prism.origin), tuple(job.prism.extents)))
        running.append((job.id, tiny.kind(job.communication.value), numbers(job.nodes), routers))
    started: list[Other] = [
        (r.id, tiny.kind(r.communication.value), nodes[r.id], set(chosen[r.id].routers))
        for r in tiny.snapshot.queue
        if r.id in chosen
    ]
    idle = Tiny(tiny.snapshot.model_copy(update={"running": []}), tiny.mode)
    found = []
    for request in tiny.snapshot.queue:
        if request.id in chosen or rng.random() < 0.2:
            continue
        candidates, prisms = tiny.choices(request), idle.choices(request)
        if candidates:
            boxes = [choice.box for choice in candidates]
            figures = _nearest(rng, tiny, request, boxes, started, farthest)
            found.append(Explanation(request=request.id, reason="outbid", **figures))
        elif prisms:
            boxes = [choice.box for choice in prisms]
            figures = _nearest(rng, tiny, request, boxes, running, farthest)
            found.append(Explanation(request=request.id, reason="blocked", **figures))
        else:
            found.append(Explanation(request=request.id, reason="no-shape", text="too large"))
    return found


@cache
def solved_case(seed: int) -> Case:
    """Return a correct result, with a certificate on every level; it is shared."""
    rng = random.Random(seed)
    return solved(rng, random_snapshot(rng, max_routers=12), MODES[seed % 3])


def solved(rng: random.Random, snapshot: Snapshot, mode: Interference) -> Case:
    """Return a correct result of a snapshot, with a random certificate on every level."""
    tiny = Tiny(snapshot, mode)
    best, chosen = best_placement(snapshot, mode)
    oracle, bounds = TorusOracle(read_instance(snapshot, mode)), []
    for level_idx in range(3):
        tree = random_certificate(rng, packing_of(tiny, best[:level_idx]))
        proven = certified_bound(oracle, tree, best[:level_idx])
        assert proven is not None
        bounds.append(Bound(-proven.value if level_idx == 2 else proven.value, tree))
    document = _document(snapshot, mode, chosen, tuple(bounds))
    explained = explanations(rng, tiny, chosen, nodes_of(document))
    document["explanations"] = [one.model_dump(mode="json") for one in explained]
    return Case(snapshot, mode, tiny, best, chosen, tuple(bounds), document)


def nodes_of(document: dict[str, Any]) -> dict[str, set[int]]:
    """Return the nodes of every started request."""
    return {p["request"]: numbers(p["nodes"]) for p in document["solution"]["placements"]}


@cache
def rare_cases() -> list[Case]:
    """Return correct results of snapshots in which rare mutations apply; they are shared.

    The job of 4 on a ring of 6 uses all its links, so another job of 2, queued or running, has
    to wait or share. The geometry of `deep` leaves out router 1, which is half down, and one node
    of the rest.
    """
    four = {"id": "four", "nodes": 4, "shapes": "4"}
    ring = snapshot_of([6], [four, {"id": "two", "nodes": 2}])
    running = {"id": "two", "nodes": "0-1", "prism": {"origin": [0], "extents": [2]}}
    crowded = snapshot_of([6], [four], running=[running])
    pencil = snapshot_of(
        [1, 3],
        [{"id": "deep", "nodes": 3, "shapes": "1x2:maxz=3"}],
        wrap=False,
        nodes_per_router=2,
        down="2",
    )
    return [
        solved(random.Random(seed), snapshot, mode)
        for seed in range(6)
        for snapshot in (ring, crowded, pencil)
        for mode in (Interference.STRICT, Interference.TOLERANT)
    ]
