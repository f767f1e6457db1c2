"""Greedy construction of a mapping (Bhatele 2009, automatic mapping framework)."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.compact import compact_routers, distances_from
from topoplace.mapping.graph import IntArray
from topoplace.mapping.growing._kernels import grow
from topoplace.mapping.local_search.arrays import guest_arrays, machine_arrays
from topoplace.mapping.problem import MappingProblem

MOST_LOOKS = 200_000_000
"""Distances computed at most when all free routers are looked at for every task."""


def grow_mapping(problem: MappingProblem) -> IntArray:
    """Return the router of every task: the most connected task next, where it costs least.

    The first task is the one with most bytes, and goes to the middle of the usable routers. Each
    next one is that with most bytes to tasks that are placed; of the free routers (on large
    machines: of those nearest to its heaviest partner) it gets the one that adds the fewest
    hop-bytes, of equal ones that nearest to the middle.

    Distances must be symmetric.
    """
    machine = machine_arrays(problem.machine, problem.capacity)
    guest = guest_arrays(problem.graph)
    rows = np.diff(guest.first)
    owners = np.repeat(np.arange(problem.num_tasks), rows)
    volume = np.zeros(problem.num_tasks, dtype=np.int64)
    np.add.at(volume, owners, guest.weight)
    seeds = np.argsort(-volume, kind="stable")
    usable = np.flatnonzero(problem.capacity)
    _, centre = compact_routers(problem)
    outward = usable[np.argsort(distances_from(problem.machine, centre)[usable], kind="stable")]
    everywhere = len(usable) * len(guest.other) <= MOST_LOOKS
    room = np.minimum(problem.capacity, problem.num_tasks)
    return np.asarray(grow(machine, guest, seeds, outward, room, everywhere), dtype=np.int64)
