"""The bound by all bytes, where every message between two tasks takes a hop."""

from __future__ import annotations

import numpy as np

from topoplace.machine.matrix import MatrixMachine
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import TotalCertificate
from topoplace.solving import Bound


def total_bound(problem: MappingProblem) -> Bound | None:
    """Return the sum of all bytes, if every message between two tasks takes a hop.

    This is the case if no router takes two tasks (docs/proofs/mapping.md, "Total"), unless a matrix
    has routers at distance 0 from each other. Trees and hierarchies have `levels_bound`.
    """
    if int(problem.capacity.max(initial=0)) > 1 or problem.machine.levels is not None:
        return None
    if isinstance(problem.machine, MatrixMachine):
        apart = ~np.eye(problem.machine.num_routers, dtype=bool)
        if not problem.machine.distances[apart].all():
            return None
    return Bound(problem.graph.total_bytes, TotalCertificate())
