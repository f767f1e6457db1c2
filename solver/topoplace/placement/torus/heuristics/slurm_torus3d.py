"""Slurm's `topology/torus3d`: every request in turn gets an anchored prism of exactly its size.

Read from Slurm's `eval_nodes_torus3d.c` and `torus3d_record.c` (version 26.11).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.placement.torus.anchored import candidates_of, prisms_of
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.heuristics.fits import placed_in_turn
from topoplace.placement.torus.heuristics.prism_search import Room
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.solving import Options, Outcome, register
from topoplace.types import BoolArray


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
    return placed_in_turn(problem, partial(_chosen, problem), started, order, deadline)


def _chosen(problem: PlacementProblem, idx: int, room: Room) -> Candidate | None:
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
    has = state.usable & (state.node_class == request.class_idx)
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
    explanations = explain(problem, started, until)
    return Outcome(started, time_limit_hit=clock.now() >= until, explanations=explanations)
