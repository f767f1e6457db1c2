"""Tasks along Hilbert's curve through the machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from topoplace.mapping.compact import fill
from topoplace.mapping.curves import hilbert_order
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray
from topoplace.mapping.local_search.arrays import Guest, guest_arrays
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.methods._boxes import spread_over_nodes
from topoplace.mapping.positions import positions
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


@register("mapping", "hilbert", "tasks in the best of three orders along Hilbert's curve")
def map_hilbert(problem: MappingProblem, options: Options) -> Outcome:
    """Fill the usable routers in the order of Hilbert's curve (`hilbert_order`).

    Tasks come in rank order, in reverse Cuthill-McKee order, or by a depth-first search along
    the heaviest messages; the best is kept.
    """
    del options
    usable = np.flatnonzero(problem.capacity)
    curve = usable[hilbert_order(positions(problem.machine)[0][usable])]
    found = (
        spread_over_nodes(problem, fill(problem, tasks, curve)) for tasks in _task_orders(problem)
    )
    return outcome_of(min(found, key=lambda nodes: hop_bytes(problem, nodes)))


def _task_orders(problem: MappingProblem) -> Iterator[IntArray]:
    yield np.arange(problem.num_tasks)
    guest = guest_arrays(problem.graph)
    size = (problem.num_tasks, problem.num_tasks)
    rows = csr_array((np.ones(len(guest.other)), guest.other, guest.first), shape=size)
    yield np.asarray(reverse_cuthill_mckee(rows, symmetric_mode=True), dtype=np.int64)
    yield _depth_first(guest)


def _depth_first(guest: Guest) -> IntArray:
    """Return tasks in the order of a depth-first search that takes heavy messages first."""
    num_tasks = len(guest.first) - 1
    owners = np.repeat(np.arange(num_tasks), np.diff(guest.first))
    # ascending, so that the heaviest partner is pushed last and taken first
    partners = guest.other[np.lexsort((guest.weight, owners))].tolist()
    first = guest.first.tolist()
    seen = [False] * num_tasks
    order = []
    for root in range(num_tasks):
        stack = [root]
        while stack:
            task = stack.pop()
            if not seen[task]:
                seen[task] = True
                order.append(task)
                stack.extend(t for t in partners[first[task] : first[task + 1]] if not seen[t])
    return np.asarray(order, dtype=np.int64)
