"""The one call that solves, what differs in it from problem to problem, and its result document."""

from __future__ import annotations

import importlib.metadata
import math
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from topoplace import clock
from topoplace.errors import InputError, unknown_name
from topoplace.interrupts import ended_in_time, heeded
from topoplace.kinds import State, kind_named
from topoplace.result import RESULT_SCHEMA, Proof, Status
from topoplace.snapshot.free import free_of
from topoplace.snapshot.held import facts_of
from topoplace.snapshot.schema import Order, Snapshot, TreeObjective
from topoplace.solving.outcome import WATCH_SECONDS, Bound, Incumbent, Number, Outcome, gap_of
from topoplace.solving.registry import Method, Options, method_of
from topoplace.version import __version__

if TYPE_CHECKING:
    from topoplace.result.several import Optima


class Problem(Protocol):
    """What a method solves."""

    @property
    def kind(self) -> str:
        """What result documents call the problem: placement, allocation or mapping."""


def called(problem: Any, method: Method, options: Options) -> Outcome:
    """Run a method by calling it."""
    return method.solver(problem, options)


def snapshot_of(problem: Any) -> Any:
    """Return the snapshot of a problem that has a state, or is one; None if it has none."""
    return getattr(getattr(problem, "state", problem), "snapshot", None)


@dataclass(frozen=True)
class Frame:
    """One kind of problem.

    Attributes
    ----------
    worth
        The value of a solution on every level, None where a level does not apply.
    result, level
        The models of the result and of its levels.
    solution
        Makes the document of a solution.
    levels
        Name and sense (``max`` or ``min``) of every level of the objective, of a problem.
    instance
        Makes the document of a problem.
    run
        Runs a method on a problem; most do no more than call it.
    number
        Turns a figure into the form that the documents have.
    rule
        What limited the solve of a problem besides the time limit.
    extra
        Fields that only results of this problem have, of a problem and an outcome.
    decisive
        Number of the level by which methods are compared, after all before it, of a problem.
    facts
        What a result counts besides the levels, for tables; by default requests.
    overtime
        Seconds beyond the time limit after which a method that has reported a solution is ended.
    """

    worth: Callable[[Any, Any], Sequence[Number | None]]
    result: type[Any]
    level: type[Any]
    solution: Callable[[Any, Any], Any]
    levels: Callable[[Any], Sequence[tuple[str, str]]] = attrgetter("levels")
    instance: Callable[[Any], Any] = snapshot_of
    run: Callable[[Any, Method, Options], Outcome] = called
    number: Callable[[Number], Any] = int
    rule: Callable[[Any], Mapping[str, Any]] = lambda problem: {}
    extra: Callable[[Any, Outcome], Mapping[str, Any]] = lambda problem, outcome: {}
    decisive: Callable[[Any], int] = lambda problem: 0
    facts: Callable[[Any], Mapping[str, int | None]] = facts_of
    overtime: float = math.inf


def frame_of(kind: str) -> Frame:
    """Return the frame of a kind of problem."""
    frame: Frame = kind_named(kind).get("frame")
    return frame


def problem_of(instance: State | Problem, options: Options) -> Problem:
    """Return the problem of placing a snapshot's queue; any other problem is returned as it is."""
    if not isinstance(instance, State):
        return instance
    make = kind_named(instance.kind).get("problem")
    problem: Problem = instance if make is None else make(instance, options)
    return problem


def ordered_in(problem: Problem) -> Snapshot | None:
    """Return the snapshot of a problem if its requests start in an order, else None."""
    snapshot = snapshot_of(problem)
    ordered = isinstance(snapshot, Snapshot) and snapshot.order is not Order.VALUE
    return snapshot if ordered else None


def require_no_order(problem: Problem, what: str) -> None:
    """Raise `InputError` if requests start in an order, of which something takes no account."""
    snapshot = ordered_in(problem)
    if snapshot is not None:
        expected = f"value for {what}"
        raise InputError(expected, field="order", value=str(snapshot.order))


