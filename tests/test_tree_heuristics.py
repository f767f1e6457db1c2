"""The published allocators: their papers' examples, a real Slurm's decisions, and their form."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest

from real_files import real_file
from topoplace.formats.slurm.topology import read_slurm_topology
from topoplace.machine.hierarchy import Hierarchy
from topoplace.placement.switches.allocators import balanced_counts, registered_allocator
from topoplace.placement.switches.cost import CostModel, communication_ratio
from topoplace.placement.switches.occupancy import Occupancy
from topoplace.snapshot.hierarchy_state import HierarchyRequest, hierarchy_of
from topoplace.snapshot.schema import Pattern
from topoplace.solving import methods
from tree_cases import HEURISTICS, built, random_tree, two_level, uses

RD = tuple(uses(Pattern.RECURSIVE_DOUBLING))


def occupancy_of(tree: Hierarchy, free: list[int], comm: list[int] | None = None) -> Occupancy:
    """Return a state with so many free nodes on each leaf, the last ones, the others busy."""
    sizes = tree.leaf_sizes
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(tree.num_nodes) - first[tree.leaf_of]
    busy = sizes - np.array(free)
    is_free = place >= busy[tree.leaf_of]
    return Occupancy(CostModel(tree), is_free, busy, busy if comm is None else np.array(comm))


def request_of(nodes: int, intensive: bool = True) -> HierarchyRequest:
    return HierarchyRequest("q", nodes, 1, (), RD if intensive else ())


def chosen(name: str, occupancy: Occupancy, request: HierarchyRequest) -> np.ndarray | None:
    allocator = registered_allocator(methods("allocation")[name].name)
    assert allocator is not None
    return allocator(occupancy, request, np.random.default_rng(0))


def counts_by_leaf(name: str, occupancy: Occupancy, request: HierarchyRequest) -> dict[int, int]:
    """Return nodes per leaf, in the order of the ranks."""
    nodes = chosen(name, occupancy, request)
    assert nodes is not None
    return dict(Counter(occupancy.machine.leaf_of[nodes].tolist()))


def test_table_2() -> None:
    free = [160, 150, 100, 80, 70, 50, 40]
    wanted = [128, 128, 64, 64, 64, 32, 32]
    assert balanced_counts(free, 512) == list(enumerate(wanted))
    shuffled = [4, 0, 6, 2, 1, 5, 3]
    occupancy = occupancy_of(two_level([200] * 7), [free[k] for k in shuffled])
    found = counts_by_leaf("balanced", occupancy, request_of(512))
    assert found == {shuffled.index(k): wanted[k] for k in range(7)}


@pytest.mark.parametrize("seed", range(50))
def test_balanced_is_the_printed_algorithm(seed: int) -> None:
    rng = random.Random(seed)
    free = sorted((rng.randint(1, 40) for _ in range(rng.randint(1, 9))), reverse=True)
    wanted = rng.randint(1, sum(free))
    per_leaf, size, rest = [0] * len(free), wanted, wanted
    for i, there in enumerate(free):
        while size > there:
            size = size // 2
        per_leaf[i] = min(size, rest)
        rest -= per_leaf[i]
    for i in reversed(range(len(free))):
        more = min(free[i] - per_leaf[i], rest)
        per_leaf[i] += more
        rest -= more
    found: Counter[int] = Counter()
    for at, count in balanced_counts(free, wanted):
        found[at] += count
    assert [found[i] for i in range(len(free))] == per_leaf
    assert rest == 0


@pytest.mark.parametrize(("wanted", "switch"), [(4, "s1"), (2, "s0"), (6, "s2")])
@pytest.mark.parametrize("name", HEURISTICS[:-1])
def test_the_lowest_switch_of_section_3_1(name: str, wanted: int, switch: str) -> None:
    tree = built(
        [("s0", ["n0", "n1", "n2", "n3"]), ("s1", ["n4", "n5", "n6", "n7"])], [("s2", ["s0", "s1"])]
    )
    occupancy = occupancy_of(tree, [2, 4])
    below = {"s0": (0,), "s1": (1,), "s2": (0, 1)}[switch]
    leaves = occupancy.leaves_that_fit(wanted)
    assert leaves is not None
    assert tuple(leaves) == below
    assert set(counts_by_leaf(name, occupancy, request_of(wanted))) == set(below)


def test_lowest_level_then_fewest_free_then_first() -> None:
    leaves = [(f"s{k}", [f"n{k}-{i}" for i in range(4)]) for k in range(6)]
    uppers = [("a", ["s0", "s1"]), ("b", ["s2", "s3"]), ("c", ["s4", "s5"])]
    tree = built(leaves, [*uppers, ("root", ["a", "b", "c"])])
    occupancy = occupancy_of(tree, [4, 4, 3, 3, 2, 4])
    for wanted, expected in ((1, [4]), (3, [2]), (4, [0]), (5, [2, 3]), (7, [0, 1])):
        leaves_found = occupancy.leaves_that_fit(wanted)
        assert leaves_found is not None
        assert leaves_found.tolist() == expected
    assert occupancy.leaves_that_fit(21) is None


def test_leaf_order_of_each_allocator() -> None:
    tree = two_level([8, 8, 8, 8])
    occupancy = occupancy_of(tree, [2, 6, 4, 5], comm=[0, 2, 4, 0])
    ratios = [
        communication_ratio(int(c), int(b), 8)
        for c, b in zip(occupancy.comm, occupancy.busy, strict=True)
    ]
    by_ratio = sorted(range(4), key=lambda leaf: ratios[leaf])
    ten = request_of(10)
    assert list(counts_by_leaf("greedy", occupancy, ten)) == by_ratio[:3]
    assert counts_by_leaf("fewest-domains", occupancy, ten) == {1: 6, 2: 4}
    assert counts_by_leaf("balanced", occupancy, ten) == {1: 5, 3: 5}
    assert sorted(counts_by_leaf("default", occupancy, ten).items()) == [(0, 2), (2, 4), (3, 4)]
    idle = request_of(10, intensive=False)
    assert list(counts_by_leaf("greedy", occupancy, idle)) == by_ratio[:1:-1]
    assert list(counts_by_leaf("balanced", occupancy, idle)) == [0, 2, 3]


def test_default_ranks_are_in_node_order_and_others_as_taken() -> None:
    occupancy = occupancy_of(two_level([4, 4, 4]), [3, 2, 4])
    default = chosen("default", occupancy, request_of(8))
    assert default is not None
    assert default.tolist() == sorted(default.tolist())
    balanced = chosen("balanced", occupancy, request_of(8))
    assert balanced is not None
    # Leaves by free nodes: 4, 2 of 3, 2 of 2.
    assert balanced.tolist() == [8, 9, 10, 11, 1, 2, 6, 7]


@pytest.mark.parametrize("intensive", [True, False])
def test_adaptive_takes_the_better_of_the_two(intensive: bool) -> None:
    rng = random.Random(3)
    differ = 0
    for _ in range(60):
        tree = two_level([rng.randint(4, 12) for _ in range(5)])
        free = [rng.randint(0, size) for size in tree.leaf_sizes.tolist()]
        busy = tree.leaf_sizes - free
        occupancy = occupancy_of(tree, free, comm=[rng.randint(0, b) for b in busy.tolist()])
        request = request_of(rng.randint(1, max(1, sum(free))), intensive)
        found = [chosen(name, occupancy, request) for name in ("adaptive", "greedy", "balanced")]
        if any(nodes is None for nodes in found):
            assert found == [None] * 3
            continue
        costs = [occupancy.cost_with(nodes, RD, intensive) for nodes in found if nodes is not None]
        assert costs[0] == (min if intensive else max)(costs[1:])
        differ += costs[1] != costs[2]
    assert differ > 5


def test_the_60_decisions_of_a_real_slurm() -> None:
    tree = hierarchy_of(read_slurm_topology(real_file("slurm_real/topology.conf")))
    number = {name: node for node, name in enumerate(tree.host_names)}
    costs = CostModel(tree)
    decisions = json.loads(real_file("slurm_real/decisions.json").read_text())
    assert len(decisions) == 60
    for decision in decisions:
        free = np.zeros(tree.num_nodes, dtype=bool)
        free[[number[name] for name in decision["free"]]] = True
        busy = np.bincount(tree.leaf_of[~free], minlength=tree.num_leaves)
        nodes = chosen("default", Occupancy(costs, free, busy, busy), request_of(decision["nodes"]))
        assert nodes is not None
        assert [tree.host_names[node] for node in nodes] == decision["chosen"]


@pytest.mark.parametrize("name", HEURISTICS)
def test_jobs_stay_below_common_switches(name: str) -> None:
    rng = random.Random(7)
    for _ in range(60):
        tree = random_tree(rng)
        free = [rng.randint(0, size) for size in tree.leaf_sizes.tolist()]
        occupancy = occupancy_of(tree, free)
        nodes = chosen(name, occupancy, request_of(rng.randint(1, tree.num_nodes)))
        if nodes is not None:
            assert occupancy.cost_with(nodes, RD) >= 0
            after = occupancy.copy()
            after.start(nodes, True)
            assert after.free_per_leaf.sum() == sum(free) - len(nodes)
            after.end(nodes, True)
            assert np.array_equal(after.free, occupancy.free)
            assert np.array_equal(after.comm, occupancy.comm)
