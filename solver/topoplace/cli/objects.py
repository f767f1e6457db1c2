"""`topoplace map` with objects: loads, many objects on a node, and a cap on their load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from topoplace.cli.output import end_with, shown

if TYPE_CHECKING:
    from topoplace.mapping.objects.problem import ObjectsProblem
    from topoplace.mapping.onto import Places
    from topoplace.mapping.problem import MappingProblem
    from topoplace.result.mapping import MappingResult
    from topoplace.result.objects import ObjectsResult
    from topoplace.snapshot.objects import ObjectsApplication
    from topoplace.snapshot.schema import AnyApplication
    from topoplace.solving import Options


@dataclass(frozen=True)
class Loads:
    """Most load of a node in averages, whether the nodes of a router share it, and who stays."""

    balance: str | None
    pooled: bool
    fixed: Path | None


def map_objects(
    application: ObjectsApplication | AnyApplication,
    places: Places,
    how: Loads,
    method: str,
    options: Options,
    progress: bool | None,
    output: Path | None,
    png: Path | None,
    csv: Path | None,
    figures: bool,
) -> NoReturn:
    """Map objects, say what came of it, write the files asked for, and end the command."""
    from topoplace.kernels import compile_for
    from topoplace.mapping.objects.applications import BALANCE, problem_of, read_fixed
    from topoplace.snapshot.files import csv_of, write_document, write_text
    from topoplace.solving import solve

    stay = [] if how.fixed is None else read_fixed(how.fixed)
    balance = how.balance or BALANCE
    problem = problem_of(application, places, balance, pooled=how.pooled, fixed=stay)
    method = "search" if method == "auto" else method
    compile_for("objects", [method])
    with shown(progress) as watch:
        result = solve(problem, method, replace(options, watch=watch))
    if output is not None:
        write_document(output, result)
    if png is not None:
        from topoplace.report.figure import write_figure

        write_figure(result, png)
    if csv is not None and result.solution is not None:
        write_text(csv, csv_of(("object", "node"), enumerate(result.solution.nodes)))
    more = phase_line(problem, result) if figures else []
    end_with(result, {"output": output, "png": png, "csv": csv}, more)


def phase_line(
    problem: MappingProblem | ObjectsProblem, result: MappingResult | ObjectsResult
) -> list[str]:
    """Return how long all messages of a mapping take at once, in a line; none without links."""
    import numpy as np

    from topoplace.mapping.contention import phase_time

    if result.solution is None or problem.machine.torus is None:
        return []
    time = phase_time(problem, np.asarray(result.solution.nodes, dtype=np.int64))
    return [f"all messages at once: about {time:,.6g} in the same unit, by a model of shared links"]
