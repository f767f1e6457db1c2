"""Machines whose prisms are anchored: Slurm's `topology/torus3d`, and what is proven of them."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from bending import bent
from exact_cases import MODES
from field_samples import refigured
from random_certificates import certificate_of
from topoplace.certify import check_document
from topoplace.certify.packing import certified_bound
from topoplace.certify.torus.anchored import (
    Anchored,
    cheapest_disjoint,
    oracle_of,
)
from topoplace.certify.torus.instance import read_instance
from topoplace.cli import run
from topoplace.machine import Prism, Torus
from topoplace.placement.torus.anchored import prisms_of
from topoplace.placement.torus.anchored_packing import DisjointSearch
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference, PlacementResult, Status
from topoplace.snapshot.anchored import anchored_shapes
from topoplace.snapshot.schema import AnchoredModel

Document = dict[str, Any]

PAGE = tp.torus(2, 4, 4, anchored=[(1, 2, 2), (2, 2, 2), (2, 4, 4)])
"""The machine of Slurm's manual page of topology.yaml: 4x4x2 there, as x varies fastest."""


def shapes_on(shape: tuple[int, ...], *models: AnchoredModel) -> list[list[tuple[int, ...]]]:
    torus = Torus(shape)
    return [[p.origin for p in s.prisms(torus)] for s in anchored_shapes(models, torus)]


# ---- What is anchored ---------------------------------------------------------------------------


def test_anchors_go_from_the_seed_in_steps_until_they_are_back() -> None:
    assert shapes_on((8,), AnchoredModel(dims=[2])) == [[(0,), (2,), (4,), (6,)]]
    assert shapes_on((8,), AnchoredModel(dims=[2], seed=[5])) == [[(5,), (7,), (1,), (3,)]]
    assert shapes_on((8,), AnchoredModel(dims=[2], spacing=[6])) == [[(0,), (6,), (4,), (2,)]]
    assert shapes_on((4,), AnchoredModel(dims=[3])) == [[(0,), (3,), (2,), (1,)]]
    # Slurm's innermost loop is that of z, our first dimension
    assert shapes_on((2, 4), AnchoredModel(dims=[1, 2])) == [[(0, 0), (1, 0), (0, 2), (1, 2)]]
    # where it spans the ring, all anchors mean one prism
    assert shapes_on((4,), AnchoredModel(dims=[4], seed=[1], spacing=[2])) == [[(0,), (0,)]]


def test_a_prism_counts_once_for_every_anchor_that_means_it() -> None:
    machine = tp.torus(4, anchored=[{"dims": (4,), "spacing": (1,)}, (4,), (2,)])
    model = tp.Model(machine)
    model.add_request("one", 2)
    result = tp.place(model)
    assert [level.objective for level in result.levels] == [2, 4 * 4 + 4 + 2]
    assert tp.check(result).verified


# ---- The manual page's machine ------------------------------------------------------------------


def blocked_cubes(result: PlacementResult, running: Prism) -> int:
    """Count the 2x2x2 placements that a running job and those started block."""
    torus = Torus((2, 4, 4))
    assert result.solution is not None
    taken = set(running.routers(torus).tolist())
    for placement in result.solution.placements:
        assert placement.prism is not None
        own = Prism(tuple(placement.prism.origin), tuple(placement.prism.extents))
        taken |= set(own.routers(torus).tolist())
    cubes = [Prism((0, y, x), (2, 2, 2)) for y in (0, 2) for x in (0, 2)]
    return sum(bool(taken & set(cube.routers(torus).tolist())) for cube in cubes)


@pytest.mark.parametrize("method", ["slurm-torus3d", "exact"])
@pytest.mark.parametrize("rule", MODES)
def test_small_jobs_block_no_further_large_ones(method: str, rule: Interference) -> None:
    for z, y, x in ((0, 0, 0), (1, 0, 2), (0, 2, 2)):
        for more in (1, 2, 3):
            model = tp.Model(PAGE)
            model.add_running("old", origin=(z, y, x), extents=(1, 2, 2))
            for k in range(more):
                model.add_request(f"new{k}", 4)
            result = tp.place(model, method, interference=rule)
            assert result.objective == 4 * more
            old = Prism((z, y, x), (1, 2, 2))
            assert blocked_cubes(result, old) == math.ceil((1 + more) / 2), (z, y, x, more)
            cubes = 8 * math.ceil((1 + more) / 2)
            assert result.levels[1].objective == 4 * (1 + more) + cubes + 32
            report = tp.check(result)
            assert report.holds, report


