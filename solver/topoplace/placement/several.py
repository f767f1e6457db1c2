"""Several placements of one problem as a document: a trade-off between levels, or all optima."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar, get_args

from topoplace.errors import InputError, unknown_name
from topoplace.interrupts import ended_in_time, heeded
from topoplace.kinds import kind_named
from topoplace.packing.budget import Budget
from topoplace.packing.frontier import Point, Step, TradeOff, trade_off
from topoplace.packing.optima import Alternatives, all_optima
from topoplace.packing.problem import PackingProblem
from topoplace.packing.search import Found
from topoplace.placement.engine import Packed, packed
from topoplace.result.base import FRONTIER_SCHEMA, OPTIMA_SCHEMA
from topoplace.result.several import Frontier, Optima
from topoplace.snapshot.machines import AnyState
from topoplace.solving import Incumbent, Options, Outcome
from topoplace.solving.solve import (
    Problem,
    frame_of,
    problem_of,
    require_levels,
    require_no_order,
    versions,
)

MOST_TRADED = 3
STARTED = "started"


class Several(Protocol):
    """What searches find, one after the other."""

    points: list[Point]
    steps: list[Step]

    def copy(self) -> Self:
        """Return what is known now."""


S = TypeVar("S", bound=Several)


def traded_off(
    instance: AnyState | Problem, traded: Sequence[str], options: Options | None = None
) -> Frontier:
    """Return the best placements of two or three levels, and the proof that there are no others.

    Parameters
    ----------
    instance
        A prepared snapshot, or its problem.
    traded
        Names of the levels; of the others anything will do.
    options
        Time limit, rule of interference, seed, and who watches.

    Raises
    ------
    InputError
        If the levels are none of the problem, or too few or many.
    """
    options = options or Options()
    problem = problem_of(instance, options)
    names = _names(problem)
    require_levels(traded, names, problem.kind)
    _require_document_of(problem, Frontier)
    if not 1 < len(set(traded)) == len(traded) <= MOST_TRADED:
        raise InputError("two or three levels", field="levels", value=",".join(traded))
    numbers = sorted(map(names.index, traded))
    return frontier_of(
        problem,
        options,
        TradeOff(tuple(numbers)),
        lambda own, budget, **how: trade_off(own.packing, numbers, budget, **how),
    )


def frontier_of(
    problem: Problem, options: Options, nothing: TradeOff, search: Callable[..., TradeOff]
) -> Frontier:
    """Return what a search finds of the trade-off between levels; see `_searched`."""

    def fields(found: TradeOff, packing: PackingProblem) -> dict[str, Any]:
        boxes = found.boxes()
        return {
            "schema_version": FRONTIER_SCHEMA,
            "traded": [_names(problem)[level] for level in found.traded],
            "complete": not boxes,
            "open": [
                {
                    "worst": _reported(packing, found.traded, worst),
                    "best": _reported(packing, found.traded, best),
                }
                for worst, best in boxes
            ],
        }

    return Frontier(**_searched(problem, options, nothing, search, fields, TradeOff.boxes))


def optima_of(
    instance: AnyState | Problem,
    most: int,
    chosen: Sequence[str] = (),
    distinct: str | None = None,
    options: Options | None = None,
) -> Optima:
    """Return placements that are as good as any other one, and whether these are all.

    Parameters
    ----------
    instance
        A prepared snapshot, or its problem.
    most
        How many are enough.
    chosen
        The first levels of the problem, which count; all by default.
    distinct
        What makes placements distinct: ``started``, on tori and meshes also ``prisms`` (there the
        default) and ``nodes``.
    options
        Time limit, rule of interference, seed, and who watches.

    Raises
    ------
    InputError
        If the levels are not the first of the problem, or its placements are not told apart so.
    """
    options = options or Options()
    problem = problem_of(instance, options)
    names = _names(problem)
    chosen = list(chosen) or names
    require_levels(chosen, names, problem.kind)
    _require_document_of(problem, Optima)
    if chosen != names[: len(chosen)]:
        expected = f"the first of {', '.join(names)}, in this order"
        raise InputError(expected, field="levels", value=",".join(chosen))
    if most < 1:
        raise InputError("at least 1", field="most", value=most)
    places = packed(problem).places
    distinct = distinct or next(iter(places), STARTED)
    if distinct not in (STARTED, *places):
        raise unknown_name(distinct, (STARTED, *places), field="distinct")

    def search(own: Packed, budget: Budget, **how: Any) -> Alternatives:
        place_of = own.places.get(distinct)
        return all_optima(own.packing, len(chosen), most, budget, place_of=place_of, **how)

    def fields(found: Alternatives, packing: PackingProblem) -> dict[str, Any]:
        queued = [q for q in range(len(packing.names)) if q not in packing.worthless]
        return {
            "schema_version": OPTIMA_SCHEMA,
            "chosen": chosen,
            "distinct": distinct,
            "equal": [[packing.names[q] for q in own] for own in packing.equal_groups(queued)],
            "asked": most,
            "complete": found.are_all,
            "rest": None if found.rest is None else _step(packing, names, found.rest),
        }

    def is_open(found: Alternatives) -> bool:
        return not (found.are_all or (found.are_best and len(found.points) >= most))

    nothing = Alternatives(len(chosen))
    return Optima(**_searched(problem, options, nothing, search, fields, is_open))


def _names(problem: Problem) -> list[str]:
    return [name for name, _ in frame_of(problem.kind).levels(problem)]


def _require_document_of(problem: Problem, document: type[Frontier | Optima]) -> None:
    """Raise `InputError` for a problem of a kind, or in an order, that the document is not for."""
    require_no_order(problem, "more than one placement")
    if document is Optima and not all(one.value for one in getattr(problem, "requests", ())):
        expected = "nodes or jobs for all optima where a request has no GPUs"
        raise InputError(expected, field="value", value="gpus")
    problems = get_args(document.model_fields["problem"].annotation)
    if problem.kind not in problems:
        machines = " or ".join(str(kind_named(name).machine) for name in problems)
        expected = f"a machine of kind {machines} for more than one placement"
        raise InputError(expected, field="machine.kind", value=problem.kind)


def _point(problem: Problem, own: Packed, point: Point) -> dict[str, Any]:
    """Return a point as documents have it: its values on all levels, and its solution."""
    return {
        "values": _reported(own.packing, range(len(point.values)), point.values),
        "solution": frame_of(problem.kind).solution(problem, own.solution_of(point.placement)),
    }


def _searched(
    problem: Problem,
    options: Options,
    nothing: S,
    search: Callable[..., S],
    fields: Callable[[S, PackingProblem], dict[str, Any]],
    is_open: Callable[[S], object],
) -> dict[str, Any]:
    """Return the document of what searches find; on the way it shows where they are.

    Parameters
    ----------
    nothing
        What is known before the first search.
    search
        Takes the packing and the budget; `seed`, `report`, `progress` and `say` by name.
    fields
        Returns the fields that other documents of several placements do not have.
    is_open
        Returns whether a longer search might find more.

    Raises
    ------
    Interrupted
        If a signal asked to end and there is no point.
    """
    began = time.perf_counter()
    own, budget = packed(problem), Budget(options.time_limit)
    packing, frame = own.packing, frame_of(problem.kind)
    levels, name = frame.levels(problem), frame.instance(problem).name
    known = nothing
    incumbent = Incumbent(levels, name, "exact")

    def report(now: S) -> None:
        nonlocal known, incumbent
        known = now.copy()
        incumbent = Incumbent(levels, name, f"exact, points {len(now.points)}")

    def progress(found: Found) -> None:
        values = [packing.reported(level, value) for level, value in enumerate(found.values)]
        incumbent.report(found.placement, values)

    def say(phase: str, level: int, bound: int | None) -> None:
        incumbent.say(phase, level, None if bound is None else packing.reported(level, bound))

    def look() -> None:
        if options.watch is not None:
            seconds = time.perf_counter() - began
            options.watch(replace(incumbent.progress(), seconds=seconds))

    def run() -> Outcome:
        how = {"seed": options.seed, "report": report, "progress": progress, "say": say}
        return Outcome(search(own, budget, **how))

    def reported() -> Outcome | None:
        return Outcome(known) if known.points else None

    with heeded():
        found = ended_in_time(run, reported, math.inf, look).solution
        assert isinstance(found, type(nothing))
        seconds = time.perf_counter() - began
        hit = budget.is_over() and bool(is_open(found))
        return {
            "problem": problem.kind,
            "method": "exact",
            "levels": [{"name": name, "sense": sense} for name, sense in levels],
            "seconds": round(seconds, 3),
            "limits": {"time_limit": options.time_limit, "hit": hit, **frame.rule(problem)},
            "seed": options.seed,
            "versions": versions(),
            "points": [_point(problem, own, point) for point in found.points],
            "steps": [_step(packing, _names(problem), step) for step in found.steps],
            "instance": frame.instance(problem),
            **fields(found, packing),
        }


def _step(packing: PackingProblem, names: Sequence[str], step: Step) -> dict[str, Any]:
    """Return a step as documents have it."""
    level = len(step.floors)
    return {
        "required": _reported(packing, range(level), step.floors),
        "level": names[level],
        "bound": packing.reported(level, step.bound.value),
        "certificate": step.bound.certificate,
    }


def _reported(
    packing: PackingProblem, levels: Iterable[int], values: Iterable[float | None]
) -> list[int | None]:
    """Return values of some levels as they are reported; None where there is no limit."""
    return [
        None if value is None or math.isinf(value) else packing.reported(level, int(value))
        for level, value in zip(levels, values, strict=True)
    ]
