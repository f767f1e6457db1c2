"""Allocation of one request by the reference MiniZinc model, `models/tree_allocation.mzn`.

The model shares the steps' pairs with the other methods and states all else itself. It is there
to be compared with, on a handful of leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, TopoplaceError
from topoplace.placement.minizinc_program import checks_in, run_minizinc
from topoplace.placement.tree.patterns import pattern_steps
from topoplace.placement.tree.problem import TreeProblem
from topoplace.snapshot.machines import data_folder

MAX_COST = 1 << 30
"""Largest cost in the model's units: finite-domain solvers count in 32 bits."""


def model_file() -> Path:
    """Return the allocation model."""
    return data_folder("models") / "tree_allocation.mzn"


def checker_file() -> Path:
    """Return the model that checks an allocation and reports every violation."""
    return data_folder("models") / "tree_allocation.mzc.mzn"


def least_cost(
    problem: TreeProblem, arguments: Sequence[str] = (), *, checked: bool = False
) -> Fraction | None:
    """Return the least cost of the only request of a problem, or None if it does not fit.

    If `checked`, the checker model must find the allocation correct.

    Raises
    ------
    InputError
        If there is not one communication-intensive request, or costs are too large.
    MissingToolError
        If the `minizinc` program is not installed.
    TopoplaceError
        If MiniZinc does not finish, or its checker refuses.
    """
    data, unit = data_of(problem)
    model = model_file()
    more = [*arguments, *([str(checker_file())] if checked else [])]
    messages = run_minizinc(model, data, includes=model.parent, arguments=more)
    status = next(m["status"] for m in reversed(messages) if m["type"] == "status")
    if status == "UNSATISFIABLE":
        return None
    if status != "OPTIMAL_SOLUTION":
        raise TopoplaceError(f"minizinc ended with status {status}")
    if checked and set(said := checks_in(messages)) != {"CORRECT\n"}:
        raise TopoplaceError(f"the checker model says: {said}")
    found = next(m for m in reversed(messages) if m["type"] == "solution")
    return int(found["output"]["json"]["_objective"]) * unit


def data_of(problem: TreeProblem) -> tuple[dict[str, Any], Fraction]:
    """Return the model's data, and the cost that one unit of its objective stands for.

    Raises
    ------
    InputError
        If there is not one communication-intensive request, or costs are too large.
    """
    if len(problem.requests) != 1 or not problem.requests[0].intensive:
        raise InputError(
            "one request that communicates", field="queue", value=len(problem.requests)
        )
    request, state = problem.requests[0], problem.state
    tree = state.tree
    steps = [
        (step.pairs, use.share * use.message_bytes * step.weight)
        for use in request.patterns
        for step in pattern_steps(use.pattern, request.nodes)
    ]
    common = math.gcd(*(price for _, price in steps)) or 1
    scale = int(problem.costs.scale)
    prices = [price // common for _, price in steps]
    if 7 * int(tree.common_level.max()) * scale * max(1, sum(prices)) > MAX_COST:
        raise InputError(
            f"costs of at most {MAX_COST} units for the model", field="queue", value=request.id
        )
    pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *(own for own, _ in steps)])
    free = np.bincount(tree.leaf_of_node[state.free], minlength=tree.num_leaves)
    data = {
        "leaf_nodes": tree.nodes_per_leaf.tolist(),
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
