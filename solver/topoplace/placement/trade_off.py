"""The trade-off between levels of a placement, as a document."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from topoplace.errors import InputError
from topoplace.interrupts import ended_in_time, heeded
from topoplace.packing.budget import Budget
from topoplace.packing.frontier import Corner, TradeOff, trade_off
from topoplace.packing.problem import PackingProblem
from topoplace.packing.search import Found
from topoplace.placement.engine import Packed, packed
from topoplace.result.frontier import FRONTIER_SCHEMA, Frontier
from topoplace.snapshot import AnyState
from topoplace.solving import Incumbent, Options, Outcome
from topoplace.solving.solve import (
    Problem,
    frame_of,
    problem_of,
    require_levels,
    versions,
)

MOST_TRADED = 3


def traded_off(
    instance: AnyState | Problem, traded: Sequence[str], options: Options | None = None
) -> Frontier:
    """Return the best placements of two or three levels, and the proof that there are no others.

    Parameters
    ----------
    instance
        A prepared snapshot of a torus, mesh, hierarchy or pod of cubes, or a problem of one.
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
    names = [name for name, _ in frame_of(problem.kind).levels(problem)]
    require_levels(traded, names, problem.kind)
    if not 1 < len(set(traded)) == len(traded) <= MOST_TRADED:
        raise InputError("two or three levels", field="levels", value=",".join(traded))
    numbers = sorted(map(names.index, traded))
    with heeded():
        start = time.perf_counter()
        own, found, hit = _found(problem, numbers, options)
        seconds = time.perf_counter() - start
        return _document(problem, own, found, options, (seconds, hit))


def _found(
    problem: Problem, numbers: Sequence[int], options: Options
) -> tuple[Packed, TradeOff, bool]:
    """Return what the engine finds, and whether it was ended; shows on the way where it is."""
    began = time.perf_counter()
    own, budget = packed(problem), Budget(options.time_limit)
    packing, frame = own.packing, frame_of(problem.kind)
    levels, name = frame.levels(problem), frame.instance(problem).name
    known = TradeOff(tuple(numbers))
    incumbent = Incumbent(levels, name, "exact")

    def report(now: TradeOff) -> None:
        nonlocal known, incumbent
        known = TradeOff(now.traded, [*now.points], [*now.steps])
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
        found = trade_off(
            packing, numbers, budget, seed=options.seed, report=report, progress=progress, say=say
        )
        return Outcome(found)

    outcome = ended_in_time(run, lambda: Outcome(known) if known.points else None, math.inf, look)
    found = outcome.solution
    assert isinstance(found, TradeOff)
    return own, found, budget.is_over() and bool(found.boxes())


def _document(
    problem: Problem, own: Packed, found: TradeOff, options: Options, ended: tuple[float, bool]
) -> Frontier:
    packing, frame = own.packing, frame_of(problem.kind)
    levels, boxes = frame.levels(problem), found.boxes()
    seconds, hit = ended
    document: dict[str, Any] = {
        "schema_version": FRONTIER_SCHEMA,
        "problem": problem.kind,
        "method": "exact",
        "levels": [{"name": name, "sense": sense} for name, sense in levels],
        "traded": [levels[level][0] for level in found.traded],
        "complete": not boxes,
        "seconds": round(seconds, 3),
        "limits": {"time_limit": options.time_limit, "hit": hit, **frame.rule(problem)},
        "seed": options.seed,
        "versions": versions(),
        "points": [
            {
                "values": _reported(packing, range(len(levels)), point.values),
                "solution": frame.solution(problem, own.solution_of(point.placement)),
            }
            for point in found.points
        ],
        "steps": [
            {
                "required": _reported(packing, range(len(step.floors)), step.floors),
                "level": levels[len(step.floors)][0],
                "bound": packing.reported(len(step.floors), step.bound.value),
                "certificate": step.bound.certificate,
            }
            for step in found.steps
        ],
        "open": [
            {
                "worst": _reported(packing, found.traded, worst),
                "best": _reported(packing, found.traded, best),
            }
            for worst, best in boxes
        ],
        "instance": frame.instance(problem),
    }
    return Frontier(**document)


def _reported(
    packing: PackingProblem, levels: Sequence[int], values: Sequence[int | None] | Corner
) -> list[int | None]:
    """Return values of some levels as they are reported; None where there is no limit."""
    return [
        None if value is None or math.isinf(value) else packing.reported(level, int(value))
        for level, value in zip(levels, values, strict=True)
    ]
