"""The method `exact` of moves, and the form of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from operator import attrgetter

from topoplace.placement.engine import Packed, exact
from topoplace.placement.repack.order import Changes, ordered
from topoplace.placement.repack.packing import RepackPacking
from topoplace.placement.repack.problem import ENDS, GOES, STAYS, RepackProblem, Seat
from topoplace.result.placement import Action, RepackLevel, RepackResult, RepackSolution, Step
from topoplace.solving import register
from topoplace.solving.solve import Frame

register("repack", "exact")(exact)


def packed(problem: RepackProblem) -> Packed:
    """Return the problem as a packing."""
    return Packed(RepackPacking(problem), problem.exact)


def changes_of(problem: RepackProblem, seats: list[Seat]) -> Changes:
    """Return what jobs that move take before and after, and what others leave of it."""
    site, moved = problem.site, problem.changed(seats, GOES)
    new = {s.request_idx: site.taken(s.request_idx, s.place) for s in moved}
    old = {q: site.taken(q, site.own[q]) for q in new}
    held: Counter[Hashable] = Counter()
    for seat in problem.changed(seats, STAYS):
        held.update(site.taken(seat.request_idx, seat.place))
    every = {of for taken in (*old.values(), *new.values()) for of in taken}
    return Changes(old, new, {of: site.left(of) - held[of] for of in every})


def _solution(problem: RepackProblem, seats: list[Seat]) -> RepackSolution:
    names, site = problem.site.names, problem.site
    order, suspended, proven = ordered(changes_of(problem, seats))
    started = sorted(problem.started(seats))
    ended = [s.request_idx for s in sorted(problem.changed(seats, ENDS))]
    steps = [
        *((Action.END, q) for q in ended),
        *((Action.SUSPEND, q) for q in suspended),
        *((Action.MOVE, q) for q in order),
        *((Action.RESUME, q) for q in suspended),
        *((Action.START, seat.request_idx) for seat in started),
    ]
    return RepackSolution(
        moves=[
            site.placement(s.request_idx, s.place) for s in sorted(problem.changed(seats, GOES))
        ],
        placements=[site.placement(s.request_idx, s.place) for s in started],
        ended=[names[q] for q in ended],
        steps=[Step(action=action, job=names[q]) for action, q in steps],
        suspended=[names[q] for q in suspended],
        fewest_suspended=proven,
    )


def _facts(result: RepackResult) -> dict[str, int | None]:
    found = result.solution
    return {
        "started": None if found is None else len(found.placements),
        "queued": len(result.instance.start) + len(result.instance.replace),
    }


FRAME = Frame(
    RepackProblem.worth,
    RepackResult,
    RepackLevel,
    _solution,
    instance=attrgetter("instance"),
    rule=lambda problem: {"interference": problem.interference},
    facts=_facts,
)
