"""Pods of cubes: exact is brute force, the checker confirms it, and nothing that is bent passes."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from bending import bent
from scripts_of_the_project import script
from soundness.results import hold_bent
from tiny_cubes import model_of, outcomes, places, random_pod, taken_at_first
from topoplace.certify.cubes.instance import read_instance
from topoplace.certify.cubes.oracle import CubesOracle, Tables
from topoplace.certify.packing import certified_bound
from topoplace.certify.report import RefusedError
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.placement.cubes.packing import Pool
from topoplace.placement.cubes.problem import CubesProblem
from topoplace.result.certificate import Leaf
from topoplace.result.placement import CubesResult
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.normal import sha256_of
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from topoplace.solving import solve

Document = dict[str, Any]
FAMILIES = script("families")


def pod(seed: int) -> Snapshot:
    return random_pod(random.Random(f"pod-{seed}"))


def solved(snapshot: Snapshot, method: str = "exact") -> CubesResult:
    return solve(prepare_cubes(snapshot), method)


# ---- The solver ---------------------------------------------------------------------------------


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


def moved(rng: random.Random, mutant: Document) -> None:
    """Put a request anywhere, mostly with the right prism."""
    placement, snapshot = (
        rng.choice(mutant["solution"]["placements"]),
        Snapshot.model_validate(mutant["instance"]),
    )
    request = next(r for r in snapshot.queue if r.id == placement["request"])
    side = model_of(snapshot).side
    volume, place = int(np.prod(side)), rng.choice(list(places(snapshot, request)))
    chips = [c * volume + k for c, b in place.items() for k in range(volume) if b >> k & 1]
    placement |= {"cubes": sorted(place), "nodes": ",".join(map(str, sorted(chips)))}
    if placement["prism"] and rng.random() < 0.8:
        at = [np.unravel_index(chip % volume, side) for chip in chips]
        low, high = np.min(at, axis=0), np.max(at, axis=0)
        placement["prism"] = {"origin": low.tolist(), "extents": (high - low + 1).tolist()}


def is_right(document: Document) -> bool:
    """Return whether a result keeps the rules and all its figures are true, by brute force."""
    values, every = judged(document), outcomes(Snapshot.model_validate(document["instance"]))
    nodes, cubes = (level["bound"] for level in document["levels"])
    return (
        values == tuple(level["objective"] for level in document["levels"])
        and (nodes is None or nodes >= max(every)[0])
        and (cubes is None or cubes >= max(c for n, c in every if n >= values[0]))
    )


@pytest.mark.parametrize("tries", [600, pytest.param(4_000, marks=pytest.mark.slow)])
def test_bent_results_are_refused_or_right(tries: int) -> None:
    hold_bent([solved(pod(seed)) for seed in range(12)], moved, is_right, tries)


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
    'machine = "xt3"': "expected a pod of cubes",
    "machine.cubes = 4096 & machine.side = [4, 4, 8]": "too many",
    "machine.side = [8, 8, 16]": "too many",
    'running[0].nodes = ""': "runs on no nodes",
    'running[0].prism = {"origin": [0], "extents": [1]}': "r has prism, which have no meaning",
    'running[0].patterns = [{"pattern": "ring"}]': "r has patterns, which have no meaning",
    'running[0].takes = {"slots": 1}': "r has takes, which have no meaning",
    'running[1].nodes = "9-10"': "s runs on node 9, which is missing or another's",
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
    snapshot = Snapshot.model_validate(bent(BASE, change))
    with pytest.raises((RefusedError, InputError), match=CONTRADICTIONS[change]):
        read_instance(snapshot)


def test_no_spare_has_the_name_of_a_request() -> None:
    queue = [{"id": name, "nodes": 8} for name in ("~0", "~1", "~~0")]
    ids = [r.id for r in read_instance(Snapshot.model_validate(BASE | {"queue": queue})).requests]
    assert len({*ids}) == len(ids) == 4


# ---- Files and commands -------------------------------------------------------------------------


ALSO_WRONG = {
    'machine = "cubes:0"': "machine",
    'machine = "cubes:4x4"': "machine",
    'machine = "cubes:2000"': "machine.cubes",
    'machine = "cubes:1:16x16x16"': "machine.side",
    "queue[1].nodes = 320": "queue[1].nodes",
    "machine.cube = 4": "machine.cube",
    'queue[0].id = "b"': "queue[1].id",
    'running[0].id = "s"': "running[1].id",
}
"""Faults, and the field that is named where it is not the one that is changed."""


@pytest.mark.parametrize("change", [*CONTRADICTIONS, *ALSO_WRONG][1:])  # "xt3" is a torus
def test_what_cannot_be_used_is_one_line(
    change: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(bent(BASE, change)))
    assert run(["place", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("topoplace: error: ")
    assert ALSO_WRONG.get(change, change.partition(" = ")[0]) in line


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
    assert run(["place", str(file), "--command", "cat"]) == 5  # its answer is no placement
    assert run(["place", str(file), "--interference", "off"]) == 2
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


def test_a_request_of_some_cubes_is_refused_elsewhere() -> None:
    model = tp.Model.of(
        Snapshot.model_validate(
            {
                "schema": SNAPSHOT_SCHEMA,
                "name": "kept",
                "machine": {"kind": "cubes", "name": "pod", "cubes": 3, "side": [2, 2, 2]},
                "sets": {"new": "8-23"},
                "queue": [
                    {"id": "a", "nodes": 8, "eligible": "new", "excluded": "16"},
                    {"id": "b", "nodes": 8, "eligible": "new", "excluded": "17"},
                    {"id": "c", "nodes": 4, "eligible": "!new"},
                ],
            }
        )
    )
    found = tp.place(model)
    assert (found.objective, found.bound) == (12, 12)
    assert found.check().verified
    assert {start.request: start.hosts for start in found.placements}["c"] == "0-3"
    answer = json.loads(found.model_dump_json(by_alias=True))
    for placement in answer["solution"]["placements"]:
        if placement["request"] != "c":
            placement |= {"cubes": [2], "nodes": "16-23"}
    assert "has a chip that it may not have" in str(tp.check(answer))
