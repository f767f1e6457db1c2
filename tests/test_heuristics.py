"""Heuristics and explanations against plain-Python readings of their documentation."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import topoplace as tp
import topoplace.solving.registry as known
from brute_force import Choice, Tiny
from random_instances import random_snapshot
from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, parse_node_set
from topoplace.machine.node_orders import FOUR_Y, O2, ONE_Y, TWO_Y, Digit, block_order
from topoplace.placement.torus import explain as explaining
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.footprints import footprints_of
from topoplace.placement.torus.heuristics.fits import best_fit, fill, first_fit
from topoplace.placement.torus.heuristics.node_orders import place_in_order
from topoplace.placement.torus.outcome import Scattered
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.state import SnapshotState, prepare
from topoplace.solving import Options, Outcome, methods, register, result_of, solve

FORM = Path(__file__).parents[1] / "docs" / "develop" / "adding-a-heuristic.md"
MODES = list(Interference)
NODE_METHODS = ("alps-o2", "alps-2y", "alps-4y", "random-nodes")
PRISM_METHODS = ("first-fit", "best-fit")
ORDERS = {"o2": O2, "oy": ONE_Y, "2y": TWO_Y, "4y": FOUR_Y}
SHAPES = [(1,), (9,), (8, 12), (24, 24, 24), (11, 12, 16), (3, 5, 4, 2), (2,) * 5]
Key = Callable[[Tiny, Choice], object]


def tiny(seed: int, mode: Interference = Interference.STRICT) -> PlacementProblem:
    return PlacementProblem(prepare(random_snapshot(random.Random(seed), 20)), mode)


def machine_state(shape: list[int], nodes: list[int], per_router: int = 1) -> SnapshotState:
    model = tp.Model(tp.torus(*shape, nodes_per_router=per_router))
    for number, num_nodes in enumerate(nodes):
        model.add_request(f"job{number}", num_nodes)
    return model.prepare()


# ---- First fit and best fit ------------------------------------------------------------------


def tiny_of(problem: PlacementProblem) -> Tiny:
    return Tiny(problem.state.snapshot, problem.interference)


def choice_of(tiny: Tiny, candidate: Candidate) -> Choice:
    box = candidate.prism.origin, candidate.prism.extents
    choices = tiny.choices(tiny.snapshot.queue[candidate.request_idx])
    return next(choice for choice in choices if choice.box == box)


def by_score(tiny: Tiny, choice: Choice) -> object:
    origin, extents = choice.box
    return (-choice.values[1], extents, origin)


def by_origin(tiny: Tiny, choice: Choice) -> object:
    origin, extents = choice.box
    return (origin, len(choice.routers), -tiny.score(choice.box, 0), extents)


def greedy(
    tiny: Tiny, key: Key, order: list[int], started: Sequence[Candidate] = ()
) -> list[Candidate]:
    placed, jobs = list(started), [choice_of(tiny, candidate) for candidate in started]
    for idx in order:
        choices = tiny.choices(tiny.snapshot.queue[idx])
        free = [choice for choice in choices if not any(map(choice.meets, jobs))]
        if free:
            jobs.append(min(free, key=lambda choice: key(tiny, choice)))
            placed.append(Candidate(idx, Prism(*jobs[-1].box)))
    return placed


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("method", "key"), [(first_fit, by_origin), (best_fit, by_score)])
def test_fit_is_the_naive_one(
    mode: Interference, method: Callable[..., list[Candidate]], key: Key
) -> None:
    num_placed = 0
    for seed in range(60):
        problem = tiny(seed, mode)
        order = list(range(len(problem.requests)))
        assert method(problem) == greedy(tiny_of(problem), key, order), seed
        order.reverse()
        found = method(problem, order)
        assert found == greedy(tiny_of(problem), key, order), seed
        num_placed += len(found)
    assert num_placed > 60


@pytest.mark.parametrize("mode", MODES)
def test_fill_adds_by_best_fit(mode: Interference) -> None:
    num_added = 0
    for seed in range(100, 150):
        problem = tiny(seed, mode)
        order = list(range(len(problem.requests)))
        started = first_fit(problem, order[:1])
        rest = [idx for idx in order if idx not in {c.request_idx for c in started}]
        found = fill(problem, started, order)
        assert found == greedy(tiny_of(problem), by_score, rest, started), seed
        assert fill(problem, found) == found
        num_added += len(found) - len(started)
    assert num_added > 20


def test_best_fit_finds_the_best_shape_of_a_large_machine() -> None:
    for nodes in (13, 700, 6912):
        problem = PlacementProblem(machine_state([24, 24, 24], [nodes], per_router=2))
        idle = 2 * np.prod(np.indices(problem.torus.shape) + 1, axis=0) - nodes
        score = problem.shape_parts - problem.state.snapshot.weights.idle * idle
        score = np.where(idle >= 0, score, -(10**9))
        (found,) = best_fit(problem)
        assert problem.shape_score(found) == score.max()
        first = np.argwhere(score == score.max())[0] + 1
        assert found.prism.extents == tuple(first.tolist())
        assert found.prism.origin == (0, 0, 0)


def test_a_machine_too_large_for_the_tables_is_refused() -> None:
    torus = Torus((128, 128, 128))
    with pytest.raises(InputError, match=r"machine\.shape"):
        footprints_of(torus).reach(np.zeros(1 << 21, dtype=bool), np.zeros(3 << 21, dtype=bool))


# ---- Orders of nodes -------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orders_are_permutations(order: tuple[Digit, ...], shape: tuple[int, ...]) -> None:
    torus = Torus(shape, nodes_per_router=2)
    nodes = torus.nodes_of(block_order(torus, order))
    assert np.array_equal(np.sort(nodes), np.arange(torus.num_nodes))


@pytest.mark.parametrize(
    ("order", "dim", "thick", "block"),
    [
        (O2, 0, 4, (2, 4, 2)),
        (ONE_Y, 1, 1, (4, 1, 8)),
        (TWO_Y, 1, 2, (4, 2, 8)),
        (FOUR_Y, 1, 4, (4, 2, 8)),
    ],
    ids=ORDERS,
)
def test_orders_fill_the_slabs_of_the_paper(
    order: tuple[Digit, ...], dim: int, thick: int, block: tuple[int, ...]
) -> None:
    torus = Torus((24, 24, 24), nodes_per_router=2)
    coords = torus.coordinates[block_order(torus, order)]
    slabs = coords[:, dim].reshape(-1, thick * 24 * 24) // thick
    assert (slabs == np.arange(24 // thick)[:, None]).all()
    blocks = (coords // np.array(block)).reshape(-1, int(np.prod(block)), 3)
    assert (blocks == blocks[:, :1]).all()
    of_slab = blocks[:, 0].reshape(24 // thick, -1, 3)
    steps = np.abs(np.diff(of_slab, axis=1)).sum(axis=2)
    assert (steps == 1).all(), "in a slab, a serpentine moves on to a neighbouring block"


def test_2y_fills_z_then_x_then_y() -> None:
    torus = Torus((24, 24, 24))
    blocks = torus.coordinates[block_order(torus, TWO_Y)][::64] // np.array((4, 2, 8))
    assert blocks[:7].tolist() == [
        [0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 2], [1, 0, 1], [1, 0, 0], [2, 0, 0],
    ]  # fmt: skip
    assert blocks[17:19].tolist() == [[5, 0, 0], [5, 1, 0]]


def test_first_fit_of_nodes_follows_the_order() -> None:
    num_started = 0
    for seed in range(40):
        problem = tiny(seed)
        state, per = problem.state, problem.torus.nodes_per_router
        order = np.random.default_rng(seed).permutation(problem.torus.num_nodes)
        left = state.usable.tolist()
        started = {job.request_idx: job.nodes.tolist() for job in place_in_order(problem, order)}
        for idx, request in enumerate(problem.requests):
            region = state.regions.get(request.region or "")
            fits = [
                node
                for node in order.tolist()
                if left[node]
                and state.node_class[node] == request.class_idx
                and (region is None or region[node // per])
            ][: request.nodes]
            enough = len(fits) == request.nodes
            assert started.get(idx) == (sorted(fits) if enough else None)
            for node in fits if enough else ():
                left[node] = False
        num_started += len(started)
    assert num_started > 40


def test_scattered_jobs_report_the_links_they_share() -> None:
    """Two jobs on every other node of a ring use the same links under strict interference."""
    state = machine_state([8], [4, 4])
    jobs = [Scattered(0, np.arange(0, 8, 2)), Scattered(1, np.arange(1, 8, 2))]
    for mode, shared in ((Interference.STRICT, 8), (Interference.OFF, 0)):
        problem = PlacementProblem(state, mode)
        solution = result_of(problem, Outcome(jobs), "alps-o2", Options(), 0.0).solution
        assert solution is not None
        assert solution.num_shared_links == shared
        assert not solution.conforming
        assert [len(parse_node_set(p.nodes, 8)) for p in solution.placements] == [4, 4]


# ---- The registry and the form ---------------------------------------------------------------


@pytest.mark.parametrize("name", [*PRISM_METHODS, *NODE_METHODS])
def test_same_answer_for_the_same_seed(name: str) -> None:
    assert methods("placement")[name].uses_prisms == (name in PRISM_METHODS)
    drawn = set()
    for seed in range(10):
        state = prepare(random_snapshot(random.Random(seed), 24))
        once, again, other = (solve(state, name, Options(seed=k)) for k in (1, 1, 2))
        assert once.solution == again.solution
        assert once.explanations == again.explanations
        drawn.add(once.solution != other.solution)
    assert (True in drawn) == (name == "random-nodes")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers."""
    methods("placement")
    monkeypatch.setattr(known, "_METHODS", dict(known._METHODS))


