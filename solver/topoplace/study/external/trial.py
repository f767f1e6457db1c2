"""One run of an external allocator on a snapshot: its answer checked, then scored like ours."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from pydantic import BaseModel

from topoplace.errors import InputError
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.placement.torus.outcome import Scattered
from topoplace.placement.torus.problem import Candidate, PlacementProblem, in_prisms
from topoplace.result import PlacementResult
from topoplace.result.hierarchy import HierarchyResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import parse_document
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.machines import AnyState
from topoplace.snapshot.schema import TreeModel
from topoplace.snapshot.state import SnapshotState
from topoplace.snapshot.tree_state import TreeState, prepare_tree
from topoplace.solving import Options, Outcome, result_of
from topoplace.solving.solve import problem_of
from topoplace.study.external.allocator import DEFAULT_SECONDS, Allocator
from topoplace.study.external.answer import (
    PLACEMENTS_SCHEMA,
    Placements,
    TreePlacements,
    torus_breaches,
    tree_breaches,
)
from topoplace.study.external.program import MAX_ANSWER_BYTES, End, Run, run_program
from topoplace.study.external.verdict import Breach, Fault, VerdictError, last_words
from topoplace.types import IntArray

INPUT_SCHEMA: Final = "topoplace.allocator-input/1"

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True)
class Trial:
    """The outcome: a result scored by us, without a solution if there is a refusal.

    `refusal` is the verdict as an error to raise, print or store, None if the answer counts;
    `stderr` is the end of what the allocator wrote there.
    """

    snapshot: str
    allocator: str
    result: PlacementResult | AllocationResult | HierarchyResult
    refusal: VerdictError | None
    stderr: str

    @property
    def last_words(self) -> str:
        """The last line that the allocator wrote to stderr."""
        return last_words(self.stderr)


def try_on(state: AnyState, allocator: Allocator, options: Options) -> Trial:
    """Run an allocator on a snapshot.

    Raises
    ------
    InputError
        If its program cannot be started, or the machine is not of a kind that allocators take.
    """
    problem: Any = problem_of(state, options)
    by_domains = isinstance(state, HierarchyState)
    if by_domains and isinstance(state.snapshot.machine, TreeModel):
        state = prepare_tree(state.snapshot, rules=True)
    if not isinstance(state, SnapshotState | TreeState):
        raise InputError("a torus, mesh or tree for an allocator", field="machine.kind")
    document = tree_input(state) if isinstance(state, TreeState) else torus_input(problem)
    run = _run(allocator, document, options, on_tree=isinstance(state, TreeState))
    refuse = partial(VerdictError, state.snapshot, allocator.name, run.stderr)
    started: Any = None
    answer: Any = None
    refusal: VerdictError | None = None
    try:
        if isinstance(state, TreeState):
            answer = _answer_of(run, TreePlacements, partial(tree_breaches, state), refuse)
            started = _tree_solution(state, answer)
            if by_domains:
                started = {q: (dict.fromkeys(own.tolist(), 1),) for q, own in started.items()}
        else:
            judge = partial(torus_breaches, state.snapshot, options.interference)
            answer = _answer_of(run, Placements, judge, refuse)
            started = _torus_solution(problem, answer)
    except VerdictError as error:
        refusal = error
    hit = run.end is End.TIME_OUT
    outcome = Outcome(started, time_limit_hit=hit, versions={"allocator": allocator.source})
    result = result_of(problem, outcome, allocator.name, options, run.seconds)
    if isinstance(answer, Placements):
        result = _with_nodes(problem, result, answer)
    return Trial(state.snapshot.name, allocator.name, result, refusal, run.stderr)


def torus_input(problem: PlacementProblem) -> dict[str, Any]:
    """Return the input of an allocator: the snapshot, and what its requests may have.

    Every request has the number of its room in `rooms`: the routers a prism of it may hold, the
    nodes it may take there, and the links that running jobs close to it.
    """
    state = problem.state
    document = state.snapshot.model_dump(mode="json")
    rooms: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for request, item in zip(problem.requests, document["queue"], strict=True):
        kind = request.class_idx, request.region, request.communication
        if kind not in rooms:
            allowed = problem.allowed_routers(request)
            of_class = state.usable & (state.node_class == request.class_idx)
            nodes = of_class & np.repeat(allowed, problem.torus.nodes_per_router)
            rooms[kind] = {
                "routers": np.flatnonzero(allowed).tolist(),
                "nodes": np.flatnonzero(nodes).tolist(),
                "closed_links": np.flatnonzero(problem.closed_links(kind[-1])).tolist(),
            }
        item["room"] = list(rooms).index(kind)
    return document | {"rooms": list(rooms.values())}


def tree_input(state: TreeState) -> dict[str, Any]:
    """Return the input of an allocator: the snapshot, and the free nodes of every leaf by name."""
    document, tree = state.snapshot.model_dump(mode="json"), state.tree
    free: list[list[str]] = [[] for _ in range(tree.num_leaves)]
    for node in np.flatnonzero(state.free).tolist():
        free[tree.leaf_of_node[node]].append(tree.node_names[node])
    leaves = [switch["name"] for switch in document["machine"]["switches"] if switch["nodes"]]
    return document | {"free": dict(zip(leaves, free, strict=True))}


def _run(allocator: Allocator, document: dict[str, Any], options: Options, *, on_tree: bool) -> Run:
    seconds = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    told = {"TOPOPLACE_TIME_LIMIT": f"{seconds:g}", "TOPOPLACE_SEED": str(options.seed)}
    if not on_tree:
        told["TOPOPLACE_INTERFERENCE"] = str(options.interference)
    arguments = [word.replace("{seconds}", f"{seconds:g}") for word in allocator.arguments]
    text = json.dumps(document | {"schema": INPUT_SCHEMA}, ensure_ascii=False).encode()
    return run_program(arguments, text, seconds, told | allocator.environment)


def _answer_of(
    run: Run,
    model: type[Answer],
    breaches_of: Callable[[Answer], list[Breach]],
    refuse: Callable[..., VerdictError],
) -> Answer:
    """Return the answer of a run; raise the verdict on it if it does not count."""
    if run.end is End.TOO_MUCH:
        raise refuse(Fault.BAD_OUTPUT, f"it printed more than {MAX_ANSWER_BYTES >> 20} MiB")
    if run.end is End.EXITED and run.code:
        how = f"exit code {run.code}"
        if run.code < 0:
            how = f"ended by signal {-run.code} ({signal.strsignal(-run.code)})"
        raise refuse(Fault.FAILED, _with_words(how, run))
    try:
        answer = parse_document(run.stdout, model, PLACEMENTS_SCHEMA, "answer")
    except InputError as error:
        if run.end is End.TIME_OUT:
            raise refuse(Fault.TIME_OUT, "no answer within the time limit") from None
        raise refuse(Fault.BAD_OUTPUT, _with_words(error.brief, run)) from None
    breaches = breaches_of(answer)
    if breaches:
        more = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
        raise refuse(Fault.BREACH, breaches[0].text + more, breaches)
    return answer


def _with_words(text: str, run: Run) -> str:
    said = last_words(run.stderr)
    return f'{text}; it said "{said}"' if said else text


def _tree_solution(state: TreeState, answer: TreePlacements) -> dict[int, IntArray]:
    number = {request.id: idx for idx, request in enumerate(state.requests)}
    node = {name: k for k, name in enumerate(state.tree.node_names)}
    return {
        number[placed.request]: np.array([node[name] for name in placed.nodes], dtype=np.int64)
        for placed in answer.placements
    }


def _torus_solution(problem: PlacementProblem, answer: Placements) -> list[Candidate | Scattered]:
    number = {request.id: idx for idx, request in enumerate(problem.requests)}
    started: list[Candidate | Scattered] = []
    for placed in answer.placements:
        idx, model = number[placed.request], placed.prism
        if model is None:
            nodes = parse_node_set(placed.nodes, problem.torus.num_nodes)
            started.append(Scattered(idx, nodes))
        else:
            models = [model, *(placed.other_prisms or ())]
            prisms = (Prism(tuple(one.origin), tuple(one.extents)) for one in models)
            started.append(in_prisms(idx, prisms))
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
