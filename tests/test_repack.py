"""Which running jobs move: plans equal brute force, are certified, and can be carried out."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tiny_repacks import TinyRepack, fewest_suspended, replayed, tiny_repack
from topoplace.placement.torus.repack.problem import repack_problem
from topoplace.result.repack import RepackResult
from topoplace.solving import Options, solve


@cache
def solved(seed: int) -> RepackResult:
    instance, rule = tiny_repack(seed)
    return solve(repack_problem(instance, rule), "exact", Options(time_limit=60))


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 340), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_plans_equal_brute_force_and_are_certified(seeds: range) -> None:
    kinds: Counter[str] = Counter()
    for seed in seeds:
        result = solved(seed)
        best = TinyRepack(*tiny_repack(seed)).best()
        assert tuple(level.objective for level in result.levels) == best, seed
        assert tuple(level.bound for level in result.levels) == best, seed
        assert result.check().verified, (seed, result.check())
        document = result.model_dump(mode="json", by_alias=True)
        assert replayed(document) == best, seed
        assert result.solution is not None
        assert len(result.solution.suspended) == fewest_suspended(document), seed
        assert result.solution.fewest_suspended
        kinds["all" if best[0] == len(result.instance.start) else "not all"] += 1
        kinds["moves" if best[1] else "no moves"] += 1
        kinds["suspended"] += bool(result.solution.suspended)
    assert min(kinds[k] for k in ("all", "not all", "moves", "no moves")) >= len(seeds) // 8, kinds
    assert kinds["suspended"] >= len(seeds) // 40, kinds
