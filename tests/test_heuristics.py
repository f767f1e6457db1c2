"""Heuristics against plain-Python readings of their documentation, and the form to add one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import topoplace.solving.registry as known
from naive_placement import Job, free_prisms, placed_job, running_jobs
from random_instances import random_snapshot
from topoplace.errors import InputError
from topoplace.machine import Torus, parse_node_set
from topoplace.placement.torus.footprints import footprints_of
from topoplace.placement.torus.heuristics.fits import best_fit, fill, first_fit
from topoplace.placement.torus.heuristics.node_orders import (
    FOUR_Y,
    O2,
    TWO_Y,
    Digit,
    block_order,
    place_in_order,
)
from topoplace.placement.torus.outcome import Scattered
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from topoplace.snapshot.state import SnapshotState, prepare
from topoplace.solving import Options, Outcome, methods, register, result_of, solve

FORM = Path(__file__).parents[1] / "docs" / "adding-a-heuristic.md"
MODES = list(Interference)
NODE_METHODS = ("alps-o2", "alps-2y", "alps-4y", "random-nodes")
PRISM_METHODS = ("first-fit", "best-fit")
ORDERS = {"o2": O2, "2y": TWO_Y, "4y": FOUR_Y}
SHAPES = [(1,), (9,), (8, 12), (24, 24, 24), (11, 12, 16), (3, 5, 4, 2), (2,) * 5]
Key = Callable[[PlacementProblem, Candidate], object]


def tiny(seed: int, mode: Interference = Interference.STRICT) -> PlacementProblem:
    return PlacementProblem(prepare(random_snapshot(random.Random(seed), 20)), mode)


def machine_state(shape: list[int], nodes: list[int], per_router: int = 1) -> SnapshotState:
    document = {
        "schema": SNAPSHOT_SCHEMA,
        "name": "plain",
        "machine": {"name": "plain", "shape": shape, "nodes_per_router": per_router},
        "queue": [{"id": f"job{i}", "nodes": n} for i, n in enumerate(nodes)],
    }
    return prepare(Snapshot.model_validate(document))


# ---- First fit and best fit ------------------------------------------------------------------


def by_score(problem: PlacementProblem, c: Candidate) -> object:
    return (-problem.shape_score(c), c.prism.extents, c.prism.origin)


def by_origin(problem: PlacementProblem, c: Candidate) -> object:
    part = problem.shape_parts[tuple(e - 1 for e in c.prism.extents)]
    return (c.prism.origin, c.prism.volume, -part, c.prism.extents)


def greedy(
    problem: PlacementProblem, key: Key, order: list[int], jobs: list[Job]
) -> list[Candidate]:
    jobs, placed = list(jobs), []
    for idx in order:
        found = min(free_prisms(problem, idx, jobs), key=lambda c: key(problem, c), default=None)
        if found is not None:
            placed.append(found)
            jobs.append(placed_job(problem, found))
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
        assert method(problem) == greedy(problem, key, order, running_jobs(problem)), seed
        order.reverse()
        found = method(problem, order)
        assert found == greedy(problem, key, order, running_jobs(problem)), seed
        num_placed += len(found)
    assert num_placed > 60


@pytest.mark.parametrize("mode", MODES)
def test_fill_adds_by_best_fit(mode: Interference) -> None:
    num_added = 0
    for seed in range(100, 150):
        problem = tiny(seed, mode)
        order = list(range(len(problem.requests)))
        started = first_fit(problem, order[:1])
        jobs = running_jobs(problem) + [placed_job(problem, c) for c in started]
        rest = [idx for idx in order if idx not in {c.request_idx for c in started}]
        found = fill(problem, started, order)
        assert found == started + greedy(problem, by_score, rest, jobs), seed
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
    [(O2, 0, 4, (2, 4, 2)), (TWO_Y, 1, 2, (4, 2, 8)), (FOUR_Y, 1, 4, (4, 2, 8))],
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
    (code,) = re.findall(r"```python\n(.*?)```", FORM.read_text(), re.DOTALL)
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
        register("placement", "best-fit", "again")(
            lambda problem, options: pytest.fail("not to be run")
        )
