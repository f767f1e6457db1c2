"""First fit, best fit and Slurm's own: every request in turn takes a free prism.

Slurm's `topology/torus3d` takes anchored prisms of exactly the size of a request; it was read from
Slurm's `eval_nodes_torus3d.c` and `torus3d_record.c` (version 26.11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.placement.torus.anchored import candidates_of, prisms_of
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.heuristics.prism_search import PrismSearch, Room, search_of
from topoplace.placement.torus.problem import Candidate, PlacementProblem, in_prisms
from topoplace.snapshot.state import QueuedState
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
    return _in_turn(problem, PrismSearch.first, _first_key(problem), [], order, deadline)


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
    return _in_turn(problem, PrismSearch.best, _best_key(problem), started, order, deadline)


Choice = Callable[[int, QueuedState, Room], Candidate | None]
"""Returns a candidate of a request, with one kind of nodes alone, in the free space, if any."""

Key = Callable[[Candidate], Any]
"""By which the least of some candidates of a request is taken."""


def _first_key(problem: PlacementProblem) -> Key:
    """Return by what first fit takes a prism."""

    def key(candidate: Candidate) -> tuple[Any, ...]:
        prism = candidate.prism
        extents = tuple(e - 1 for e in prism.extents)
        value = int(problem.extent_values(candidate.request_idx)[extents])
        return prism.origin, prism.volume, -value, prism.extents

    return key


def _best_key(problem: PlacementProblem) -> Key:
    """Return by what best fit takes a prism."""
    return lambda c: (-problem.shape_score(c), c.prism.extents, c.prism.origin)


def _in_turn(
    problem: PlacementProblem,
    choose: Callable[[PrismSearch, int, QueuedState, Room], Candidate | None],
    key: Key,
    started: Sequence[Candidate],
    order: Sequence[int] | None,
    deadline: float,
) -> list[Candidate]:
    def anchored(idx: int, way: QueuedState, room: Room) -> Candidate | None:
        every = prisms_of(problem)
        found = candidates_of(problem, idx, way)
        found = found[~every.meeting(room.taken)[found]].tolist()
        left = [c for c in (Candidate(idx, every.prisms[k]) for k in found) if room.leaves(c)]
        return min(left, key=key, default=None)

    if problem.is_anchored:
        return placed_in_turn(problem, anchored, started, order, deadline, key)
    chosen = partial(choose, search_of(problem))
    return placed_in_turn(problem, chosen, started, order, deadline, key)


def placed_in_turn(
    problem: PlacementProblem,
    choose: Choice,
    started: Sequence[Candidate] = (),
    order: Sequence[int] | None = None,
    deadline: float = math.inf,
    key: Key | None = None,
) -> list[Candidate]:
    """Return a placement followed by the choices for every other request in turn.

    Parameters
    ----------
    key
        Of a request with several kinds of nodes, the candidate with the least is taken; None:
        that of the first kind that has one.
    order, deadline
        As in `first_fit`.
    """
    room, placed = Room(problem, started), list(started)
    there = {candidate.request_idx for candidate in placed}
    for idx in range(len(problem.requests)) if order is None else order:
        if deadline < math.inf and clock.now() >= deadline:
            break
        ways = () if idx in there else problem.requests[idx].ways
        each = (_chosen(problem, idx, way, room, placed, choose) for way in ways)
        found = (one for one in each if one is not None)
        alone = key is None or len(ways) < 2
        candidate = next(found, None) if alone else min(found, key=key, default=None)
        if candidate is not None:
            room.add(candidate)
            placed.append(candidate)
            there.add(idx)
    return placed


def _chosen(
    problem: PlacementProblem,
    idx: int,
    way: QueuedState,
    room: Room,
    placed: Sequence[Candidate],
    choose: Choice,
) -> Candidate | None:
    """Return the choice for a request: for its segments one after another, for all or none."""
    num_prisms = way.num_prisms
    if num_prisms == 1:
        return choose(idx, way, room)
    within, found = Room(problem, placed), list[Candidate]()
    while len(found) < num_prisms and (one := choose(idx, way, within)) is not None:
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
    placed one after another like requests, all of them or none. Of several kinds of nodes
    (`QueuedState.ways`) a request gets the first one that has room.
    """
    return placed_in_turn(problem, partial(_anchor_for, problem), started, order, deadline)


def _anchor_for(
    problem: PlacementProblem, idx: int, way: QueuedState, room: Room
) -> Candidate | None:
    every, shapes = prisms_of(problem), problem.state.anchored
    nodes = way.segment or way.nodes
    open_to = np.zeros(len(every.prisms), dtype=bool)
    open_to[candidates_of(problem, idx, way)] = True
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
            return _least_blocking(problem, way, found, room, next(larger, None))
    return None


def _least_blocking(
    problem: PlacementProblem,
    way: QueuedState,
    found: Sequence[Candidate],
    room: Room,
    larger: int | None,
) -> Candidate:
    """Return the candidate that meets the fewest free anchors of a shape; of equal ones, the first.

    An anchor is free if the request may have all its nodes except service nodes.
    """
    if larger is None:
        return found[0]
    every = prisms_of(problem)
    anchors = every.listed[larger]
    free = anchors[~every.meeting(_gone(problem, way, room))[anchors]]
    own = [every.numbers[candidate.prism] for candidate in found]
    met = (every.inside[free] @ every.inside[own].T > 0).sum(axis=0)
    return found[int(np.argmin(met))]


def _gone(problem: PlacementProblem, request: QueuedState, room: Room) -> BoolArray:
    """Mark the routers with a node, other than service nodes, that a request cannot have."""
    state = problem.state
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
