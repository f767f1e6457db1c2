"""Placement by the reference MiniZinc models `hierarchy.mzn` and `lib/dragonfly_links.mzn`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from topoplace.errors import InputError
from topoplace.placement.dragonfly.problem import DragonflyProblem, Started
from topoplace.placement.hierarchy.minizinc import MAX_HOSTS, solve_level, totals
from topoplace.snapshot.files import data_folder
from topoplace.solving import Options, Outcome, register
from topoplace.solving.minizinc import LevelRun, level_by_level, require_small


@register("dragonfly", "minizinc")
def minizinc(problem: DragonflyProblem, options: Options) -> Outcome:
    """Place the queue by runs of the MiniZinc model, one per level; errors as on hierarchies."""
    own, links = problem.hierarchy, links_of(problem)
    if own.machine.num_hosts > MAX_HOSTS:
        expected = f"at most {MAX_HOSTS} routers for method minizinc"
        raise InputError(expected, field="machine.groups", value=own.machine.num_hosts)
    require_small(max(sum(request.value for request in problem.requests), len(problem.state.free)))

    def solved(level_idx: int, reached: Sequence[int], left: float | None) -> LevelRun[Started]:
        return solve_level(
            own, level_idx, reached, time_limit=left, definitions=links, solver=options.solver
        )

    levels = problem.levels if problem.requests else ()
    nothing: Started = {}
    return level_by_level(levels, solved, lambda s: totals(own, s), nothing, options)


def links_of(problem: DragonflyProblem) -> str:
    """Return what the model of hierarchies lacks."""
    talks = [problem.uses_links(request) for request in problem.requests]
    pairs = np.argwhere(np.triu(problem.state.taken_pairs, 1)) + 1
    file = json.dumps(str(data_folder("models") / "lib" / "dragonfly_links.mzn"))
    listed = ", ".join(map(str, pairs.ravel().tolist()))
    taken = f"array2d(1..{len(pairs)}, 1..2, [{listed}])"
    return f"include {file};\ntalks = {json.dumps(talks)};\ntaken_pairs = {taken};\n"
