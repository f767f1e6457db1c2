"""The exact method on tori, whichever way it has to go: bounds that hold, and are accepted.

What is chosen by size is forced here: prisms scanned, not listed; linear programs too slow to lean
on, so that bundle, trees of starts and places, sums over classes, dives and annealing do it all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from brute_force import brute_force
from exact_cases import MODES, mid_size_snapshot, reached, solve, text_without_seconds
from few import few_of
from random_instances import random_snapshot
from small_snapshot import snapshot_of
from topoplace.certify import check_document
from topoplace.certify.packing import certified_bound
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.packing import search, steering
from topoplace.packing.budget import Budget
from topoplace.packing.dual import bundle
from topoplace.packing.dual.generation import Bounded
from topoplace.packing.dual.relaxation import DualPoint
from topoplace.packing.problem import Subproblem
from topoplace.packing.search import Search
from topoplace.packing.tree import best_first, branch_and_bound
from topoplace.packing.tree.bounds import Trees
from topoplace.packing.tree.nodes import Node
from topoplace.placement.torus import packing
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import PlacementResult, Status
from topoplace.result.certificate import SharedLeaves, size_of
from topoplace.snapshot.schema import MAX_PRIORITY, Snapshot
from topoplace.snapshot.state import prepare

CHUNKS, PER_CHUNK = 2, 8
NOT_CLOSED = 0.25  # share of the bounds that trees may leave above the optimum in little time
ROOM = steering.CERTIFICATES


def alike(snapshot: Snapshot, rng: random.Random) -> Snapshot:
    """Return a snapshot with a few requests of almost the same size, and some others."""
    usable = max(4, sum(r.nodes for r in snapshot.queue) // 3)
    sizes = [max(1, usable // 3 - rng.randint(0, 1)) for _ in range(3)] + [max(1, usable // 6), 1]
    first = snapshot.queue[0].model_copy(update={"shapes": None, "region": None})
    queue = [first.model_copy(update={"id": f"q{k}", "nodes": n}) for k, n in enumerate(sizes)]
    return snapshot.model_copy(update={"queue": queue})


def case(seed: int) -> Snapshot:
    rng = random.Random(f"ways-{seed}")
    snapshot = random_snapshot(rng, 20)
    return alike(snapshot, rng) if seed % 3 == 0 and snapshot.queue else snapshot


@pytest.fixture
def hard_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "are_few", lambda problem: False)
    monkeypatch.setattr(search, "_HEAVY_NONZEROS", -1)
    monkeypatch.setattr(packing, "_ALIKE_SHARE", 0.7)
    monkeypatch.setattr("topoplace.packing.budget.USUAL_WORK", 2.0)
    monkeypatch.setattr("topoplace.placement.engine.LATER_WORK", 0.2)


def check_bounds(snapshot: Snapshot, result: PlacementResult, best: tuple[int, ...]) -> bool:
    """Check a result, and tell whether its first level is closed."""
    report = check_document(result)
    assert report.holds, (snapshot.name, report)
    level = result.levels[0]
    assert level.objective is not None
    assert level.bound is not None
    assert level.objective <= best[0] <= level.bound, snapshot.name
    return level.objective == level.bound


@pytest.mark.parametrize("asks", ["starts", "places", "parts"])
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.usefixtures("hard_way")
def test_the_hard_way_proves_what_holds(
    chunk: int, asks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if asks == "places":
        monkeypatch.setattr(steering, "NEAR", 10.0)
    if asks != "starts":  # at once, and with worse prices: so that branches have something to do
        monkeypatch.setattr(steering, "SLICE", 0.01)
        monkeypatch.setattr(bundle, "_PATIENCE", 1)
    closed = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        snapshot, mode = case(seed), MODES[seed % 3]
        result = solve(snapshot, mode)
        closed += check_bounds(snapshot, result, brute_force(snapshot, mode))
    assert closed >= (1 - NOT_CLOSED) * PER_CHUNK


def lowest_leaves(node: Node, bound: int) -> Iterator[Node]:
    """Yield all leaves, those below what bounds enough as well."""
    if node.children is None:
        yield node
    else:
        for child in node.children:
            yield from lowest_leaves(child, bound)


def check_that_proofs_are_kept_once(tree: branch_and_bound.BranchAndBound) -> None:
    """Check that split nodes above the bound keep no proof, and leaves that are done keep one."""
    working, todo = set(tree.open_leaves()), [tree.top]
    while todo:
        node = todo.pop()
        if node.children is not None:
            todo += node.children
            if node.bound > tree.bound:
                assert (len(node.pooled), node.value, node.starts) == (0, None, None)
        elif node not in working:
            assert node.own is None
            assert node.value is None or node.starts is None


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("chunk", few_of(range(2), 1))
@pytest.mark.usefixtures("hard_way")
def test_trees_bound_all_placements(
    places: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request is decided, and the leaf of the optimum is split to its end."""
    every = replace(branch_and_bound.STARTS_FIRST, large=0.0)
    monkeypatch.setattr(branch_and_bound, "STARTS_FIRST", every)
    monkeypatch.setattr(Node, "leaves", lowest_leaves)
    written = []
    for seed in range(24 * chunk, 24 * chunk + 24):
        snapshot, mode = case(seed), MODES[seed % 3]
        best = brute_force(snapshot, mode)[0]
        problem = PlacementProblem(prepare(snapshot), mode)
        state = Search(packing.TorusPacking(problem), Budget(None), start=[]).state
        relaxation, columns = state.relaxation, state.columns
        pool, point = relaxation.begin_pool(), DualPoint(state.problem.start_prices.astype(float))
        start = Bounded(relaxation.evaluate(Subproblem(), point), point)
        root = bundle.Bundle(relaxation, columns, Subproblem()).run(start, 0, until=0.5)

        def lower(least: int = best - 1) -> int:
            return least

        if places:
            tree = Trees(relaxation, columns, root, lower, ROOM).ask_places()
        else:
            tree = branch_and_bound.BranchAndBound(
                relaxation, pool, columns, root.point, lower, room=ROOM
            )
        tree.run(state.budget.now() + 0.3)
        certificate = tree.certificate(ROOM)
        check_that_proofs_are_kept_once(tree)
        assert isinstance(certificate, SharedLeaves)
        texts = [leaf.model_dump_json() for leaf in certificate.leaves]
        assert len(set(texts)) == len(texts), "a point that bounds several leaves is written once"
        oracle = TorusOracle(read_instance(snapshot, mode))
        proven = certified_bound(oracle, certificate, [])
        assert proven is None or best <= proven.value <= tree.bound, seed
        written.append(certificate.model_dump_json())
    for kind in ('"start"', '"ref"', '"cover"', *(['"alike":[["'] if places else [])):
        assert any(kind in text for text in written), kind