@pytest.mark.usefixtures("registry")
def test_the_example_of_the_form_places_the_largest_first() -> None:
    (code,) = re.findall(r"```python largest_first.py\n(.*?)```", FORM.read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 20
    exec(compile(code, str(FORM), "exec"), {"__name__": "example"})
    for seed in range(20):
        state = prepare(random_snapshot(random.Random(seed), 24))
        result = solve(state, "largest-first")
        assert result.method == "largest-first"
        assert result.solution is not None
        assert result.solution.conforming
        largest = max(state.queue, key=lambda r: r.nodes, default=None)
        alone = [e.request for e in result.explanations if e.reason != "outbid"]
        if largest is not None and largest.id not in alone:
            assert largest.id in {p.request for p in result.solution.placements}


@pytest.mark.usefixtures("registry")
def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="best-fit"):
        register("placement", "best-fit", "again")(lambda problem, options: pytest.fail("not run"))


# ---- Explanations, by enumeration ------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_threads_find_the_same_nearest_prisms(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PlacementProblem(prepare(random_snapshot(random.Random(seed), max_routers=60)))
    monkeypatch.setattr(explaining, "num_cores", lambda: 3)
    found = []
    for worth_it in (1, 1 << 30):
        monkeypatch.setattr(explaining, "_WORTH_THREADS", worth_it)
        found.append(explain(problem, []))
    assert len(found[0]) == len(problem.requests)
    assert found[0] == found[1]


