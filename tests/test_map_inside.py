"""The inside bound: above every set of tasks, met by boxes, alike in solver and checker."""

from __future__ import annotations

import math

import numpy as np
import pytest

from baseline_instances import grid, problem_on
from random_grids import random_grid
from topoplace.certify.mapping.blocks import inside_bound as checked_inside_bound
from topoplace.certify.mapping.instance import read_instance
from topoplace.mapping.bounds.losses import inside_bound
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import GridApplication


def room_for(application: GridApplication, *, per_node: int = 1) -> MappingProblem:
    """Return any problem with the application on it."""
    routers = -(-math.prod(application.shape) // per_node)
    return problem_on(application, [routers], tasks_per_node=per_node)


def bytes_inside(problem: MappingProblem, members: IntArray) -> IntArray:
    """Return the bytes between the members of every set, sets being rows of booleans."""
    graph = problem.graph
    both = members[:, graph.sources] & members[:, graph.targets]
    return np.asarray(both @ graph.bytes)


@pytest.mark.parametrize("seed", range(120))
def test_no_set_keeps_more_bytes_inside(seed: int) -> None:
    problem = room_for(random_grid(np.random.default_rng(seed), 10))
    assert problem.grid is not None
    n = problem.num_tasks
    members = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)
    inside = bytes_inside(problem, members)
    most = np.zeros(n + 1, dtype=np.int64)
    np.maximum.at(most, members.sum(axis=1), inside)
    psi = inside_bound(problem.grid, n)
    assert (psi >= most).all()
    checked = read_instance(problem.instance).grid
    assert checked is not None
    assert psi.tolist() == checked_inside_bound(checked, n).tolist()


@pytest.mark.parametrize(
    ("shape", "periodic", "box"),
    [
        ((9, 9), False, (4, 4)),
        ((9, 9), False, (5, 4)),
        ((9, 5), False, (8, 5)),
        ((6, 6), True, (2, 2)),
        ((6, 6), True, (3, 6)),
        ((6, 4), True, (4, 4)),
        ((5, 6, 7), False, (3, 3, 3)),
        ((5, 6, 7), False, (4, 4, 4)),
        ((6, 6, 6), False, (3, 3, 4)),
        ((8, 8, 8), True, (3, 3, 3)),
        ((8, 8, 8), True, (4, 8, 8)),
        ((8, 8, 8), True, (3, 3, 8)),
        ((4, 4, 4, 4), False, (2, 2, 2, 2)),
        ((4, 4, 4, 4), False, (3, 3, 3, 3)),
        ((6, 6, 6, 6), True, (2, 2, 2, 2)),
    ],
)
def test_the_inside_bound_is_met_by_boxes(
    shape: tuple[int, ...], periodic: bool, box: tuple[int, ...]
) -> None:
    problem = room_for(grid(shape, periodic))
    assert problem.grid is not None
    members = (problem.grid.coordinates() < np.asarray(box)).all(axis=1)
    size = int(members.sum())
    psi = inside_bound(problem.grid, size)
    assert psi[size] == bytes_inside(problem, members[None, :])[0]


@pytest.mark.parametrize("seed", range(12))
def test_both_programs_agree_on_larger_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = 2 + seed % 3
    shape = rng.integers(3, 9 if dims < 4 else 6, size=dims).tolist()
    application = GridApplication(
        shape=shape,
        periodic=(rng.random(dims) < 0.5).tolist(),
        bytes=rng.integers(1, 9, size=(dims, 2)).tolist(),
        stencil="full",
        diagonal_bytes=rng.integers(0, 4, size=dims - 1).tolist(),
    )
    problem = room_for(application)
    checked = read_instance(problem.instance).grid
    assert problem.grid is not None
    assert checked is not None
    psi = inside_bound(problem.grid, problem.num_tasks)
    assert psi.tolist() == checked_inside_bound(checked, problem.num_tasks).tolist()
