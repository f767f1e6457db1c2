"""Placement by the reference MiniZinc models `hierarchy.mzn` and `lib/dragonfly_links.mzn`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.explicit.chosen import Chosen
from topoplace.placement.dragonfly.problem import DragonflyProblem, Started
from topoplace.placement.hierarchy.minizinc import MAX_HOSTS, solve_level, totals
from topoplace.placement.hierarchy.minizinc import reference as on_hierarchies
from topoplace.snapshot.files import data_folder
from topoplace.solving import Options, Outcome, register
from topoplace.solving.minizinc import LevelRun, level_by_level, require_small

_LINKS = "lib/dragonfly_links"


@register("dragonfly", "minizinc")
def minizinc(problem: DragonflyProblem, options: Options) -> Outcome:
    """Place the queue by runs of the MiniZinc model, one per level; errors as on hierarchies."""
    own, links = problem.hierarchy, _links_of(problem)
    file = json.dumps(str(data_folder("models") / f"{_LINKS}.mzn"))
    if own.machine.num_hosts > MAX_HOSTS:
        expected = f"at most {MAX_HOSTS} routers for method minizinc"
        raise InputError(expected, field="machine.groups", value=own.machine.num_hosts)
    require_small(max(sum(request.value for request in problem.requests), len(problem.state.free)))

    def solved(level_idx: int, reached: Sequence[int], left: float | None) -> LevelRun[Started]:
        return solve_level(
            own,
            level_idx,
            reached,
            time_limit=left,
            definitions=f"include {file};",
            more=links,
            solver=options.solver,
        )

    nothing: Started = {}
    return level_by_level(
        problem.levels,
        solved,
        lambda s: totals(own, s),
        nothing,
        options,
        is_empty=not problem.requests,
    )


def reference(own: Chosen) -> tuple[str, dict[str, Any]]:
    """Return the models of a level, and their data."""
    assert isinstance(own.problem, DragonflyProblem)
    _, data = on_hierarchies(replace(own, problem=own.problem.hierarchy))
    return f"hierarchy {_LINKS}", data | _links_of(own.problem)


def _links_of(problem: DragonflyProblem) -> dict[str, Any]:
    """Return the data that the model of hierarchies lacks."""
    pairs = np.argwhere(np.triu(problem.state.taken_pairs, 1)) + 1
    return {
        "talks": [problem.uses_links(request) for request in problem.requests],
        "taken_pairs": pairs.tolist(),
    }