def test_a_job_gets_a_shape_of_just_its_size_or_nothing() -> None:
    model = tp.Model(PAGE)
    for name, nodes in (("odd", 5), ("half", 16), ("all", 32), ("small", 4)):
        model.add_request(name, nodes)
    result = tp.place(model)
    assert result.objective == 32
    assert [p.request for p in result.solution.placements] == ["all"]
    reasons = {e.request: e.reason for e in result.explanations}
    assert reasons == {"odd": "no-shape", "half": "no-shape", "small": "outbid"}
    assert "holds exactly 5 compute nodes" in result.explanations[0].text


# ---- Slurm's rule -------------------------------------------------------------------------------


def started(machine: tp.model.Machine, *nodes: int, **options: Any) -> list[tuple[int, ...]]:
    model = tp.Model(machine)
    for k, number in enumerate(nodes):
        model.add_request(f"q{k}", number)
    result = tp.place(model, "slurm-torus3d", **options)
    assert result.solution is not None
    assert tp.check(result).holds
    return [tuple(p.prism.origin) for p in result.solution.placements if p.prism]


def test_slurm_takes_the_first_anchor_listed_of_those_that_block_fewest() -> None:
    assert started(PAGE, 4, 4, 4) == [(0, 0, 0), (1, 0, 0), (0, 2, 0)]
    moved = tp.torus(2, 4, 4, anchored=[{"dims": (1, 2, 2), "seed": (1, 2, 0)}, (2, 2, 2)])
    assert started(moved, 4, 4, 4) == [(1, 2, 0), (0, 2, 0), (1, 0, 0)]


def test_slurm_counts_the_next_larger_shape_alone() -> None:
    # 2 blocks two of four at spacing 1 wherever it is; the shape of 8 does not count
    machine = tp.torus(8, anchored=[(2,), {"dims": (4,), "seed": (2,)}, (8,)])
    assert started(machine, 2, 2, 2) == [(0,), (6,), (2,)]
    # of two shapes of one size the first listed is taken as long as it has an anchor
    machine = tp.torus(2, 4, anchored=[(1, 2), (2, 1), (2, 2)])
    assert started(machine, 2, 2, 2) == [(0, 0), (1, 0), (0, 2)]


def test_slurm_and_the_optimum_differ() -> None:
    """A shape larger than the next one does not count for Slurm: here it costs 8 nodes."""
    machine = tp.torus(16, anchored=[(1,), {"dims": (2,)}, {"dims": (8,)}])
    model = tp.Model(machine)
    model.add_running("old", nodes="9")
    model.add_running("other", nodes="8")
    model.add_request("new", 1)
    slurm, best = (tp.place(model, name) for name in ("slurm-torus3d", "exact"))
    assert slurm.levels[1].objective == best.levels[1].objective + 8
    assert best.levels[1].status is Status.OPTIMAL


def test_methods_that_do_not_fit_say_so() -> None:
    plain = tp.Model("torus:2x2")
    plain.add_request("one", 1)
    with pytest.raises(tp.InputError, match="anchored prisms for method slurm-torus3d"):
        tp.place(plain, "slurm-torus3d")


# ---- The optimum --------------------------------------------------------------------------------


# ---- Segments: several prisms for one job --------------------------------------------------------


def in_segments(method: str, *queue: tuple[int, int], machine: Any = PAGE) -> PlacementResult:
    """Return a queue of (nodes, segment) placed under Slurm's rule for links, and checked."""
    model = tp.Model(machine)
    for k, (nodes, segment) in enumerate(queue):
        model.add_request(f"q{k}", nodes, segment=segment)
    result = tp.place(model, method, interference="off")
    assert tp.check(result).holds
    return result


