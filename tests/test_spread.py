"""Groups of tasks that span few domains, held against all mappings."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import topoplace as tp
from bending import bent
from few import few_of
from level_cases import random_levels
from level_hops import level_hops, num_levels
from soundness.attack import faulty
from topoplace.certify import check_document
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.mapping.spread import spans_of, spread_proven
from topoplace.certify.report import RefusedError
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.mapping.spread.bounds import counting_bound, spread_bound, touching_bound
from topoplace.mapping.spread.groups import spread_asked
from topoplace.mapping.spread.search import Walk, boxed
from topoplace.result.mapping import TouchingCertificate
from topoplace.result.reading import parse_result
from topoplace.snapshot.schema import ParallelismApplication, SpreadGroups
from topoplace.solving import Options, solve
from topoplace.solving.solve import result_of

Apart = list[tuple[int, list[int]]]
"""The level and the tasks of every group."""


def random_spread(rng: random.Random) -> MappingProblem:
    """Return a tiny problem whose groups are along axes, or are any."""
    problem = random_levels(rng, rng.choice(("axes", "axes", "any")))
    assert problem.machine.levels is not None
    names = problem.machine.levels.hierarchy.levels
    kinds = []
    for _ in range(rng.randint(1, 3)):
        level = rng.choice((None, *names))
        application = problem.instance.application
        if isinstance(application, ParallelismApplication) and rng.random() < 0.8:
            axes = [axis.name for axis in application.axes]
            chosen = rng.sample(axes, rng.randint(1, min(2, len(axes))))
            kinds.append(SpreadGroups(axes=chosen, level=level))
        else:
            tasks = range(problem.num_tasks)
            groups = [
                rng.sample(tasks, rng.randint(1, len(tasks))) for _ in range(rng.randint(1, 3))
            ]
            kinds.append(SpreadGroups(groups=groups, level=level))
    return prepare_mapping(problem.instance.model_copy(update={"spread": kinds}))


def definition(problem: MappingProblem) -> tuple[list[list[int]], Apart]:
    """Return the level at which leaves meet, and the level and tasks of every group."""
    instance, machine = problem.instance, problem.instance.machine
    ones = instance.model_copy(update={"level_costs": [*range(1, num_levels(machine) + 1)]})
    assert problem.machine.levels is not None
    names = problem.machine.levels.hierarchy.levels[::-1]
    groups = []
    for one in instance.spread:
        level = min(1, len(names) - 1) if one.level is None else names.index(one.level)
        if one.groups is not None:
            groups += [(level, tasks) for tasks in one.groups]
            continue
        application = instance.application
        assert isinstance(application, ParallelismApplication)
        shape = [axis.size for axis in application.axes]
        apart: dict[tuple[int, ...], list[int]] = {}
        for task, at in enumerate(itertools.product(*map(range, shape))):
            others = zip(application.axes, at, strict=True)
            key = tuple(k for axis, k in others if axis.name not in (one.axes or ()))
            apart.setdefault(key, []).append(task)
        groups += [(level, tasks) for tasks in apart.values()]
    return level_hops(ones).tolist(), groups


def spread_at(meets: list[list[int]], groups: Apart, at: tuple[int, ...]) -> int:
    """Return the most domains that a group spans."""
    most = 0
    for level, tasks in groups:
        firsts: list[int] = []  # a leaf of every domain
        for leaf in {at[task] for task in tasks}:
            if all(meets[leaf][other] > level for other in firsts):
                firsts.append(leaf)
        most = max(most, len(firsts))
    return most


def best_of_all(problem: MappingProblem) -> tuple[int, int]:
    """Return the least spread, and of mappings of that the fewest hop-bytes."""
    meets, groups = definition(problem)
    hops, graph = level_hops(problem.instance), problem.graph
    best: tuple[int, int] | None = None
    places = np.repeat(problem.nodes, problem.tasks_per_node).tolist()
    for at in {*itertools.permutations(places, problem.num_tasks)}:
        found = spread_at(meets, groups, at)
        if best is None or found <= best[0]:
            leaf = np.array(at)
            cost = int(hops[leaf[graph.sources], leaf[graph.targets]] @ graph.bytes)
            best = min(best or (found, cost), (found, cost))
    assert best is not None
    return best


@pytest.mark.parametrize("seed", few_of(range(300), 60))
def test_the_best_of_all_mappings_is_found_and_proven(seed: int) -> None:
    problem = random_spread(random.Random(seed))
    spread, hops = best_of_all(problem)
    for bound in (counting_bound(problem), touching_bound(problem)):
        assert bound is None or bound.value <= spread
    result = solve(problem, "auto", Options(seed=seed))
    assert [level.objective for level in result.levels] == [spread, hops]
    assert [level.bound for level in result.levels] == [spread, hops]
    assert check_document(result).verified


@pytest.mark.parametrize("seed", few_of(range(300), 60))
def test_the_checker_counts_what_the_definition_counts(seed: int) -> None:
    rng = random.Random(seed)
    problem = random_spread(rng)
    meets, groups = definition(problem)
    places = np.repeat(problem.nodes, problem.tasks_per_node).tolist()
    at = tuple(rng.sample(places, problem.num_tasks))
    spread = spread_at(meets, groups, at)
    assert max(problem.spans(np.array(at))) == spread
    assert max(spans_of(read_instance(problem.instance), np.array(at))) == spread


def job_on(machine: str, axes: str, groups: str | None = None) -> MappingProblem:
    job = tp.parallelism(axes)
    return problem_on(load_places(machine), job, spread=spread_asked(job, groups, None))


def test_the_example_of_the_page() -> None:
    """4 x 4 ranks on 8 racks of 2: counting proves 2, touching 3, and the order of ranks has 4."""
    problem = job_on("hierarchy:8x2", "data=4,pipeline=4")
    assert counting_bound(problem).value == 2
    touched = touching_bound(problem)
    assert touched is not None
    assert touched.value == 3
    assert problem.spans(problem.in_order) == [4, 2]
    walk = Walk(problem, problem.in_order, 1)
    assert walk.run(3, 0.3, 1_000_000, by_hops=False) == 0
    assert max(problem.spans(walk.routers)) == 3
    before = hop_bytes(problem, walk.routers)
    added = walk.run(3, 0.0, 10_000, by_hops=True)
    assert hop_bytes(problem, walk.routers) == before + added <= before
    assert max(problem.spans(walk.routers)) == 3


@pytest.mark.parametrize(
    ("machine", "axes", "least"),
    [
        ("hierarchy:8x16", "pipeline=8,data=16", 3),  # the root of 128 / 16, rounded up
        ("hierarchy:4x16", "pipeline=4,data=4,tensor=4", 2),  # the third root of 64 / 16
        ("hierarchy:16x4", "data=8,tensor=8", 4),
        ("hierarchy:2x2x4", "data=4,tensor=4", 2),
    ],
)
def test_boxes_reach_what_is_touched(machine: str, axes: str, least: int) -> None:
    problem = job_on(machine, axes)
    bound = spread_bound(problem)
    assert bound.value == least
    instance = read_instance(problem.instance)
    application = problem.instance.application
    assert spread_proven(instance, bound.certificate, application) == least
    assert min(max(problem.spans(nodes)) for nodes in boxed(problem)) <= least + 1


def test_changed_certificates_prove_no_more() -> None:
    problem = job_on("hierarchy:8x2", "data=4,pipeline=4")
    instance, application = read_instance(problem.instance), problem.instance.application
    bound = touching_bound(problem)
    assert bound is not None
    right = bound.certificate.model_dump(mode="json")  # type: ignore[union-attr]
    rng, proven = random.Random(4), 0
    for _ in range(300):
        changed = faulty(rng, right, rng.choice((1, 1, 2)))
        try:
            certificate = TouchingCertificate.model_validate_json(json.dumps(changed))
            found = spread_proven(instance, certificate, application)
        except (RefusedError, ValidationError, OverflowError):
            continue
        proven += 1
        assert found <= 3, changed
    assert proven > 30


@pytest.mark.parametrize(
    "changes",
    [
        "levels[0].bound += -1",
        "levels[0].bound += 1",
        "levels[0].objective += -1",
        "levels[0].certificate.weights = [1, 0]",
        "levels[0].certificate.weights = [1]",
        "levels[0].certificate.level = @instance.machine.name",
        "levels[0].certificate.slope.numerator = 1000000",
        'levels[0].certificate = {"kind": "counting"}',
        'levels[0].certificate = {"kind": "spread"}',
        "solution.figures.spans[0] += -1",
        "del solution.figures.spans",
        "del instance.spread",
        'instance.spread[0].level = "pod"',
        'instance.spread[0].axes = ["data", "pipeline"]',
        'instance.spread[0].axes = ["expert"]',
        "instance.spread[0].groups = [[0, 1]]",
        "levels = [@levels[1]]",
    ],
)
def test_changed_results_are_refused(changes: str) -> None:
    problem = job_on("hierarchy:8x2", "data=4,pipeline=4")
    nodes = min(boxed(problem), key=lambda nodes: max(problem.spans(nodes)))
    outcome = replace(outcome_of(nodes), bounds=(touching_bound(problem), None))
    result = result_of(problem, outcome, "by-hand", Options(), 0.5)
    assert check_document(result).holds
    document = json.loads(result.model_dump_json(by_alias=True))
    if changes == "levels = [@levels[1]]":
        document["levels"].pop(0)
    else:
        document = bent(document, changes)
    try:
        changed = parse_result(json.dumps(document), "changed")
    except InputError:
        return
    assert not check_document(changed).holds


def test_the_command_and_python_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed, found = tmp_path / "groups", tmp_path / "found.json"
    listed.write_text("0,1  # a pair\n\n2-3\n")
    asked = ["map", "--parallelism", "data=4:ring:5", "--on", "hierarchy:2x2"]
    own = [*asked, "--objective", "spread", "--groups", str(listed), "-o", str(found)]
    assert run([*own, "--time-limit", "5"]) == 0
    assert "most domains of a group: listed 1 (rack)" in capsys.readouterr().out
    assert run(["check", str(found)]) == 0
    job = tp.parallelism("data=4:ring:5")
    pairs = [[0, 1], [2, 3]]
    for groups in (pairs, listed):
        result = tp.map(job, "hierarchy:2x2", objective="spread", groups=groups, time_limit=5)
        assert [level.objective for level in result.levels] == [1, 5 * (2 + 4 + 2 + 4)]
    by_rank = tp.map(job, "hierarchy:2x2", "default", objective="spread", spread_level="host")
    assert by_rank.objective == 4
    assert by_rank.bound == 4


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"objective": "span"}, "objective"),
        ({"groups": "data"}, "the objective spread with this option"),
        ({"objective": "spread", "groups": "dato"}, "data"),
        ({"objective": "spread", "groups": "data:rock"}, "rack"),
        ({"objective": "spread", "groups": "data:"}, "axes such as"),
        ({"objective": "spread", "groups": [[0, 9]]}, "tasks below 4"),
        ({"objective": "spread", "on": "torus:2x2"}, "a tree or hierarchy"),
    ],
)
def test_faults_are_named(options: dict[str, Any], text: str) -> None:
    given = {"on": "hierarchy:2x2", **options}
    with pytest.raises(InputError, match=text):
        tp.map(tp.parallelism("data=2,tensor=2"), given.pop("on"), **given)


def test_groups_of_a_graph_have_to_be_listed() -> None:
    with pytest.raises(InputError, match="groups of tasks for a spread"):
        tp.map(tp.grid(4), "hierarchy:2x2", objective="spread")


def partitions(tasks: tuple[int, ...], room: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield all ways to divide tasks into sets of `room`."""
    if not tasks:
        yield []
        return
    for others in itertools.combinations(tasks[1:], room - 1):
        own = (tasks[0], *others)
        for rest in partitions(tuple(t for t in tasks if t not in own), room):
            yield [own, *rest]


