"""Costs on a tree: the worked examples of Mishra 2020, and a slow double loop over the pairs."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from topoplace.errors import InputError
from topoplace.placement.switches.cost import CostModel, communication_ratio, runtime
from topoplace.snapshot.schema import Pattern, PatternUse
from tree_brute_force import cost_of
from tree_cases import built, random_tree, two_level


def test_the_worked_example_of_figure_5() -> None:
    tree = two_level([4, 4])
    assert [tree.node_hops(0, 1), tree.node_hops(0, 4)] == [2, 4]
    job1, job2 = [0, 1, 4, 5], [2, 3]
    comm = np.bincount(tree.leaf_of[job1 + job2])
    model = CostModel(tree)
    assert Fraction(int(model.scaled_hops(0, 0, comm)), model.scale) == 4
    assert Fraction(int(model.scaled_hops(0, 1, comm)), model.scale) == Fraction(23, 2)
    # Recursive doubling: the first step stays on the leaves, the second crosses.
    cost = model.pattern_cost(Pattern.RECURSIVE_DOUBLING, tree.leaf_of[job1], comm)
    assert cost == 4 + Fraction(23, 2)


@pytest.mark.parametrize("seed", range(150))
def test_cost_is_that_of_a_slow_double_loop(seed: int) -> None:
    rng = random.Random(seed)
    tree = random_tree(rng)
    comm = [rng.randint(0, size) for size in tree.leaf_sizes.tolist()]
    nodes = rng.sample(range(tree.num_nodes), rng.randint(1, tree.num_nodes))
    uses = [
        PatternUse(
            pattern=pattern, share=rng.randint(1, 50), message_bytes=rng.choice([1, 7, 10**6])
        )
        for pattern in rng.sample(list(Pattern), 2)
    ]
    found = CostModel(tree).job_cost(uses, tree.leaf_of[nodes], np.array(comm))
    assert found == cost_of(tree, comm, uses, tree.leaf_of[nodes].tolist())


def test_large_common_denominators_stay_exact() -> None:
    sizes = [37, 41, 43, 47, 53, 59, 61, 67, 71, 73]
    tree = two_level(sizes)
    comm = [size - 3 * k for k, size in enumerate(sizes)]
    nodes = list(range(0, tree.num_nodes, 9))
    model = CostModel(tree)
    assert model.scale > 1 << 63
    uses = [PatternUse(pattern=Pattern.RECURSIVE_DOUBLING)]
    found = model.job_cost(uses, tree.leaf_of[nodes], np.array(comm))
    assert found == cost_of(tree, comm, uses, tree.leaf_of[nodes].tolist())


def test_leaves_without_a_common_switch() -> None:
    tree = built([(f"s{k}", [f"n{k}"]) for k in range(3)], [("a", ["s0", "s1"])])
    model = CostModel(tree)
    comm = np.ones(3, dtype=np.int64)
    # Ranks 0 and 2 do not talk, but the job is on both leaves.
    with pytest.raises(InputError, match=r"below a common switch.*s0, s2"):
        model.job_cost([PatternUse(pattern=Pattern.STENCIL_2D)], np.arange(3), comm)


def test_communication_ratio() -> None:
    assert communication_ratio(comm=3, busy=6, nodes=8) == Fraction(1, 2) + Fraction(3, 4)
    assert communication_ratio(comm=0, busy=0, nodes=8) == 0
    assert communication_ratio(comm=8, busy=8, nodes=8) == 2


def test_run_time_changes_with_the_cost_of_what_communicates() -> None:
    assert runtime(1000, 50, Fraction(3), Fraction(4)) == 875
    assert runtime(1000, 100, Fraction(1), Fraction(3)) == Fraction(1000, 3)
    assert runtime(1000, 70, Fraction(9, 2), Fraction(9, 2)) == 1000
    assert runtime(1000, 50, Fraction(0), Fraction(0)) == 1000