def prisms_by_request(result: PlacementResult) -> dict[str, list[tuple[int, ...]]]:
    assert result.solution is not None
    return {
        p.request: [tuple(one.origin) for one in (p.prism, *(p.other_prisms or ())) if one]
        for p in result.solution.placements
    }


def test_segments_are_placed_like_jobs_of_their_size() -> None:
    """By hand from `eval_nodes_torus3d.c`: the second half of a 2x2x2 before another is begun."""
    found = prisms_by_request(in_segments("slurm-torus3d", (12, 4), (16, 8)))
    assert found["q0"] == [(0, 0, 0), (0, 2, 0), (1, 0, 0)]
    assert found["q1"] == [(0, 0, 2), (0, 2, 2)]
    # all or none: three cubes are not left, and what was begun is given back
    found = prisms_by_request(in_segments("slurm-torus3d", (12, 4), (24, 8), (4, 4)))
    assert found == {"q0": [(0, 0, 0), (0, 2, 0), (1, 0, 0)], "q2": [(1, 2, 0)]}


def test_segments_decided_together_leave_room_that_segments_in_turn_do_not() -> None:
    """Anchors overlap: the first one listed of a ring of 8 leaves no two others of 3."""
    machine = tp.torus(8, anchored=[{"dims": (3,), "seed": (1,), "spacing": (1,)}])
    greedy = tp.torus(8, anchored=[{"dims": (3,), "seed": (2,), "spacing": (3,)}])
    assert in_segments("exact", (6, 3), machine=machine).objective == 6
    model = tp.Model(greedy)
    model.add_running("old", nodes="0")
    model.add_request("new", 6, segment=3)
    model.add_down([7])
    slurm, best = (tp.place(model, m, interference="off") for m in ("slurm-torus3d", "exact"))
    assert (slurm.objective, best.objective) == (0, 6)
    assert best.levels[0].status is Status.OPTIMAL
    assert tp.check(best).verified


def test_overlapping_segments_cost_what_the_best_of_all_do() -> None:
    """Both searches for disjoint prisms, against going through all sets."""
    rng = random.Random(5)
    for _ in range(200):
        num, count = rng.randint(2, 9), rng.randint(2, 4)
        inside = [frozenset(rng.sample(range(9), rng.randint(1, 3))) for _ in range(num)]
        costs = sorted(rng.randint(0, 9) for _ in range(num))
        wanted = frozenset(rng.sample(range(9), rng.choice((0, 0, 1, 2))))
        sums = [
            sum(costs[k] for k in some)
            for some in itertools.combinations(range(num), count)
            if len(union := frozenset().union(*(inside[k] for k in some)))
            == sum(len(inside[k]) for k in some)
            and wanted <= union
        ]
        least = min(sums, default=None)
        places = list(zip(costs, inside, strict=True))
        assert cheapest_disjoint(places, count, wanted) == least
        meeting = [sum(1 << k for k in range(num) if inside[k] & own) for own in inside]
        search = DisjointSearch(costs, meeting, count)
        must = [{k for k in range(num) if router in inside[k]} for router in sorted(wanted)]
        search.run([], 0, list(range(num)), must)
        assert (search.found[-1][0] if search.found else None) == least


def test_segments_that_are_none_get_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for changes, said in {
        "queue[1].segment = 3": "queue[1].segment: expected segments that divide the 8 nodes",
        "queue[1].segment = 0": "queue[1].segment: expected",
        "queue[1].segment = 4": "queue[1].communication: expected communication none, or interf",
        "queue[1].segment = 4 & machine.anchored = null": "segment: expected no segment on a mach",
    }.items():
        path = write_pod(tmp_path, changes)
        assert run(["place", str(path)]) == 2, changes
        err = capsys.readouterr().err
        assert said in err, err
        assert err.count("\n") == 1
    with pytest.raises(tp.InputError, match="at most 256 segments"):
        in_segments("exact", (512, 1), machine=tp.torus(8, 8, 8, anchored=[(1, 1, 1)]))
    for kind in ("tree:2x4", "cubes:2"):
        model = tp.Model(kind)
        with pytest.raises(tp.InputError, match="segment: expected no segment on"):
            model.add_request("one", 4, segment=2)