def solve(
    problem: State | Problem, method: str | Method = "exact", options: Options | None = None
) -> Any:
    """Solve a problem by a method.

    Parameters
    ----------
    problem
        A prepared snapshot, whose queue is to be placed, or a `MappingProblem`; or a problem of
        placement made already.
    method
        A name from `methods` of the kind of problem; or a method that is not registered.
    options
        Time limit, seed and what else a method takes.

    In the main thread, SIGINT and SIGTERM end the method with its best: the result says so in its
    limits. A second signal, or one before there is any solution, acts as without this call.

    Returns
    -------
    Result
        An object of the class that the kind of problem names.

    Raises
    ------
    InputError
        If there is no such method, or it does not fit the problem.
    """
    options = options or Options()
    problem = problem_of(problem, options)
    chosen = method_of(problem.kind, method) if isinstance(method, str) else method
    method, frame = chosen.name, frame_of(problem.kind)
    levels = frame.levels(problem)
    require_maps(options, levels, method)
    if method != "exact" or options.required or options.maps or problem.kind == "allocation":
        require_no_order(problem, "anything but method exact of domains or prisms, without --set")
    if options.required:
        require_levels(options.required, [name for name, _ in levels], problem.kind, method)
    incumbent = options.incumbent or Incumbent(levels, frame.instance(problem).name, method)
    options = replace(options, incumbent=incumbent)
    with heeded():
        start = clock.ticks()
        outcome = found_by(chosen, problem, options)
        seconds = clock.ticks() - start
        result = result_of(problem, outcome, method, options, seconds)
    if options.watch is not None:
        ended = replace(incumbent.progress(), level=levels[0][0], phase=result.status)
        options.watch(replace(ended, objective=result.objective, bound=result.bound))
    return result


def found_by(method: Method, problem: Problem, options: Options) -> Outcome:
    """Return what a method finds, or what it has reported if it does not end when it has to."""
    frame = frame_of(problem.kind)
    incumbent = options.incumbent or Incumbent(frame.levels(problem))
    options = replace(options, incumbent=incumbent)
    shown = time.perf_counter()

    def look() -> None:
        nonlocal shown
        if options.watch is not None and time.perf_counter() >= shown + WATCH_SECONDS:
            shown = time.perf_counter()
            options.watch(incumbent.progress())

    limit = math.inf if options.time_limit is None else options.time_limit + frame.overtime
    run = partial(frame.run, problem, method, options)
    return ended_in_time(run, lambda: incumbent.outcome, limit, look)


def result_of(
    problem: Problem, outcome: Outcome, method: str, options: Options, seconds: float
) -> Any:
    """Return the result document of an outcome, of the class that the kind of problem has.

    Every figure is computed from the solution itself, so that no method can misreport one.
    """
    frame = frame_of(problem.kind)
    names, required = frame.levels(problem), options.required
    worth: list[Any] = [None] * len(names)
    values = worth if outcome.solution is None else frame.worth(problem, outcome.solution)
    reached = values if outcome.witness is None else frame.worth(problem, outcome.witness)
    bounds = [*outcome.bounds, *worth][: len(worth)]
    settled = True  # whether the levels so far are as set, or cannot be better
    levels = []
    for (name, sense), value, bound, best in zip(names, values, bounds, reached, strict=True):
        fields = level_fields(frame, name, sense, value, bound, required.get(name))
        if fields["status"] is Status.INFEASIBLE and not settled:
            fields["status"] = Status.UNKNOWN
        settled &= name in required or (bound is not None and bound.value == best)
        levels.append(frame.level(**fields))
    hit = outcome.time_limit_hit and any(level.status is not Status.OPTIMAL for level in levels)
    return frame.result(
        schema_version=RESULT_SCHEMA,
        problem=problem.kind,
        method=method,
        status=levels[0].status,
        objective=None if values[0] is None else int(values[0]),
        bound=None if bounds[0] is None else int(bounds[0].value),
        gap=levels[0].gap,
        proof=levels[0].proof,
        seconds=round(seconds, 3),
        limits={
            "time_limit": options.time_limit,
            "hit": hit,
            "first_level": outcome.first_level,
            **frame.rule(problem),
        },
        seed=options.seed,
        versions=versions() | dict(outcome.versions),
        levels=levels,
        solution=None if outcome.solution is None else frame.solution(problem, outcome.solution),
        instance=frame.instance(problem),
        **witness_field(frame, problem, outcome.witness),
        **frame.extra(problem, outcome),
    )


def result_at(optima: Optima, number: int) -> Any:
    """Return a placement as a result of its own, with the proof that no other one is better."""
    frame, point = frame_of(optima.problem), optima.points[number]
    steps = {
        step.level: Bound(step.bound, step.certificate)
        for step in optima.steps
        if step.required == point.values[: len(step.required)]
    }
    pairs = zip(optima.levels, point.values, strict=True)
    levels = [
        frame.level(**level_fields(frame, v.name, v.sense, value, steps.get(v.name), None))
        for v, value in pairs
    ]
    kept = ("problem", "method", "seconds", "limits", "seed", "versions", "instance")
    top = {
        name: getattr(levels[0], name) for name in ("status", "objective", "bound", "gap", "proof")
    }
    return frame.result(
        schema_version=RESULT_SCHEMA,
        levels=levels,
        solution=point.solution,
        **{name: getattr(optima, name) for name in kept},
        **top,
    )


def witness_field(frame: Frame, problem: Problem, witness: Any) -> dict[str, Any]:
    """Return the field of a placement that is no answer, if there is one."""
    if witness is None:
        return {}
    values, solution = frame.worth(problem, witness), frame.solution(problem, witness)
    return {"witness": {"values": values, "solution": solution}}


