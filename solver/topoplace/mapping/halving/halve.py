"""Dual recursive bipartitioning: machine and graph are halved together."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.compact import compact_routers
from topoplace.mapping.graph import IntArray
from topoplace.mapping.halving._descent import descend
from topoplace.mapping.local_search.arrays import guest_arrays, machine_arrays
from topoplace.mapping.positions import positions
from topoplace.mapping.problem import MappingProblem


def halve_mapping(problem: MappingProblem, *, seed: int = 0) -> IntArray:
    """Return the router of every task by recursive bisection of machine and graph.

    The routers (of more than are needed, a compact set) are cut across their longest side, and
    the tasks by multilevel Fiduccia-Mattheyses refinement, such that the bytes cut times the
    distance of the halves, and the bytes to tasks elsewhere times the distances to them, are
    least. The scheme is Pellegrini 1994, "Static mapping by dual recursive bipartitioning".

    Distances must be symmetric.
    """
    coordinates, rings = positions(problem.machine)
    chosen, _ = compact_routers(problem)
    room = np.minimum(problem.capacity, problem.num_tasks)
    # the generator's state must not be 0
    random = np.random.default_rng(seed).integers(1, 1 << 63, size=1, dtype=np.uint64)
    found = descend(
        machine_arrays(problem.machine, problem.capacity),
        guest_arrays(problem.graph),
        coordinates,
        rings,
        room,
        np.sort(chosen),
        random,
    )
    return np.asarray(found, dtype=np.int64)
