"""The bounds of certificates against a naive evaluation and against the best placements."""

from __future__ import annotations

import random

import pytest
from pydantic import TypeAdapter

from brute_force import Tiny, brute_force
from naive_bound import Naive
from random_certificates import random_tree
from random_instances import random_snapshot
from topoplace.certify.instance import read_instance
from topoplace.certify.pricing import LARGEST_TABLE, Pricer, SweepPricer
from topoplace.certify.table import TablePricer, table_size
from topoplace.certify.tree import tree_bound
from topoplace.result import Interference, Leaf, Level, Proof, SharedLeaves, StartBranch, Status
from topoplace.result.schema import DEEPEST, CertificateNode

MODES = list(Interference)
NUM_MACHINES = 360


@pytest.mark.parametrize("block", range(6))
def test_bounds_are_those_of_the_naive_evaluation_and_hold(block: int) -> None:
    num_bounds = 0
    for seed in range(block, NUM_MACHINES, 6):
        rng = random.Random(seed)
        snapshot = random_snapshot(rng, max_routers=12)
        mode = MODES[seed // 6 % 3]
        instance = read_instance(snapshot, mode)
        tiny = Tiny(snapshot, mode)
        best = brute_force(snapshot, mode)
        pricers: list[Pricer] = [TablePricer(instance), SweepPricer(instance)]
        for level_idx in range(3):
            earlier = best[:level_idx]
            naive = Naive(tiny, level_idx, earlier)
            tree = random_tree(rng, tiny, level_idx, depth=rng.choice((0, 1, 2, 4)))
            expected = naive.bound(tree, naive.choices, {})
            assert expected is not None
            for pricer in pricers:
                assert tree_bound(instance, pricer, tree, level_idx, earlier) == expected, seed
            assert expected >= best[level_idx], seed
            num_bounds += 1
    assert num_bounds == NUM_MACHINES // 2


def test_the_sweep_agrees_with_the_table_on_machines_too_large_for_naive_evaluation() -> None:
    agreed = 0
    for seed in range(12):
        rng = random.Random(1000 + seed)
        snapshot = random_snapshot(rng, max_routers=60)
        mode = MODES[seed % 3]
        instance = read_instance(snapshot, mode)
        assert table_size(instance) <= LARGEST_TABLE
        tiny = Tiny(snapshot, mode)
        for level_idx in range(3):
            tree = random_tree(rng, tiny, level_idx, depth=2)
            earlier = [0] * level_idx
            found = {
                tree_bound(instance, pricer, tree, level_idx, earlier)
                for pricer in (TablePricer(instance), SweepPricer(instance))
            }
            assert len(found) == 1, seed
            agreed += 1
    assert agreed == 36


def test_the_deepest_tree_can_be_written_and_read() -> None:
    leaf = Leaf(scale=1, router_prices="0*4")
    tree: CertificateNode = leaf
    for k in range(DEEPEST):
        tree = StartBranch(request=f"r{k}", out=leaf, into=tree)
    level = Level(
        name="nodes",
        sense="max",
        status=Status.FEASIBLE,
        objective=0,
        bound=1,
        gap=1.0,
        proof=Proof.CERTIFICATE,
        certificate=SharedLeaves(leaves=[leaf], tree=tree),
    )
    text = f'{{"result": {{"levels": [{level.model_dump_json()}]}}}}'
    whole = TypeAdapter(dict[str, dict[str, list[Level]]]).validate_json(text)
    assert whole["result"]["levels"] == [level]
