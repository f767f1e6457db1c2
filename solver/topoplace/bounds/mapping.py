"""The best known lower bound on the hop-bytes of any mapping."""

from __future__ import annotations

import numpy as np

from topoplace.bounds.blocks import blocks_bound
from topoplace.machine import Torus
from topoplace.machine.matrix import MatrixMachine
from topoplace.mapping.outcome import Bound
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import TotalCertificate


def best_bound(problem: MappingProblem) -> Bound | None:
    """Bound the hop-bytes of any mapping of the problem's tasks to its nodes from below.

    Grids get the better of `total_bound` and `blocks_bound`, other graphs the former.

    Returns
    -------
    Bound or None
        The value, in bytes x hops, with its certificate; None if nothing is known.
    """
    found = [total_bound(problem)]
    if problem.grid is not None and isinstance(problem.machine, Torus):
        found.append(blocks_bound(problem, problem.grid))
    known = [bound for bound in found if bound is not None]
    return max(known, key=lambda bound: bound.value, default=None)


def total_bound(problem: MappingProblem) -> Bound | None:
    """Return the sum of all bytes, if every message between two tasks takes a hop.

    So it does where no router takes two tasks (docs/proofs-mapping.md, "Total"), unless a
    matrix has routers at distance 0 from each other.
    """
    if int(problem.capacity.max(initial=0)) > 1:
        return None
    if isinstance(problem.machine, MatrixMachine):
        apart = ~np.eye(problem.machine.num_routers, dtype=bool)
        if not problem.machine.distances[apart].all():
            return None
    return Bound(problem.graph.total_bytes, TotalCertificate())
