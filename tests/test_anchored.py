"""Machines whose prisms are anchored: Slurm's `topology/torus3d`, and what is proven of them."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from anchored_cases import AnchoredTiny, packing_of, random_anchored
from bending import bent
from exact_cases import MODES, solve
from few import few_of
from field_samples import refigured
from random_certificates import certificate_of, draw
from soundness.attack import Target, attack
from soundness.torus_kinds import Proving, spoilt
from topoplace.certify import check_document
from topoplace.certify.packing import Covers, Prices, certified_bound
from topoplace.certify.torus.anchored import (
    Anchored,
    AnchoredOracle,
    cheapest_disjoint,
    oracle_of,
)
from topoplace.certify.torus.instance import read_instance
from topoplace.cli import run
from topoplace.machine import Prism, Torus
from topoplace.packing.problem import NO_VALUE, Cover, Query
from topoplace.placement.torus.anchored import prisms_of
from topoplace.placement.torus.anchored_packing import AnchoredPacking, DisjointSearch
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference, PlacementResult, Proof, Status
from topoplace.snapshot.anchored import anchored_shapes
from topoplace.snapshot.schema import AnchoredModel, Snapshot
from topoplace.snapshot.state import prepare

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
    model = tp.Model(PAGE)
    model.add_request("one", 4)
    with pytest.raises(tp.InputError, match="without anchored prisms for method minizinc"):
        tp.place(model, "minizinc")


@pytest.mark.parametrize("method", ["first-fit", "best-fit", "slurm-torus3d", "random-nodes"])
def test_heuristics_obey_the_rules(method: str) -> None:
    for seed in range(24):
        snapshot, mode = random_anchored(seed), MODES[seed % 3]
        result = solve(snapshot, mode, method)
        report = check_document(result)
        assert report.holds, (seed, report)
        best = AnchoredTiny(snapshot, mode).best()[0]
        assert result.objective is not None
        assert method == "random-nodes" or result.objective <= best


# ---- The optimum --------------------------------------------------------------------------------


def assert_best(seed: int, max_routers: int) -> None:
    snapshot, mode = random_anchored(seed, max_routers), MODES[seed % 3]
    result = solve(snapshot, mode, time_limit=300)
    best = AnchoredTiny(snapshot, mode).best()
    assert tuple(level.objective for level in result.levels) == best, (seed, mode)
    assert {level.status for level in result.levels} == {Status.OPTIMAL}, (seed, mode)
    assert {level.proof for level in result.levels} == {Proof.CERTIFICATE}, (seed, mode)
    report = check_document(result)
    assert report.verified, (seed, mode, report)


@pytest.mark.parametrize("chunk", range(4))
def test_the_optimum_of_tiny_machines(chunk: int) -> None:
    for seed in range(chunk * 15, (chunk + 1) * 15):
        assert_best(seed, 8)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(30))
def test_the_optimum_of_small_machines(chunk: int) -> None:
    for seed in range(chunk * 10, (chunk + 1) * 10):
        assert_best(seed, 16)


def test_the_order_of_the_queue_says_nothing_about_the_optimum() -> None:
    for seed in range(6):
        snapshot, mode = random_anchored(seed, 8), MODES[seed % 3]
        back = snapshot.model_copy(update={"queue": snapshot.queue[::-1]})
        one, other = solve(snapshot, mode), solve(back, mode)
        assert [x.objective for x in one.levels] == [x.objective for x in other.levels], seed


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


def assert_best_in_segments(seed: int, max_routers: int) -> bool:
    """Hold one machine against brute force; whether a job with several prisms starts."""
    snapshot = random_anchored(f"segments-{seed}", max_routers, segmented=True)
    mode = MODES[seed % 3]
    best = AnchoredTiny(snapshot, mode).best()
    result = solve(snapshot, mode, time_limit=300)
    assert tuple(level.objective for level in result.levels) == best, (seed, mode)
    assert {level.status for level in result.levels} == {Status.OPTIMAL}, (seed, mode)
    report = check_document(result)
    assert report.verified, (seed, mode, report)
    for method in ("first-fit", "slurm-torus3d"):
        other = solve(snapshot, mode, method)
        assert check_document(other).holds, (seed, method)
        assert other.objective is not None
        assert other.objective <= best[0]
    assert result.solution is not None
    return any(p.other_prisms for p in result.solution.placements)


@pytest.mark.parametrize("chunk", few_of(range(30), 2))
def test_segments_on_tiny_machines(chunk: int) -> None:
    several = sum(assert_best_in_segments(seed, 8) for seed in range(chunk * 10, chunk * 10 + 10))
    assert several


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
        model.add_request("one", 4, segment=2)
        with pytest.raises(tp.InputError, match="no segment on"):
            tp.place(model)


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


def drawn_prices(packing: AnchoredPacking, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    prices = rng.integers(0, int(rng.choice((2, 30, 2000))), size=packing.num_rows)
    prices[rng.random(packing.num_rows) < rng.choice((0.0, 0.5, 0.95))] = 0
    return prices


def test_the_oracles_of_solver_and_checker_agree_and_are_the_best_of_all() -> None:
    for seed in range(90):
        snapshot, mode = random_anchored(seed, segmented=seed >= 45), MODES[seed % 3]
        packing = AnchoredPacking(PlacementProblem(prepare(snapshot), mode))
        oracle = oracle_of(Anchored(read_instance(snapshot, mode)))
        assert [r.id for r in oracle.requests] == list(packing.names)
        for name, rows in packing.families.items():
            if name in oracle.rows:
                assert len(oracle.rows[name]) == rows.stop - rows.start, (seed, name)
        rng, drawn = np.random.default_rng(seed), random.Random(seed)
        for weights in ((1,), (7,), (0, 3), (5, 2)):
            prices = drawn_prices(packing, rng)
            for name, rows in packing.families.items():
                if name not in oracle.rows:  # nobody uses them
                    prices[rows] = 0
            covers = tuple(
                Cover(q, drawn.randrange(packing.num_covers), inside=drawn.random() < 0.5)
                for q in range(len(packing.names))
                if drawn.random() < 0.3
            )
            found = packing.price(prices, Query(weights, 3, covers))
            paid = {n: prices[rows] for n, rows in packing.families.items() if n in oracle.rows}
            total = sum(int((paid[n] * oracle.rows[n]).sum()) for n in paid)
            wanted = {q: Covers() for q in range(len(packing.names))}
            for cover in covers:
                wanted[cover.request_idx] = Covers().split(cover.row, inside=cover.inside)
            best = oracle.best(Prices(paid, total, weights), wanted)
            told = [NO_VALUE if best[q] is None else best[q] for q in range(len(packing.names))]
            assert found.best.tolist() == told, (seed, weights)
            for q, columns in enumerate(found.columns):
                for gain, candidate in columns:
                    values = packing.values_of([candidate])[0, : len(weights)]
                    rows = packing.rows_of(candidate)
                    assert gain == int(values @ weights) - int(prices[rows].sum())
                    assert candidate.request_idx == q


# ---- What the checker refuses -------------------------------------------------------------------


@cache
def solved() -> list[Document]:
    results = [solve(random_anchored(seed, 8), MODES[seed % 3]) for seed in range(40)]
    return [r.model_dump(mode="json") for r in results if r.solution and r.solution.placements]


def fails(document: Document) -> str:
    report = check_document(PlacementResult.model_validate_json(json.dumps(document)))
    return report.failures[0].name if report.failures else ""


def test_wrong_figures_are_refused() -> None:
    for document in solved():
        assert not fails(document)
        bends = [f"levels[{k}].objective += {x}" for k in (0, 1) for x in (-1, 1)]
        for bend in (*bends, "levels[0].bound += -1", "levels[1].bound += 1"):
            assert fails(refigured(bent(document, bend))), bend
        both = "levels[1].objective += -1 & levels[1].bound += -1"
        assert fails(refigured(bent(document, both)))
        assert fails(bent(document, 'levels[1].name = "shape"'))
        assert fails(bent(document, 'levels[1].sense = "max"'))


def test_prisms_that_are_not_anchored_are_refused() -> None:
    seen: Counter[bool] = Counter()
    for number, document in enumerate(solved()):
        tiny = AnchoredTiny(Snapshot.model_validate(document["instance"]), MODES[0])
        rng = random.Random(number)
        at = rng.randrange(len(document["solution"]["placements"]))
        placement = document["solution"]["placements"][at]
        request = next(r for r in tiny.snapshot.queue if r.id == placement["request"])
        boxes = {choice.box for choice in tiny.choices(request)}
        for box in rng.sample(list(tiny.boxes()), min(20, len(list(tiny.boxes())))):
            nodes = sorted(
                tiny.all_routers.index(r) * tiny.per_router + k
                for r in tiny.inside(box)
                for k in range(tiny.per_router)
            )[: request.nodes]
            if len(nodes) < request.nodes or not set(nodes) <= set(tiny.class_of):
                continue
            prism = {"origin": list(box[0]), "extents": list(box[1])}
            changed = bent(
                document,
                f"solution.placements[{at}].prism = {json.dumps(prism)} & "
                f'solution.placements[{at}].nodes = "{",".join(map(str, nodes))}"',
            )
            if box not in boxes:
                assert fails(changed) == "placements", (number, box)
            seen[box in boxes] += 1
    assert seen[False] > 50, seen


def test_no_certificate_proves_too_much() -> None:
    for level, kinds in enumerate((("start", "shared", "alike"), ("level 2",))):
        for kind in kinds:
            tally = attack(kind, targets(kind, level), seed=3, tries=150)
            assert tally.accepted >= 0.35 * tally.tried, (kind, tally)
            assert tally.tight >= 0.08 * tally.tried, (kind, tally)


def targets(kind: str, level: int) -> Any:
    """Yield tiny machines with what draws certificates for them; every other one has segments."""
    for seed in itertools.count():
        snapshot = random_anchored(f"attack-{seed}", 8, segmented=seed % 2 > 0)
        mode = MODES[seed % 3]
        if not snapshot.queue:
            continue
        tiny = AnchoredTiny(snapshot, mode)
        nodes, blocked = tiny.best()
        earlier = [nodes][:level]
        packing = packing_of(tiny, earlier)
        truth = tiny.total - blocked if level else nodes

        def drawn(rng: random.Random, packing: Any = packing) -> Any:
            return spoilt(rng, draw(rng, packing, kind))

        oracle: AnchoredOracle = oracle_of(Anchored(read_instance(snapshot, mode)))
        yield Target(truth, True, drawn, Proving(oracle, earlier))


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
