"""A mapping method and a bound in turn, within one time limit; and their result document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from topoplace import clock
from topoplace.errors import InputError
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.evaluate import evaluate, hop_bytes
from topoplace.mapping.link_bounds import bisected, link_load_of
from topoplace.mapping.mapped import Mapped, mapped_by
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import MappingLevel, MappingResult, MappingSolution
from topoplace.solving import Method, Options, Outcome, method_of, methods, stronger
from topoplace.solving.solve import Frame

STAGES = ((0.1, 0.4), (1.0, 1.0))
"""Shares of a time limit at which a method, and then the bound, end. A graph's mapping may be
optimal long before its method would stop: the bound of the first stage then shows this. Grids have
their bound at once and need no first stage."""

BEGIN_BY_DEFAULT = ("auto", "exact", "search")
"""Methods that search: the default mapping is reported before any bound is computed, so that there
is an answer at any time."""

OVERTIME_SECONDS = 0.4
"""Seconds beyond a time limit after which the reported mapping is the answer."""


def bounded(problem: MappingProblem, method: Method, options: Options) -> Outcome:
    """Map an application by a method, and bound the hop-bytes of any mapping.

    Raises `InputError` if the method needs a grid and the application is not one.
    """
    if method.needs_grid and problem.grid is None:
        names = [name for name, entry in methods("mapping").items() if not entry.needs_grid]
        raise InputError(f"a grid, or one of {', '.join(names)}", field="method", value=method.name)
    start = clock.now()
    if method.name in BEGIN_BY_DEFAULT:
        nodes = mapped_by(method_of("mapping", "default").solver, problem, options)
        options.report(Mapped(nodes), [hop_bytes(problem, nodes)])
    bound = best_bound(problem, 0.0)
    options.report(None, [], [bound])
    quick = problem.link_floor
    for method_until, bound_until in STAGES if problem.grid is None else STAGES[-1:]:
        options.say(method.name)
        outcome: Outcome = method.solver(problem, _until(options, method_until, start))
        own = next(iter(outcome.bounds), None)
        bound = stronger(bound, own)
        if outcome.solution is None:
            continue
        value, hit = hop_bytes(problem, outcome.solution.nodes), outcome.time_limit_hit
        options.report(outcome.solution, [value], [own])  # so that an interrupt does not lose it
        options.say("bound")
        if bound is None or bound.value < value:
            left = _until(options, bound_until if hit else 1.0, start).time_limit
            bound = stronger(best_bound(problem, left, value), bound)
        options.report(None, [], [bound])  # the next stage may be cut short
        if not hit or (bound is not None and bound.value >= value):
            break
        options = replace(options, start=outcome.solution.nodes)
    crossing = bisected(problem, options.seed, _until(options, 1.0, start).time_limit)
    return replace(outcome, bounds=(bound,), link_load=stronger(quick, crossing))


def _until(options: Options, share: float, start: float) -> Options:
    """Return the options with the time left until a share of the limit is over."""
    if options.time_limit is None:
        return options
    spent = clock.now() - start
    return replace(options, time_limit=max(0.0, share * options.time_limit - spent))


def _solution(problem: MappingProblem, mapped: Mapped) -> MappingSolution:
    return MappingSolution(
        nodes=mapped.nodes.tolist(),
        figures=evaluate(problem, mapped.nodes),
        layout=mapped.layout,
        optimum=mapped.optimum,
    )


def _extra(problem: MappingProblem, outcome: Outcome) -> dict[str, Any]:
    load = link_load_of(problem, outcome)
    return {"notes": list(outcome.notes), "link_load": load}


def _facts(result: MappingResult) -> dict[str, int | None]:
    return {"max hops": None if result.solution is None else result.solution.figures.max_hops}


FRAME = Frame(
    lambda problem: (("hop-bytes", "min"),),
    bounded,
    lambda problem, mapped: [hop_bytes(problem, mapped.nodes)],
    MappingResult,
    MappingLevel,
    _solution,
    lambda problem: problem.instance,
    extra=_extra,
    facts=_facts,
    overtime=OVERTIME_SECONDS,
)
