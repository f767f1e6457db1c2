"""A placement to start from."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from topoplace import clock
from topoplace.placement.heuristics.best_fit import best_fit
from topoplace.placement.heuristics.first_fit import first_fit
from topoplace.placement.outcome import worth
from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.solving import Options


def heuristic_start(problem: PlacementProblem, options: Options) -> list[Candidate]:
    """Return the best of the prism heuristics, in queue order and largest value first.

    Each is reported; after the first, none is begun once the clock is stopped.
    """
    largest = sorted(range(len(problem.requests)), key=lambda i: -problem.requests[i].value)
    starts: list[list[Candidate]] = []
    for order, method in itertools.product((None, largest), (best_fit, first_fit)):
        if not starts or not clock.is_stopped():
            starts.append(method(problem, order))
            options.report(starts[-1], [v for v in worth(problem, starts[-1]) if v is not None])

    def totals(started: Iterable[Candidate]) -> list[int]:
        return [sum(level) for level in problem.values_of(list(started)).T.tolist()]

    return sorted(max(starts, key=totals))
