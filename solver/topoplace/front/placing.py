"""Place the queue of an instance, and prepare instances for all that place or move jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from topoplace import options
from topoplace.errors import InputError
from topoplace.front.documents import choices_of, model_of, options_of, require_one, watched
from topoplace.interrupts import heeded
from topoplace.kernels import compile_for
from topoplace.kinds import Ref, kind_named, loaded
from topoplace.options import names_of, takes
from topoplace.report.view import view_of
from topoplace.result import Interference, Result
from topoplace.snapshot.free import free_in, free_of, freeing
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.machines import AnyState, load_any, prepare_any
from topoplace.snapshot.schema import Snapshot, TreeObjective
from topoplace.solving import Options, method_names, solve
from topoplace.solving.solve import maps_in, on_trees, required_in
from topoplace.study.external.allocator import chosen

AnyPlacement = Result[Any, Any, Snapshot]

# few placements need them
_TRY_ON: Ref = "topoplace.study.external.trial:try_on"
_UNDER_CONTRACT: Ref = "topoplace.placement.hierarchy.contract:prepared_under"


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
        trial = loaded(_TRY_ON)(state, who, settings)
    if asked.tried is not None:
        asked.tried(trial)
    if trial.refusal is not None:
        raise trial.refusal
    return _with_reasons(trial.result, state)


def _with_reasons(found: AnyPlacement, state: AnyState) -> AnyPlacement:
    """Return a result that says of every request that does not start why, where that is known."""
    return found.model_copy(update={"waits": view_of(found, state).waits})


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
        state = loaded(_UNDER_CONTRACT)(state.snapshot, contract)
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
