"""A method for objects and the bounds in turn, within one time limit; and their result document."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topoplace import clock
from topoplace.mapping.evaluate import evaluate
from topoplace.mapping.objects.bounds import best_bound, load_bound
from topoplace.mapping.objects.problem import ObjectsProblem
from topoplace.mapping.objects.settled import worth_of
from topoplace.result.objects import ObjectsFigures, ObjectsLevel, ObjectsResult, ObjectsSolution
from topoplace.solving import Bound, Method, Options, Outcome, stronger
from topoplace.solving.solve import Frame
from topoplace.types import IntArray

LEVELS = (("hop-bytes", "min"), ("largest-load", "min"))

METHOD_SHARE = 0.6
"""Share of a time limit at which a method ends; bounds have the rest."""


def bounded(problem: ObjectsProblem, method: Method, options: Options) -> Outcome:
    """Map objects by a method, and bound the hop-bytes and the largest load of any mapping."""
    start, limit = clock.now(), options.time_limit
    load = load_bound(problem)
    within = options if limit is None else replace(options, time_limit=METHOD_SHARE * limit)
    options.say(method.name)
    outcome: Outcome = method.solver(problem, within)
    own: list[Bound | None] = [*outcome.bounds, None, None][:2]
    if outcome.solution is None:
        return replace(outcome, bounds=(own[0], stronger(load, own[1])))
    worth = worth_of(problem, outcome.solution)
    bounds = [own[0], stronger(load, own[1])]
    options.report(outcome.solution, worth, bounds)
    options.say("bound")
    if own[0] is None or own[0].value < worth[0]:
        left = None if limit is None else max(0.0, limit - (clock.now() - start))
        bounds[0] = stronger(best_bound(problem, options.seed, left, worth[0]), own[0])
    return replace(outcome, bounds=tuple(bounds))


def _solution(problem: ObjectsProblem, nodes: IntArray) -> ObjectsSolution:
    figures = evaluate(problem.plain, nodes).model_dump()
    largest = problem.largest_load(problem.cells_of(nodes))
    used = len(np.unique(nodes))
    return ObjectsSolution(
        nodes=nodes.tolist(),
        figures=ObjectsFigures(**figures, largest_load=largest, used_nodes=used),
    )


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
    extra=lambda outcome: {"notes": list(outcome.notes)},
    facts=_facts,
)
