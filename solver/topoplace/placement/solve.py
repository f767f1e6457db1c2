"""The registry of placement methods, and the one call that runs any of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from topoplace.errors import InputError
from topoplace.placement.outcome import Outcome, result_of
from topoplace.placement.problem import Options, PlacementProblem
from topoplace.result import Result
from topoplace.snapshot import SnapshotState

Solver = Callable[[PlacementProblem, Options], Outcome]


@dataclass(frozen=True)
class Method:
    """A registered placement method."""

    name: str
    summary: str
    solver: Solver
    uses_prisms: bool = True


_METHODS: dict[str, Method] = {}


def register(name: str, summary: str, *, uses_prisms: bool = True) -> Callable[[Solver], Solver]:
    """Return a decorator that registers a placement method (docs/adding-a-heuristic.md)."""

    def add(solver: Solver) -> Solver:
        if name in _METHODS:
            raise ValueError(f"a method named {name} is registered already")
        _METHODS[name] = Method(name, summary, solver, uses_prisms)
        return solver

    return add


def methods() -> dict[str, Method]:
    """Return the registered placement methods by name: exact, the default, and then the others."""
    import topoplace.placement.registered  # noqa: F401, PLC0415 - registers; heavy, so only here

    # exact imports heuristics to start from, so they are registered before it
    return dict(sorted(_METHODS.items(), key=lambda item: item[0] != "exact"))


def place(state: SnapshotState, method: str = "exact", options: Options | None = None) -> Result:
    """Place the queue of a snapshot.

    Parameters
    ----------
    state
        A snapshot loaded by `topoplace.snapshot.load_snapshot`.
    method
        A name from `methods`.
    options
        Time limit in seconds, interference rule and seed.

    Raises
    ------
    InputError
        If there is no such method.
    """
    options = options or Options()
    known = methods()
    if method not in known:
        raise InputError(f"one of {', '.join(known)}", field="method", value=method)
    start = time.perf_counter()
    problem = PlacementProblem(state, options.interference)
    outcome = known[method].solver(problem, options)
    return result_of(problem, outcome, method, options, time.perf_counter() - start)
