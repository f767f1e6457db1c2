"""What a method takes, and the registry of methods of all problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from topoplace import clock
from topoplace.errors import unknown_name
from topoplace.importing import imported
from topoplace.kinds import kind_named, loaded
from topoplace.result import Interference
from topoplace.solving.outcome import Bound, Incumbent, Number, Outcome, Watch
from topoplace.types import IntArray


@dataclass(frozen=True)
class Options:
    """What a user may set for a solve; some of it is for mappings alone.

    Attributes
    ----------
    time_limit
        Seconds; None for the method's own limit, or none.
    interference
        For placements on tori: which jobs may share links.
    first_level
        For packings: whether method ``exact`` ends after the first level.
    seed
        The seed of whatever a method draws at random.
    required
        For packings: by level, the value that is required of it instead of the optimum.
    maps
        For placements on tori: whether applications are mapped, with hop-bytes as the second level.
    explains
        For placements on tori: whether to say why requests do not start.
    cell
        For mappings: tasks of a cell of `grid-order`, per virtual dimension.
    column_major
        For mappings: whether `grid-order` varies the first dimension fastest (``-C``).
    node_order
        For mappings: the order of nodes that `default`, `round-robin` and `grid-order` fill;
        None for that of their numbers.
    layout
        For mappings: the number of the layout that `topaware` lays (`pencils.obtaining`).
    max_depth
        For mappings: largest extent of a pencil window along the pencils.
    solver
        For method ``minizinc``: the solver, as ``minizinc --solvers`` lists it; None for ours.
    start
        For mappings: the node of every task that a local search starts from.
    watch
        Called with the `Progress` of a solve a few times a second, and at its end.
    incumbent
        Takes what a method reports; `solve` sees to it.
    """

    time_limit: float | None = None
    interference: Interference = Interference.STRICT
    seed: int = 0
    first_level: bool = False
    required: Mapping[str, int] = field(default_factory=dict)
    maps: bool = False
    explains: bool = True
    cell: tuple[int, ...] | None = None
    column_major: bool = False
    node_order: str | None = None
    layout: int | None = None
    max_depth: int | None = None
    solver: str | None = None
    start: IntArray | None = None
    watch: Watch | None = None
    incumbent: Incumbent | None = None

    def report(
        self, solution: Any, values: Sequence[Number], bounds: Sequence[Bound | None] = ()
    ) -> None:
        """Report a solution, or bounds alone, in case the solve ends here and now.

        See `Incumbent.report`.
        """
        if self.incumbent is not None:
            self.incumbent.report(solution, values, bounds)

    def say(self, phase: str, level: int = 0, bound: Number | None = None) -> None:
        """Tell what the method is doing (see `Incumbent.say`)."""
        if self.incumbent is not None:
            self.incumbent.say(phase, level, bound)


def in_turn(num_requests: int, options: Options, place: Callable[[int], Any]) -> Outcome:
    """Place requests in queue order while there is time: where, or None, says a call by number."""
    until, started = clock.deadline(options.time_limit), list[Any]()
    for q in range(num_requests):
        if clock.now() >= until:
            return Outcome(started, time_limit_hit=True)
        found = place(q)
        if found is not None:
            started.append(found)
    return Outcome(started)


Solver = Callable[[Any, Options], Outcome]
"""Takes a problem and options; may leave out whatever it does not need."""


@dataclass(frozen=True)
class Method:
    """A registered method.

    Attributes
    ----------
    problem
        ``placement``, ``allocation`` or ``mapping``, as result documents have it.
    uses_prisms
        For placements: whether every job gets a prism, so that the rule and its bounds hold.
    needs_grid
        For mappings: whether the application has to be a grid.
    takes
        For mappings: ``tasks``, ``objects`` under a cap, or both (`MappingProblem.takes`).
    """

    problem: str
    name: str
    summary: str
    solver: Solver
    uses_prisms: bool = True
    needs_grid: bool = False
    takes: tuple[str, ...] = ("tasks",)


_METHODS: dict[tuple[str, str], Method] = {}


def register(
    problem: str,
    name: str,
    summary: str = "",
    *,
    uses_prisms: bool = True,
    needs_grid: bool = False,
    takes: tuple[str, ...] = ("tasks",),
) -> Callable[[Solver], Solver]:
    """Return a decorator that registers a method (docs/develop/adding-a-heuristic.md).

    What it does stands in its kind if that names the method; else `summary` says it.
    """

    def add(solver: Solver) -> Solver:
        if (problem, name) in _METHODS:
            raise ValueError(f"a method named {name} is registered already")
        own = Method(problem, name, summary, solver, uses_prisms, needs_grid, takes)
        _METHODS[problem, name] = own
        return solver

    return add


def method_of(problem: str, name: str) -> Method:
    """Return a method; of those shipped only its own module is imported.

    Raises
    ------
    InputError
        If there is no such method.
    """
    shipped = kind_named(problem).methods
    if (problem, name) not in _METHODS and name in shipped:
        ref, _ = shipped[name]
        if ":" in ref:
            register(problem, name)(loaded(ref))
        else:
            imported(ref)
    if (problem, name) not in _METHODS:
        known = method_names(problem)
        raise unknown_name(name, known, field="method")
    own = _METHODS[problem, name]
    if own.summary or name not in shipped:
        return own
    return replace(own, summary=shipped[name][1])


def method_names(problem: str) -> list[str]:
    """Return the names of a problem's methods: those shipped, then the others in their order."""
    own = [name for kind, name in _METHODS if kind == problem]
    return list(dict.fromkeys([*kind_named(problem).methods, *own]))


def methods(problem: str) -> dict[str, Method]:
    """Return all methods of a problem by name."""
    return {name: method_of(problem, name) for name in method_names(problem)}
