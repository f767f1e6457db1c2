"""A mapping method and a bound in turn, within one time limit; and their result document."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from topoplace import clock
from topoplace.errors import InputError
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.cuts import cut_seconds, cuts_bound
from topoplace.mapping.bounds.routes import routes_bound
from topoplace.mapping.evaluate import evaluate, hop_bytes, worth_of
from topoplace.mapping.link_bounds import bisected, link_load_of
from topoplace.mapping.mapped import Mapped
from topoplace.mapping.objects.bounds import load_bound, shares_bound
from topoplace.mapping.objects.few_moves import few_moves_bound
from topoplace.mapping.objects.search import evened
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.spread.search import bounded as keeping_together
from topoplace.result.mapping import CUT_TASKS, MappingLevel, MappingResult, MappingSolution
from topoplace.solving import Bound, Method, Options, Outcome, method_of, methods, stronger
from topoplace.solving.solve import Frame

STAGES = ((0.1, 0.4), (1.0, 1.0))
"""Shares of a time limit at which a method, and then the bound, end. A graph's mapping may be
optimal long before its method would stop: the bound of the first stage then shows this. Grids have
their bound at once and need no first stage."""

LARGE_SHARE = 0.9
"""Share at which a method ends for graphs of more than `CUT_TASKS`: no bound of them comes near a
mapping, and each takes long."""

LOADED_SHARE, WHOLE_SHARE = 0.7, 0.97
"""Shares at which a method for objects ends: cuts have the rest, if there is time for these."""

LAST_SHARE = 0.96
"""Share of its time after which a method for objects leaves the rest to evening out loads."""

FIRST_SHARE = 0.2
"""Share of a time limit at which the first bound of objects ends."""

FIGURES = 0.5
"""Estimate of the time of the figures of objects, in times of their first bound."""

BEGIN_BY_DEFAULT = ("auto", "exact", "search")
"""Methods that search: the default mapping is reported before any bound is computed, so that there
is an answer at any time, and loads are evened out after them."""

OVERTIME_SECONDS = 0.4
"""Seconds beyond a time limit after which the reported mapping is the answer."""


def bounded(problem: MappingProblem, method: Method, options: Options) -> Outcome:
    """Map an application by a method, and bound the levels of any mapping.

    Raises `InputError` if the method is for mappings of another form.
    """
    if not problem.takes(method):
        names = [name for name, entry in methods("mapping").items() if problem.takes(entry)]
        form = "a grid, or one" if method.needs_grid and problem.of_tasks else "one"
        raise InputError(f"{form} of {', '.join(names)}", field="method", value=method.name)
    if problem.spread:
        return keeping_together(problem, method, options)
    start, capped = clock.now(), problem.instance.cap is not None
    load = load_bound(problem) if capped else None
    if method.name in BEGIN_BY_DEFAULT:
        first = "default" if problem.of_tasks else "in-order"
        first = first if problem.before is None else "given"
        _report(
            problem, options, method_of("mapping", first).solver(problem, options), [None, load]
        )
    bound = None
    if not capped:
        bound, _ = _quick(problem, options, start), problem.link_floor
    cuts, stages = None, _stages(problem, options, start)
    for method_until, bound_until in stages:
        options.say(method.name)
        share = LAST_SHARE * method_until if capped else method_until
        run: Callable[[], Outcome] = partial(method.solver, problem, _until(options, share, start))
        outcome, found = _beside(problem, options, start, run) if capped else (run(), None)
        evens = capped and problem.before is None
        if method.name in BEGIN_BY_DEFAULT and evens and outcome.solution is not None:
            until = _until(options, method_until, start).time_limit
            nodes = evened(problem, outcome.solution.nodes, clock.deadline(until))
            if (nodes != outcome.solution.nodes).any():  # it is no layout any longer
                outcome = replace(outcome, solution=Mapped(nodes))
        own = [*outcome.bounds, None, None]
        bound, load = stronger(stronger(bound, found), own[0]), stronger(load, own[1])
        if outcome.solution is None:
            continue
        value, hit = hop_bytes(problem, outcome.solution.nodes), outcome.time_limit_hit
        _report(problem, options, outcome, [bound, load])  # so that an interrupt does not lose it
        options.say("bound")
        if bound is None or bound.value < value:
            left = _until(options, bound_until if hit else 1.0, start).time_limit
            cuts = _slow(problem, options.seed, left, value)
            bound = stronger(cuts, bound)
        options.report(None, [], [bound])  # the next stage may be cut short
        if not hit or (bound is not None and bound.value >= value):
            break
        options = replace(options, start=outcome.solution.nodes)
    left = _until(options, 1.0, start).time_limit
    crossing = bisected(problem, options.seed, left, None if problem.of_tasks else cuts)
    bounds = (bound, load if outcome.solution is not None else None)[: len(problem.levels)]
    return replace(outcome, bounds=bounds, link_load=stronger(problem.link_floor, crossing))


def _report(
    problem: MappingProblem, options: Options, outcome: Outcome, bounds: list[Bound | None]
) -> None:
    """Report the mapping of an outcome if it has one."""
    if outcome.solution is not None:
        worth = worth_of(problem, outcome.solution.nodes)
        options.report(outcome.solution, worth, bounds[: len(worth)])


def _quick(problem: MappingProblem, options: Options, start: float) -> Bound | None:
    """Return the bound of hop-bytes that takes a moment, and report it."""
    found = best_bound(problem, 0.0) if problem.of_tasks else None
    found = stronger(
        found, few_moves_bound(problem, _until(options, FIRST_SHARE, start).time_limit)
    )
    if problem.instance.cap is not None:
        found = stronger(found, shares_bound(problem, 0.0))
        options.report(None, [], [found])
        found = stronger(found, routes_bound(problem))
    options.report(None, [], [found])
    return found


def _beside(
    problem: MappingProblem, options: Options, start: float, run: Callable[[], Outcome]
) -> tuple[Outcome, Bound | None]:
    """Return what a method for objects finds, and the first bounds, found on the other core."""
    _ = problem.guide  # both need it
    with ThreadPoolExecutor(1) as pool:
        bound = pool.submit(_first, problem, options, start)
        return run(), bound.result()


def _first(problem: MappingProblem, options: Options, start: float) -> Bound | None:
    """Return the better of the first bounds of objects in a share of the time."""
    found = _quick(problem, options, start)
    _ = problem.link_floor
    left = _until(options, FIRST_SHARE, start).time_limit
    found = stronger(shares_bound(problem, left), found)
    left = _until(options, FIRST_SHARE, start).time_limit
    return found if left == 0.0 else stronger(routes_bound(problem, left), found)


def _slow(problem: MappingProblem, seed: int, time_limit: float | None, value: int) -> Bound | None:
    """Return the best bound of hop-bytes in a time, a mapping being in hand."""
    if problem.of_tasks:
        return best_bound(problem, time_limit, value)
    return None if clock.is_stopped() else cuts_bound(problem, time_limit, seed)


def _stages(
    problem: MappingProblem, options: Options, start: float
) -> tuple[tuple[float, float], ...]:
    """Return the shares of a time limit at which a method, and then the bound, end."""
    if problem.of_tasks and problem.grid is None and problem.num_tasks > CUT_TASKS:
        return ((LARGE_SHARE, 1.0),)
    if problem.of_tasks:
        return STAGES if problem.grid is None else STAGES[-1:]
    limit = options.time_limit
    if limit is None or cut_seconds(problem) < (1 - LOADED_SHARE) * limit:
        return ((LOADED_SHARE, 1.0),)
    return ((WHOLE_SHARE - FIGURES * (clock.now() - start) / max(limit, 1e-9), 1.0),)


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
    lambda problem, mapped: worth_of(problem, mapped.nodes),
    MappingResult,
    MappingLevel,
    _solution,
    instance=attrgetter("instance"),
    run=bounded,
    extra=_extra,
    decisive=lambda problem: len(problem.levels) - 1 if problem.spread else 0,
    facts=_facts,
    overtime=OVERTIME_SECONDS,
)
