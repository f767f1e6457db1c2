"""Best fit: every request in turn takes its free prism of the largest shape score."""

from __future__ import annotations

import math
from collections.abc import Sequence

from topoplace import clock
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.heuristics.prism_search import search_of
from topoplace.placement.torus.heuristics.room import Room
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.solving import Options, Outcome, register


def best_fit(
    problem: PlacementProblem, order: Sequence[int] | None = None, deadline: float = math.inf
) -> list[Candidate]:
    """Place requests one after the other on their best-scored free prism.

    A request takes, of all its candidates whose routers and links the running jobs and the
    requests before it leave open, the one of the largest `PlacementProblem.shape_score`; ties
    go to the smallest extents, then origin, in lexicographic order. One without such a candidate
    is passed over.

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
    return fill(problem, [], order, deadline)


def fill(
    problem: PlacementProblem,
    started: Sequence[Candidate],
    order: Sequence[int] | None = None,
    deadline: float = math.inf,
) -> list[Candidate]:
    """Add requests to a placement by best fit.

    Parameters
    ----------
    started
        A placement; it stays as it is.
    order
        Queue positions in the order to try them, those already started are skipped; default the
        queue's.
    deadline
        When to leave out what has not been tried.

    Returns
    -------
    list of Candidate
        `started` followed by the requests added.
    """
    search = search_of(problem)
    room = Room(problem, started)
    placed = list(started)
    there = {candidate.request_idx for candidate in placed}
    for idx in range(len(problem.requests)) if order is None else order:
        if deadline < math.inf and clock.now() >= deadline:
            break
        candidate = None if idx in there else search.best(idx, room)
        if candidate is not None:
            room.add(candidate)
            placed.append(candidate)
            there.add(idx)
    return placed


@register(
    "placement", "best-fit", "prisms in queue order, each the free one of the largest shape score"
)
def _best_fit(problem: PlacementProblem, options: Options) -> Outcome:
    until = clock.deadline(options.time_limit)
    started = best_fit(problem, deadline=until)
    explanations = explain(problem, started, until)
    return Outcome(started, time_limit_hit=clock.now() >= until, explanations=explanations)
