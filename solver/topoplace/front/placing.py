"""Place queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from topoplace.errors import InputError
from topoplace.front.arguments import names_of, options_of, watched
from topoplace.front.documents import Instance, model_of
from topoplace.kernels import compile_for
from topoplace.placement.hierarchy.contract import prepared_under
from topoplace.result import Interference, PlacementResult
from topoplace.result.cubes import CubesResult
from topoplace.result.hierarchy import HierarchyResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.held import ignoring
from topoplace.snapshot.machines import AnyState, load_any, prepare_any
from topoplace.snapshot.schema import TreeObjective
from topoplace.snapshot.state import SnapshotState
from topoplace.solving import Options, method_names, solve
from topoplace.solving.outcome import Watch
from topoplace.solving.solve import maps_in, on_trees, required_in
from topoplace.study.external.allocator import chosen
from topoplace.study.external.trial import Trial, try_on


def place(
    instance: Instance,
    method: str = "exact",
    *,
    time_limit: float | None = None,
    interference: str = "strict",
    contract: str | None = None,
    ignore: Sequence[str] = (),
    seed: int = 0,
    thorough: bool = False,
    required: Mapping[str, int] | str | None = None,
    objective: str | None = None,
    command: str | None = None,
    tried: Callable[[Trial], None] | None = None,
    display: bool = False,
    callback: Watch | None = None,
) -> PlacementResult | AllocationResult | HierarchyResult | CubesResult:
    """Place the queue of an instance on its machine and prove how good the answer is.

    Parameters
    ----------
    instance
        A `Model`, or whatever `load` takes for one.
    method
        A name of ``methods("placement")``, on hierarchies and trees of ``methods("hierarchy")``, by
        contention of ``methods("allocation")``, on pods of cubes of ``methods("cubes")``; or that
        of an installed allocator.
    time_limit
        Seconds; by default some 300 for the method ``exact``, none for others.
    interference
        On tori, which jobs may share links: ``strict`` (none), ``tolerant`` (tolerant ones with
        each other) or ``off`` (all).
    contract
        On hierarchies, what a scheduler promises requests beyond what these say: ``slurm-block``.
    ignore
        Options that are not modelled and hold no request all the same; ``all`` for every one.
    seed
        Of whatever the method draws at random.
    thorough
        Whether ``exact`` spends what is left of the time limit on the later levels too, as it
        always does on trees.
    required
        By level what is required of it instead of its optimum, at least this of levels that are
        maximised, at most of others: ``{"nodes": 6000}``, or as a text ``nodes>=6000``. Of method
        ``exact``, not by contention.
    objective
        ``nodes,hop-bytes`` on tori: the applications of requests are mapped, and the second level
        is their bytes x hops. On switch trees ``domains``, the fewest switches level by level, or
        ``contention``, the cost of Mishra 2020; by default the latter if a request has patterns.
    command
        An allocator of your own instead of a method, as ``[NAME=]PROG ARGS``: it gets the snapshot
        as JSON on stdin and prints placements on stdout.
    tried
        Called with what came of such an allocator, before a verdict on it is raised.
    display
        Whether to show on stderr where the solve is: one live line at a terminal.
    callback
        Called with the `Progress` of the solve a few times a second, and at its end.

    Raises
    ------
    InputError
        If an argument or a field of the instance cannot be used.
    VerdictError
        If an allocator that is not ours breaks a rule, or gives no answer.
    """
    options = replace(
        options_of(time_limit, seed, interference), thorough=thorough, maps=maps_in(objective)
    )
    state = prepared(instance, contract, ignore, options, on_trees(objective))
    if isinstance(required, str):
        required = required_in(required, state, options)
    options = replace(options, required=dict(required or {}))
    who = chosen(method, command, method_names(state.kind))
    if isinstance(who, str):
        compile_for(state.kind, [who])
    with watched(options, display, callback) as options:
        if isinstance(who, str):
            return solve(state, who, options)
        trial = try_on(state, who, options)
    if tried is not None:
        tried(trial)
    if trial.refusal is not None:
        raise trial.refusal
    return trial.result


def prepared(
    instance: Instance,
    contract: str | None,
    ignore: Sequence[str],
    options: Options,
    objective: TreeObjective | None = None,
) -> AnyState:
    """Return an instance ready to be placed, under a contract and with a rule that fit it."""
    ignore = names_of(ignore)
    if isinstance(instance, Path):
        state = load_any(instance, objective, ignore)
    else:
        state = prepare_any(ignoring(model_of(instance, objective).snapshot, ignore), objective)
    if contract is not None:
        state = prepared_under(state.snapshot, contract)
    if not isinstance(state, SnapshotState) and options.interference is not Interference.STRICT:
        expected = "no interference rule but on tori and meshes"
        raise InputError(expected, field="interference", value=str(options.interference))
    return state
