"""A function of Python as a method of mapping, whose answer is checked, scored and bounded."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.machines import numbered, offer_of
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.problem import MappingProblem, require_mapping
from topoplace.solving import Method, Options, Outcome
from topoplace.study.external.allocator import (
    DEFAULT_SECONDS,
    End,
    Fault,
    Function,
    VerdictError,
    function_allocator,
    last_words,
    run_function,
)
from topoplace.types import IntArray

MOST_DISTANCES = 1 << 20
"""Of all pairs of places, as many distances at most are among what a function gets."""


def mapping_method(function: Function) -> Method:
    """Return a method of mapping that calls a function.

    It gets `mapping_input` of the instance and the seconds that it may take, and returns the node
    of every task: a number, or a name where nodes have names.
    """
    own = function_allocator(function)

    def solver(problem: MappingProblem, options: Options) -> Outcome:
        limit = options.time_limit
        seconds = DEFAULT_SECONDS if limit is None else limit
        run = run_function(function, mapping_input(problem), seconds)

        def refused(fault: Fault, text: str) -> VerdictError:
            verdict = VerdictError(problem.instance, own.name, run.stderr, fault, text)
            verdict.__cause__ = run.error
            return verdict

        if run.end is End.RAISED:
            raise refused(Fault.FAILED, f"it raised {last_words(run.stderr)}")
        if run.end is End.TIME_OUT:
            raise refused(Fault.TIME_OUT, "no answer within the time limit")
        try:
            nodes = _nodes_of(problem, json.loads(run.stdout))
            require_mapping(problem, nodes)
        except InputError as error:
            raise refused(Fault.BREACH, error.brief) from None
        return outcome_of(nodes)

    return Method("mapping", own.name, f"the function {own.source}", solver, takes=_ALL)


_ALL = ("tasks", "objects")


def mapping_input(problem: MappingProblem) -> dict[str, Any]:
    """Return what a function gets: the instance, and what follows from it.

    `messages` are source, target and bytes of each message, `places` the nodes that tasks may go
    to, `distances` those between places in their order; they are left out if there are too many.
    """
    graph, places = problem.graph, problem.nodes
    messages = np.column_stack([graph.sources, graph.targets, graph.bytes]).tolist()
    found = {"messages": messages, "places": places.tolist()}
    routers = problem.routers_of(places)
    if len(places) ** 2 <= MOST_DISTANCES:
        rows = (problem.machine.hops(np.full(len(routers), one), routers) for one in routers)
        found["distances"] = [row.tolist() for row in rows]
    return problem.instance.model_dump(mode="json") | found


def _nodes_of(problem: MappingProblem, answer: Any) -> IntArray:
    """Return the node of every task that an answer has."""
    if not isinstance(answer, list):
        raise InputError("a list of nodes, one for each task", field="answer", value=answer)
    if any(isinstance(node, str) for node in answer):
        names = offer_of(problem.instance.machine).names(problem.instance.machine)
        return numbered(names, map(str, answer), "answer")
    for task, node in enumerate(answer):
        if not isinstance(node, int):
            raise InputError("the number of a node", field=f"task {task}", value=node)
    return np.array(answer, dtype=np.int64)
