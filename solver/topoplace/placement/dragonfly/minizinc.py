"""Placement by the reference MiniZinc models `hierarchy.mzn` and `lib/dragonfly_links.mzn`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from topoplace.explicit.chosen import Chosen
from topoplace.placement.dragonfly.problem import DragonflyProblem
from topoplace.placement.hierarchy.minizinc import by_levels
from topoplace.placement.hierarchy.minizinc import reference as on_hierarchies
from topoplace.snapshot.files import data_folder
from topoplace.solving import Options, Outcome, register

_LINKS = "lib/dragonfly_links"


@register("dragonfly", "minizinc")
def minizinc(problem: DragonflyProblem, options: Options) -> Outcome:
    """Place the queue by runs of the MiniZinc model, one per level; errors as on hierarchies."""
    file = json.dumps(str(data_folder("models") / f"{_LINKS}.mzn"))
    return by_levels(problem, options, f"include {file};", _links_of(problem))


def reference(own: Chosen) -> tuple[str, dict[str, Any]]:
    """Return the models of a level, and their data."""
    assert isinstance(own.problem, DragonflyProblem)
    _, data = on_hierarchies(own)
    return f"hierarchy {_LINKS}", data | _links_of(own.problem)


def _links_of(problem: DragonflyProblem) -> dict[str, Any]:
    """Return the data that the model of hierarchies lacks."""
    pairs = np.argwhere(np.triu(problem.dragonfly.taken_pairs, 1)) + 1
    return {
        "talks": [problem.uses_links(request) for request in problem.requests],
        "taken_pairs": pairs.tolist(),
    }
