"""Small cases for the tests of the MiniZinc models, and short ways to solve them."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest

from topoplace.placement.torus import minizinc as backend
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.state import prepare

HAS_MINIZINC = bool(shutil.which("minizinc") and importlib.util.find_spec("minizinc"))
needs_minizinc = pytest.mark.skipif(
    not HAS_MINIZINC and os.environ.get("CI") not in ("true", "1"),
    reason="the minizinc program or package is not installed (under CI=true this fails instead)",
)
WITHOUT = {
    "redundant": "mzn_ignore_redundant_constraints = true;",
    "symmetry": "mzn_ignore_symmetry_breaking_constraints = true;",
}
"""What leaves constraints out that are implied or break symmetry."""


def problem_of(snapshot: Snapshot, mode: Interference = Interference.STRICT) -> PlacementProblem:
    return PlacementProblem(prepare(snapshot), mode)


def solved(
    problem: PlacementProblem, definitions: str = "", *, checked: bool = False
) -> tuple[int, ...]:
    """Solve the levels one after the other and return their objectives.

    If `checked`, the checker model must find the last level's placement correct: it also judges
    the values of the earlier levels.
    """
    reached: list[int] = []
    for level in (1, 2, 3):
        judged = checked and level == 3
        run = backend.solve_level(problem, level, reached, checked=judged, definitions=definitions)
        assert run.complete
        assert run.objective is not None
        assert run.checks == ("CORRECT\n",) * judged
        reached.append(run.objective)
    return tuple(reached)