@pytest.mark.parametrize(
    ("shape", "room", "least", "touched"),
    [
        ((2, 4), 2, 2, 2),
        ((2, 4), 4, 2, 2),
        ((3, 3), 3, 2, 2),
        ((2, 2, 2), 2, 2, 2),
        ((2, 2, 2), 4, 2, 2),
        ((3, 4), 4, 2, 2),
        ((3, 4), 3, 3, 3),
        ((2, 6), 6, 2, 2),
        ((2, 6), 3, 2, 2),
        ((2, 2, 3), 6, 2, 2),
    ],
)
def test_no_division_spans_fewer_domains_than_are_touched(
    shape: tuple[int, ...], room: int, least: int, touched: int
) -> None:
    num = math.prod(shape)
    axes = ",".join(f"axis{k}={n}:ring:1" for k, n in enumerate(shape))
    problem = job_on(f"hierarchy:{num // room}x{room}", axes)
    groups = [
        own.tolist() for kind in problem.spread for own in np.split(kind.task, kind.first[1:-1])
    ]
    best = num
    for sets in partitions(tuple(range(num)), room):
        at = {task: k for k, own in enumerate(sets) for task in own}
        best = min(best, max(len({at[task] for task in own}) for own in groups))
    bound = touching_bound(problem)
    assert bound is not None
    assert (best, bound.value) == (least, touched)
