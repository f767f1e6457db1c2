"""Switch trees read as hierarchies: fewest switches, fabrics, and which objective counts."""

from __future__ import annotations

import random

import pytest

from tiny_trees import Truth, random_snapshot, random_tree
from topoplace.certify.check import check_document
from topoplace.certify.hierarchy.switches import machine_of_switches
from topoplace.machine.hierarchy import hierarchy_of_switches
from topoplace.snapshot import TreeModel, prepare_any, tree_of
from topoplace.snapshot.schema import TreeObjective
from topoplace.solving import Options, methods, solve

DOMAINS = TreeObjective.DOMAINS
CHUNKS, PER_CHUNK = 4, 75


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_equals_brute_force(chunk: int) -> None:
    for k in range(PER_CHUNK):
        snapshot = random_snapshot(f"domains-{chunk}-{k}")
        state = prepare_any(snapshot)
        result = solve(state, "exact", Options(time_limit=20.0))
        signs = [1 if level.sense == "max" else -1 for level in result.levels]
        found = [s * level.objective for s, level in zip(signs, result.levels, strict=True)]
        assert tuple(found) == Truth(snapshot).best(), snapshot.name
        assert all(level.bound == level.objective for level in result.levels), snapshot.name
        report = check_document(result)
        assert report.verified, (snapshot.name, report.failures)


@pytest.mark.parametrize("objective", list(TreeObjective))
def test_every_method_keeps_to_one_root(objective: TreeObjective) -> None:
    for k in range(40):
        snapshot = random_snapshot(f"methods-{k}")
        truth, state = Truth(snapshot), prepare_any(snapshot, objective)
        best = truth.best()
        for name in methods("hierarchy" if objective is DOMAINS else "allocation"):
            if name in ("minizinc", "slurm-block"):
                continue
            result = solve(state, name, Options(time_limit=5.0))
            assert check_document(result).holds, (snapshot.name, name)
            assert result.objective <= best[0], (snapshot.name, name)
            if name == "exact":
                assert (result.objective, result.bound) == (best[0], best[0]), snapshot.name


def test_both_sides_read_the_same_levels() -> None:
    several = 0
    for k in range(400):
        model = TreeModel.model_validate(random_tree(random.Random(f"levels-{k}")))
        ours, theirs = hierarchy_of_switches(tree_of(model)), machine_of_switches(model)
        assert (ours.levels, ours.fabrics) == (theirs.levels, theirs.fabrics), k
        assert ours.domain_names == theirs.domain_names, k
        assert (ours.domain_of == theirs.domain_of).all(), k
        several += ours.fabrics
    assert 100 < several < 300
