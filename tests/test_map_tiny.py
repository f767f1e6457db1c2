"""Every mapping method on random tiny instances, many of them degenerate, against brute force.

A failing case is named by the seed of its instance. `TOPOPLACE_TINY_SEED` chooses others.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import numpy as np
import pytest

from baseline_instances import hops_between, optimum_of
from few import few_of
from level_cases import random_levels
from tiny_instances import tiny_mapping
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.machine.levels import LevelMachine
from topoplace.mapping.exact.branch import small_problem
from topoplace.mapping.methods.best import is_installed
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Status
from topoplace.result.mapping import MappingResult
from topoplace.solving import Options, methods, solve

FIRST = os.environ.get("TOPOPLACE_TINY_SEED", "first")
PER_CHUNK = 10

NO_TIME = (0.0, 0.001, 0.02)
"""Time limits that end a method before it is done, or do not."""

LAYOUTS = ("pencils", "topaware", "blocks", "fold-2d", "random-blocks")
"""Methods for grids that need a grid, and a torus or mesh, which their constructions fit."""

LONG = {"tabu": 0.3, "local-search": 0.05, "search": 0.05}
"""Methods whose work is much: shares of the instances for tabu search at all, for others without
a time limit."""


def may_refuse(name: str, problem: MappingProblem) -> bool:
    """Return whether an instance may be bad input for a method."""
    if not problem.takes(methods("mapping")[name]):
        return True
    if name in ("cp-sat", "minizinc"):
        return problem.graph.total_bytes * problem.machine.diameter > 1 << 30
    if name == "scotch":
        return not is_installed() or problem.graph.total_bytes > 1 << 20
    if name in ("nested-boxes", "split-axes"):
        return True
    if name == "local-search":
        numbers = np.arange(problem.machine.num_routers)
        hops = hops_between(problem, numbers)
        return bool((hops != hops.T).any())
    needs_grid = problem.grid is None and methods("mapping")[name].needs_grid
    return needs_grid or (
        name in LAYOUTS and (problem.grid is not None or isinstance(problem.machine, LevelMachine))
    )


def limits_of(name: str, rng: random.Random) -> tuple[float | None, ...]:
    """Return the time limits under which a method is tried."""
    short, rare = rng.choice(NO_TIME), rng.random() < LONG.get(name, 0.25)
    if name == "tabu":
        return (short,) if rare else ()
    if name == "exact":
        return None, short
    return (None,) if rare else (short,)


def map_tiny(seed: str, counts: Counter[str]) -> None:
    """Run all methods on an instance, with and without time."""
    rng = random.Random(f"options-{seed}")
    problem = random_levels(rng) if rng.random() < 0.3 else tiny_mapping(seed)
    best = optimum_of(problem)
    for name in [one for one in methods("mapping") if one != "given"]:
        for limit in limits_of(name, rng):
            case = (seed, name, limit)
            options = Options(time_limit=limit, seed=rng.randrange(1 << 31))
            try:
                result = solve(problem, name, options)
            except InputError:
                assert may_refuse(name, problem), case
                counts[f"{name}, refused"] += 1
                continue
            counts[name] += 1
            hold_mapping(result, best, case)
            if name == "exact":
                proven = result.status is Status.OPTIMAL
                assert proven or limit is not None or small_problem(problem) is None, case
                counts["exact, proven"] += proven
    given = np.repeat(problem.nodes, problem.tasks_per_node)[-problem.num_tasks :]
    hold_mapping(solve(problem, "given", Options(start=given)), best, (seed, "given"))


def hold_mapping(result: MappingResult, best: int, case: object) -> None:
    """Hold a mapping and its bound against the optimum."""
    report = check_document(result)
    assert report.holds, (case, report.failures)
    assert result.bound is None or result.bound <= best, case
    if result.status is Status.OPTIMAL:
        assert result.objective == best, case
    assert result.objective is None or result.objective >= best, case


@pytest.mark.parametrize("chunk", few_of(range(100), 1))
def test_no_method_is_better_than_all_mappings_and_exact_is_the_best(chunk: int) -> None:
    counts: Counter[str] = Counter()
    for number in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        map_tiny(f"{FIRST}-mapping-{number}", counts)
    print(*(f"{name}: {times}" for name, times in sorted(counts.items())), sep="\n")
    assert counts["exact, proven"] > PER_CHUNK, counts
