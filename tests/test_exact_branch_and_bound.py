"""Trees of starts and places: bounds that hold, and whose certificates the checker accepts."""

from __future__ import annotations

import itertools
import random
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from exact_cases import MODES, mid_size_snapshot
from random_instances import random_snapshot
from topoplace.certify.packing import certified_bound
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.placement.exact import branch_and_bound
from topoplace.placement.exact.bound_search import BoundSearch, ClassDecomposition, Trees
from topoplace.placement.exact.branch_and_bound import BranchAndBound
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.relaxation import Relaxation, Subproblem, usable_prices
from topoplace.placement.exact.search import ExactSearch
from topoplace.placement.exact.tree_nodes import Leaf, TreeContext, new_pool
from topoplace.placement.torus.oracle.pricing import ScanPricer
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.snapshot import Snapshot, prepare
from topoplace.solving import Options

CHUNKS, PER_CHUNK = 6, 10
LONGEST = 5.0  # seconds; most trees end by themselves


def solved(problem: PlacementProblem) -> ExactSearch:
    """Return a search that has closed the first level, or tried for a minute."""
    search = ExactSearch(problem, Options(time_limit=60))
    search.run()
    return search


def rooted(search: ExactSearch) -> Node:
    """Return the root of a tree over the scan's prices, a few of which are in a pool."""
    search.relaxation = Relaxation(search.problem, search.rows, ScanPricer(search.problem))
    sub = Subproblem()
    point = usable_prices(search.rows)
    start = Bounded(search.relaxation.evaluate(sub, point), point)
    root = Node(sub, start)
    new_pool(search.relaxation)
    root.bounded = search.bundle(sub).run(start, 0, deadline=np.inf, max_steps=40)
    return root


def grown(search: ExactSearch) -> tuple[Node, BranchAndBound]:
    """Grow a tree of starts from the search's placement."""
    root = rooted(search)
    relaxation = search.relaxation
    assert relaxation.pool is not None
    context = TreeContext(relaxation, search.master, relaxation.pool, lambda: search.objective(0))
    tree = BranchAndBound(context, root.bounded.point)
    tree.run(time.perf_counter() + LONGEST)
    root.below = tree
    return root, tree


def checked(snapshot: Snapshot, search: ExactSearch, tree: BranchAndBound) -> int | None:
    """Return what the checker says the tree proves."""
    instance = read_instance(snapshot, search.problem.interference)
    proven = certified_bound(TorusOracle(instance), tree.certificate(), [])
    return None if proven is None else proven.value


