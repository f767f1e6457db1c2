"""The bound of a graph in which a grid was recognised: that of the grid, and of the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.bounds.blocks import blocks_bound
from topoplace.mapping.bounds.levels import levels_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.bounds.total import total_bound
from topoplace.mapping.graph import TaskGraph, grid_of, rows_of
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result.mapping import RecognisedCertificate
from topoplace.snapshot.schema import GridApplication
from topoplace.solving import Bound, stronger
from topoplace.types import IntArray


def recognised_bound(problem: MappingProblem) -> Bound | None:
    """Return the bound by the grid that the graph was recognised to be, in bytes x hops.

    None if it is not a grid, or distances differ by direction.
    """
    found = problem.recognised
    if found is None or found.application is None:
        return None
    return bound_through(problem, found.application, found.tasks)


def bound_through(
    problem: MappingProblem, application: GridApplication, tasks: IntArray
) -> Bound | None:
    """Return the bound of a grid between whose tasks the graph has at least as many bytes.

    `tasks` has the task of every cell, row-major. None if distances differ by direction, or bytes
    are too large.
    """
    if not problem.machine.is_symmetric:
        return None
    grid = grid_problem(problem, application)
    if grid is None:
        return None
    below = stronger(total_bound(grid), blocks_bound(grid))
    below = stronger(below, levels_bound(grid, 0.0))
    beyond = replace(problem, graph=_beyond(problem, application, tasks))
    rest = stronger(total_bound(beyond), star_bound(beyond))
    if below is None or rest is None or below.certificate is None or rest.certificate is None:
        return None
    certificate = RecognisedCertificate(
        grid=application, tasks=tasks.tolist(), below=below.certificate, beyond=rest.certificate
    )
    return Bound(below.value + rest.value, certificate)


def grid_problem(problem: MappingProblem, application: GridApplication) -> MappingProblem | None:
    """Return the problem of a grid alone on the places of a problem; None if it is too large."""
    instance = problem.instance.model_copy(update={"application": application, "moves": None})
    try:
        return prepare_mapping(instance)
    except InputError:  # bytes x hops would not be exact
        return None


def _beyond(problem: MappingProblem, application: GridApplication, tasks: IntArray) -> TaskGraph:
    """Return the bytes that the graph has beyond the grid, both ways together."""
    grid, num = grid_of(application).graph(), problem.num_tasks
    has = problem.graph.exchanged
    below = rows_of(
        num,
        np.concatenate([tasks[grid.sources], tasks[grid.targets]]),
        np.concatenate([tasks[grid.targets], tasks[grid.sources]]),
        np.tile(grid.bytes, 2),
    )
    left = has.weight.copy()
    at = np.searchsorted(has.owner * num + has.other, below.owner * num + below.other)
    left[at] -= below.weight
    kept = (has.owner < has.other) & (left > 0)
    return TaskGraph(num, has.owner[kept], has.other[kept].astype(np.int64), left[kept])
