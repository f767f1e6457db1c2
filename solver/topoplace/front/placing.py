"""Place queues, trade their levels off, find all optima, and move jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from topoplace import options
from topoplace.errors import InputError
from topoplace.front.documents import choices_of, model_of, options_of, require_one, watched
from topoplace.interrupts import heeded
from topoplace.kernels import compile_for
from topoplace.kinds import kind_named
from topoplace.options import names_of, takes
from topoplace.placement.hierarchy.contract import prepared_under
from topoplace.placement.repack.problem import instance_of, repack_problem
from topoplace.report.view import view_of
from topoplace.result import Interference, Result
from topoplace.result.placement import RepackResult
from topoplace.result.several import Frontier, Optima
from topoplace.snapshot.free import free_in, free_of, freeing
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.machines import AnyState, load_any, prepare_any
from topoplace.snapshot.schema import Snapshot, TreeObjective
from topoplace.solving import Options, method_names, solve
from topoplace.solving.solve import maps_in, on_trees, required_in, tree_objective
from topoplace.study.external.allocator import chosen
from topoplace.study.external.trial import try_on

Found = TypeVar("Found")
AnyPlacement = Result[Any, Any, Snapshot]


@takes(options.Place)
def place(asked: options.Place) -> AnyPlacement:
    """Place the queue of an instance on its machine and prove how good the answer is.

    Raises
    ------
    VerdictError
        If an allocator that is not ours breaks a rule, or gives no answer.
    """
    require_one(asked.method, asked.command)
    settings = replace(options_of(asked), maps=maps_in(asked.objective))
    state = prepared(asked, settings, on_trees(asked.objective))
    required = asked.required
    if isinstance(required, str):
        required = required_in(required, state, settings)
    settings = replace(settings, required=dict(required or {}))
    who = chosen(asked.method or "exact", asked.command, method_names(state.kind))
    if isinstance(who, str):
        compile_for(state.kind, [who])
    with watched(settings, asked) as settings:
        if isinstance(who, str):
            with heeded():  # a signal ends the solve, and the reasons are still found
                return _with_reasons(solve(state, who, settings), state)
        trial = try_on(state, who, settings)
    if asked.tried is not None:
        asked.tried(trial)
    if trial.refusal is not None:
        raise trial.refusal
    return _with_reasons(trial.result, state)


def _with_reasons(found: AnyPlacement, state: AnyState) -> AnyPlacement:
    """Return a result that says of every request that does not start why, where that is known."""
    return found.model_copy(update={"waits": view_of(found, state).waits})


@takes(options.Frontier)
def frontier(asked: options.Frontier) -> Frontier:
    """Trade levels of placements off: return the best placements, and prove that these are all.

    There is no such document of trees by contention. What is open at the time limit is told.

    Returns
    -------
    Frontier
        Its `points`; printed, it is a table. It plots itself, and can be checked.
    """
    from topoplace.placement.several import traded_off  # noqa: PLC0415 - loads the engine

    levels = names_of(asked.levels)
    return _exactly(asked, lambda state, settings: traded_off(state, levels, settings))


@takes(options.Optima)
def optima(asked: options.Optima) -> Optima:
    """Find placements that are as good as any other one, and prove that these are all.

    There is no such document of trees by contention.

    Returns
    -------
    Optima
        Its `points`, and each as a result of its own by `result`; printed, it is a table. It plots
        itself, and can be checked.
    """
    from topoplace.placement.several import optima_of  # noqa: PLC0415 - loads the engine

    own = asked.most, names_of(asked.levels), asked.distinct
    return _exactly(asked, lambda state, settings: optima_of(state, *own, settings))


def _exactly(asked: options.Placing, find: Callable[[AnyState, Options], Found]) -> Found:
    """Return what is found of an instance with the method exact."""
    settings = options_of(asked)
    state = prepared(asked, settings, tree_objective(asked.objective, free=True))
    compile_for(state.kind, ["exact"])
    with watched(settings, asked) as settings:
        return find(state, settings)


@takes(options.Repack)
def repack(asked: options.Repack) -> RepackResult | Frontier:
    """Find the fewest running jobs to move so that requests start, or that make most room.

    Either way it is proven that no other moves do better.

    Returns
    -------
    RepackResult, Frontier
        The plan; or, to defragment, a plan for every cost with more room, in `points`. Printed, it
        is the curve and the steps of the last plan; it plots itself, and can be checked.
    """
    settings = options_of(asked)
    snapshot = prepared(asked, Options()).snapshot
    problem = repack_problem(instance_of(snapshot, asked), settings.interference)
    compile_for("repack", ["exact"])
    with watched(settings, asked) as settings:
        if asked.defragment is None:
            plan: RepackResult = solve(problem, "exact", settings)
            return plan
        from topoplace.placement.repack.defragment import (  # noqa: PLC0415 - loads the engine
            defragmented,
        )

        return defragmented(problem, settings)


def prepared(
    asked: options.OfSnapshot, settings: Options, objective: TreeObjective | None = None
) -> AnyState:
    """Return an instance ready to be placed, under a contract and with a rule that fit it."""
    instance, choices = asked.instance, choices_of(asked)
    if isinstance(instance, Path):
        state = load_any(instance, objective, choices)
    else:
        state = prepare_any(choices.of(model_of(instance, objective).snapshot), objective)
    state = _freeing(state, asked)
    contract = getattr(asked, "contract", None)
    if contract is not None:
        state = prepared_under(state.snapshot, contract)
    if not kind_named(state.kind).has_rule and settings.interference is not Interference.STRICT:
        expected = "no interference rule but on tori and meshes"
        raise InputError(expected, field="interference", value=str(settings.interference))
    return state


def _freeing(state: AnyState, asked: options.OfSnapshot) -> AnyState:
    """Return an instance in which free domains of a level count, if the objective names these."""
    named = free_of(getattr(asked, "objective", None))
    traded = free_in(names_of(getattr(asked, "levels", None) or ()))
    if isinstance(state, HierarchyState) and (named or traded):
        name = named or traded or ""
        return prepare_any(freeing(state.snapshot, name, state.machine.levels))
    if named is not None:
        expected = "a hierarchy or tree for free domains of a level"
        raise InputError(expected, field="objective", value=named)
    return state