@pytest.mark.parametrize("often", [1, 1000])
@pytest.mark.parametrize("room", [400, 800, ROOM])
@pytest.mark.usefixtures("hard_way")
def test_a_tree_grows_until_its_certificate_fills_its_room(
    room: int, often: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Often: whether it is seen in time that there is no room, or only at the end."""
    every = replace(branch_and_bound.STARTS_FIRST, large=0.0)
    monkeypatch.setattr(branch_and_bound, "STARTS_FIRST", every)
    monkeypatch.setattr(best_first, "_OFTEN", often)
    snapshot, mode = case(8), MODES[2]
    best = brute_force(snapshot, mode)[0]
    problem = PlacementProblem(prepare(snapshot), mode)
    state = Search(packing.TorusPacking(problem), Budget(None), start=[]).state
    pool, point = state.relaxation.begin_pool(), DualPoint(state.problem.start_prices.astype(float))
    tree = branch_and_bound.BranchAndBound(
        state.relaxation, pool, state.columns, point, lambda: best, room=room
    )
    tree.run(state.budget.end)
    assert state.budget.now() < state.budget.end
    certificate = tree.certificate(room)
    proven = certified_bound(TorusOracle(read_instance(snapshot, mode)), certificate, [])
    assert proven is not None
    assert best <= proven.value <= tree.bound
    assert (tree.bound > best) == (room < ROOM)
    assert size_of(certificate) <= room


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.usefixtures("hard_way")
def test_the_certificates_of_a_result_have_a_room_together(
    parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first level is closed by some 7 kB, or 2.5 kB in parts; the bound rises with less."""
    monkeypatch.setattr(bundle, "_PATIENCE", 1)
    if parts:
        monkeypatch.setattr(steering, "SLICE", 0.01)
    sizes = enumerate((22, 19, 17, 26, 14, 29, 11))
    queue = [{"nodes": n} | ({"class": "half"} if k % 2 else {}) for k, n in sizes]
    down = "1,15,17,32,57,60,63,83,97"
    snapshot = snapshot_of([10, 10], queue, down=down, classes={"half": "50-99"})
    oracle, bounds = TorusOracle(read_instance(snapshot, MODES[0])), []
    for room in (2400, 5000, ROOM):
        monkeypatch.setattr(steering, "CERTIFICATES", room)
        result = solve(snapshot, MODES[0])
        assert check_document(result).holds
        written = [level.certificate for level in result.levels if level.certificate]
        assert len(written) == len(result.levels)
        assert sum(size_of(certificate) for certificate in written) <= room
        proven = certified_bound(oracle, written[0], [])
        assert proven is not None
        assert result.bound is not None
        assert result.bound >= proven.value
        bounds.append(result.bound)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1] == result.objective


