"""Pods of cubes: exact is brute force, the checker confirms it, and nothing that is bent passes."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import topoplace as tp
from bending import bent as changed
from field_samples import refigured
from random_certificates import Packing, draw, oracle_is_right
from scripts_of_the_project import script
from soundness.attack import faulty
from soundness.torus_kinds import Proving, spoilt
from tiny_cubes import best_of, model_of, outcomes, packing_of, places, random_pod, taken_at_first
from topoplace.certify.check import check_document
from topoplace.certify.cubes.instance import read_instance
from topoplace.certify.cubes.oracle import CubesOracle, Tables
from topoplace.certify.packing import Covers, Prices, certified_bound
from topoplace.certify.report import RefusedError
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.packing.problem import NO_VALUE, Cover, Query
from topoplace.placement.cubes.packing import CubesPacking
from topoplace.placement.cubes.pool import Pool
from topoplace.placement.cubes.problem import CubesProblem
from topoplace.result.certificate import Leaf
from topoplace.result.cubes import CubesResult
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.normal import sha256_of
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import solve

Document = dict[str, Any]
FAMILIES = script("families")


def pod(seed: int) -> Snapshot:
    return random_pod(random.Random(f"pod-{seed}"))


def solved(snapshot: Snapshot, method: str = "exact") -> CubesResult:
    return solve(prepare_cubes(snapshot), method)


# ---- The solver ---------------------------------------------------------------------------------

SEEDS = [range(40), pytest.param(range(40, 500), marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", SEEDS)
def test_exact_is_brute_force_on_all_levels_and_certified(seeds: range) -> None:
    pools: Counter[str] = Counter()
    for seed in seeds:
        snapshot = pod(seed)
        result, best = solved(snapshot), best_of(snapshot)
        assert [level.objective for level in result.levels] == [*best], seed
        assert [level.bound for level in result.levels] == [*best], seed
        assert result.check().verified, (seed, result.check())
        cubes = Pool(CubesProblem(prepare_cubes(snapshot))).cubes
        pools["all" if cubes.all() else "some" if cubes.any() else "none"] += 1
    assert min(pools[kind] for kind in ("all", "some", "none")) >= len(seeds) // 40, pools


@pytest.mark.parametrize("method", ["first-fit", "best-fit"])
def test_heuristics_place_by_the_rules(method: str) -> None:
    for seed in range(60):
        snapshot = pod(seed)
        result = solved(snapshot, method)
        assert result.check().verified, seed
        assert tuple(level.objective for level in result.levels) <= best_of(snapshot), seed


def test_first_fit_and_best_fit_by_hand() -> None:
    model = tp.Model(tp.cubes(3, (2, 2, 1)))
    model.add_running("old", [4, 5])
    for name, nodes in (("a", 1), ("b", 2), ("c", 4), ("d", 4)):
        model.add_request(name, nodes)
    first, best = (tp.place(model, method) for method in ("first-fit", "best-fit"))
    # The first fills cube 0 with a and b; the best puts a beside the job that runs, in cube 1.
    assert {s.request: s.cubes for s in first.placements} == {"a": (0,), "b": (0,), "c": (2,)}
    assert {s.request: s.cubes for s in best.placements} == {"a": (1,), "b": (0,), "c": (2,)}
    exact = tp.place(model)
    assert [level.objective for level in exact.levels] == [10, 0]
    model.snapshot = model.snapshot.model_copy(update={"queue": model.snapshot.queue[:2]})
    # b on the two free chips of cube 1, a opens another cube: one of three stays free.
    assert [level.objective for level in tp.place(model).levels] == [3, 1]


def test_the_example_of_the_page() -> None:
    model = tp.Model(tp.cubes(2, (2, 2, 2)))
    model.add_down([8, 11])
    for name, nodes, shapes in (
        ("a", 8, None),
        ("b", 4, "1x2x2"),
        *((x, 2, "1x1x2") for x in "cd"),
    ):
        model.add_request(name, nodes, shapes=shapes)
    pool = Pool(CubesProblem(prepare_cubes(model.snapshot)))
    assert (pool.blocks, pool.blocks_of_cube) == ([6, 3, 1], [4, 2, 1])
    assert pool.cubes.all()
    assert [level.objective for level in tp.place(model).levels] == [12, 0]
    instance = read_instance(model.snapshot)
    oracle = CubesOracle(instance.requests, Tables(instance))
    leaf = Leaf(scale=1, prices={"blocks": "2 0 0"})
    proven = certified_bound(oracle, leaf, [])
    assert proven is not None
    assert proven.value == 12


def test_the_oracles_agree_at_any_prices() -> None:
    """Of solver and checker, also under covers; solver's spots of the pool are in no place."""
    some = 0
    for seed in range(120):
        snapshot, rng = pod(seed), random.Random(seed)
        packing = CubesPacking(CubesProblem(prepare_cubes(snapshot)))
        instance = read_instance(snapshot)
        oracle = CubesOracle(instance.requests, Tables(instance))
        assert [request.id for request in oracle.requests] == packing.names
        assert np.concatenate([*oracle.rows.values()]).tolist() == packing.capacities.tolist()
        for _ in range(4):
            volume, pooled = instance.volume, packing.spots.pool.cubes
            prices = np.array([rng.choice((0, 1, 5, 9)) for _ in packing.capacities])
            prices[: instance.free.size][np.repeat(pooled, volume)] = 0
            rows = [
                k for k in range(len(prices)) if k >= instance.free.size or not pooled[k // volume]
            ]
            covers = tuple(
                Cover(rng.randrange(len(packing.names)), rng.choice(rows), rng.random() < 0.5)
                for _ in range(rng.randint(0, 3))
                if rows
            )
            weights = rng.choice(((3,), (100,), (2, 7), (40, 90)))
            priced = packing.price(prices, Query(weights, 3, covers))
            of: dict[int, Covers] = {q: Covers() for q in range(len(packing.names))}
            for cover in covers:
                of[cover.request_idx] = of[cover.request_idx].split(cover.row, inside=cover.inside)
            families = {name: prices[own] for name, own in packing.families.items()}
            best = oracle.best(Prices(families, 0, weights), of)
            found = [NO_VALUE if best[q] is None else best[q] for q in range(len(packing.names))]
            assert priced.best.tolist() == found, seed
            some += bool(covers)
            for column in (column for own in priced.columns for column in own):
                gain, candidate = column
                worth = int(packing.values_of([candidate])[0, : len(weights)] @ np.array(weights))
                assert gain == worth - int(prices[packing.rows_of(candidate)].sum())
                assert all(
                    packing.covers(candidate, cover.row) is cover.inside
                    for cover in covers
                    if cover.request_idx == candidate.request_idx
                )
    assert some > 100


def test_the_checker_finds_the_best_of_all_candidates() -> None:
    """At any prices, under any covers; and who may replace whom is who has all its places."""
    seen: Counter[bool] = Counter()
    for seed in range(60):
        snapshot, packing = pod(seed), packing_of(pod(seed))
        instance = read_instance(snapshot)
        oracle = CubesOracle(instance.requests, Tables(instance))
        seen += oracle_is_right(random.Random(seed), packing, oracle)
        for one, first in enumerate(snapshot.queue):
            every = [*places(snapshot, first)]
            for other, second in enumerate(snapshot.queue):
                has_all = all(place in every for place in places(snapshot, second))
                assert has_all or not oracle.may_replace(one, other), (seed, one, other)
    assert min(seen.values()) > 100, seen


def test_a_chain_begins_at_any_shape_of_the_largest_size() -> None:
    """Of 1x2x2 and 2x1x2, which 2x1x1 divides in one case alone."""
    queue = [
        {"id": "a", "nodes": 4, "shapes": "1x2x2/2x1x2"},
        {"id": "b", "nodes": 2, "shapes": "2x1x1"},
    ]
    snapshot = Snapshot.model_validate(BASE | {"queue": queue, "running": [], "down": ""})
    assert Tables(read_instance(snapshot)).pool.all()


@pytest.mark.parametrize("shapes", ["listed", "mixed"])
def test_large_pods_are_proven(shapes: str) -> None:
    snapshot = FAMILIES.pod(907, 60, shapes)
    result = solved(snapshot)
    assert [level.status for level in result.levels] == ["optimal", "optimal"]
    assert result.check().verified


# ---- The checker --------------------------------------------------------------------------------


@cache
def attacked(seed: int, less: int | None) -> tuple[Packing, Proving, int]:
    """Return a pod as a packing, what certificates prove there, and the truth.

    That is of the first level, or of the second if the first reaches the best but for so much.
    """
    snapshot = pod(seed)
    every = outcomes(snapshot)
    earlier = [] if less is None else [max(every)[0] - less]
    truth = max(pair[len(earlier)] for pair in every if [*pair[: len(earlier)]] >= earlier)
    instance = read_instance(snapshot)
    proving = Proving(CubesOracle(instance.requests, Tables(instance)), earlier)
    return packing_of(snapshot, earlier), proving, truth


@pytest.mark.parametrize("tries", [40, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["leaf", "start", "cover", "shared", "alike", "parts", "level 2"])
def test_no_certificate_proves_too_much(kind: str, tries: int) -> None:
    tally: Counter[str] = Counter()
    for number in range(tries):
        rng = random.Random(f"{kind}-{number}")
        less = rng.choice((0, 0, 1, 3)) if kind == "level 2" else None
        packing, proving, truth = attacked(rng.randrange(tries // 4), less)
        document = spoilt(rng, draw(rng, packing, kind))
        proven = proving(document)
        tally["accepted"] += proven is not None
        if proven is not None:
            assert proven >= truth, (number, document)
            tally["tight"] += proven == truth
    assert tally["accepted"] > 0.4 * tries, tally
    assert tally["tight"] > 0.15 * tries, tally


def judged(document: Document) -> tuple[int, int] | None:
    """Return what a result's solution is worth; None if it breaks a rule."""
    snapshot = Snapshot.model_validate(document["instance"])
    model, state = model_of(snapshot), list(taken_at_first(snapshot))
    of, value = {request.id: request for request in snapshot.queue}, 0
    volume = int(np.prod(model.side))
    for placement in document["solution"]["placements"]:
        request = of.pop(placement["request"], None)
        if request is None:
            return None
        bits = [0] * model.cubes
        for chip in numbers(placement["nodes"]):
            if not 0 <= chip < model.cubes * volume:
                return None
            bits[chip // volume] |= 1 << chip % volume
        place = {cube: own for cube, own in enumerate(bits) if own}
        if place not in list(places(snapshot, request)) or [*place] != placement["cubes"]:
            return None
        if any(state[cube] & own for cube, own in place.items()):
            return None
        for cube, own in place.items():
            state[cube] |= own
        value += request.nodes * request.priority
    return value, state.count(0)


def numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def bent(rng: random.Random, document: Document) -> Document:
    """Return a result of which something is changed: numbers, figures, who starts, or where."""
    mutant = copy.deepcopy(document)
    instance = mutant["instance"]
    started = mutant["solution"]["placements"]
    way = rng.randrange(6)
    if way == 0:
        del mutant["instance"]  # the question stays
        return faulty(rng, mutant, rng.randint(1, 2)) | {"instance": instance}
    if way == 1 or not started:
        level = rng.choice(mutant["levels"])
        level[rng.choice(("objective", "bound"))] += rng.choice((-1, 1, 2))
        return refigured(mutant)
    placement = rng.choice(started)
    if way == 2:
        placement["request"] = rng.choice(mutant["instance"]["queue"])["id"]
    elif way == 3:
        started.append(rng.choice([placement, rng.choice(started)]))
    elif way == 4:
        other = rng.choice(started)
        for name in rng.sample(("cubes", "prism", "nodes"), rng.randint(1, 3)):
            placement[name] = copy.deepcopy(other[name])
    else:
        snapshot = Snapshot.model_validate(mutant["instance"])
        request = next(r for r in snapshot.queue if r.id == placement["request"])
        volume = int(np.prod(model_of(snapshot).side))
        place = rng.choice(list(places(snapshot, request)))
        chips = [c * volume + k for c, b in place.items() for k in range(volume) if b >> k & 1]
        placement |= {"cubes": sorted(place), "nodes": ",".join(map(str, sorted(chips)))}
        if placement["prism"] and rng.random() < 0.8:  # mostly the right one
            at = [np.unravel_index(chip % volume, model_of(snapshot).side) for chip in chips]
            low, high = np.min(at, axis=0), np.max(at, axis=0)
            placement["prism"] = {"origin": low.tolist(), "extents": (high - low + 1).tolist()}
    return mutant


def test_a_thousand_bent_results_are_refused_or_right() -> None:
    refused = held = 0
    documents = [solved(pod(seed)).model_dump(mode="json") for seed in range(12)]
    truths = [best_of(pod(seed)) for seed in range(12)]
    for number in range(2_000):
        rng = random.Random(number)
        which = rng.randrange(len(documents))
        mutant = bent(rng, documents[which])
        if mutant == documents[which] or refused + held == 1_000:
            continue
        try:
            result = CubesResult.model_validate_json(json.dumps(mutant))
        except ValidationError:
            refused += 1
            continue
        if not check_document(result).holds:
            refused += 1
            continue
        held += 1
        assert judged(mutant) == tuple(level["objective"] for level in mutant["levels"]), number
        bounds = [level["bound"] for level in mutant["levels"]]
        assert bounds[0] is None or bounds[0] >= truths[which][0], number
        if mutant["levels"][0]["objective"] == truths[which][0] and bounds[1] is not None:
            assert bounds[1] >= truths[which][1], number
    assert refused + held == 1_000
    assert refused > 750
    assert held > 5


# ---- Instances that the checker refuses ---------------------------------------------------------

BASE: Document = {
    "schema": "topoplace.snapshot/1",
    "name": "base",
    "machine": {"kind": "cubes", "name": "pod", "cubes": 4, "side": [2, 2, 2]},
    "down": "0",
    "running": [{"id": "r", "nodes": "8-9"}, {"id": "s", "nodes": "16"}],
    "queue": [{"id": "a", "nodes": 4}, {"id": "b", "nodes": 16}],
}

CONTRADICTIONS = {
    'machine = "xt3"': "no pod of cubes",
    "machine.cubes = 4096 & machine.side = [4, 4, 8]": "too many",
    "machine.side = [8, 8, 16]": "too many",
    'running[0].nodes = ""': "is none of a pod",
    'running[0].prism = {"origin": [0], "extents": [1]}': "is none of a pod",
    'running[0].patterns = [{"pattern": "ring"}]': "is none of a pod",
    'running[0].takes = {"slots": 1}': "is none of a pod",
    'running[1].nodes = "9-10"': "two running jobs hold chip 9",
    'running[1].nodes = "32"': "32",
    'down = "32"': "32",
    'queue[0].id = "r"': "one id",
    'queue[0].id = "b"': "one id",
    'running[0].id = "s"': "one id",
    'regions = {"r": [{"origin": [0], "extents": [1]}]}': "no regions",
    'queue[0].class = "gpu"': "has node_class",
    'queue[0].region = "r"': "has region",
    'queue[0].patterns = [{"pattern": "ring"}]': "has patterns",
    'queue[0].takes = {"slots": 1}': "has takes",
    'queue[0].required = "rack"': "has required",
    "queue[0].nodes = 40": "more chips than there are",
    "queue[0].nodes = 12": "no whole number of cubes",
    "queue[0].nodes = 5": "no part of a cube",
    'queue[0].shapes = "2x2"': "none for it",
    'queue[0].shapes = "1x2x1"': "none for it",
    'queue[0].shapes = "2by2"': "none for it",
    'queue[0].shapes = "1x1x4"': "no part and no whole cubes",
    'queue[1].shapes = "1x4x4"': "no part and no whole cubes",
}


@pytest.mark.parametrize("change", CONTRADICTIONS)
def test_instances_that_contradict_themselves_are_refused(change: str) -> None:
    read_instance(Snapshot.model_validate(BASE))
    snapshot = Snapshot.model_validate(changed(BASE, change))
    with pytest.raises((RefusedError, InputError), match=CONTRADICTIONS[change]):
        read_instance(snapshot)


def test_no_spare_has_the_name_of_a_request() -> None:
    queue = [{"id": name, "nodes": 8} for name in ("~0", "~1", "~~0")]
    ids = [r.id for r in read_instance(Snapshot.model_validate(BASE | {"queue": queue})).requests]
    assert len({*ids}) == len(ids) == 4


# ---- Files and commands -------------------------------------------------------------------------


def document(**fields: Any) -> Document:
    queue = [{"id": "a", "nodes": 4}]
    return {
        "schema": "topoplace.snapshot/1",
        "name": "x",
        "machine": "cubes:4",
        "queue": queue,
    } | fields


def running(*nodes: str) -> Document:
    return document(running=[{"id": f"r{k}", "nodes": own} for k, own in enumerate(nodes)])


def waiting(**fields: Any) -> Document:
    return document(queue=[{"id": "a", "nodes": 4} | fields])


FAULTS: dict[str, tuple[Document, str]] = {
    "no such number of chips": (waiting(nodes=65), "queue[0].nodes"),
    "no part has five": (waiting(nodes=5), "queue[0].nodes"),
    "more than there are": (waiting(nodes=320), "queue[0].nodes"),
    "no shape": (waiting(shapes="2by2"), "queue[0].shapes"),
    "a shape of other chips": (waiting(shapes="2x2x2"), "queue[0].shapes"),
    "a shape of two extents": (waiting(shapes="2x2"), "queue[0].shapes"),
    "a part and whole cubes": (waiting(nodes=128, shapes="2x8x8"), "queue[0].shapes"),
    "a region": (waiting(region="r"), "queue[0].region"),
    "a class": (waiting(**{"class": "gpu"}), "queue[0].class"),
    "a level": (waiting(required="rack"), "queue[0].required"),
    "no chip": (document(down="256"), "down"),
    "twice": (
        document(running=[{"id": "b", "nodes": "1"}, {"id": "c", "nodes": "0-3"}]),
        "running[1]",
    ),
    "nobody": (document(running=[{"id": "b", "nodes": ""}]), "running[0].nodes"),
    "a prism": (
        document(running=[{"id": "b", "nodes": "1", "prism": {"origin": [0], "extents": [1]}}]),
        "running[0].prism",
    ),
    "no cubes": (document(machine="cubes:0"), "machine"),
    "no such shorthand": (document(machine="cubes:4x4"), "machine"),
    "too many chips": (document(machine="cubes:2000"), "machine.cubes"),
    "too large a cube": (document(machine="cubes:1:16x16x16"), "machine.side"),
    "an unknown field": (
        document(machine={"kind": "cubes", "name": "p", "cube": 4}),
        "machine.cube",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_used_is_one_line(
    fault: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, field = FAULTS[fault]
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(raw))
    assert run(["place", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert any(f"{field}" in line for line in lines), lines
    assert all(line.startswith("topoplace: error: ") for line in lines)
    assert fault == "an unknown field" or len(lines) == 1, lines


def test_commands_take_pods(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file, result = tmp_path / "pod.json", tmp_path / "r.json"
    model = tp.Model("tpu_v4_pod", "pod")
    model.add_running("old", "0-31")
    model.add_request("part", 16, shapes="2x2x4")
    model.add_request("whole", 128, shapes="4x4x8")
    model.add_request("huge", 4096)
    model.save(file)
    png = str(tmp_path / "p.png")
    files = ["--csv", str(tmp_path / "c.csv"), "--hostlist", str(tmp_path / "h.txt")]
    assert run(["place", str(file), "-o", str(result), *files]) == 0
    shown = capsys.readouterr().out
    assert "2x2x4@2,0,0" in shown
    assert "huge waits: 64 free cubes wanted, 63 there" in shown
    assert (tmp_path / "h.txt").read_text() == "part 32-39,48-55\nwhole 64-191\n"
    assert run(["check", str(result)]) == 0
    assert run(["show", str(result), "--png", png]) == 0
    capsys.readouterr()
    assert run(["compare", str(file), "--html", str(tmp_path / "c.html")]) == 0
    assert "best-fit" in capsys.readouterr().out
    for wrong in (["--interference", "off"], ["--command", "cat"]):
        assert run(["place", str(file), *wrong]) == 2
    assert run(["map", "--grid", "4x4", "--tasks-per-node", "1", "--on", "cubes:4"]) == 2
    assert capsys.readouterr().err.count("\n") == 3


def test_the_front_door() -> None:
    model = tp.Model(tp.cubes(64))
    model.add_request("a", 8)
    result = tp.place(model)
    assert result.objective == 8
    assert result.to_frame()["cubes"].tolist() == [(0,)]
    assert {"exact", "best-fit", "first-fit"} <= tp.methods("cubes").keys()
    assert tp.load("cubes:64") == tp.load("cubes:64:4x4x4").model_copy(update={"name": "cubes-64"})
    pod = tp.load("tpu_v4_pod")
    assert (pod.cubes, pod.side) == (64, [4, 4, 4])
    with pytest.raises(tp.InputError, match="no interference rule"):
        tp.place(model, interference="off")


def test_the_sum_of_an_instance_is_that_of_its_chips() -> None:
    document = {"schema": "topoplace.snapshot/1", "name": "pod"}
    document["machine"] = {"kind": "cubes", "name": "pod", "cubes": 4}
    one, same, other = (
        sha256_of(tp.load(document | {"down": down}).snapshot)
        for down in ("0-3,8", "8,3,0,1,2", "0-3,9")
    )
    assert one == same != other


def test_a_pod_by_name_that_has_too_few_chips_is_at_fault() -> None:
    document = {"schema": "topoplace.snapshot/1", "name": "pod", "machine": "cubes:1"}
    with pytest.raises(tp.InputError, match=r"machine: expected .*more than 64 nodes"):
        tp.load(document | {"down": "100"})