SIX = "the prism nearest to free for 6 compute nodes, "
BIG = [{"id": "big", "nodes": 4}, {"id": "six", "nodes": 6}]
CASES = {
    "a job in the way": (
        {"running": [{"id": "r1", "nodes": "1"}, {"id": "r2", "nodes": "6-7"}]},
        ("blocked", ["r1"], 1),
        f"on 6@0, {SIX}1 node of running job r1 would have to be freed",
    ),
    "links alone": (
        {"running": [{"id": "far", "nodes": "0,7"}]},
        ("blocked", ["far"], 0),
        f"on 6@1, {SIX}routers or links of running job far would have to be freed, but no nodes",
    ),
    "nodes are down": (
        {"down": "0-2"},
        ("no-shape", [], None),
        "no prism of this machine holds 6 compute nodes, even with nothing running",
    ),
    "a started job": (
        {"queue": BIG},
        ("outbid", ["big"], 2),
        f"it would fit alongside the running jobs, but 6@2, {SIX}holds 2 nodes of started job big",
    ),
    "left out for nothing": (
        {},
        ("outbid", [], 0),
        f"it would fit alongside the running jobs, but 6@0, {SIX}is still free: "
        "the method left the request out",
    ),
}


@pytest.mark.parametrize(("more", "expected", "text"), CASES.values(), ids=CASES)
def test_texts_on_a_line_of_eight_routers(
    more: dict[str, object], expected: tuple[str, list[str], int | None], text: str
) -> None:
    line = tp.Model(tp.mesh(8))
    line.add_request("six", 6)
    snapshot = Snapshot.model_validate(json.loads(line.snapshot.model_dump_json()) | more)
    problem = PlacementProblem(prepare(snapshot))
    started = [Candidate(0, Prism((0,), (4,)))] if "queue" in more else []
    (found,) = explain(problem, started)
    assert (found.reason, found.jobs, found.nodes_to_free) == expected
    assert found.text == text
