"""Small right results of every kind, as documents, for changes of every field."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from ast import literal_eval
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from pydantic import BaseModel

import mapping_results
import topoplace as tp
from baseline_instances import problem_on, random_graph
from random_certificates import certificate_of, draw
from small_snapshot import small_document
from solved_results import Case, rare_cases, solved_case
from tiny_joint import random_joint
from tiny_packing import packing_of
from tiny_repacks import tiny_repack
from topoplace.certify import check_document
from topoplace.mapping.bounds.best import total_bound
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.distance_classes import distance_classes_bound
from topoplace.mapping.bounds.pairs import pairs_bound
from topoplace.mapping.bounds.routes import routes_bound
from topoplace.mapping.link_bounds import bisected
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.objects.applications import problem_of
from topoplace.mapping.objects.bounds import load_bound, shares_bound
from topoplace.mapping.objects.few_moves import few_moves_bound
from topoplace.mapping.onto import load_places
from topoplace.mapping.onto import problem_on as places_problem
from topoplace.mapping.parallelism import parallelism
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.mapping.spread.bounds import counting_bound, touching_bound
from topoplace.mapping.spread.exact import enumerated
from topoplace.options import Repack
from topoplace.placement.dragonfly.problem import prepare as prepare_dragonfly
from topoplace.placement.fattree.state import prepare as prepare_fat_tree
from topoplace.placement.repack.defragment import defragmented
from topoplace.placement.repack.problem import instance_of, repack_problem
from topoplace.placement.several import optima_of, traded_off
from topoplace.result import Interference, PlacementResult
from topoplace.result.dragonfly import DragonflyResult
from topoplace.result.fattree import FatTreeResult
from topoplace.result.mapping import MappingResult
from topoplace.result.placement import CubesResult, HierarchyResult, RepackResult
from topoplace.result.several import Frontier, OpenBox
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.hierarchy_state import prepare_contention, prepare_hierarchy
from topoplace.snapshot.machines import load_machine
from topoplace.snapshot.objects import ObjectsApplication
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    Communication,
    GridApplication,
    Moves,
    Pattern,
    RepackInstance,
    Room,
    Snapshot,
    SpreadGroups,
    TorusModel,
)
from topoplace.snapshot.state import prepare
from topoplace.solving import Bound, Options, result_of, solve
from tree_cases import apart, model_of, snapshot_on, uses
from tree_threshold_cases import KINDS, proof_of, threshold_snapshot

Document = dict[str, Any]


@cache
def solved() -> dict[str, BaseModel]:
    """Return results by name, of all kinds of problems; they are shared."""
    found: dict[str, BaseModel] = {}
    for kind in (
        _placements,
        _mappings,
        _objects,
        _spreads,
        _allocations,
        _hierarchies,
        _pods,
        _dragonflies,
        _fat_trees,
        _plans,
    ):
        found |= {f"{kind.__name__[1:]}: {name}": result for name, result in kind()}
    return found | _frontiers(found) | _optima(found)


def _frontiers(found: dict[str, Any]) -> dict[str, BaseModel]:
    """Return frontiers by name: of a torus complete and not, of a hierarchy, of a pod of cubes."""
    document = small_document()
    document["machine"]["bandwidth"] = [1, 2, 1]
    torus = prepare(Snapshot.model_validate(document))
    options = Options(20.0, interference=Interference.TOLERANT)
    whole = traded_off(torus, ["nodes", "shape"], options)
    cut = whole.model_copy(update={"steps": whole.steps[:1]})
    [wrong] = [c for c in check_document(cut).claims if c.name == "open"]
    boxes = re.findall(r"OpenBox\(worst=(\[.*?\]), best=(\[.*?\])\)", wrong.detail)
    opened = [OpenBox(worst=literal_eval(w), best=literal_eval(b)) for w, b in boxes]
    small, pod = (found[name].instance for name in ("hierarchies: requests", "pods: apart"))
    return {
        "frontiers: torus": whole,
        "frontiers: open": cut.model_copy(update={"open": opened, "complete": False}),
        "frontiers: fragmentation": traded_off(torus, ["nodes", "fragmentation"], options),
        "frontiers: hierarchy": traded_off(prepare_hierarchy(small), ["nodes", "host"]),
        "frontiers: cubes": traded_off(prepare_cubes(pod), ["nodes", "free_cubes"]),
        **{
            f"frontiers: room {seed} {room}": _made_room(seed, room)
            for seed in _ROOMY
            for room in (Room.QUEUE, Room.PRISM)
        },
    }


_ROOMY = (5, 7, 10)


def _made_room(seed: int, room: Room) -> Frontier:
    """Return by which moves a tiny machine has room."""
    instance, rule = tiny_repack(seed)
    same = {"fixed": instance.fixed, "costs": instance.costs, "keep_shape": instance.keep_shape}
    snapshot = instance.snapshot
    asked = instance_of(snapshot, Repack(snapshot, defragment=3, room=room, **same))
    return defragmented(repack_problem(asked, rule), Options(20.0, rule))


def value_of(figure: Any) -> Fraction:
    return Fraction(*figure.values()) if isinstance(figure, dict) else Fraction(figure)


def refigured(document: Document) -> Document:
    """Return a document whose gaps and statuses are those of its objectives and bounds."""
    for level in document["levels"]:
        level |= {"gap": None, "status": "unknown" if level["objective"] is None else "feasible"}
        if level["objective"] is not None and level["bound"] is not None:
            value, bound = value_of(level["objective"]), value_of(level["bound"])
            level["gap"] = float(abs(value - bound) / max(1, abs(value)))
            level["status"] = "optimal" if value == bound else "feasible"
    return with_top(document)


def with_top(document: Document) -> Document:
    """Return a document whose top figures are those of its first level."""
    for name in ("status", "objective", "bound", "gap", "proof"):
        own = document["levels"][0][name]
        document[name] = own["numerator"] if isinstance(own, dict) else own
    return document


def _optima(found: dict[str, Any]) -> dict[str, BaseModel]:
    """Return all optima by name: told apart in each way, complete and not, of all machines."""
    document = small_document()
    document["machine"]["bandwidth"] = [1, 2, 1]
    state = prepare(Snapshot.model_validate(document))
    small, pod = (found[name].instance for name in ("hierarchies: requests", "pods: apart"))
    rule = Options(20.0, interference=Interference.TOLERANT)
    return {
        "optima: started": optima_of(state, 9, ["nodes"], "started", rule),
        "optima: prisms": optima_of(state, 2, ["nodes"], "prisms", rule),
        "optima: nodes": optima_of(state, 9, (), "nodes", rule),
        "optima: hierarchy": optima_of(prepare_hierarchy(small), 9, ["nodes"]),
        "optima: cubes": optima_of(prepare_cubes(pod), 9),
    }


# ---- Placements ---------------------------------------------------------------------------------


def _placements() -> Iterator[tuple[str, PlacementResult]]:
    cases = [solved_case(seed) for seed in range(40)]
    kinds = {kind: f'"kind": "{kind}"' for kind in ("leaf", "start", "cover", "ref", "shared")}
    for name, text in (kinds | {"alike": '"alike": [["', "priced links": '"links": "'}).items():
        at = [c for c in cases if text in json.dumps(c.document["levels"])]
        yield name, _result(min(at, key=_size).document)
    for reason in ("no-shape", "blocked", "outbid"):
        at = [c for c in cases if f'"{reason}"' in json.dumps(c.document)]
        yield reason, _result(min(at, key=_size).document)
    yield "geometry", _result(rare_cases()[4].document)
    yield "parts", _result(_in_parts(min((c for c in cases if len(c.chosen) > 1), key=_size)))
    yield "no solution", _result(_unsolved(min(cases, key=_size).document))
    state = prepare(Snapshot.model_validate(small_document()))
    for method, rule in (("first-fit", Interference.TOLERANT), ("random-nodes", Interference.OFF)):
        yield method, solve(state, method, Options(interference=rule, time_limit=9.0, seed=4))
    options = Options(20.0, required={"nodes": 4})
    yield "required", solve(state, "exact", options)
    yield "witness", solve(state, "exact", replace(options, required={"fragmentation": -1}))
    yield "mapped", solve(prepare(random_joint(3)), "exact", Options(maps=True))
    anchored = {"dims": [1, 2, 2], "seed": [0, 0, 1], "spacing": [1, 2, 2]}
    machine = {"name": "anchored", "shape": [2, 2, 4], "anchored": [anchored]}
    queue = [{"id": "a", "nodes": 4}, {"id": "b", "nodes": 4}]
    queue.append({"id": "c", "nodes": 8, "segment": 4, "communication": "none"})
    own = {"schema": SNAPSHOT_SCHEMA, "name": "anchored", "machine": machine, "queue": queue}
    yield "anchored", solve(prepare(Snapshot.model_validate(own)), "exact", Options(20.0))
    queue = [{"id": "a", "nodes": 4, "walltime": 30}, queue[2] | {"nodes": 12}, queue[1]]
    ends = {"running": [{"id": "r", "nodes": "0", "ends": 60}], "order": "backfill"}
    own |= {"queue": queue} | ends
    yield "segments", solve(prepare(Snapshot.model_validate(own)), "exact", Options(20.0))
    ends = {"running": [{"id": "r", "nodes": "2-3", "ends": 60}], "order": "backfill"}
    queue = [{"id": f"q{k}", "nodes": n, "walltime": 90} for k, n in enumerate((1, 3, 1))]
    own |= {"machine": {"name": "line", "shape": [4], "wrap": [False]}, "queue": queue} | ends
    yield "reserved", solve(prepare(Snapshot.model_validate(own)), "exact", Options(20.0))
    near = {"routers": 1, "of": "io"}
    queue = [{"id": "far", "nodes": 2}, {"id": "close", "nodes": 1, "near": near}]
    own |= {"sets": {"io": "3"}, "queue": queue, "running": [], "order": "value"}
    yield "near", solve(prepare(Snapshot.model_validate(own)), "exact", Options(20.0))


def _size(case: Case) -> int:
    return len(json.dumps(case.document))


def _result(document: Document) -> PlacementResult:
    return PlacementResult.model_validate_json(json.dumps(document))


def _in_parts(case: Case) -> Document:
    """Return a result whose first bound is of the queue in parts: no more than all are worth."""
    document = copy.deepcopy(case.document)
    parts = certificate_of(draw(random.Random(1), packing_of(case.tiny), "parts", odd=False))
    worth = sum(request.priority * request.nodes for request in case.snapshot.queue)
    document["levels"][0].update(bound=worth, certificate=parts.model_dump(mode="json"))
    return refigured(document)


def _unsolved(document: Document) -> Document:
    """Return the bound of the first level alone."""
    document = copy.deepcopy(document)
    for level in document["levels"]:
        level["objective"] = None
    for level in document["levels"][1:]:
        level.update(bound=None, proof="none", certificate=None)
    document["solution"] = None
    if "explanations" in document:
        document["explanations"] = []
    return refigured(document)


# ---- Mappings -----------------------------------------------------------------------------------


def _mappings() -> Iterator[tuple[str, MappingResult]]:
    names = ("blocks", "rough", "pencils", "ring", "folded", "whole", "star", "recognised")
    for name in (*names, "cuts", "levels", "spectral", "routes of levels"):
        yield name, mapping_results.solved(name)
    graph = problem_on(random_graph(np.random.default_rng(5), 8, 20), [2, 4])
    alone = mapping_results.solved("alone")
    yield "total", _mapped(prepare_mapping(alone.instance), total_bound)
    yield "classes", _mapped(graph, distance_classes_bound)
    yield "pairs", _mapped(graph, pairs_bound)
    yield "routes", _mapped(graph, routes_bound)
    yield "tree", solve(problem_on(random_graph(np.random.default_rng(6), 5, 12), [5]), "exact")
    close = problem_on(random_graph(np.random.default_rng(5), 5, 40), [5], wrap=False)
    crossed = replace(outcome_of(close.nodes), link_load=bisected(close))
    yield "crossed", mapping_results.result_for(close, crossed)
    yield "no solution", mapping_results.result_for(graph, outcome_of(None, hit=True))
    yield "search", _searched(mapping_results.solved("rough"))
    full = GridApplication(
        shape=[3, 2],
        periodic=[True, False],
        bytes=[[2, 3], [4, 1]],
        stencil="full",
        diagonal_bytes=[2],
    )
    problem = problem_on(full, [2, 2], tasks_per_node=2, wrap=False)
    yield "full stencil", mapping_results.result_for(problem, outcome_of(np.arange(6) // 2))
    yield "path", tp.map(tp.grid(3, 4, 4, 4), "torus:6x2x6:2", "topaware", tasks_per_node=2)


def _mapped(problem: MappingProblem, bounded: object) -> MappingResult:
    bound = bounded(problem)  # type: ignore[operator]
    assert isinstance(bound, Bound)
    outcome = outcome_of(problem.nodes[: problem.num_tasks], bound=bound)
    return result_of(problem, outcome, "by-hand", Options(), 0.5)


def _searched(result: MappingResult) -> MappingResult:
    """Return a result whose bound is said to rest on a search, with no certificate."""
    document = mapping_results.document_of(result)
    level = document["levels"][0]
    level.update(certificate=None, proof="search", bound=level["objective"])
    return MappingResult.model_validate_json(json.dumps(refigured(document)))


# ---- Allocations --------------------------------------------------------------------------------


def _allocations() -> Iterator[tuple[str, AllocationResult]]:
    rd, ring = uses(Pattern.RECURSIVE_DOUBLING), uses(Pattern.RING)
    halo = uses(Pattern.STENCIL_2D, Pattern.VECTOR_DOUBLING)
    running = [("n0,n5", Communication.STRICT), ("n9", Communication.NONE)]
    queues = {
        "thresholds": [(8, rd)],
        "search": [(4, rd), (3, ring)],
        "silent": [(4, halo), (2, ())],
        "partial": [(9, rd), (9, ring)],
    }
    for name, queue in queues.items():
        snapshot = snapshot_on(model_of([5, 5, 6]), running, queue, down="n15")
        yield name, _exact(snapshot)
    yield "domains", _exact(snapshot_on(apart([3, 3]), [], [(2, ring)] * 3))
    yield "heuristic", solve(prepare_contention(snapshot), "balanced")
    unsolved = _unsolved(_exact(snapshot).model_dump(mode="json"))
    yield "no solution", AllocationResult.model_validate_json(json.dumps(unsolved))
    yield "shares", _exact(snapshot_on(model_of([3] * 6), [], [(8, uses(Pattern.BINOMIAL))]))
    for kind in KINDS:
        for seed in (5, 9):
            own = threshold_snapshot(kind, seed)
            yield f"{kind} {seed}", _with_proofs(own, [proof_of(own)])


def _exact(snapshot: Snapshot) -> AllocationResult:
    return solve(prepare_contention(snapshot), "exact", Options(time_limit=60.0))


def _with_proofs(snapshot: Snapshot, proofs: Sequence[BaseModel]) -> AllocationResult:
    """Return an allocation with these proofs of its cost."""
    result = solve(prepare_contention(snapshot), "balanced")
    document = result.model_dump(mode="json")
    own = [proof.model_dump(mode="json") for proof in proofs]
    total = sum((Fraction(*proof["bound"].values()) for proof in own), Fraction(0))
    bound = {"numerator": total.numerator, "denominator": total.denominator}
    certificate = {"kind": "thresholds", "proofs": own}
    document["levels"][1].update(bound=bound, proof="certificate", certificate=certificate)
    return AllocationResult.model_validate_json(json.dumps(refigured(document)))


# ---- Hierarchies --------------------------------------------------------------------------------


def _hierarchies() -> Iterator[tuple[str, HierarchyResult]]:
    """Yield results of a machine of blocks, racks and hosts; its levels name the claims."""
    hosts = [
        {
            "hosts": f"b{b}r{r}n[0-1]",
            "domains": [f"b{b}", f"r{r}"],
            "capacity": {"gpus": 4, "gb": 8},
        }
        for b in range(2)
        for r in range(2)
    ]
    machine = {
        "kind": "hierarchy",
        "name": "blocks",
        "levels": ["block", "rack", "host"],
        "hosts": hosts,
        "block_sizes": [2, 4],
        "source": "none",
    }
    gpu = {"gpus": 1}
    busy = [
        {
            "id": "old",
            "nodes": "b0r0n0",
            "takes": {"gpus": 3},
            "apart": [{"level": "host", "name": "u"}],
        },
        {"id": "whole", "nodes": "b0r1n0", "exclusive": "host"},
    ]
    document = {"schema": SNAPSHOT_SCHEMA, "name": "blocks", "machine": machine}
    simple = [
        {
            "id": "a",
            "nodes": 4,
            "takes": gpu,
            "segments": [{"size": 2, "level": "rack"}],
            "spread": {"size": 2, "level": "host"},
            "required": "block",
            "preferred": "rack",
            "balance": "rack",
            "at_most": {"size": 2, "level": "rack"},
            "apart": [{"level": "host", "name": "u"}],
        },
        {"id": "b", "nodes": 2, "takes": {"gpus": 2, "gb": 3}, "exclusive": "rack", "priority": 2},
        {"id": "c", "nodes": 30, "takes": gpu},
    ]
    workers = {
        "nodes": 4,
        "takes": gpu,
        "segments": [{"size": 2, "level": "rack"}],
        "spread": {"size": 3, "level": "host"},
        "balance": "host",
        "preferred": "rack",
    }
    apart = [{"level": "rack", "name": "u"}]
    together = {"group": "g", "required": "block", "exclusive": "block", "apart": apart}
    parts = [{"id": "leader", "nodes": 1, **together}, {"id": "workers", **workers, **together}]
    parts[0]["takes"] = {"gb": 5}
    grouped = [{"id": "d", "nodes": 5, "parts": parts}, {"id": "e", "nodes": 2, "takes": gpu}]
    one = {"hosts": "n[0-5]", "domains": ["b", "r"]}  # of one slot each: a pool
    pool = machine | {"hosts": [one, {"hosts": "m[0-2]", "domains": ["b", "s"]}]}
    slots = [
        {"id": f"j{k}", "nodes": n, "segments": [{"size": 2, "level": "rack"}]}
        for k, n in enumerate((4, 4, 2))
    ]
    ending = [
        {"id": "r", "nodes": "n[0-1]", "ends": 60},
        {"id": "s", "nodes": "n[2-3]", "ends": 90},
    ]
    waiting = [
        {"id": f"j{k}", "nodes": n, "walltime": 60 * k} for k, n in enumerate((30, 9, 2, 4, 4, 1))
    ]
    waiting[1]["planned"] = {"at": 90, "nodes": "n[0-5],m[0-2]"}
    in_order = {"machine": pool, "running": ending, "queue": waiting, "order": "backfill"}
    for name, own in (
        ("requests", document | {"running": busy, "queue": simple, "down": "b1r1n1"}),
        ("order", document | in_order),
        ("another order", document | in_order | {"queue": waiting[2:4]}),
        ("parts", document | {"running": busy, "queue": grouped}),
        ("pools", document | {"machine": pool, "queue": slots}),
    ):
        state = prepare_hierarchy(Snapshot.model_validate(own))
        yield name, solve(state, "exact", Options(time_limit=20))
    yield "witness", solve(state, "exact", Options(time_limit=20, required={"host": 0}))


def _spreads() -> Iterator[tuple[str, MappingResult]]:
    """Yield results of groups along axes and listed ones, with every bound of what they span."""
    job, pairs = parallelism("data=2:ring:3,tensor=2:all:5"), [[0, 1], [1, 2]]
    for name, machine, kinds, bound in (
        ("counting", "hierarchy:2x2", [SpreadGroups(groups=pairs)], counting_bound),
        (
            "touching",
            "hierarchy:4x1",
            [SpreadGroups(axes=["data"]), SpreadGroups(axes=["tensor"], level="host")],
            touching_bound,
        ),
        ("enumeration of groups", "hierarchy:2x2", [SpreadGroups(axes=["tensor"])], None),
    ):
        problem = places_problem(load_places(machine), job, spread=kinds)
        nodes, bounds = enumerated(problem, problem.in_order, math.inf)
        if bound is not None:
            bounds = bound(problem), None
        outcome = replace(outcome_of(nodes), bounds=bounds)
        yield name, result_of(problem, outcome, "by-hand", Options(), 0.5)


# ---- Pods of cubes ------------------------------------------------------------------------------


def _objects() -> Iterator[tuple[str, MappingResult]]:
    """Yield results of objects: all mappings gone through, stars, cuts; fixed and pooled ones."""
    application = ObjectsApplication.model_validate(
        {
            "schema": "topoplace.application/1",
            "name": "halos",
            "arrays": [{"name": "A", "shape": [3, 2], "load": 2}, {"name": "B", "shape": [3]}],
            "messages": [
                {"rule": "A(i,j) <-> A(i+1,j)", "bytes": 4, "periodic": True},
                {"rule": "B(i) -> A(i,*)", "bytes": 3},
            ],
        }
    )
    document = application.model_dump(mode="json", by_alias=True)
    document["messages"] += [
        {"rule": "A(i,*) -> A(*,*)", "bytes": 2, "cost": "reduction"},
        {"rule": "B(0) -> A(*,0)", "bytes": 5, "cost": "multicast"},
    ]
    joined = ObjectsApplication.model_validate(document)
    for name, machine, method, more in (
        ("enumeration", "torus:2x2", "exact", {"balance": "1.2"}),
        ("shares", "mesh:3x2", "search", {"balance": "1.2", "fixed": [(0, 1)]}),
        ("cuts", "torus:2:2", "bisection", {"balance": "1.2", "pooled": True}),
        ("trees", "mesh:2x2", "exact", {"balance": "1.2"}),
        ("trees, shares", "torus:3x2", "in-order", {"balance": "1.2"}),
    ):
        own = load_machine(machine)
        assert isinstance(own, TorusModel)
        wide = own.model_copy(update={"bandwidth": [2] * len(own.shape)})
        sent = joined if "trees" in name else application
        problem = problem_of(sent, load_places(wide), **more)
        found = solve(problem, method, Options(0.5 if method == "search" else None))
        if name in ("shares", "cuts"):  # routes prove more
            assert found.solution is not None
            of = shares_bound if name == "shares" else cuts_bound
            bounds = of(problem), load_bound(problem)
            outcome = replace(outcome_of(np.array(found.solution.nodes)), bounds=bounds)
            yield f"routes beside {name}", found
            found = result_of(problem, outcome, "by-hand", Options(), 0.5)
        kinds = [level.certificate.kind for level in found.levels if level.certificate]
        assert name in kinds or "trees" in name, (name, kinds)
        yield name, found
    yield "few moves", _moved(application)


def _moved(application: ObjectsApplication) -> MappingResult:
    """Return a result of objects of which two may move."""
    problem = problem_of(application, load_places("torus:2x2"), "1.2")
    first = solve(problem, "in-order", Options())
    moves = Moves(nodes=first.solution.nodes, most=2)
    problem = prepare_mapping(problem.instance.model_copy(update={"moves": moves}))
    found = solve(problem, "search", Options())
    bounds = few_moves_bound(problem), load_bound(problem)
    outcome = replace(outcome_of(np.array(found.solution.nodes)), bounds=bounds)
    return result_of(problem, outcome, "by-hand", Options(), 0.5)


def _pods() -> Iterator[tuple[str, CubesResult]]:
    """Yield results of cubes of 2x2x2 chips: all of the pool, and with one that is not."""
    machine = {"kind": "cubes", "name": "pod", "cubes": 4, "side": [2, 2, 2], "source": "none"}
    document = {"schema": SNAPSHOT_SCHEMA, "name": "pod", "machine": machine, "down": "8,11"}
    listed = [
        {"id": "a", "nodes": 16, "shapes": "2x2x4", "priority": 2},
        {"id": "b", "nodes": 4, "shapes": "2x2x1"},
        {"id": "c", "nodes": 2, "shapes": "2x1x1/1x2x1"},
        {"id": "d", "nodes": 24},
    ]
    anywhere = [{"id": f"j{k}", "nodes": n} for k, n in enumerate((2, 2, 2, 4, 8, 8, 8))]
    running = [{"id": "old", "nodes": "24-25,30"}]
    both = [*listed[:3], *anywhere]
    queues = {"pool": listed, "apart": anywhere, "both": both, "few": both[1:6], "last": both[4:]}
    for name, own in queues.items():
        held = [{"request": own[0]["id"], "option": "licenses", "value": "2", "where": "line 1"}]
        left_out = {"left_out": held if name == "last" else []}
        snapshot = Snapshot.model_validate(document | {"running": running, "queue": own} | left_out)
        yield name, solve(prepare_cubes(snapshot), "exact", Options(time_limit=20))
    ending = [{"id": "old", "nodes": "0-7,24-30", "ends": 60}]
    waiting = [{"id": "w", "nodes": 24, "walltime": 9}, listed[1], listed[2] | {"walltime": 60}]
    own = document | {"running": ending, "queue": waiting, "order": "backfill"}
    yield "reserved", solve(prepare_cubes(Snapshot.model_validate(own)), "exact", Options(20.0))
    waiting = [listed[1], {"id": "w", "nodes": 8}, {"id": "one", "nodes": 1}]
    own |= {"queue": waiting, "down": "8-23"}
    yield "part", solve(prepare_cubes(Snapshot.model_validate(own)), "exact", Options(20.0))
    options = Options(time_limit=20, required={"free_cubes": 4})
    yield "witness", solve(prepare_cubes(snapshot), "exact", options)


def _dragonflies() -> Iterator[tuple[str, DragonflyResult]]:
    """Yield results of tiny dragonflies: links alone or shared, and sets that cut routers."""
    machine = {"kind": "dragonfly", "name": "fly", "groups": 3, "routers": [2], "nodes": 2}
    machine |= {"missing": "11", "global_ports": 1, "source": "none"}
    listed = [
        {"id": "a", "nodes": 3, "priority": 2},
        {"id": "b", "nodes": 4},
        {"id": "c", "nodes": 3, "eligible": "!s"},
        {"id": "d", "nodes": 5, "communication": "none"},
        {"id": "e", "nodes": 4, "required": "group"},
    ]
    document = {"schema": SNAPSHOT_SCHEMA, "name": "fly", "machine": machine, "down": "6"}
    running = [{"id": "old", "nodes": "3-4"}]
    grid = machine | {"routers": [2, 1], "arrangement": "circulant"}
    ring = machine | {"global_ports": None, "links": [[0, 2], [3, 4], [1, 5]], "names": "n[0-10]"}
    for name, own, rule in (
        ("strict", {"running": running}, "strict"),
        ("off", {"running": running, "machine": grid}, "off"),
        ("cut", {"sets": {"s": "0-2"}, "machine": ring}, "strict"),
        ("idle", {"queue": [{"id": f"j{k}", "nodes": 3} for k in range(4)]}, "strict"),
    ):
        sets = {"sets": {"s": "0-3"}, "queue": listed}
        state = prepare_dragonfly(Snapshot.model_validate(document | sets | own))
        yield name, solve(state, "exact", Options(20, Interference(rule)))
    options = Options(20, required={"group": 1})
    yield "witness", solve(state, "exact", options)


# ---- Fat trees ----------------------------------------------------------------------------------


def _fat_trees() -> Iterator[tuple[str, FatTreeResult]]:
    """Yield results of trees of three levels and of two, and one without an answer."""
    model = {"kind": "fattree", "name": "t", "pods": [[2, 2], [2, 2]], "switches": 2, "spines": 2}
    model |= {"missing": "leaf0-1", "owned": {"old": "leaf[1-2]-0,pod[0-1]-0-1"}, "source": "none"}
    document = {"schema": SNAPSHOT_SCHEMA, "name": "fat", "machine": model, "down": "7"}
    running = [{"id": "old", "nodes": "2,4"}]
    queue = [
        {"id": "j0", "nodes": 2, "priority": 2},
        *({"id": f"j{nodes}", "nodes": nodes} for nodes in (3, 1)),
    ]
    flat = {"kind": "fattree", "name": "t", "pods": [[2, 3, 2]], "switches": 2}
    for name, more in (
        ("three levels", {"running": running, "queue": queue}),
        ("two levels", {"machine": flat, "down": "", "queue": [*queue, {"id": "j4", "nodes": 4}]}),
    ):
        snapshot = Snapshot.model_validate(document | more)
        yield name, solve(prepare_fat_tree(snapshot), "exact", Options(time_limit=20))
    options = Options(time_limit=20, required={"links": 0})
    yield "witness", solve(prepare_fat_tree(snapshot), "exact", options)


# ---- Plans of repacking -------------------------------------------------------------------------


def _plans() -> Iterator[tuple[str, RepackResult]]:
    """Yield plans in which jobs move, one is suspended, or not all requests start."""
    for seed in range(12):
        instance, rule = tiny_repack(seed)
        yield str(seed), solve(repack_problem(instance, rule), "exact", Options(time_limit=20))
    for seed in range(6):  # regions, geometries, bandwidth, weights
        snapshot = solved_case(seed).snapshot
        jobs = [job.id for job in snapshot.running]
        asked = RepackInstance(
            name=snapshot.name,
            snapshot=snapshot,
            start=[request.id for request in snapshot.queue[:2]],
            fixed=jobs[:1],
            costs=dict.fromkeys(jobs[1:], 3),
        )
        yield (
            f"rich {seed}",
            solve(repack_problem(asked, Interference.STRICT), "exact", Options(9.0)),
        )
    hosts = [
        {"hosts": f"b{b}r{r}n0", "domains": [f"b{b}", f"r{r}"], "capacity": {"gpus": 2}}
        for b in range(2)
        for r in range(2)
    ]
    machine = {"kind": "hierarchy", "name": "m", "levels": ["block", "rack", "host"]}
    machine |= {"hosts": hosts, "block_sizes": [2], "source": "none"}
    racks = Snapshot.model_validate(
        {
            "schema": SNAPSHOT_SCHEMA,
            "name": "two_blocks",
            "machine": machine,
            "running": [{"id": "r", "nodes": "b0r0n0"}, {"id": "s", "nodes": "b1r0n0"}],
            "queue": [
                {"id": "wide", "nodes": 2, "takes": {"gpus": 2}, "required": "block"},
                {"id": "one", "nodes": 1, "takes": {"gpus": 1}},
            ],
        }
    )
    for moving in (True, False):
        asked = RepackInstance(
            name="two_blocks",
            snapshot=racks,
            start=["wide", "one"],
            ends={"r": 2, "s": 1},
            moving=moving,
            budgets=[{"jobs": ["r", "s"], "most": 1}],
        )
        yield f"ends {moving}", solve(repack_problem(asked), "exact", Options(9.0))