def test_wrong_segments_are_refused() -> None:
    document = in_segments("exact", (12, 4), (16, 8)).model_dump(mode="json")
    assert not fails(document)
    first = "solution.placements[0]"
    for bend in (
        f"{first}.other_prisms[0].origin = [0, 0, 0]",
        f"{first}.other_prisms[0].origin = [0, 1, 0]",
        f"{first}.other_prisms[0].extents = [2, 2, 1]",
        f"{first}.other_prisms = null",
        f"{first}.prism = null",
        "instance.queue[0].segment = 6",
        'instance.queue[0].communication = "strict" & limits.interference = "strict"',
        "instance.queue[0].segment = 12",
    ):
        assert fails(bent(document, bend)) in ("placements", "instance"), bend
    for bend in ("levels[1].objective += -1", "levels[0].bound += -1"):
        assert fails(refigured(bent(document, bend))), bend


def test_an_allocator_of_others_says_its_prisms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = in_segments("exact", (12, 4))
    assert result.solution is not None
    [own] = result.solution.placements
    answer = {"request": own.request, "nodes": own.nodes, "prism": own.prism.model_dump()}
    answer["other_prisms"] = [one.model_dump() for one in own.other_prisms or ()]
    document = {"schema": "topoplace.placements/1", "placements": [answer]}
    (tmp_path / "took.json").write_text(json.dumps(document))
    instance = tmp_path / "now.json"
    instance.write_text(result.instance.model_dump_json(by_alias=True))
    command = f"theirs=cat {tmp_path / 'took.json'}"
    options = ["--command", command, "--interference", "off", "-o", str(tmp_path / "out.json")]
    assert run(["place", str(instance), *options]) == 0
    assert run(["check", str(tmp_path / "out.json")]) == 0
    assert run(["show", str(tmp_path / "out.json"), "--html", str(tmp_path / "out.html")]) == 0
    assert "1x2x2@0,0,0 1x2x2@" in capsys.readouterr().out


# ---- The two oracles ----------------------------------------------------------------------------


# ---- What the checker refuses -------------------------------------------------------------------


def fails(document: Document) -> str:
    report = check_document(PlacementResult.model_validate_json(json.dumps(document)))
    return report.failures[0].name if report.failures else ""


# ---- As it is typed -----------------------------------------------------------------------------

MACHINE: Document = {
    "name": "pod", "shape": [2, 4, 4], "anchored": [{"dims": [1, 2, 2]}, {"dims": [2, 2, 2]}]
}  # fmt: skip

FAULTS = {
    "machine.wrap = [true, true, false]": "machine.anchored: expected a torus that wraps",
    "machine.anchored = []": "machine.anchored: expected",
    "machine.anchored[0].dims = [1, 2]": "anchored[0].dims: expected 3 entries",
    "machine.anchored[1].dims = [3, 2, 2]": "anchored[1].dims: expected lengths inside",
    "machine.anchored[0].dims = [0, 2, 2]": "anchored[0].dims[0]: expected",
    "machine.anchored[0].seed = [2, 0, 0]": "anchored[0].seed: expected coordinates inside",
    "machine.anchored[0].seed = [0]": "anchored[0].seed: expected 3 entries",
    "machine.anchored[0].spacing = [1, 2, 5]": "anchored[0].spacing: expected lengths inside",
    "machine.anchored[0].spacings = [1]": "did you mean 'spacing'?",
    'queue[0].shapes = "1x2x2"': "queue[0].shapes: expected no shapes on a machine whose prisms",
    'queue[0].id = "free:me"': "queue[0].id: expected a name that does not begin with free:",
    "machine.shape = [128, 128, 128] & machine.anchored[0].dims = [64, 64, 64] & "
    "machine.anchored[0].spacing = [1, 1, 1]": "machine.anchored: expected prisms that meet",
}


def write_pod(folder: Path, changes: str = "") -> Path:
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "pod",
        "machine": MACHINE,
        "queue": [{"id": "a", "nodes": 4}, {"id": "b", "nodes": 8}, {"id": "c", "nodes": 6}],
    }
    path = folder / "pod.json"
    path.write_text(json.dumps(bent(document, changes) if changes else document))
    return path


