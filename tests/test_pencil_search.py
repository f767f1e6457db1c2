"""The search over layouts and windows against brute force, its bounds, and Topaware's rule."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from pencil_cases import least_hop_bytes
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.machine import format_node_set
from topoplace.mapping.layouts import cells
from topoplace.mapping.onto import load_places
from topoplace.mapping.pencils.space import admissible_layouts, cell_terms, deepening, window_at
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result import Proof
from topoplace.snapshot.schema import GridApplication, MappingInstance, TorusModel
from topoplace.solving import Options, solve


def problem_of(
    machine: TorusModel, nodes: str, shape: list[int], tasks_per_node: int, **grid: object
) -> MappingProblem:
    document = {"periodic": [False] * len(shape), "bytes": [[8, 8]] * len(shape)} | grid
    instance = MappingInstance(
        schema_version="topoplace.mapping/1",
        name="case",
        machine=machine,
        nodes=nodes,
        tasks_per_node=tasks_per_node,
        application=GridApplication.model_validate({"shape": shape, **document}),
    )
    return prepare_mapping(instance)


def random_problem(rng: random.Random) -> MappingProblem:
    """Return a small machine with unusable routers, and a grid for it."""
    shape = [rng.randint(1, 3), rng.randint(1, 3), rng.randint(3, 5)]
    nodes_per_router = rng.choice([1, 2])
    machine = TorusModel(
        name="small",
        shape=shape,
        wrap=[rng.random() < 0.6 for _ in shape],
        nodes_per_router=nodes_per_router,
    )
    routers = int(np.prod(shape))
    nodes = [n for n in range(routers * nodes_per_router) if rng.random() < 0.94]
    grid = [rng.randint(1, 4), rng.randint(2, 4), rng.randint(2, 4)][rng.choice([0, 0, 1]) :]
    return problem_of(
        machine,
        format_node_set(nodes),
        grid,
        -(-4 // nodes_per_router),
        periodic=[rng.random() < 0.4 for _ in grid],
        bytes=[[rng.randint(1, 9), rng.randint(1, 9)] for _ in grid],
        stencil="full" if rng.random() < 0.3 else "nearest",
        diagonal_bytes=[],
    )


def _least_of_all(problem: MappingProblem) -> int | None:
    """Return the least hop-bytes of all layouts, windows and selections."""
    assert problem.grid is not None
    torus, pencil = problem.torus, problem.torus.num_dims - 1
    layouts = admissible_layouts(problem)
    for depths in deepening(layouts, pencil, torus.shape[pencil], None):
        least: int | None = None
        for layout, depth in zip(layouts, depths, strict=True):
            at = cells(layout, problem.grid)
            terms = cell_terms(torus, problem.graph, at, layout.extents, pencil)
            box = (*layout.extents[:pencil], depth)
            for origin in itertools.product(*map(range, torus.shape)):
                inside = [
                    e <= n and (wraps or o + e <= n)
                    for e, n, o, wraps in zip(box, torus.shape, origin, torus.wrap, strict=True)
                ]
                if not all(inside):
                    continue
                window = window_at(
                    torus, problem.whole_routers, layout.extents, pencil, origin, depth
                )
                if window.feasible:
                    cost = least_hop_bytes(window, terms)
                    least = cost if least is None else min(least, cost)
        if least is not None:
            return least
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
        assert check_document(result).holds, (seed, check_document(result).failures)
        assert result.solution is not None
        optimum = result.solution.optimum
        assert optimum is not None
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
    # Two usable positions of the eight on the one pencil, five apart either way but one.
    machine = TorusModel(name="pencil", shape=[1, 1, 12], wrap=[False] * 3)
    problem = problem_of(machine, "0,11", [2], 1)
    result = solve(problem, "pencils")
    assert result.objective == 2 * 8 * 11
    assert check_document(result).holds
    with pytest.raises(InputError, match="room"):
        solve(problem, "pencils", Options(max_depth=11))


def test_no_layout_is_one_clear_error() -> None:
    machine = TorusModel(name="small", shape=[2, 2, 2])
    problem = problem_of(machine, "0-7", [7], 1)
    for method in ("pencils", "topaware"):
        with pytest.raises(InputError, match="layout"):
            solve(problem, method)


def test_time_limit_leaves_a_bound_without_proof() -> None:
    torus = TorusModel(name="torus", shape=[12, 12, 12])
    usable = np.flatnonzero(np.random.default_rng(3).random(12**3) >= 0.04)
    problem = problem_of(torus, format_node_set(usable.tolist()), [10, 10, 9], 1)
    solve(problem_of(torus, "0-1727", [2], 1), "pencils")  # loads the kernels
    result = solve(problem, "pencils", Options(time_limit=0.3))
    assert result.limits.hit
    assert result.solution is not None
    optimum = result.solution.optimum
    assert optimum is not None
    assert optimum.bound < optimum.objective
    assert optimum.proof is Proof.NONE
    assert check_document(result).holds


def test_blue_waters_layout_and_window() -> None:
    allocation = load_places("blue_waters")
    problem = problem_of(allocation.machine, allocation.node_set, [32, 32, 32], 32)
    result = solve(problem, "pencils")
    assert check_document(result).holds
    assert result.solution is not None
    layout, optimum = result.solution.layout, result.solution.optimum
    assert layout is not None
    assert optimum is not None
    assert layout.partitions == [4, 4, 4]
    assert optimum.objective == optimum.bound
    assert optimum.proof is Proof.SEARCH
    assert optimum.objective == 6 * 7 * 32 * 32 * 8  # every cut plane between cells, one hop
