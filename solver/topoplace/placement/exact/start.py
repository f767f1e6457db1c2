"""A placement to start from."""

from __future__ import annotations

from collections.abc import Iterable

from topoplace.placement.heuristics.best_fit import best_fit
from topoplace.placement.heuristics.first_fit import first_fit
from topoplace.placement.problem import Candidate, PlacementProblem


def heuristic_start(problem: PlacementProblem) -> list[Candidate]:
    """Return the best of the prism heuristics, in queue order and largest value first."""
    largest = sorted(range(len(problem.requests)), key=lambda i: -problem.requests[i].value)
    starts = [
        method(problem, order) for order in (None, largest) for method in (best_fit, first_fit)
    ]

    def totals(started: Iterable[Candidate]) -> list[int]:
        return [sum(level) for level in problem.values_of(list(started)).T.tolist()]

    return sorted(max(starts, key=totals))
