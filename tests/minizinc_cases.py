"""Small cases for the tests of the MiniZinc models, and short ways to solve them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from topoplace.placement.hierarchy import minizinc as hierarchy
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.placement.torus import minizinc as torus
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving.minizinc import model_files, run_minizinc

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
    problem: PlacementProblem | HierarchyProblem, definitions: str = "", *, checked: bool = False
) -> tuple[int, ...]:
    """Solve the levels one after the other and return their objectives.

    If `checked`, the checker model must find the last level's placement correct: it also judges
    the values of the earlier levels.
    """
    reached: list[int] = []
    solve_level, levels = torus.solve_level, range(1, 4)
    if isinstance(problem, HierarchyProblem):
        solve_level, levels = hierarchy.solve_level, range(len(problem.levels))
    for level in levels:
        judged = checked and level == levels[-1]
        run = solve_level(problem, level, reached, checked=judged, definitions=definitions)
        assert run.complete
        assert run.objective is not None
        assert run.checks == ("CORRECT\n",) * judged
        reached.append(run.objective)
    return tuple(reached)


Claimed = dict[str, tuple[str, str, Any]]
"""By array of a model its index sets, its type, and the values that are claimed."""


def said_of(
    folder: Path, name: str, libraries: Sequence[str], data: Mapping[str, Any], claimed: Claimed
) -> str:
    """Return what the checker model of a model says of values that are claimed for it."""
    lines = [f'include "{model_files(name)[0].parent}/lib/{library}.mzn";' for library in libraries]
    values = dict(data)
    for array, (index, kind, own) in claimed.items():
        declared = f"array[{index}] of" if index else ""
        lines += [f"{declared} {kind}: claimed_{array};", f"{declared} var {kind}: {array};"]
        one, other = (f"array1d({a})" if index else f"[{a}]" for a in (array, f"claimed_{array}"))
        lines.append(f"constraint forall(k in index_set({one}))({one}[k] = {other}[k]);")
        values[f"claimed_{array}"] = own
    model = folder / "claim.mzn"
    model.write_text("\n".join([*lines, "solve maximize objective;"]))
    (report,) = run_minizinc(name, values, checked=True, model=model).checks
    return report