def level_fields(
    frame: Frame,
    name: str,
    sense: str,
    value: Number | None,
    bound: Bound | None,
    required: int | None,
) -> dict[str, Any]:
    """Return the fields of a level of the result."""
    status = Status.UNKNOWN if value is None else Status.FEASIBLE
    if bound is not None and bound.value == value:
        status = Status.OPTIMAL
    short = bound is not None and required is not None and is_short(bound.value, required, sense)
    return ({} if required is None else {"required": required}) | {
        "name": name,
        "sense": sense,
        "status": Status.INFEASIBLE if short else status,
        "objective": None if value is None else frame.number(value),
        "bound": None if bound is None else frame.number(bound.value),
        "gap": gap_of(value, None if bound is None else bound.value),
        "proof": Proof.NONE if bound is None else bound.proof,
        "certificate": None if bound is None else bound.certificate,
    }


def is_short(value: Number, required: int, sense: str) -> bool:
    """Tell whether a value of a level is worse than what is required of it."""
    return value < required if sense == "max" else value > required


def require_levels(
    given: Iterable[str], known: Sequence[str], kind: str, method: str = "exact"
) -> None:
    """Raise `InputError` unless each of these is a level of which the method can take account."""
    if "required" not in frame_of(kind).level.model_fields or method != "exact":
        expected = "method exact, on tori, meshes, hierarchies or pods of cubes, no contention"
        raise InputError(expected, field="levels", found=f"{method} of {kind}")
    for name in given:
        if name not in known:
            raise unknown_name(name, known, field="levels")


HOP_BYTES = "hop-bytes"
MAPPED = "nodes,hop-bytes"
OBJECTIVES = (MAPPED, *TreeObjective)
"""What a user may name instead of the default: of tori that of mapped applications, of trees.

There are also those of free domains, such as ``nodes,free_racks`` (`topoplace.snapshot.free`).
"""


def maps_in(objective: str | None) -> bool:
    """Tell whether an objective is that of mapped applications; `InputError` if it is no other."""
    if objective is None:
        return False
    text = objective.replace(" ", "")
    if free_of(text) is not None:
        return False
    if text not in OBJECTIVES:
        raise unknown_name(objective, OBJECTIVES, field="objective")
    return text == MAPPED


def on_trees(objective: str | None) -> TreeObjective | None:
    """Return the objective as that of switch trees; None if it is not one."""
    return TreeObjective(objective) if objective in list(TreeObjective) else None


def tree_objective(objective: str | None, *, free: bool = False) -> TreeObjective | None:
    """Return the objective as that of switch trees; `InputError` if it is another one.

    With `free`, it may be that of free domains, for which there is None.
    """
    found = on_trees(objective)
    if objective is not None and found is None and not (free and free_of(objective)):
        raise unknown_name(objective, TreeObjective, field="objective")
    return found


def require_maps(options: Options, levels: Sequence[tuple[str, str]], method: str) -> None:
    """Raise `InputError` unless a problem maps applications if that is asked for."""
    if not options.maps:
        return
    if HOP_BYTES not in dict(levels) or method != "exact":
        expected = "method exact, on tori or meshes on which any prism will do"
        raise InputError(expected, field="objective", found=f"{method} without hop-bytes")
    if options.required:
        raise InputError("no levels required beside it", field="objective", found="--set")


_REQUIRED = re.compile(r"([^\s<>=]+)(>=|<=|=)(-?[0-9]{1,18})")


def required_in(text: str, instance: State | Problem, options: Options) -> dict[str, int]:
    """Return what a text such as ``nodes>=6000,shape>=100`` requires of the levels of a problem.

    At most, ``<=``, is for levels that are minimised; ``=`` stands for what fits the level.

    Raises
    ------
    InputError
        Where the text is not of this form, or a level is none or has the other sense.
    """
    problem = problem_of(instance, options)
    senses = dict(frame_of(problem.kind).levels(problem))
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _REQUIRED.fullmatch(part.strip())
        if match is None:
            raise InputError("LEVEL>=NUMBER, or LEVEL<=NUMBER", field="--set", value=part)
        name, sign, number = match.groups()
        if name not in senses:
            raise unknown_name(name, senses, field="--set")
        fits = ">=" if senses[name] == "max" else "<="
        if sign not in ("=", fits):
            expected = f"{fits} for {name}, of which {senses[name]} is best"
            raise InputError(expected, field="--set", value=part)
        found[name] = int(number)
    return found


def versions() -> dict[str, str]:
    """Return the versions of what takes part in every solve."""
    packages = {name: importlib.metadata.version(name) for name in ("numpy", "ortools")}
    return {"topoplace": __version__, "python": platform.python_version(), **packages}
