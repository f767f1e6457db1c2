"""First fit, best fit and Slurm's own: every request in turn takes a free prism.

Slurm's `topology/torus3d` takes anchored prisms of exactly the size of a request; it was read from
Slurm's `eval_nodes_torus3d.c` and `torus3d_record.c` (version 26.11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.placement.torus.anchored import candidates_of, prisms_of
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.heuristics.prism_search import PrismSearch, Room, search_of
from topoplace.placement.torus.problem import Candidate, PlacementProblem, in_prisms
from topoplace.solving import Options, Outcome, register
from topoplace.types import BoolArray


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
    explanations = explain(problem, started, until) if options.explains else []
    return Outcome(started, time_limit_hit=clock.now() >= until, explanations=explanations)


def slurm_torus3d(
    problem: PlacementProblem,
    order: Sequence[int] | None = None,
    deadline: float = math.inf,
    started: Sequence[Candidate] = (),
) -> list[Candidate]:
    """Return a placement followed by the further requests that Slurm would start, in some order.

    Shapes are listed by their size, equal ones as in the document. A request gets an anchor of the
    first shape of its size that has a free one. It gets the one of these anchors that blocks the
    fewest free anchors of the next larger shape, the first one listed; of equal ones the one that
    comes first, where the anchors of a shape are listed from the seed on in steps, our first
    dimension fastest. Shapes larger than the next do not count, nor do smaller ones. Segments are
    placed one after another like requests, all of them or none.
    """
    return placed_in_turn(problem, partial(_anchor_for, problem), started, order, deadline)


def _anchor_for(problem: PlacementProblem, idx: int, room: Room) -> Candidate | None:
    every, shapes = prisms_of(problem), problem.state.anchored
    nodes = problem.requests[idx].segment or problem.requests[idx].nodes
    open_to = np.zeros(len(every.prisms), dtype=bool)
    open_to[candidates_of(problem, idx)] = True
    open_to &= ~every.meeting(room.taken)
    by_size = sorted(range(len(shapes)), key=lambda k: shapes[k].volume)
    per = problem.torus.nodes_per_router
    for k in by_size:
        if shapes[k].volume * per != nodes:
            continue
        anchors = every.listed[k]
        found = [Candidate(idx, every.prisms[a]) for a in anchors[open_to[anchors]].tolist()]
        found = [candidate for candidate in found if room.leaves(candidate)]
        if found:
            larger = (n for n in by_size if shapes[n].volume > shapes[k].volume)
            return _least_blocking(problem, found, room, next(larger, None))
    return None


def _least_blocking(
    problem: PlacementProblem, found: Sequence[Candidate], room: Room, larger: int | None
) -> Candidate:
    """Return the candidate that meets the fewest free anchors of a shape; of equal ones, the first.

    An anchor is free if the request may have all its nodes except service nodes.
    """
    if larger is None:
        return found[0]
    every = prisms_of(problem)
    anchors = every.listed[larger]
    free = anchors[~every.meeting(_gone(problem, found[0].request_idx, room))[anchors]]
    own = [every.numbers[candidate.prism] for candidate in found]
    met = (every.inside[free] @ every.inside[own].T > 0).sum(axis=0)
    return found[int(np.argmin(met))]


def _gone(problem: PlacementProblem, idx: int, room: Room) -> BoolArray:
    """Mark the routers with a node, other than service nodes, that a request cannot have."""
    state, request = problem.state, problem.requests[idx]
    has = state.usable & state.of_kind(request.class_idx)
    lacks = ((state.node_class >= 0) & ~has).reshape(problem.torus.num_routers, -1).any(axis=1)
    lacks |= room.taken
    if request.region is not None:
        lacks |= ~state.regions[request.region]
    return np.asarray(lacks)


@register("placement", "slurm-torus3d")
def _slurm_torus3d(problem: PlacementProblem, options: Options) -> Outcome:
    if not problem.is_anchored:
        expected = "a machine with anchored prisms for method slurm-torus3d"
        raise InputError(expected, field="machine.anchored", found="none")
    until = clock.deadline(options.time_limit)
    started = slurm_torus3d(problem, deadline=until)
    explanations = explain(problem, started, until) if options.explains else []
    return Outcome(started, time_limit_hit=clock.now() >= until, explanations=explanations)
