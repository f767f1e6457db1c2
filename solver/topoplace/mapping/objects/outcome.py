"""A method for objects and the bounds in turn, within one time limit; and their result document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.evaluate import evaluate
from topoplace.mapping.link_bounds import bisected, link_load_of
from topoplace.mapping.objects.bounds import (
    cut_seconds,
    load_bound,
    object_cuts_bound,
    shares_bound,
)
from topoplace.mapping.objects.problem import ObjectsProblem
from topoplace.mapping.objects.settled import worth_of
from topoplace.mapping.outcome import OVERTIME_SECONDS
from topoplace.result.objects import ObjectsFigures, ObjectsLevel, ObjectsResult, ObjectsSolution
from topoplace.solving import Bound, Method, Options, Outcome, method_of, stronger
from topoplace.solving.solve import Frame
from topoplace.types import IntArray

LEVELS = (("hop-bytes", "min"), ("largest-load", "min"))

BEGIN_IN_ORDER = ("search", "exact")
"""Methods that begin with the mapping of `in-order`: it is reported before any bound is computed,
so that there is an answer at any time."""

FIRST_SHARE, METHOD_SHARE, WHOLE_SHARE = 0.2, 0.7, 0.97
"""Shares of a time limit at which the first bound and the method end; cuts have the rest. If there
is no time for cuts, the method has nearly all."""

FIGURES = 0.5
"""Estimate of the time of the result's figures, as a multiple of the first bounds."""


def bounded(problem: ObjectsProblem, method: Method, options: Options) -> Outcome:
    """Map objects by a method, and bound the hop-bytes and the largest load of any mapping."""
    start, limit = clock.now(), options.time_limit

    def left(share: float) -> float | None:
        return None if limit is None else max(0.0, share * limit - (clock.now() - start))

    if method.name in BEGIN_IN_ORDER:
        method_of("objects", "in-order").solver(problem, options)
    with_cuts = limit is None or cut_seconds(problem) < (1 - METHOD_SHARE) * limit
    share = METHOD_SHARE if with_cuts else WHOLE_SHARE
    options.say("bound")
    first, load = shares_bound(problem, 0.0), load_bound(problem)
    options.report(None, [], [first])
    first = stronger(shares_bound(problem, left(FIRST_SHARE)), first)
    if problem.tasks is not None:
        first = stronger(best_bound(problem.tasks, 0.0), first)
    options.report(None, [], [first])
    crossing = problem.link_floor
    if not with_cuts and limit:
        share -= FIGURES * (clock.now() - start) / limit
    options.say(method.name)
    outcome: Outcome = method.solver(problem, replace(options, time_limit=left(share)))
    own: list[Bound | None] = [*outcome.bounds, None, None][:2]
    bounds, cuts = [stronger(first, own[0]), None], None
    if outcome.solution is not None:
        bounds[1] = stronger(load, own[1])
        worth = worth_of(problem, outcome.solution)
        options.report(outcome.solution, worth, bounds)
        reached = bounds[0] is not None and bounds[0].value >= worth[0]
        if not reached and not clock.is_stopped():
            options.say("bound")
            cuts = object_cuts_bound(problem, options.seed, left(1.0))
            bounds[0] = stronger(cuts, bounds[0])
            if problem.tasks is not None and not clock.is_stopped():
                more = best_bound(problem.tasks, left(1.0), worth[0])
                bounds[0] = stronger(more, bounds[0])
    crossing = stronger(crossing, bisected(problem, options.seed, left(1.0), cuts))
    return replace(outcome, bounds=tuple(bounds), link_load=crossing)


def _solution(problem: ObjectsProblem, nodes: IntArray) -> ObjectsSolution:
    figures = evaluate(problem, nodes).model_dump()
    largest = problem.largest_load(problem.cells_of(nodes))
    used = len(np.unique(nodes))
    return ObjectsSolution(
        nodes=nodes.tolist(),
        figures=ObjectsFigures(**figures, largest_load=largest, used_nodes=used),
    )


def _extra(problem: ObjectsProblem, outcome: Outcome) -> dict[str, Any]:
    load = link_load_of(problem, outcome)
    return {"notes": list(outcome.notes), "link_load": load}


def _facts(result: ObjectsResult) -> dict[str, int | None]:
    return {"max hops": None if result.solution is None else result.solution.figures.max_hops}


FRAME = Frame(
    lambda problem: LEVELS,
    bounded,
    worth_of,
    ObjectsResult,
    ObjectsLevel,
    _solution,
    lambda problem: problem.instance,
    extra=_extra,
    facts=_facts,
    overtime=OVERTIME_SECONDS,
)
