"""The method `exact` of repacking, the order in which jobs move, and the form of a plan."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from topoplace.machine import format_node_set
from topoplace.packing.budget import Budget
from topoplace.placement.engine import Packed, solved
from topoplace.placement.torus.outcome import prism_model
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate
from topoplace.placement.torus.repack.packing import RepackPacking
from topoplace.placement.torus.repack.problem import RepackProblem, Seat, of_size
from topoplace.result import Placement
from topoplace.result.placement import Action, RepackLevel, RepackResult, RepackSolution, Step
from topoplace.snapshot.schema import DefragmentInstance, Room
from topoplace.solving import Options, Outcome, register
from topoplace.solving.solve import Frame, called

MOST_SETS = 100_000
"""Sets of suspended jobs that are tried one by one; beyond, their number is not proven least."""

After = Mapping[int, frozenset[int]]
"""By job, those that have to leave before it arrives: itself, if its places overlap."""


def ordered(after: After) -> list[int] | None:
    """Return an order in which each job arrives after all that it waits for, None without one."""
    order: list[int] = []
    left = set(after)
    while left:
        ready = sorted(job for job in left if not after[job] & left)
        if not ready:
            return None
        order += ready
        left -= set(ready)
    return order


def without(after: After, gone: Iterable[int]) -> dict[int, frozenset[int]]:
    """Return which jobs wait for which if some leave at the beginning and arrive at the end."""
    away = frozenset(gone)
    return {job: others - away for job, others in after.items() if job not in away}


def fewest_suspended(after: After) -> tuple[tuple[int, ...], bool]:
    """Return a set of jobs to suspend so that the others have an order.

    Returns
    -------
    The jobs, ascending, and whether it is proven that fewer are not enough.
    """
    core = _cyclic(after)
    tried = 0
    for size in range(len(core) + 1):
        if tried + math.comb(len(core), size) > MOST_SETS:
            break
        tried += math.comb(len(core), size)
        for gone in itertools.combinations(core, size):
            if ordered(without(after, gone)) is not None:
                return gone, True
    gone = tuple(core)
    for job in core:
        fewer = tuple(k for k in gone if k != job)
        if ordered(without(after, fewer)) is not None:
            gone = fewer
    return gone, False


def _cyclic(after: After) -> Sequence[int]:
    """Return the jobs left when those that wait for none, or none waits for, are gone."""
    left = set(after)
    while True:
        waited_for = set().union(*(after[job] for job in left)) if left else set()
        kept = {job for job in left if after[job] & left and job in waited_for}
        if kept == left:
            return sorted(left)
        left = kept


@register("repack", "exact")
def exact(problem: RepackProblem, options: Options) -> Outcome:
    """Find the plan of least cost, proven or as near as the time limit allows."""
    return solved(problem, packed(problem), options, Budget(options.time_limit))


def packed(problem: RepackProblem) -> Packed:
    """Return the problem as a packing."""
    return Packed(RepackPacking(problem), problem.settled)


def waits_for(problem: RepackProblem, seats: list[Seat]) -> After:
    """Return, for each job that moves, those whose present places are in the way of its new one."""
    moved, rows = problem.moved(seats), TorusPacking(problem.emptied).rows_of

    def taken(seat: Seat) -> set[int]:
        return set(rows(Candidate(seat.request_idx, seat.prism)).tolist())

    left = {s.request_idx: taken(problem.stays[s.request_idx]) for s in moved}
    return {
        s.request_idx: frozenset(k for k, rows in left.items() if rows & taken(s)) for s in moved
    }


def _solution(problem: RepackProblem, seats: list[Seat]) -> RepackSolution:
    asked = problem.instance
    if isinstance(asked, DefragmentInstance) and asked.room is Room.PRISM:
        for seat in problem.started(seats):
            problem = of_size(
                problem, problem.emptied.usable_inside(Candidate(seat.request_idx, seat.prism))
            )
    after = waits_for(problem, seats)
    suspended, proven = fewest_suspended(after)
    order = ordered(without(after, suspended))
    assert order is not None, "the others have an order"
    started = sorted(problem.started(seats))
    steps = [
        *((Action.SUSPEND, q) for q in suspended),
        *((Action.MOVE, q) for q in order),
        *((Action.RESUME, q) for q in suspended),
        *((Action.START, seat.request_idx) for seat in started),
    ]
    names = [request.id for request in problem.requests]

    def placement(seat: Seat) -> Placement:
        nodes = format_node_set(np.sort(problem.nodes_of(seat)).tolist())
        return Placement(
            request=names[seat.request_idx], prism=prism_model(seat.prism), nodes=nodes
        )

    return RepackSolution(
        moves=[placement(seat) for seat in sorted(problem.moved(seats))],
        placements=[placement(seat) for seat in started],
        steps=[Step(action=action, job=names[q]) for action, q in steps],
        suspended=[names[q] for q in suspended],
        fewest_suspended=proven,
    )


def _facts(result: RepackResult) -> dict[str, int | None]:
    found = result.solution
    return {
        "started": None if found is None else len(found.placements),
        "queued": len(result.instance.start),
    }


FRAME = Frame(
    lambda problem: problem.levels,
    called,
    RepackProblem.worth,
    RepackResult,
    RepackLevel,
    _solution,
    lambda problem: problem.instance,
    rule=lambda problem: {"interference": problem.interference},
    facts=_facts,
)
