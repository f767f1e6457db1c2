"""Every method on random tiny instances, many of them degenerate, against brute force.

A failing case is named by the seed of its instance. `TOPOPLACE_TINY_SEED` chooses others.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import exact_cases
from baseline_instances import hops_between, optimum_of
from brute_force import brute_force
from exact_cases import MODES, reached
from minizinc_cases import HAS_MINIZINC
from tiny_instances import (
    tiny_allocation,
    tiny_mapping,
    tiny_placement,
)
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.machine.levels import LevelMachine
from topoplace.mapping.methods.best import is_installed
from topoplace.mapping.problem import MappingProblem
from topoplace.placement.switches.exact.annealing import best_start, realised
from topoplace.placement.switches.problem import TreeProblem
from topoplace.result import PlacementResult, Status
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.schema import Pattern, PatternUse, SwitchModel, TreeModel
from topoplace.snapshot.tree_state import prepare_tree
from topoplace.solving import Options, methods, solve
from tree_brute_force import least_cost
from tree_cases import snapshot_on
from tree_exact_cases import jobs_of, number

FIRST = os.environ.get("TOPOPLACE_TINY_SEED", "first")
CHUNKS, PER_CHUNK = 2, 20
SLOW_CHUNKS, PER_SLOW_CHUNK = 20, 50
MODELLED = 0.04
"""Share of the placements that MiniZinc solves, too, where it is installed: it takes seconds."""

NO_TIME = (0.0, 0.001, 0.02)
"""Time limits that end a method before it is done, or do not."""


@pytest.fixture(scope="module", autouse=True)
def counts(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """Count what the tests did, and say so at the end."""
    found: Counter[str] = Counter()
    yield found
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print()
        for name, times in sorted(found.items()):
            print(f"{name}: {times}")


def seeds(problem: str, chunk: int, size: int) -> list[str]:
    return [f"{FIRST}-{problem}-{number}" for number in range(chunk * size, (chunk + 1) * size)]


# ---- Jobs on tori -----------------------------------------------------------------------------


def try_placements(chunk: int, size: int, counts: Counter[str]) -> None:
    proven = sum(place_tiny(seed, counts) for seed in seeds("placement", chunk, size))
    assert proven >= size - size // 25


def place_tiny(seed: str, counts: Counter[str]) -> bool:
    """Run all methods, the exact one with and without time; tell whether it proves its optimum."""
    in_time = False
    rng = random.Random(f"options-{seed}")
    snapshot, mode = tiny_placement(seed), rng.choice(MODES)
    modelled = rng.random() < MODELLED and HAS_MINIZINC
    best = brute_force(snapshot, mode)
    counts["placement: instances"] += 1
    for name in methods("placement"):
        if name == "slurm-torus3d" or (name == "minizinc" and not modelled):
            continue  # anchored prisms alone; tiny machines alone
        limits = (None, rng.choice(NO_TIME)) if name == "exact" else (None,)
        for limit in limits:
            result = exact_cases.solve(
                snapshot, mode, name, time_limit=limit, seed=rng.randrange(1 << 31)
            )
            case = (seed, mode, name, limit)
            counts[f"placement: {name}"] += 1
            report = check_document(result)
            assert report.holds, (case, report.failures)
            hold_placement(result, best, case)
            if name == "exact":
                proven = {level.status for level in result.levels} == {Status.OPTIMAL}
                assert limit is not None or reached(result) == best, case
                in_time |= proven and limit is None
                counts["placement: exact, proven"] += proven
            if name == "minizinc" and not result.limits.hit:
                assert reached(result) == best, case
    return in_time


def hold_placement(result: PlacementResult, best: tuple[int, int, int], case: object) -> None:
    """Hold a placement that obeys the rules, and its bounds, against the optimum."""
    solution = result.solution
    if solution is None or not solution.conforming:
        assert result.method not in ("exact", "minizinc"), case
        return
    found = reached(result)
    assert found <= best, case
    for depth, level in enumerate(result.levels):
        if found[:depth] != best[:depth]:
            break  # levels below are of another problem
        if level.bound is not None:
            assert (-level.bound if level.sense == "min" else level.bound) >= best[depth], case
        if level.status is Status.OPTIMAL:
            assert found[depth] == best[depth], case


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_placements(chunk: int, counts: Counter[str]) -> None:
    try_placements(chunk, PER_CHUNK, counts)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(SLOW_CHUNKS))
def test_many_placements(chunk: int, counts: Counter[str]) -> None:
    try_placements(100 + chunk, PER_SLOW_CHUNK, counts)


# ---- Jobs on trees ----------------------------------------------------------------------------


def try_allocations(chunk: int, size: int, counts: Counter[str]) -> None:
    proven = sum(allocate_tiny(seed, counts) for seed in seeds("allocation", chunk, size))
    assert proven >= size - size // 25


def allocate_tiny(seed: str, counts: Counter[str]) -> bool:
    """Run all methods, the exact one with and without time; tell whether it proves its optimum."""
    in_time = False
    rng = random.Random(f"options-{seed}")
    state = prepare_tree(tiny_allocation(seed))
    best = least_cost(state)
    counts["allocation: instances"] += 1
    for name in methods("allocation"):
        for limit in (5.0, rng.choice(NO_TIME)) if name == "exact" else (None,):
            case = (seed, name, limit)
            try:
                result = solve(state, name, Options(limit, seed=rng.randrange(1 << 31)))
            except InputError:  # of switches that overlap, which have no levels
                assert name == "slurm-tree", case
                assert state.tree.roots != ((*range(state.tree.num_leaves),),), case
                continue
            counts[f"allocation: {name}"] += 1
            report = check_document(result)
            assert report.holds, (case, report.failures)
            proven = hold_allocation(result, best, case)
            counts["allocation: exact, proven"] += proven
            if limit == 5.0:
                assert tuple(number(level.objective) for level in result.levels) == best, case
                in_time = proven
    return in_time


def hold_allocation(result: AllocationResult, best: tuple[int, Fraction], case: object) -> bool:
    """Hold an allocation and its bounds against the optimum; tell whether all is proven."""
    nodes, cost = result.levels
    value = number(nodes.objective)
    assert value <= best[0], case
    if nodes.bound is not None:
        assert number(nodes.bound) >= best[0], case
    if nodes.status is Status.OPTIMAL:
        assert value == best[0], case
    if value == best[0]:
        assert number(cost.objective) >= best[1], case
        if cost.bound is not None:
            assert number(cost.bound) <= best[1], case
        if cost.status is Status.OPTIMAL:
            assert number(cost.objective) == best[1], case
    return {nodes.status, cost.status} == {Status.OPTIMAL}


def test_ranks_are_not_moved_among_leaves_that_have_no_common_switch() -> None:
    """Where domains overlap, an allocation on one of them may be what another has to beat."""
    leaves = [SwitchModel(name=f"s{k}", nodes=f"n{k}-[0-{n - 1}]") for k, n in enumerate((2, 4, 2))]
    uppers = [SwitchModel(name=name, switches=f"s{k},s{k + 1}") for k, name in enumerate("ab")]
    machine = TreeModel(kind="tree", name="apart", switches=[*leaves, *uppers])
    patterns = [PatternUse(pattern=Pattern.VECTOR_DOUBLING, share=20, message_bytes=3)]
    state = prepare_tree(snapshot_on(machine, (), [(5, patterns)]))
    jobs = jobs_of(state)
    assert [job.domain.tolist() for job in jobs] == [[0, 1], [1, 2]]
    for job, other in itertools.permutations(jobs):
        start = best_start(other, 0.0, 0)
        assert start is not None
        start[0] = np.setdiff1d(other.domain, job.domain)[0]
        found = realised(job, start, 0, time.perf_counter() + 0.3, 0)
        TreeProblem(state).costs.require_common_switch(found)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_allocations(chunk: int, counts: Counter[str]) -> None:
    try_allocations(chunk, PER_CHUNK, counts)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(SLOW_CHUNKS))
def test_many_allocations(chunk: int, counts: Counter[str]) -> None:
    try_allocations(100 + chunk, PER_SLOW_CHUNK, counts)


# ---- Tasks on routers -------------------------------------------------------------------------

LAYOUTS = ("pencils", "topaware", "blocks", "fold-2d", "random-blocks")
"""Methods for grids that need a grid, and a machine, which their constructions fit."""

LONG = {"tabu": 0.3, "local-search": 0.05, "search": 0.05}
"""Methods whose work is much: shares of the instances for tabu search at all, for others without
a time limit."""


def may_refuse(name: str, problem: MappingProblem) -> bool:
    """Tell whether an instance may be bad input for a method."""
    if name == "scotch":
        return not is_installed() or problem.graph.total_bytes > 1 << 20
    if name == "nested-boxes" and not isinstance(problem.machine, LevelMachine):
        return True
    if name == "local-search":
        numbers = np.arange(problem.machine.num_routers)
        hops = hops_between(problem, numbers)
        return bool((hops != hops.T).any())
    if problem.grid is None:
        return methods("mapping")[name].needs_grid
    return name in LAYOUTS


def limits_of(name: str, rng: random.Random) -> tuple[float | None, ...]:
    """Return the time limits under which a method is tried."""
    short, rare = rng.choice(NO_TIME), rng.random() < LONG.get(name, 0.25)
    if name == "tabu":
        return (short,) if rare else ()
    if name == "exact":
        return None, short
    return (None,) if rare else (short,)


def try_mappings(chunk: int, size: int, counts: Counter[str]) -> None:
    for seed in seeds("mapping", chunk, size):
        problem = tiny_mapping(seed)
        map_tiny(seed, problem, counts)


def map_tiny(seed: str, problem: MappingProblem, counts: Counter[str]) -> None:
    """Run all methods on an instance, with and without time."""
    rng = random.Random(f"options-{seed}")
    best = optimum_of(problem)
    counts["mapping: instances"] += 1
    for name in [
        one for one, own in methods("mapping").items() if one != "given" and "tasks" in own.takes
    ]:
        for limit in limits_of(name, rng):
            case = (seed, name, limit)
            options = Options(time_limit=limit, seed=rng.randrange(1 << 31))
            try:
                result = solve(problem, name, options)
            except InputError:
                assert may_refuse(name, problem), case
                counts[f"mapping: {name}, refused"] += 1
                continue
            counts[f"mapping: {name}"] += 1
            hold_mapping(result, best, case)
            if name == "exact":
                proven = result.status is Status.OPTIMAL
                assert proven or limit is not None, case
                counts["mapping: exact, proven"] += proven
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


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mappings(chunk: int, counts: Counter[str]) -> None:
    try_mappings(chunk, PER_CHUNK, counts)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(SLOW_CHUNKS))
def test_many_mappings(chunk: int, counts: Counter[str]) -> None:
    try_mappings(100 + chunk, PER_SLOW_CHUNK, counts)
