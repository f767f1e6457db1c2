"""The cost of an allocation, and its form in a result document."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from topoplace.placement.switches.problem import TreeProblem
from topoplace.result import Fraction as FractionModel
from topoplace.result.tree import Allocation, AllocationResult, TreeLevel, TreeSolution
from topoplace.snapshot.held import queue_facts
from topoplace.solving.outcome import Number
from topoplace.solving.solve import Frame
from topoplace.types import IntArray

Started = Mapping[int, IntArray]
"""The node of every rank, by the number of the request in the queue."""


def costs_of(problem: TreeProblem, started: Started) -> dict[int, Fraction]:
    """Return the cost of every started request (eq. 6) in the state in which all of them run."""
    comm = problem.occupancy(started.items()).comm
    leaf_of_node = problem.state.machine.leaf_of
    costs = {}
    for idx, nodes in sorted(started.items()):
        request = problem.requests[idx]
        costs[idx] = Fraction(0)
        if request.intensive:
            costs[idx] = problem.costs.job_cost(request.patterns, leaf_of_node[nodes], comm)
    return costs


def worth(problem: TreeProblem, started: Started) -> list[Number | None]:
    """Return the priority-weighted nodes that start, and their total cost."""
    nodes = sum(problem.requests[idx].value for idx in started)
    return [nodes, sum(costs_of(problem, started).values(), Fraction(0))]


def _solution(problem: TreeProblem, started: Started) -> TreeSolution:
    names, costs = problem.state.machine.host_names, costs_of(problem, started)
    return TreeSolution(
        allocations=[
            Allocation(
                request=problem.requests[idx].id,
                nodes=[names[node] for node in started[idx]],
                cost=FractionModel.of(cost),
            )
            for idx, cost in costs.items()
        ],
        cost=FractionModel.of(sum(costs.values(), Fraction(0))),
    )


def _facts(result: AllocationResult) -> dict[str, int | None]:
    found = result.solution
    return {
        "started": None if found is None else len(found.allocations),
        **queue_facts(result.instance),
    }


FRAME = Frame(
    worth,
    AllocationResult,
    TreeLevel,
    _solution,
    lambda problem: (("nodes", "max"), ("cost", "min")),
    number=FractionModel.of,
    decisive=lambda problem: 1,
    facts=_facts,
)
