"""First fit: every request in turn takes the first free prism of a fixed scan."""

from __future__ import annotations

import math
from collections.abc import Sequence

from topoplace import clock
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.heuristics.prism_search import search_of
from topoplace.placement.torus.heuristics.room import Room
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.solving import Options, Outcome, register


def first_fit(
    problem: PlacementProblem, order: Sequence[int] | None = None, deadline: float = math.inf
) -> list[Candidate]:
    """Place requests one after the other on the first free prism.

    Origins are scanned in row-major order. At the first origin where the request has any
    candidate whose routers and links are still open, it takes the one of the least volume; ties
    go to the best `PlacementProblem.shape_part`, then to the smallest extents in lexicographic
    order. A request without such a candidate is passed over.

    Parameters
    ----------
    order
        Queue positions in the order to try them; default the queue's.
    deadline
        When to leave out what has not been tried.

    Returns
    -------
    list of Candidate
        The requests started, in the order tried.
    """
    search = search_of(problem)
    room = Room(problem)
    placed: list[Candidate] = []
    for idx in range(len(problem.requests)) if order is None else order:
        if deadline < math.inf and clock.now() >= deadline:
            break
        candidate = search.first(idx, room)
        if candidate is not None:
            room.add(candidate)
            placed.append(candidate)
    return placed


@register(
    "placement", "first-fit", "prisms in queue order, each the first free one in row-major order"
)
def _first_fit(problem: PlacementProblem, options: Options) -> Outcome:
    until = clock.deadline(options.time_limit)
    started = first_fit(problem, deadline=until)
    explanations = explain(problem, started, until)
    return Outcome(started, time_limit_hit=clock.now() >= until, explanations=explanations)
