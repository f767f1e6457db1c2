"""Several placements of one problem: how they are searched for, and what their documents share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar

from topoplace.interrupts import ended_in_time
from topoplace.packing.budget import Budget
from topoplace.packing.frontier import Point, Step
from topoplace.packing.problem import PackingProblem
from topoplace.packing.search import Found
from topoplace.placement.engine import Packed, packed
from topoplace.solving import Incumbent, Options, Outcome
from topoplace.solving.solve import Problem, frame_of, versions


class Several(Protocol):
    """What searches find, one after the other."""

    points: list[Point]
    steps: list[Step]

    def copy(self) -> Self:
        """Return what is known now."""


S = TypeVar("S", bound=Several)


def searched(
    problem: Problem, options: Options, nothing: S, search: Callable[..., S]
) -> tuple[Packed, S, Budget, float]:
    """Return the problem as a packing, what searches of it find, their budget, and the seconds.

    On the way it shows where they are.

    Parameters
    ----------
    nothing
        What is known before the first search.
    search
        Takes the packing and the budget; `seed`, `report`, `progress` and `say` by name.

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

    found = ended_in_time(run, reported, math.inf, look).solution
    assert isinstance(found, type(nothing))
    return own, found, budget, time.perf_counter() - began


def fields_of(
    problem: Problem, own: Packed, found: Several, options: Options, seconds: float
) -> dict[str, Any]:
    """Return the fields that documents of several placements share, but for `limits.hit`."""
    packing, frame = own.packing, frame_of(problem.kind)
    levels = frame.levels(problem)
    return {
        "problem": problem.kind,
        "method": "exact",
        "levels": [{"name": name, "sense": sense} for name, sense in levels],
        "seconds": round(seconds, 3),
        "limits": {"time_limit": options.time_limit, **frame.rule(problem)},
        "seed": options.seed,
        "versions": versions(),
        "points": [
            {
                "values": reported(packing, range(len(levels)), point.values),
                "solution": frame.solution(problem, own.solution_of(point.placement)),
            }
            for point in found.points
        ],
        "steps": [step_of(packing, levels, step) for step in found.steps],
        "instance": frame.instance(problem),
    }


def step_of(
    packing: PackingProblem, levels: Sequence[tuple[str, str]], step: Step
) -> dict[str, Any]:
    """Return a step as documents have it."""
    level = len(step.floors)
    return {
        "required": reported(packing, range(level), step.floors),
        "level": levels[level][0],
        "bound": packing.reported(level, step.bound.value),
        "certificate": step.bound.certificate,
    }


def reported(
    packing: PackingProblem, levels: Iterable[int], values: Iterable[float | None]
) -> list[int | None]:
    """Return values of some levels as they are reported; None where there is no limit."""
    return [
        None if value is None or math.isinf(value) else packing.reported(level, int(value))
        for level, value in zip(levels, values, strict=True)
    ]
