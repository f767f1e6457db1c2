"""The registry of allocation methods, and the one call that runs any of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from topoplace.errors import InputError
from topoplace.placement.tree.outcome import TreeOutcome, result_of
from topoplace.placement.tree.problem import TreeOptions, TreeProblem
from topoplace.result.tree import TreeResult
from topoplace.snapshot.tree_state import TreeState

TreeSolver = Callable[[TreeProblem, TreeOptions], TreeOutcome]


@dataclass(frozen=True)
class TreeMethod:
    """A registered allocation method."""

    name: str
    summary: str
    solver: TreeSolver


_METHODS: dict[str, TreeMethod] = {}


def register_tree(name: str, summary: str) -> Callable[[TreeSolver], TreeSolver]:
    """Return a decorator that registers an allocation method."""

    def add(solver: TreeSolver) -> TreeSolver:
        if name in _METHODS:
            raise ValueError(f"a method named {name} is registered already")
        _METHODS[name] = TreeMethod(name, summary, solver)
        return solver

    return add


def tree_methods() -> dict[str, TreeMethod]:
    """Return the registered methods by name: exact, Slurm's default, then the others by name."""
    import topoplace.placement.tree.registered  # noqa: F401, PLC0415 - registers; heavy

    return {
        name: _METHODS[name]
        for name in sorted(_METHODS, key=lambda name: (name != "exact", name != "default", name))
    }


def tree_method(name: str) -> TreeMethod:
    """Return a registered allocation method.

    Raises
    ------
    InputError
        If there is no such method.
    """
    known = tree_methods()
    if name not in known:
        raise InputError(f"one of {', '.join(known)}", field="method", value=name)
    return known[name]


def allocate(
    state: TreeState, method: str = "exact", options: TreeOptions | None = None
) -> TreeResult:
    """Allocate nodes of a tree machine to the queue of a snapshot.

    Parameters
    ----------
    state
        A snapshot prepared by `topoplace.snapshot.tree_state.prepare_tree`.
    method
        A name from `tree_methods`.
    options
        Time limit in seconds, and seed.

    Raises
    ------
    InputError
        If there is no such method.
    """
    options = options or TreeOptions()
    entry = tree_method(method)
    start = time.perf_counter()
    problem = TreeProblem(state)
    outcome = entry.solver(problem, options)
    return result_of(problem, outcome, method, options, time.perf_counter() - start)
