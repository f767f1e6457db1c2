"""First fit and best fit: every request in turn takes a free prism."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from topoplace import clock
from topoplace.placement.torus.anchored import candidates_of, prisms_of
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.heuristics.prism_search import PrismSearch, Room, search_of
from topoplace.placement.torus.problem import Candidate, PlacementProblem, in_prisms
from topoplace.solving import Options, Outcome, register


def first_fit(
    problem: PlacementProblem, order: Sequence[int] | None = None, deadline: float = math.inf
) -> list[Candidate]:
    """Place requests one after the other on the first free prism.

    Origins are scanned in row-major order. At the first origin where the request has any
    candidate whose routers and links are still open, it takes the one of the least volume; ties go
    to the best shape score without idle nodes, then to the smallest extents in lexicographic order.
    A request without such a candidate is skipped.

    Requests are tried in an order of queue positions, by default the queue's, and left out after
    the deadline. Returns those started, in the order tried.
    """
    return _in_turn(problem, PrismSearch.first, [], order, deadline)


def best_fit(
    problem: PlacementProblem, order: Sequence[int] | None = None, deadline: float = math.inf
) -> list[Candidate]:
    """Place requests one after the other on their best-scored free prism.

    A request takes, of all its candidates whose routers and links the running jobs and the
    requests before it leave open, the one of the largest `PlacementProblem.shape_score`; ties
    go to the smallest extents, then origin, in lexicographic order. A request without such a
    candidate is skipped. Parameters and answer are those of `first_fit`.
    """
    return fill(problem, [], order, deadline)


def fill(
    problem: PlacementProblem,
    started: Sequence[Candidate],
    order: Sequence[int] | None = None,
    deadline: float = math.inf,
) -> list[Candidate]:
    """Return a placement followed by the candidates that best fit adds to it (see `best_fit`)."""
    return _in_turn(problem, PrismSearch.best, started, order, deadline)


def _in_turn(
    problem: PlacementProblem,
    choose: Callable[[PrismSearch, int, Room], Candidate | None],
    started: Sequence[Candidate],
    order: Sequence[int] | None,
    deadline: float,
) -> list[Candidate]:
    if problem.is_anchored:
        best = choose is PrismSearch.best
        return placed_in_turn(
            problem, lambda idx, room: _anchored(idx, room, best=best), started, order, deadline
        )
    search = search_of(problem)
    return placed_in_turn(
        problem, lambda idx, room: choose(search, idx, room), started, order, deadline
    )


def _anchored(idx: int, room: Room, *, best: bool) -> Candidate | None:
    """Return the prisms that first or best fit takes of the free anchored ones."""
    problem = room.problem
    every = prisms_of(problem)
    found = candidates_of(problem, idx)
    found = found[~every.meeting(room.taken)[found]].tolist()
    left = [c for c in (Candidate(idx, every.prisms[k]) for k in found) if room.leaves(c)]
    if best:
        return max(left, key=problem.shape_score, default=None)
    return min(
        left, key=lambda c: (c.prism.origin, -problem.shape_score(c), c.prism.extents), default=None
    )


def placed_in_turn(
    problem: PlacementProblem,
    choose: Callable[[int, Room], Candidate | None],
    started: Sequence[Candidate] = (),
    order: Sequence[int] | None = None,
    deadline: float = math.inf,
) -> list[Candidate]:
    """Return a placement followed by the choices for every other request in turn.

    Parameters
    ----------
    choose
        Returns a candidate of a request in the free space, None if it gets none.
    order, deadline
        As in `first_fit`.
    """
    room, placed = Room(problem, started), list(started)
    there = {candidate.request_idx for candidate in placed}
    for idx in range(len(problem.requests)) if order is None else order:
        if deadline < math.inf and clock.now() >= deadline:
            break
        candidate = None if idx in there else _chosen(problem, idx, room, placed, choose)
        if candidate is not None:
            room.add(candidate)
            placed.append(candidate)
            there.add(idx)
    return placed


def _chosen(
    problem: PlacementProblem,
    idx: int,
    room: Room,
    placed: Sequence[Candidate],
    choose: Callable[[int, Room], Candidate | None],
) -> Candidate | None:
    """Return the choice for a request: for its segments one after another, for all or none."""
    num_prisms = problem.requests[idx].num_prisms
    if num_prisms == 1:
        return choose(idx, room)
    within, found = Room(problem, placed), list[Candidate]()
    while len(found) < num_prisms and (one := choose(idx, within)) is not None:
        within.add(one)
        found.append(one)
    if len(found) < num_prisms:
        return None
    return in_prisms(idx, [one.prism for one in found])


@register("placement", "first-fit")
def _first_fit(problem: PlacementProblem, options: Options) -> Outcome:
    return _explained(problem, options, first_fit)


@register("placement", "best-fit")
def _best_fit(problem: PlacementProblem, options: Options) -> Outcome:
    return _explained(problem, options, best_fit)


def _explained(
    problem: PlacementProblem, options: Options, place: Callable[..., list[Candidate]]
) -> Outcome:
    until = clock.deadline(options.time_limit)
    started = place(problem, deadline=until)
    explanations = explain(problem, started, until)
    return Outcome(started, time_limit_hit=clock.now() >= until, explanations=explanations)