def lowest_leaves(leaf: Leaf, bound: int) -> Iterator[Leaf]:
    """Yield all leaves, those below what bounds enough as well."""
    if leaf.children is None:
        yield leaf
    else:
        for child in leaf.children:
            yield from lowest_leaves(child, bound)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_request_decided_the_tree_bounds_all_placements(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = replace(branch_and_bound.STARTS_FIRST, large=0.0)
    monkeypatch.setattr(branch_and_bound, "STARTS_FIRST", every)
    monkeypatch.setattr(Leaf, "leaves", lowest_leaves)
    written: list[str] = []
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        snapshot = random_snapshot(random.Random(f"starts-{seed}"), 30)
        problem = PlacementProblem(prepare(snapshot), MODES[seed % 3])
        search = solved(problem)
        best = search.objective(0)
        # so that the leaf of the optimum is split to its end
        monkeypatch.setattr(search, "objective", lambda level, least=best - 1: least)
        _, tree = grown(search)
        proven = checked(snapshot, search, tree)
        assert proven is None or best <= proven <= tree.bound, seed
        written.append(tree.certificate().model_dump_json())
    assert any('"start"' in text for text in written)
    assert any('"ref"' in text for text in written)
    assert any('"cover"' in text for text in written)


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_lowers_the_bound_on_machines_of_some_size(seed: int) -> None:
    snapshot = mid_size_snapshot(seed)
    search = solved(PlacementProblem(prepare(snapshot), MODES[seed % 3]))
    best = search.objective(0)
    root, tree = grown(search)
    assert root.bound is not None
    assert best <= root.bound <= (root.bounded.value.certified or 0)
    assert tree.highest() is None or root.bound > best
    proven = checked(snapshot, search, tree)
    assert proven is not None
    assert best <= proven <= tree.bound


def queue_of_alike(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with a few requests of almost the same size, and some others."""
    usable = max(4, sum(r.nodes for r in snapshot.queue) // 3)
    sizes = [max(1, usable // 3 - rng.randint(0, 1)) for _ in range(3)] + [max(1, usable // 6), 1]
    queue = [
        snapshot.queue[0].model_copy(
            update={"id": f"q{k}", "nodes": size, "shapes": None, "region": None}
        )
        for k, size in enumerate(sizes)
    ]
    return snapshot.model_copy(update={"queue": queue})


@pytest.mark.parametrize(
    "chunk", [*range(4), *(pytest.param(k, marks=pytest.mark.slow) for k in (4, 5))]
)
def test_a_tree_that_asks_for_places_first_bounds_all_placements(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topoplace.placement.exact.dominance._LEAST_SHARE", 0.7)
    monkeypatch.setattr(Leaf, "leaves", lowest_leaves)
    written: list[str] = []
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        rng = random.Random(f"alike-{seed}")
        snapshot = random_snapshot(rng, 30)
        if not snapshot.queue:
            continue
        snapshot = queue_of_alike(rng, snapshot)
        search = solved(PlacementProblem(prepare(snapshot), MODES[seed % 3]))
        best = search.objective(0)
        root = rooted(search)
        relaxation, master = search.relaxation, search.master
        # so that the leaf of the optimum is split to its end
        trees = Trees(relaxation, master, root.bounded, lambda least=best - 1: least)
        places = trees.ask_places()
        places.run(time.perf_counter() + LONGEST)
        certificate = places.certificate()
        assert places.bound >= best, seed
        instance = read_instance(snapshot, search.problem.interference)
        proven = certified_bound(TorusOracle(instance), certificate, [])
        assert proven is None or best <= proven.value <= places.bound, seed
        written.append(certificate.model_dump_json())
    assert any('"alike":[["' in text and '"cover"' in text for text in written)
    below = re.compile(r'"kind":"cover"[^{]*"inside":\{"kind":"start"')
    assert any(below.search(text) for text in written)


def snapshots_of_several_classes(first: int, number: int) -> Iterator[tuple[int, Snapshot]]:
    """Yield random snapshots whose queues ask for nodes of more than one class, and their seeds."""
    for seed in itertools.count(first):
        snapshot = random_snapshot(random.Random(f"parts-{seed}"), 30)
        if len({request.class_idx for request in prepare(snapshot).queue}) > 1:
            yield seed, snapshot
            number -= 1
        if not number:
            return


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_classes_of_a_queue_by_themselves_bound_all_placements(chunk: int) -> None:
    closed = 0
    for seed, snapshot in snapshots_of_several_classes(1000 * chunk, PER_CHUNK):
        search = solved(PlacementProblem(prepare(snapshot), MODES[seed % 3]))
        best = search.objective(0)
        parts = ClassDecomposition(search, rooted(search).bounded)
        parts.run(time.perf_counter() + 2.0)
        assert parts.bound >= best, seed
        certificate = parts.certificate()
        names = [name for part in certificate.parts for name in part.requests]
        assert sorted(names) == sorted(request.id for request in snapshot.queue)
        assert len(certificate.parts) > 1
        instance = read_instance(snapshot, search.problem.interference)
        proven = certified_bound(TorusOracle(instance), certificate, [])
        assert proven is not None
        assert best <= proven.value <= parts.bound, seed
        closed += proven.value == best
    assert closed > PER_CHUNK // 3


def test_a_queue_of_one_class_asks_for_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topoplace.placement.exact.bound_search._STARTS_ALONE", 0.0)
    monkeypatch.setattr("topoplace.placement.exact.bound_search._PLACES_NEAR", 10.0)
    asked = 0
    for seed in range(40):
        snapshot = random_snapshot(random.Random(f"one-class-{seed}"), 30)
        problem = PlacementProblem(prepare(snapshot), MODES[seed % 3])
        if len({request.class_idx for request in problem.requests}) != 1:
            continue
        search = ExactSearch(problem, Options(time_limit=60))
        root = rooted(search)
        if (root.bound or 0) <= search.objective(0):
            continue
        bounding = BoundSearch(search, root)
        bounding.run(time.perf_counter() + LONGEST)
        assert bounding.asks_places or bounding.bound <= search.objective(0), seed
        asked += bounding.asks_places
    assert asked