@pytest.mark.usefixtures("hard_way")
def test_leaves_that_keep_only_their_proofs_are_taken_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle, "_PATIENCE", 1)
    monkeypatch.setattr(steering, "NEAR", 10.0)
    monkeypatch.setattr(steering, "OPEN_LEAVES", 0)
    monkeypatch.setattr(best_first, "_OFTEN", 1)
    closed = 0
    for seed in range(PER_CHUNK):
        snapshot, mode = case(seed), MODES[seed % 3]
        closed += check_bounds(snapshot, solve(snapshot, mode), brute_force(snapshot, mode))
    assert closed >= (1 - NOT_CLOSED) * PER_CHUNK


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("hard_way")
def test_machines_of_some_size_come_out_alike_both_ways(seed: int) -> None:
    snapshot, mode = mid_size_snapshot(seed), MODES[seed % 3]
    result = solve(snapshot, mode, time_limit=60, first_level=True)
    assert check_document(result).holds
    assert result.levels[0].status is Status.OPTIMAL


@pytest.mark.parametrize("seed", few_of((0, 2, 1, 3), 2))
@pytest.mark.usefixtures("hard_way")
def test_without_a_limit_work_counts_and_not_the_clock(seed: int) -> None:
    snapshot, mode = mid_size_snapshot(seed + 10, (6, 6, 6), 6), MODES[seed % 3]
    first, second = (text_without_seconds(solve(snapshot, mode, seed=seed)) for _ in range(2))
    assert first == second


NOTHING = {"bisection": 0, "volume": 0, "hops": 0, "idle": 0, "wrap": 0}
EXTREMES = {
    "no cost on the last level but for the others'": snapshot_of(
        [8],
        [{"nodes": 4, "shapes": "5"}, {"nodes": 4}, {"nodes": 6, "priority": 3}],
        weights=NOTHING | {"bisection": 4, "volume": 1, "idle": 30},
    ),
    "worth so much that the first level's multiplier is below any price": snapshot_of(
        [2, 5],
        [{"nodes": 4, "class": "gpu", "priority": MAX_PRIORITY}] * 2,
        wrap=[False, True],
        nodes_per_router=3,
        classes={"gpu": "0-1,6-8,13-15,17-19,23,28-29"},
        running=[{"id": "r0", "nodes": "6-8,15-17"}, {"id": "r1", "nodes": "21-22"}],
        weights=NOTHING,
    ),
    "links so wide that scores in millionths leave 64 bits": snapshot_of(
        [1, 1],
        [{"nodes": 1}, {"nodes": 1, "priority": 2}],
        bandwidth=[1, 1 << 21],
        running=[{"id": "run", "nodes": "0"}],
        weights=NOTHING | {"bisection": 1000},
    ),
    "a unit of the second level beside millions of the first": snapshot_of(
        [8],
        [
            {"nodes": 5, "shapes": "5/6", "communication": "none"},
            {"nodes": 4},
            {"nodes": 7, "priority": MAX_PRIORITY, "communication": "tolerant"},
            {"nodes": 6, "priority": MAX_PRIORITY, "communication": "none"},
        ],
        weights=NOTHING | {"bisection": 1000, "idle": 1000, "wrap": 1000},
    ),
}


@pytest.mark.parametrize("snapshot", EXTREMES.values(), ids=EXTREMES)
def test_bounds_near_zero_and_large_values_come_to_an_end(snapshot: Snapshot) -> None:
    """What comes out is optimal, and accepted."""
    for mode in MODES:
        result = solve(snapshot, mode, time_limit=60)
        assert reached(result) == brute_force(snapshot, mode)
        assert {level.status for level in result.levels} == {Status.OPTIMAL}
        assert check_document(result).holds
