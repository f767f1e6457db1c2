"""What an allocation method hands back, and its form as a result document."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace import __version__
from topoplace.placement.tree.problem import TreeOptions, TreeProblem
from topoplace.result import RESULT_SCHEMA, Proof, Status
from topoplace.result.mapping import Fraction as FractionModel
from topoplace.result.mapping import MappingLimits
from topoplace.result.tree import (
    Allocation,
    TreeCertificate,
    TreeLevel,
    TreeResult,
    TreeSolution,
)

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class TreeBound:
    """A bound of a level, and what supports it."""

    value: Fraction
    proof: Proof
    certificate: TreeCertificate | None = None


@dataclass(frozen=True)
class TreeOutcome:
    """What a method found.

    Attributes
    ----------
    started
        Per request that starts, by its number in the queue, the node of every rank; None if the
        method found no answer at all.
    nodes_bound, cost_bound
        Upper bound of the priority-weighted nodes, lower bound of the cost among allocations
        with as many.
    """

    started: Mapping[int, IntArray] | None
    nodes_bound: TreeBound | None = None
    cost_bound: TreeBound | None = None
    time_limit_hit: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)


def costs_of(problem: TreeProblem, started: Mapping[int, IntArray]) -> dict[int, Fraction]:
    """Return the cost of every started request (eq. 6) in the state in which all of them run."""
    comm = problem.occupancy(started.items()).comm
    leaf_of_node = problem.state.tree.leaf_of_node
    costs = {}
    for idx, nodes in sorted(started.items()):
        request = problem.requests[idx]
        costs[idx] = Fraction(0)
        if request.intensive:
            costs[idx] = problem.costs.job_cost(request.patterns, leaf_of_node[nodes], comm)
    return costs


def result_of(
    problem: TreeProblem, outcome: TreeOutcome, method: str, options: TreeOptions, seconds: float
) -> TreeResult:
    """Return the result document; every figure is recomputed from the nodes themselves."""
    nodes: Fraction | None = None
    cost: Fraction | None = None
    solution = None
    if outcome.started is not None:
        costs = costs_of(problem, outcome.started)
        nodes = Fraction(sum(problem.requests[idx].value for idx in outcome.started))
        cost = sum(costs.values(), Fraction(0))
        solution = _solution(problem, outcome.started, costs)
    nodes_level = _level("nodes", nodes, outcome.nodes_bound)
    return TreeResult(
        schema_version=RESULT_SCHEMA,
        problem="allocation",
        method=method,
        status=nodes_level.status,
        objective=None if nodes is None else int(nodes),
        bound=None if outcome.nodes_bound is None else int(outcome.nodes_bound.value),
        gap=nodes_level.gap,
        proof=nodes_level.proof,
        seconds=round(seconds, 3),
        limits=MappingLimits(time_limit=options.time_limit, hit=outcome.time_limit_hit),
        seed=options.seed,
        versions={
            "topoplace": __version__,
            "python": platform.python_version(),
            "numpy": importlib.metadata.version("numpy"),
            **outcome.versions,
        },
        levels=[nodes_level, _level("cost", cost, outcome.cost_bound)],
        solution=solution,
        instance=problem.state.snapshot,
    )


def _level(name: str, objective: Fraction | None, bound: TreeBound | None) -> TreeLevel:
    gap = None
    if objective is not None and bound is not None:
        gap = float(abs(objective - bound.value) / max(Fraction(1), abs(objective)))
    status = Status.UNKNOWN
    if objective is not None:
        proven = bound is not None and bound.value == objective
        status = Status.OPTIMAL if proven else Status.FEASIBLE
    return TreeLevel(
        name="nodes" if name == "nodes" else "cost",
        sense="max" if name == "nodes" else "min",
        status=status,
        objective=None if objective is None else fraction_model(objective),
        bound=None if bound is None else fraction_model(bound.value),
        gap=gap,
        proof=Proof.NONE if bound is None else bound.proof,
        certificate=None if bound is None else bound.certificate,
    )


def _solution(
    problem: TreeProblem, started: Mapping[int, IntArray], costs: Mapping[int, Fraction]
) -> TreeSolution:
    names = problem.state.tree.node_names
    return TreeSolution(
        allocations=[
            Allocation(
                request=problem.requests[idx].id,
                nodes=[names[node] for node in started[idx]],
                cost=fraction_model(cost),
            )
            for idx, cost in costs.items()
        ],
        cost=fraction_model(sum(costs.values(), Fraction(0))),
    )


def fraction_model(value: Fraction) -> FractionModel:
    """Return a rational number as it is written in documents."""
    return FractionModel(numerator=value.numerator, denominator=value.denominator)
