"""Mapping by the reference MiniZinc model, `models/task_mapping.mzn` (DESIGN 7).

It is there to be compared with, on graphs of a handful of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace.errors import InputError, TopoplaceError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.placement.minizinc_program import checks_in, run_minizinc
from topoplace.snapshot.machines import data_folder

MAX_VALUE = 1 << 30
"""Largest bytes x hops accepted: finite-domain solvers count in 32 bits."""


@dataclass(frozen=True)
class ModelMapping:
    """What the model found.

    Attributes
    ----------
    routers
        Router of every task.
    hop_bytes
        Bytes x hops, the least there are.
    checks
        What the checker model said of it, if it was asked.
    """

    routers: IntArray
    hop_bytes: int
    checks: tuple[str, ...]


def minizinc_mapping(
    problem: MappingProblem, *, checked: bool = False, arguments: Sequence[str] = ()
) -> ModelMapping:
    """Return a best mapping of a problem by the MiniZinc model.

    Raises
    ------
    InputError
        If the values are too large for the model.
    MissingToolError
        If the `minizinc` program is not installed.
    """
    largest = problem.graph.total_bytes * problem.machine.diameter
    if largest > MAX_VALUE:
        raise InputError(
            f"bytes x hops of at most {MAX_VALUE} for MiniZinc", field="bytes", value=largest
        )
    model = data_folder("models") / "task_mapping.mzn"
    checker = (str(model.with_name("task_mapping.mzc.mzn")),) if checked else ()
    usable = np.flatnonzero(problem.capacity)
    messages = run_minizinc(
        model, data_of(problem, usable), includes=model.parent, arguments=(*arguments, *checker)
    )
    status = [m["status"] for m in messages if m["type"] == "status"][-1]
    if status != "OPTIMAL_SOLUTION":
        raise TopoplaceError(f"minizinc ended with {status}")
    found = [m["output"]["json"] for m in messages if m["type"] == "solution"][-1]
    return ModelMapping(
        usable[np.asarray(found["router"], dtype=np.int64)],
        int(found["_objective"]),
        checks_in(messages),
    )


def data_of(problem: MappingProblem, usable: IntArray) -> dict[str, Any]:
    """Return the model's data, the usable routers numbered from 0."""
    hops = problem.machine.hops(usable[:, None], usable[None, :])
    return {
        "num_tasks_in": problem.num_tasks,
        "num_routers_in": len(usable),
        "room_in": problem.capacity[usable].tolist(),
        "distance_in": hops.ravel().tolist(),
        "source": problem.graph.sources.tolist(),
        "target": problem.graph.targets.tolist(),
        "bytes_in": problem.graph.bytes.tolist(),
    }
