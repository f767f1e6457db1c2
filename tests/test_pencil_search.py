"""The search over layouts and windows against brute force, its bounds, and Topaware's rule."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from baseline_instances import grid, problem_on
from pencil_cases import least_hop_bytes
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.machine import format_node_set
from topoplace.mapping.layouts import cells
from topoplace.mapping.onto import load_places
from topoplace.mapping.onto import problem_on as on_places
from topoplace.mapping.pencils.space import admissible_layouts, cell_terms, deepening, window_at
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Proof
from topoplace.result.mapping import ClassOptimum, MappingResult
from topoplace.snapshot.schema import GridApplication
from topoplace.solving import Options, solve


def random_problem(rng: random.Random) -> MappingProblem:
    """Return a small machine with unusable routers, and a grid for it."""
    shape = [rng.randint(1, 3), rng.randint(1, 3), rng.randint(3, 5)]
    per_router = rng.choice([1, 2])
    wrap = [rng.random() < 0.6 for _ in shape]
    nodes = [n for n in range(int(np.prod(shape)) * per_router) if rng.random() < 0.94]
    extents = [rng.randint(1, 4), rng.randint(2, 4), rng.randint(2, 4)][rng.choice([0, 0, 1]) :]
    application = GridApplication(
        shape=extents,
        periodic=[rng.random() < 0.4 for _ in extents],
        bytes=[[rng.randint(1, 9), rng.randint(1, 9)] for _ in extents],
    )
    return problem_on(
        application,
        shape,
        tasks_per_node=-(-4 // per_router),
        wrap=wrap,
        nodes_per_router=per_router,
        nodes=format_node_set(nodes),
    )


def _least_of_all(problem: MappingProblem) -> int | None:
    """Return the least hop-bytes of all layouts, windows and selections."""
    assert problem.grid is not None
    torus, pencil = problem.torus, problem.torus.num_dims - 1
    layouts = admissible_layouts(problem)
    for depths in deepening(layouts, pencil, torus.shape[pencil], None):
        costs = []
        for layout, depth in zip(layouts, depths, strict=True):
            at = cells(layout, problem.grid)
            terms = cell_terms(torus, problem.graph, at, layout.extents, pencil)
            box = (*layout.extents[:pencil], depth)
            for origin in itertools.product(*map(range, torus.shape)):
                sides = zip(box, torus.shape, origin, torus.wrap, strict=True)
                if all(e <= n and (wraps or o + e <= n) for e, n, o, wraps in sides):
                    window = window_at(
                        torus, problem.whole_routers, layout.extents, pencil, origin, depth
                    )
                    if window.feasible:
                        costs.append(least_hop_bytes(window, terms))
        if costs:
            return min(costs)
    return None


def test_search_equals_brute_force_over_all_windows() -> None:
    proven = 0
    for seed in range(60):
        try:
            problem = random_problem(random.Random(f"search-{seed}"))
            least = _least_of_all(problem)
        except InputError:
            continue
        if least is None:
            with pytest.raises(InputError, match="room"):
                solve(problem, "pencils")
            continue
        result = solve(problem, "pencils")
        optimum = optimum_in(result)
        assert optimum.bound <= least <= optimum.objective == result.objective
        if optimum.proof is Proof.SEARCH:
            assert optimum.objective == least, seed
            proven += 1
        topaware = solve(problem, "topaware")
        assert check_document(topaware).holds
        assert topaware.objective is not None
        assert topaware.objective >= optimum.bound
    assert proven >= 25


def test_deepens_until_a_window_is_feasible() -> None:
    # Two usable positions on the one pencil, eleven apart.
    problem = problem_on(grid([2], size=8), [1, 1, 12], wrap=False, nodes="0,11")
    result = solve(problem, "pencils")
    assert result.objective == 2 * 8 * 11
    assert check_document(result).holds
    with pytest.raises(InputError, match="room"):
        solve(problem, "pencils", Options(max_depth=11))


def test_no_layout_is_one_clear_error() -> None:
    for method in ("pencils", "topaware"):
        with pytest.raises(InputError, match="layout"):
            solve(problem_on(grid([7]), [2, 2, 2]), method)


def optimum_in(result: MappingResult) -> ClassOptimum:
    """Return the statement on all windows of a result that the checker accepts."""
    assert check_document(result).holds
    assert result.solution is not None
    assert result.solution.optimum is not None
    return result.solution.optimum


def test_time_limit_leaves_a_bound_without_proof() -> None:
    usable = np.flatnonzero(np.random.default_rng(3).random(12**3) >= 0.04)
    nodes = format_node_set(usable.tolist())
    solve(problem_on(grid([2]), [12] * 3), "pencils")  # loads the kernels
    problem = problem_on(grid([10, 10, 9]), [12] * 3, nodes=nodes)
    result = solve(problem, "pencils", Options(time_limit=0.3))
    optimum = optimum_in(result)
    assert result.limits.hit
    assert optimum.bound < optimum.objective
    assert optimum.proof is Proof.NONE


def test_blue_waters_layout_and_window() -> None:
    result = solve(on_places(load_places("blue_waters"), grid([32] * 3, size=8), 32), "pencils")
    optimum = optimum_in(result)
    assert result.solution is not None
    assert result.solution.layout is not None
    assert result.solution.layout.partitions == [4, 4, 4]
    assert optimum.proof is Proof.SEARCH
    # every cut plane between cells, one hop
    assert optimum.objective == optimum.bound == 6 * 7 * 32 * 32 * 8
