"""One request by the reference MiniZinc model of contention, `models/tree_allocation.mzn`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from topoplace.errors import InputError, TopoplaceError
from topoplace.explicit.chosen import Chosen
from topoplace.placement.switches.outcome import costs_of
from topoplace.placement.switches.patterns import pattern_steps
from topoplace.placement.switches.problem import TreeProblem
from topoplace.solving.minizinc import minizinc_versions, require_small, run_minizinc
from topoplace.solving.outcome import Bound, Outcome
from topoplace.solving.registry import Options, register


@register("allocation", "minizinc")
def minizinc(problem: TreeProblem, options: Options) -> Outcome:
    """Place the only request at the least cost; the optimum is a bound found by search.

    Raises
    ------
    InputError
        If there are several requests, or the costs are too large.
    MissingToolError
        If the `minizinc` program is not installed.
    """
    data, unit = data_of(problem)
    run = run_minizinc(
        "tree_allocation", data, time_limit=options.time_limit, solver=options.solver
    )
    versions = minizinc_versions(options.solver)
    if run.solution is None:
        fits = run.status != "UNSATISFIABLE"
        return Outcome({}, [] if fits else [Bound(0), Bound(Fraction(0))], fits, versions=versions)
    state = problem.state
    left = {
        leaf: iter(np.flatnonzero((state.free[:, 0] > 0) & (state.machine.leaf_of == leaf)))
        for leaf in range(state.machine.num_leaves)
    }
    started = {0: np.array([next(left[leaf - 1]) for leaf in run.solution.leaf], dtype=np.int64)}
    cost, told = costs_of(problem, started)[0], int(run.solution.objective) * unit
    if cost != told:
        raise TopoplaceError(f"minizinc reports a cost of {told} for a placement of {cost}")
    optimal = run.status == "OPTIMAL_SOLUTION"
    bounds = [Bound(problem.requests[0].value), *([Bound(cost)] if optimal else [])]
    return Outcome(started, bounds, not optimal, versions=versions)


def reference(own: Chosen) -> tuple[str, dict[str, Any]]:
    """Return the model and its data, the same on both levels."""
    assert isinstance(own.problem, TreeProblem)
    return "tree_allocation", data_of(own.problem)[0]


def data_of(problem: TreeProblem) -> tuple[dict[str, Any], Fraction]:
    """Return the data of the model, and the cost of a unit of its objective."""
    if len(problem.requests) != 1:
        expected = "one request, for the model of contention"
        raise InputError(expected, field="queue", value=len(problem.requests))
    (request,), state = problem.requests, problem.state
    tree = state.machine
    steps = [
        (step.pairs, use.share * use.message_bytes * step.weight)
        for use in request.patterns
        for step in pattern_steps(use.pattern, request.nodes)
    ]
    common = math.gcd(*(price for _, price in steps)) or 1
    scale = int(problem.costs.scale)
    prices = [price // common for _, price in steps]
    require_small(7 * int(tree.common_level.max()) * scale * max(1, sum(prices)))
    pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *(own for own, _ in steps)])
    free = np.bincount(tree.leaf_of[state.free[:, 0] > 0], minlength=tree.num_leaves)
    data = {
        "leaf_nodes": tree.leaf_sizes.tolist(),
        "leaf_comm": state.comm.tolist(),
        "leaf_free": free.tolist(),
        "common_level": tree.common_level.ravel().tolist(),
        "ranks": request.nodes,
        "step_price": prices,
        "pair_step": [number for number, (own, _) in enumerate(steps, 1) for _ in own],
        "pair_one": (pairs[:, 0] + 1).tolist(),
        "pair_other": (pairs[:, 1] + 1).tolist(),
        "hops_scale": scale,
    }
    return data, Fraction(common, 100 * scale)
