"""The inside bound: above every set of tasks, met by boxes, alike in solver and checker."""

from __future__ import annotations

import math

import numpy as np
import pytest

from baseline_instances import grid, problem_on
from random_grids import random_grid
from topoplace.certify.mapping.blocks import inside_bound as checked_inside_bound
from topoplace.certify.mapping.instance import read_instance
from topoplace.mapping.bounds.losses import directions_of, inside_units


def bounds_of(application):
    """Return the application's problem, and its inside bound by the solver and by the checker."""
    problem = problem_on(application, [math.prod(application.shape)])
    checked = read_instance(problem.instance).grid
    directions = directions_of(problem.grid)
    psi = directions.unit * inside_units(directions, problem.num_tasks)
    return problem, psi, checked_inside_bound(checked, problem.num_tasks)


def bytes_inside(problem, members):
    """Return the bytes between the members of every set, sets being rows of booleans."""
    graph = problem.graph
    return (members[:, graph.sources] & members[:, graph.targets]) @ graph.bytes


@pytest.mark.parametrize("seed", range(120))
def test_no_set_keeps_more_bytes_inside(seed):
    problem, psi, checked = bounds_of(random_grid(np.random.default_rng(seed), 10))
    n = problem.num_tasks
    members = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)
    most = np.zeros(n + 1, dtype=np.int64)
    np.maximum.at(most, members.sum(axis=1), bytes_inside(problem, members))
    assert (psi >= most).all()
    assert psi.tolist() == checked.tolist()


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
def test_the_inside_bound_is_met_by_boxes(shape, periodic, box):
    problem, psi, checked = bounds_of(grid(shape, periodic))
    members = (problem.grid.coordinates() < np.asarray(box)).all(axis=1)
    assert psi[members.sum()] == bytes_inside(problem, members[None, :])[0]
    assert psi.tolist() == checked.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_both_programs_agree_on_larger_sets(seed):
    _, psi, checked = bounds_of(random_grid(np.random.default_rng(seed), 1 << 10))
    assert psi.tolist() == checked.tolist()
