"""One run of an external allocator on a snapshot: its answer checked, then scored like ours."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from pydantic import BaseModel

from topoplace.errors import InputError
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.placement.outcome import Scattered
from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.placement.tree.problem import TreeProblem
from topoplace.result import PlacementResult, Status
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import Snapshot, SnapshotState
from topoplace.snapshot.files import parse_document, text_of_document
from topoplace.snapshot.tree_state import TreeState
from topoplace.solving import Options, Outcome, result_of
from topoplace.study.external.allocator import DEFAULT_SECONDS, Allocator
from topoplace.study.external.program import MAX_ANSWER_BYTES, End, Run, run_program
from topoplace.study.external.schema import PLACEMENTS_SCHEMA, Placements, TreePlacements
from topoplace.study.external.torus_rules import torus_breaches
from topoplace.study.external.tree_rules import tree_breaches
from topoplace.study.external.verdict import (
    Breach,
    Fault,
    Verdict,
    breach_verdict,
    last_words,
)

AnyResult = TypeVar("AnyResult", PlacementResult, AllocationResult)
Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True)
class Trial(Generic[AnyResult]):
    """What came of it.

    Attributes
    ----------
    result
        Scored by us; without a solution if there is a verdict.
    verdict
        Why the answer does not count; None if it does.
    stderr
        The end of what the allocator wrote there.
    """

    snapshot: str
    allocator: str
    result: AnyResult
    verdict: Verdict | None
    stderr: str


AnyTrial = Trial[PlacementResult] | Trial[AllocationResult]


def try_on_torus(
    state: SnapshotState, allocator: Allocator, options: Options
) -> Trial[PlacementResult]:
    """Run an allocator on a snapshot of a torus or mesh.

    Raises
    ------
    InputError
        If its program cannot be started.
    """
    problem = PlacementProblem(state, options.interference)
    extra = {"TOPOPLACE_INTERFERENCE": str(options.interference)}
    run = _run(allocator, state.snapshot, options.time_limit, options.seed, extra)
    verdict, answer = _judged(
        run, Placements, lambda found: torus_breaches(state.snapshot, options.interference, found)
    )
    result = result_of(
        problem,
        Outcome(
            [] if answer is None else _started(problem, answer),
            time_limit_hit=run.end is End.TIME_OUT,
            versions={"allocator": allocator.source},
        ),
        allocator.name,
        options,
        run.seconds,
    )
    result = _unanswered(result) if answer is None else _with_nodes(problem, result, answer)
    return Trial(state.snapshot.name, allocator.name, result, verdict, run.stderr)


def try_on_tree(
    state: TreeState, allocator: Allocator, options: Options
) -> Trial[AllocationResult]:
    """Run an allocator on a snapshot of a tree machine.

    Raises
    ------
    InputError
        If its program cannot be started.
    """
    run = _run(allocator, state.snapshot, options.time_limit, options.seed, {})
    verdict, answer = _judged(run, TreePlacements, lambda found: tree_breaches(state, found))
    started = None
    if answer is not None:
        node_of_name = {name: node for node, name in enumerate(state.tree.node_names)}
        request_idx = {request.id: idx for idx, request in enumerate(state.requests)}
        started = {
            request_idx[p.request]: np.array([node_of_name[n] for n in p.nodes], dtype=np.int64)
            for p in answer.placements
        }
    result = result_of(
        TreeProblem(state),
        Outcome(
            started,
            time_limit_hit=run.end is End.TIME_OUT,
            versions={"allocator": allocator.source},
        ),
        allocator.name,
        options,
        run.seconds,
    )
    return Trial(state.snapshot.name, allocator.name, result, verdict, run.stderr)


def _run(
    allocator: Allocator,
    snapshot: Snapshot,
    time_limit: float | None,
    seed: int,
    environment: dict[str, str],
) -> Run:
    seconds = DEFAULT_SECONDS if time_limit is None else time_limit
    told = {"TOPOPLACE_TIME_LIMIT": f"{seconds:g}", "TOPOPLACE_SEED": str(seed)}
    arguments = [word.replace("{seconds}", f"{seconds:g}") for word in allocator.arguments]
    return run_program(
        arguments,
        text_of_document(snapshot).encode(),
        seconds,
        {**told, **environment, **allocator.environment},
    )


def _judged(
    run: Run, model: type[Answer], breaches_of: Callable[[Answer], Sequence[Breach]]
) -> tuple[Verdict | None, Answer | None]:
    """Return the verdict on a run, or its answer."""
    failure = _failure(run)
    if failure is not None:
        return failure, None
    try:
        answer = parse_document(run.stdout, model, PLACEMENTS_SCHEMA, "answer")
    except InputError as error:
        if run.end is End.TIME_OUT:
            return Verdict(Fault.TIME_OUT, "no answer within the time limit"), None
        return Verdict(Fault.BAD_OUTPUT, _with_words(error.brief, run)), None
    breaches = list(breaches_of(answer))
    return (breach_verdict(breaches), None) if breaches else (None, answer)


def _failure(run: Run) -> Verdict | None:
    """Return the verdict on a run whose output does not matter."""
    if run.end is End.TOO_MUCH:
        return Verdict(Fault.BAD_OUTPUT, f"it printed more than {MAX_ANSWER_BYTES >> 20} MiB")
    if run.end is End.EXITED and run.code:
        how = f"exit code {run.code}"
        if run.code < 0:
            how = f"ended by signal {-run.code} ({signal.strsignal(-run.code)})"
        return Verdict(Fault.FAILED, _with_words(how, run))
    return None


def _with_words(text: str, run: Run) -> str:
    said = last_words(run.stderr)
    return f'{text}; it said "{said}"' if said else text


def _started(problem: PlacementProblem, answer: Placements) -> list[Candidate | Scattered]:
    request_idx = {request.id: idx for idx, request in enumerate(problem.requests)}
    started: list[Candidate | Scattered] = []
    for placement in answer.placements:
        idx = request_idx[placement.request]
        if placement.prism is None:
            nodes = parse_node_set(placement.nodes, problem.torus.num_nodes)
            started.append(Scattered(idx, nodes))
        else:
            model = placement.prism
            started.append(Candidate(idx, Prism(tuple(model.origin), tuple(model.extents))))
    return started


def _with_nodes(
    problem: PlacementProblem, result: PlacementResult, answer: Placements
) -> PlacementResult:
    """Return the result with the allocator's own choice of nodes in its prisms."""
    assert result.solution is not None
    chosen = {
        p.request: format_node_set(parse_node_set(p.nodes, problem.torus.num_nodes).tolist())
        for p in answer.placements
    }
    placements = [
        p.model_copy(update={"nodes": chosen[p.request]}) for p in result.solution.placements
    ]
    solution = result.solution.model_copy(update={"placements": placements})
    return result.model_copy(update={"solution": solution})


def _unanswered(result: PlacementResult) -> PlacementResult:
    """Return the result of starting nothing as that of having found nothing."""
    nothing = {"status": Status.UNKNOWN, "objective": None}
    levels = [level.model_copy(update=nothing) for level in result.levels]
    return result.model_copy(update={**nothing, "levels": levels, "solution": None})
