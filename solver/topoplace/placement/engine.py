"""The engine as a method: what it finds and proves of a packing, as it is reported."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from topoplace.errors import InputError
from topoplace.importing import imported
from topoplace.kinds import kind_named
from topoplace.packing.budget import LATER_WORK, Budget
from topoplace.packing.excluding import PlaceOf
from topoplace.packing.problem import PackingProblem
from topoplace.packing.search import Found, Search
from topoplace.placement.order import Later, solved_in_order
from topoplace.snapshot.schema import Order
from topoplace.solving import Bound, Options, Outcome
from topoplace.solving.solve import Problem, frame_of, ordered_in

_ALL_BUT = 0.9
"""Share of a time limit after which a search without a proof was ended by it."""


@dataclass(frozen=True)
class Packed:
    """A problem as a packing.

    Attributes
    ----------
    solution_of
        Turns placements into solutions of the problem.
    places
        What else than who starts may make placements distinct: by name, the place of a candidate.
    later
        Makes what reservations ask for, on machines that have them.
    """

    packing: PackingProblem
    solution_of: Callable[[list[Any]], Any]
    places: Mapping[str, PlaceOf] = field(default_factory=dict)
    later: Callable[[], Later] | None = None


def packed(problem: Problem) -> Packed:
    """Return a problem as a packing, as its method `exact` makes it."""
    module = imported(kind_named(problem.kind).methods["exact"][0])
    found: Packed = module.packed(problem)
    return found


def exact(problem: Problem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    return solved(problem, packed(problem), options, Budget(options.time_limit))


def solved(problem: Problem, own: Packed, options: Options, budget: Budget) -> Outcome:
    """Solve a problem that is a packing."""
    packing, solution_of = own.packing, own.solution_of
    snapshot = ordered_in(problem)
    if snapshot is not None:
        later = None
        if snapshot.order is Order.BACKFILL:
            if own.later is None:
                expected = "value or priority where jobs have links of their own"
                raise InputError(expected, field="order", found="backfill")
            later = own.later()
        return solved_in_order(packing, snapshot, options, budget, solution_of, later)

    def bounds_of(found: Found) -> list[Bound | None]:
        return [
            None if b is None else Bound(packing.reported(level, b.value), b.certificate)
            for level, b in enumerate(found.bounds)
        ]

    def report(found: Found) -> None:
        if not found.is_answer:
            options.report(None, (), bounds_of(found))
            return
        values = [packing.reported(level, value) for level, value in enumerate(found.values)]
        options.report(solution_of(found.placement), values, bounds_of(found))

    def say(phase: str, level: int, bound: int | None) -> None:
        options.say(phase, level, None if bound is None else packing.reported(level, bound))

    names = [name for name, _ in frame_of(problem.kind).levels(problem)]
    required = {names.index(name): value for name, value in options.required.items()}
    found = Search(
        packing,
        budget,
        seed=options.seed,
        num_levels=1 + max(required, default=0) if options.first_level else None,
        later_work=math.inf if required or packing.is_small else LATER_WORK,
        floors={level: packing.reported(level, value) for level, value in required.items()},
        report=report,
        say=say,
    ).run()
    proven = all(
        level in required or (b is not None and b.value == v)
        for level, (b, v) in enumerate(zip(found.bounds, found.values, strict=False))
    )
    hit = not proven and budget.now() - budget.start >= _ALL_BUT * budget.length
    placed = solution_of(found.placement)
    if found.is_answer:
        return Outcome(placed, bounds_of(found), hit, first_level=options.first_level)
    witness = placed if found.reached else None
    return Outcome(None, bounds_of(found), hit, first_level=options.first_level, witness=witness)
