"""A placement to start from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from topoplace.placement.heuristics.best_fit import best_fit
from topoplace.placement.heuristics.first_fit import first_fit
from topoplace.placement.problem import Candidate, PlacementProblem


def heuristic_start(problem: PlacementProblem) -> list[Candidate]:
    """Return the best of the prism heuristics, in queue order and largest value first."""
    largest = sorted(range(len(problem.requests)), key=lambda i: -problem.requests[i].value)
    starts = [
        method(problem, order) for order in (None, largest) for method in (best_fit, first_fit)
    ]

    def totals(started: Iterable[Candidate]) -> tuple[int, ...]:
        values = np.array([problem.values(c) for c in started]).reshape(-1, 3)
        return tuple(values.sum(axis=0).tolist())

    return sorted(max(starts, key=totals))
