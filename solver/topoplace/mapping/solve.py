"""The registry of mapping methods, and the one call that runs any of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.outcome import MapOptions, MapOutcome, result_of, stronger
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import MappingResult

Mapper = Callable[[MappingProblem, MapOptions], MapOutcome]


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


def map_methods() -> dict[str, MapMethod]:
    """Return the registered mapping methods by name."""
    import topoplace.mapping.registered  # noqa: F401, PLC0415 - registers; heavy, so only here

    return dict(_METHODS)


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
    known = map_methods()
    if method not in known:
        raise InputError(f"one of {', '.join(known)}", field="method", value=method)
    if known[method].needs_grid and problem.grid is None:
        names = [name for name, entry in known.items() if not entry.needs_grid]
        raise InputError(f"a grid, or one of {', '.join(names)}", field="method", value=method)
    start = time.perf_counter()
    outcome = known[method].mapper(problem, options)
    bound = stronger(best_bound(problem), outcome.bound)
    return result_of(problem, outcome, bound, method, options, time.perf_counter() - start)


def evaluate_mapping(
    problem: MappingProblem, nodes: IntArray, options: MapOptions | None = None
) -> MappingResult:
    """Return the figures of a mapping made elsewhere, and the bound of any mapping."""
    from topoplace.bounds.mapping import best_bound  # noqa: PLC0415 - heavy

    start = time.perf_counter()
    bound = best_bound(problem)
    seconds = time.perf_counter() - start
    return result_of(problem, MapOutcome(nodes), bound, "given", options or MapOptions(), seconds)
