"""Levels that are set instead of solved, and trade-offs between levels."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tiny_cubes
import tiny_hierarchies
import topoplace as tp
from brute_force import Tiny
from exact_cases import MODES
from random_instances import random_snapshot
from topoplace.certify import check_document
from topoplace.cli.app import app
from topoplace.machine import Prism
from topoplace.packing.frontier import TradeOff
from topoplace.placement.several import traded_off
from topoplace.placement.torus.problem import Candidate
from topoplace.report.frontier import write_plot
from topoplace.result import Interference, PlacementResult, Status
from topoplace.result.cubes import CubesResult
from topoplace.result.hierarchy import HierarchyResult
from topoplace.result.several import Frontier
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.files import write_document
from topoplace.snapshot.machines import load_any
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Bound, Options, Outcome, result_of, solve
from topoplace.solving.solve import frame_of, problem_of
from topoplace.study.case import load_checkable

Document = dict[str, Any]

MOST_PLACEMENTS = 20_000
LEVELS = {"placement": ("nodes", "shape", "fragmentation"), "cubes": ("nodes", "free_cubes")}


def totals_of(snapshot: Snapshot, mode: Interference) -> set[tuple[int, ...]] | None:
    """Return what all placements on a torus are worth, maximised; None if they are too many."""
    tiny = Tiny(snapshot, mode)
    found: list[tuple[tuple[int, ...], list[Any]]] = [((0, 0, 0), [])]
    for request in snapshot.queue:
        for total, chosen in list(found):
            found += [
                (tuple(map(sum, zip(total, choice.values, strict=True))), [*chosen, choice])
                for choice in tiny.choices(request)
                if not any(choice.meets(other) for other in chosen)
            ]
            if len(found) > MOST_PLACEMENTS:
                return None
    return {total for total, _ in found}


def best_of(totals: Iterable[Sequence[int]], traded: Sequence[int]) -> set[tuple[int, ...]]:
    """Return the values on some levels that no others are as good as."""
    own = {tuple(total[k] for k in traded) for total in totals}
    return {
        v
        for v in own
        if not any(o != v and all(a >= b for a, b in zip(o, v, strict=True)) for o in own)
    }


def points_of(frontier: Frontier) -> set[tuple[int, ...]]:
    """Return the points on the levels traded, maximised."""
    levels = [(k, v) for k, v in enumerate(frontier.levels) if v.name in frontier.traded]
    signs = [(k, 1 if level.sense == "max" else -1) for k, level in levels]
    return {tuple(sign * point.values[k] for k, sign in signs) for point in frontier.points}


TRADED = [(0, 1), (0, 2), (1, 2), (0, 1, 2)]


def torus_equals_brute_force(seed: int) -> bool:
    """Tell whether an instance was small enough; then its frontier is that of brute force."""
    rng = random.Random(f"frontier-{seed}")
    snapshot, mode = random_snapshot(rng, 10), MODES[seed % 3]
    totals = totals_of(snapshot, mode)
    if totals is None:
        return False
    traded = TRADED[seed % len(TRADED)]
    names = [LEVELS["placement"][k] for k in traded]
    frontier = traded_off(prepare(snapshot), names, Options(interference=mode))
    assert points_of(frontier) == best_of(totals, traded), (seed, names)
    assert frontier.complete, seed
    report = frontier.check()
    assert report.verified, (seed, report)
    return True


@pytest.mark.parametrize(
    "seeds", [range(4), pytest.param(range(4, 330), marks=pytest.mark.slow)], ids=str
)
def test_frontiers_of_tori_equal_brute_force(seeds: range) -> None:
    small = [torus_equals_brute_force(seed) for seed in seeds]
    assert sum(small) > 0.9 * len(small)


def test_frontiers_of_pods_equal_brute_force() -> None:
    for seed in range(6):
        snapshot = tiny_cubes.random_pod(random.Random(f"frontier-{seed}"))
        frontier = traded_off(prepare_cubes(snapshot), ["nodes", "free_cubes"])
        best = best_of(tiny_cubes.outcomes(snapshot), (0, 1))
        assert points_of(frontier) == best, seed
        assert frontier.check().verified, seed


def test_frontiers_of_hierarchies_equal_brute_force() -> None:
    num = 0
    for seed in range(12):
        state = tiny_hierarchies.prepared(tiny_hierarchies.random_hierarchy(random.Random(seed)))
        if tiny_hierarchies.num_placements(state) > 2_000:
            continue
        totals = tiny_hierarchies.outcomes(state)
        names = [name for name, _ in frame_of("hierarchy").levels(problem_of(state, Options()))]
        frontier = traded_off(state, [names[0], names[-1]])
        assert points_of(frontier) == best_of(totals, (0, -1)), seed
        assert frontier.check().verified, seed
        num += 1
    assert num > 1


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 320), marks=pytest.mark.slow)], ids=str
)
def test_levels_as_set_equal_brute_force(seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(f"set-{seed}")
        snapshot, mode = random_snapshot(rng, 10), MODES[seed % 3]
        totals = totals_of(snapshot, mode)
        if totals is None:
            continue
        most = max(nodes for nodes, _, _ in totals)
        floor = rng.randint(0, most + 1)
        options = Options(interference=mode, required={"nodes": floor})
        result = solve(prepare(snapshot), "exact", options)
        assert result.check().verified, seed
        within = [total for total in totals if total[0] >= floor]
        if not within:
            assert result.levels[0].status is Status.INFEASIBLE, seed
            assert result.solution is None
            continue
        shape = max(total[1] for total in within)
        boundary = max(total[2] for total in within if total[1] >= shape)
        assert [level.objective for level in result.levels[1:]] == [shape, -boundary], seed
        assert {level.status for level in result.levels[1:]} == {Status.OPTIMAL}, seed
        assert (result.objective or 0) >= floor


PlacedResult = PlacementResult | HierarchyResult | CubesResult


def small_queue(kind: str, sizes: Sequence[int] = (2, 1)) -> Snapshot:
    """Return an empty machine of a kind and requests for so many nodes or units."""
    hosts = [
        {"hosts": f"{rack}[0-1]", "domains": [rack], "capacity": {"slots": 2}} for rack in "ab"
    ]
    machine: Document = {
        "torus": {"shape": [5], "wrap": [False]},
        "hierarchy": {"kind": "hierarchy", "levels": ["rack", "host"], "hosts": hosts},
        "cubes": {"kind": "cubes", "cubes": 3, "side": [2, 2]},
    }[kind]
    queue: list[Document] = [{"id": f"q{k}", "nodes": n} for k, n in enumerate(sizes)]
    if kind == "hierarchy":
        queue = [request | {"takes": {"slots": 1}} for request in queue]
    return Snapshot.model_validate(
        {
            "schema": SNAPSHOT_SCHEMA,
            "name": kind,
            "machine": {"name": "small", **machine},
            "queue": queue,
        }
    )


def impossible(snapshot: Snapshot, **required: int) -> PlacedResult:
    """Return the result where something is required of a later level that cannot be met."""
    found = tp.place(snapshot, required=required)
    assert isinstance(found, PlacedResult)
    assert found.solution is None
    return found


def torus_result(document: Document) -> PlacementResult:
    return PlacementResult.model_validate_json(json.dumps(document))


@pytest.mark.parametrize(
    ("kind", "required", "worth"),
    [
        ("torus", {"fragmentation": 0}, [3]),
        ("torus", {"nodes": 2, "fragmentation": 0}, [3]),
        ("hierarchy", {"host": 1}, [3, 2]),
        ("cubes", {"free_cubes": 3}, [3, 2]),
    ],
)
def test_what_cannot_be_met_is_proven(
    kind: str, required: dict[str, int], worth: list[int]
) -> None:
    result = impossible(small_queue(kind), **required)
    [level] = [level for level in result.levels if level.status is Status.INFEASIBLE]
    assert level.name == [*required][-1]
    assert result.witness is not None
    assert result.witness.values[: len(worth)] == worth
    assert result.check().verified, result.check()
    assert "best found without what was set: nodes 3, " in str(result)


def test_a_level_is_infeasible_only_if_those_before_are_settled() -> None:
    document = impossible(small_queue("torus"), fragmentation=0).model_dump(mode="json")
    document["bound"] = document["levels"][0]["bound"] = 4  # as if one more node might start
    assert [c.name for c in check_document(torus_result(document)).failures] == ["fragmentation"]
    document["levels"][2]["status"] = "unknown"
    unknown = torus_result(document)
    assert check_document(unknown).verified
    assert unknown.witness is not None
    started = [
        Candidate(number, Prism(tuple(at.prism.origin), tuple(at.prism.extents)))
        for number, at in enumerate(unknown.witness.solution.placements)
        if at.prism is not None
    ]
    bounds = [Bound(v.bound, v.certificate) for v in unknown.levels if v.bound is not None]
    outcome, options = (
        Outcome(None, bounds, witness=started),
        Options(required={"fragmentation": 0}),
    )
    problem = problem_of(prepare(unknown.instance), options)
    again = result_of(problem, outcome, "exact", options, unknown.seconds)
    assert (again.levels, again.witness) == (unknown.levels, unknown.witness)


def test_false_witnesses_are_refused() -> None:
    snapshot = small_queue("torus")
    whole = impossible(snapshot, nodes=3, fragmentation=0).model_dump(mode="json")
    alone = small_queue("torus", (2,))

    def refused_by(witness: Document | None) -> list[str]:
        return [c.name for c in check_document(torus_result(whole | {"witness": witness})).failures]

    witness = whole["witness"]
    first, second = witness["solution"]["placements"]
    for level in range(3):
        values = [*witness["values"]]
        values[level] += 1
        assert refused_by(witness | {"values": values}) == ["witness"]
    there = second | {"nodes": "0", "prism": {"origin": [0], "extents": [1]}}
    twice = [first | {"nodes": "0-1", "prism": {"origin": [0], "extents": [2]}}, there]
    solution = witness["solution"] | {"placements": twice}
    assert refused_by(witness | {"solution": solution}) == ["witness"]
    assert refused_by(None) == ["fragmentation", "fragmentation.bound"]
    fewer = impossible(alone, fragmentation=0).model_dump(mode="json")["witness"]
    assert "fragmentation.bound" in refused_by(fewer)  # it does not reach what is required
    answered = tp.place(snapshot).model_dump(mode="json")
    assert not check_document(torus_result(answered | {"witness": witness})).holds


def test_without_a_step_everything_is_open() -> None:
    anything = (-math.inf, -math.inf), (math.inf, math.inf)
    assert TradeOff((0, 1)).boxes() == [anything]


# ---- What breaks a frontier ----------------------------------------------------------------------


def mutants(rng: random.Random, frontier: Frontier) -> Iterator[tuple[str, Document]]:
    """Yield false frontiers: what is changed, and the document."""
    whole = frontier.model_dump(mode="json")
    signs = {v.name: 1 if v.sense == "max" else -1 for v in frontier.levels}
    num_points, num_steps = len(whole["points"]), len(whole["steps"])

    def changed(change: Callable[..., object], *how: Any) -> Document:
        document = copy.deepcopy(whole)
        change(document, *how)
        return document

    def tighten(document: Document, step: int) -> None:
        own = document["steps"][step]
        own["bound"] -= signs[own["level"]]

    at = rng.randrange(num_points)
    yield "a point less", changed(lambda d: d["points"].pop(at))
    yield "a point twice", changed(lambda d: d["points"].insert(at, d["points"][at]))
    level = rng.randrange(len(whole["levels"]))
    by = rng.choice((-1, 1))
    own = [*whole["points"][at]["values"]]
    own[level] += by
    yield "another value", changed(lambda d: d["points"][at].update(values=own))
    for step in range(num_steps):
        yield "a tighter bound", changed(tighten, step)
    yield "no step", changed(lambda d: d["steps"].clear())
    yield "open and complete", changed(lambda d: d.update(complete=not d["complete"]))
    box = {"worst": [None] * len(whole["traded"]), "best": [None] * len(whole["traded"])}
    yield "a box", changed(lambda d: d["open"].append(box))


@pytest.mark.parametrize("most", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_false_frontiers_are_refused(most: int) -> None:
    num, seed = 0, 0
    while num < most:
        rng = random.Random(f"mutants-{seed}")
        options = Options(interference=MODES[seed % 3])
        frontier = traded_off(prepare(random_snapshot(rng, 8)), ["nodes", "shape"], options)
        for what, document in mutants(rng, frontier):
            mutant = Frontier.model_validate_json(json.dumps(document))
            assert not check_document(mutant).holds, (seed, what)
            num += 1
        seed += 1


def test_certificates_prove_the_bounds_of_steps() -> None:
    told = 0
    for seed in range(12):
        rng = random.Random(f"mutants-{seed}")
        frontier = traded_off(prepare(random_snapshot(rng, 8)), ["nodes", "shape"])
        for step in frontier.steps:
            assert step.certificate is not None
            certificate = step.certificate.model_copy(update={"prices": {}})
            steps = [
                one.model_copy(update={"certificate": certificate}) if one is step else one
                for one in frontier.steps
            ]
            report = check_document(frontier.model_copy(update={"steps": steps}))
            told += any("the certificate proves" in c.detail for c in report.claims if not c.holds)
    assert told > 5


# ---- Commands ------------------------------------------------------------------------------------


def test_commands_trade_off_and_show(tmp_path: Path) -> None:
    snapshot, file = tmp_path / "small.json", tmp_path / "frontier.json"
    write_document(snapshot, random_snapshot(random.Random("frontier-7"), 8))
    run = CliRunner().invoke
    made = run(app, ["place", str(snapshot), "--pareto", "nodes,shape", "-o", str(file)])
    assert made.exit_code == 0, made.output
    assert "complete" in made.output
    assert run(app, ["check", str(file)]).exit_code == 0
    for name, document in (("two", load_checkable(file)), ("three", None)):
        found = document or traded_off(load_any(snapshot), ["nodes", "shape", "fragmentation"])
        assert isinstance(found, Frontier)
        write_plot(found, tmp_path / f"{name}.png", dark=name == "two")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert run(app, ["show", str(file), "--png", str(tmp_path / "shown.png")]).exit_code == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--set", "nodes<=3"], "expected >= for nodes"),
        (["--set", "knots>=3"], "did you mean 'nodes'?"),
        (["--set", "nodes"], "expected LEVEL>=NUMBER"),
        (["--pareto", "nodes"], "expected two or three levels"),
        (["--pareto", "nodes,shapes"], "did you mean 'shape'?"),
        (["--pareto", "nodes,shape", "--method", "best-fit"], "expected no other than"),
        (["--set", "nodes>=3", "--method", "best-fit"], "expected method exact"),
    ],
)
def test_wrong_levels_are_told(tmp_path: Path, given: list[str], told: str) -> None:
    snapshot = tmp_path / "small.json"
    write_document(snapshot, random_snapshot(random.Random("frontier-7"), 8))
    done = CliRunner().invoke(app, ["place", str(snapshot), *given])
    assert told in str(done.exception)
