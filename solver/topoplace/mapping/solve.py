"""The registry of mapping methods, and the one call that runs any of them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray
from topoplace.mapping.outcome import Bound, MapOptions, MapOutcome, result_of, stronger
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.registered import MODULES
from topoplace.result.mapping import MappingResult

Mapper = Callable[[MappingProblem, MapOptions], MapOutcome]

GIVEN = "given"
"""What stands for the method in the result of a mapping made elsewhere."""

STAGES = ((0.1, 0.4), (1.0, 1.0))
"""Shares of a time limit at which a method, and then the bound, end. A graph's mapping may be
optimal long before its method would stop: then the bound of the first stage says so. Grids have
their bound at once and need no first stage."""


@dataclass(frozen=True)
class MapMethod:
    """A registered mapping method."""

    name: str
    summary: str
    mapper: Mapper
    needs_grid: bool = False


_METHODS: dict[str, MapMethod] = {}


def register(name: str, summary: str, *, needs_grid: bool = False) -> Callable[[Mapper], Mapper]:
    """Return a decorator that registers a mapping method."""

    def add(mapper: Mapper) -> Mapper:
        if name in _METHODS:
            raise ValueError(f"a method named {name} is registered already")
        _METHODS[name] = MapMethod(name, summary, mapper, needs_grid)
        return mapper

    return add


def map_method(name: str) -> MapMethod:
    """Return a mapping method; of those shipped only its own module is imported.

    Raises
    ------
    InputError
        If there is no such method.
    """
    if name not in _METHODS and name in MODULES:
        importlib.import_module(f"topoplace.mapping.methods.{MODULES[name]}")
    if name not in _METHODS:
        raise InputError(f"one of {', '.join(method_names())}", field="method", value=name)
    return _METHODS[name]


def method_names() -> list[str]:
    """Return the names of all mapping methods."""
    return sorted(MODULES.keys() | _METHODS.keys())


def map_methods() -> dict[str, MapMethod]:
    """Return all mapping methods by name."""
    return {name: map_method(name) for name in method_names()}


def map_tasks(
    problem: MappingProblem, method: str = "pencils", options: MapOptions | None = None
) -> MappingResult:
    """Map an application and bound the hop-bytes of any mapping.

    Raises
    ------
    InputError
        If there is no such method, or it needs a grid and the application is none.
    """
    from topoplace.bounds.mapping import best_bound  # noqa: PLC0415 - heavy

    options = options or MapOptions()
    chosen = map_method(method)
    if chosen.needs_grid and problem.grid is None:
        names = [name for name, entry in map_methods().items() if not entry.needs_grid]
        raise InputError(f"a grid, or one of {', '.join(names)}", field="method", value=method)
    start = time.perf_counter()
    bound = best_bound(problem, 0.0)
    options.report(None, None, bound)
    for method_until, bound_until in STAGES if problem.grid is None else STAGES[-1:]:
        outcome = chosen.mapper(problem, _until(options, method_until, start))
        bound = stronger(bound, outcome.bound)
        if outcome.nodes is None:
            continue
        value = hop_bytes(problem, outcome.nodes)
        options.report(outcome.nodes, value, outcome.bound)  # lest an interrupt lose it
        left = _until(options, bound_until if outcome.hit else 1.0, start).time_limit
        bound = _raised(problem, bound, value, left)
        options.report(None, None, bound)  # the next stage may be cut short
        if not outcome.hit or (bound is not None and bound.value >= value):
            break
        options = replace(options, start=outcome.nodes)
    return result_of(problem, outcome, bound, method, options, time.perf_counter() - start)


def _until(options: MapOptions, share: float, start: float) -> MapOptions:
    """Return the options with the time left until a share of the limit is over."""
    if options.time_limit is None:
        return options
    spent = time.perf_counter() - start
    return replace(options, time_limit=max(0.0, share * options.time_limit - spent))


def _raised(
    problem: MappingProblem, bound: Bound | None, value: int, time_limit: float | None
) -> Bound | None:
    """Return a bound, or a higher one that took longer if this one does not prove the value."""
    from topoplace.bounds.mapping import best_bound  # noqa: PLC0415 - heavy

    if bound is not None and bound.value >= value:
        return bound
    return stronger(best_bound(problem, time_limit, value), bound)


def evaluate_mapping(
    problem: MappingProblem, nodes: IntArray, options: MapOptions | None = None
) -> MappingResult:
    """Return the figures of a mapping made elsewhere, and the bound of any mapping."""
    from topoplace.bounds.mapping import best_bound  # noqa: PLC0415 - heavy

    options = options or MapOptions()
    start = time.perf_counter()
    value = hop_bytes(problem, nodes)
    bound = best_bound(problem, 0.0)
    options.report(nodes, value, bound)
    bound = _raised(problem, bound, value, _until(options, 1.0, start).time_limit)
    seconds = time.perf_counter() - start
    return result_of(problem, MapOutcome(nodes), bound, GIVEN, options, seconds)