@pytest.mark.parametrize("changes", FAULTS)
def test_mistakes_get_one_line(
    changes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["place", str(write_pod(tmp_path, changes))]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert FAULTS[changes] in said.err, said.err


def test_commands_take_anchored_machines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write_pod(tmp_path), tmp_path / "out.json"
    assert run(["place", str(path), "--interference", "off", "-o", str(out)]) == 0
    assert run(["check", str(out), "--instance", str(path)]) == 0
    assert run(["show", str(out), "--html", str(tmp_path / "page.html")]) == 0
    assert "anchored prism" in capsys.readouterr().out
    assert (
        run(
            [
                "compare",
                str(out),
                "--methods",
                "exact,slurm-torus3d,first-fit",
                "--json",
                "--interference",
                "off",
            ]
        )
        == 0
    )
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [[level["name"] for level in row["levels"]] for row in rows] == [
        ["nodes", "fragmentation"]
    ] * 3
    assert {row["levels"][1]["bound"] for row in rows} == {28}


def test_large_machines_are_answered_in_time() -> None:
    shapes = [(1, 2, 2), (2, 2, 2), (2, 4, 4), (4, 4, 4), (4, 8, 8), (8, 8, 8)]
    model = tp.Model(tp.torus(8, 8, 8, anchored=shapes))
    rng = random.Random(1)
    for k in range(30):
        model.add_request(f"q{k}", math.prod(rng.choice(shapes[:4])))
    model.add_down([5, 77])
    result = tp.place(model, interference="off", time_limit=20)
    assert result.status is Status.OPTIMAL
    assert tp.check(result).verified
    problem = PlacementProblem(model.prepare(), Interference.OFF)
    assert prisms_of(problem).inside.shape == (128 + 64 + 16 + 8 + 2 + 1, 512)


def test_the_example_for_pencil_and_paper() -> None:
    page = (Path(__file__).parents[1] / "docs" / "proofs" / "placement.md").read_text()
    [leaf] = re.findall(r'The leaf `(\{.*?"free".*?\})` costs 8', page)
    machine = tp.torus(4, anchored=[(1,), (2,)])
    model = tp.Model(machine)
    for name in ("a", "b"):
        model.add_request(name, 1)
    result = tp.place(model, interference="off")
    assert [level.objective for level in result.levels] == [2, 4]
    bends = f"levels[1].certificate = {leaf} & levels[1].bound = 4"
    assert not fails(bent(result.model_dump(mode="json"), bends))
    instance = read_instance(model.snapshot, Interference.OFF)
    proven = certified_bound(oracle_of(Anchored(instance)), certificate_of(written(leaf)), [2])
    assert proven is not None
    assert proven.value == 4


def written(leaf: str) -> Document:
    """Return a leaf as random ones are, its prices by runs."""
    document: Document = json.loads(leaf)
    runs = [[int(p), int(c)] for p, c in (document["prices"]["free"].split("*"),)]
    return document | {"prices": {"free": runs}}


def test_a_replay_starts_what_an_anchored_prism_is_left_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine, log = tmp_path / "pod.json", tmp_path / "log.swf"
    machine.write_text(json.dumps(MACHINE))
    # no shape has 6 nodes; two jobs wait for a cube, the last one goes into half of one before them
    sizes = (8, 8, 4, 6, 8, 8, 8, 4)
    lines = [f"{j} 0 0 100 {n} -1 -1 {n} 100 {'-1 ' * 9}" for j, n in enumerate(sizes, start=1)]
    log.write_text("\n".join(["; a log", *lines, ""]))
    for method in ("slurm-torus3d", "exact"):
        command = ["replay", str(log), "--on", str(machine), "--method", method, "--json"]
        assert run([*command, "--interference", "off"]) == 0
        [found] = json.loads(capsys.readouterr().out)["runs"]
        assert (found["num_jobs"], found["wait"], found["decisions"]["nowhere"]) == (7, 200, 0)
