"""Mapping 4,096 tasks onto trees of three levels: our methods, Scotch and the order by rank.

Every application is mapped by every method in one run, the searches within 60 s each; the last
row has the bound, whose certificate the checker has confirmed. Writes docs/studies/levels.md and
its figures as CSV.

    python scripts/study_levels.py [--seconds 60] [--seed N]
"""

from __future__ import annotations

import argparse
import resource
from dataclasses import dataclass, replace

import numpy as np

from study_page import STUDIES, markdown, number, percent, stamp, write_rows
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.kernels import compile_for
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.parallelism import parallelism
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.files import write_text
from topoplace.snapshot.schema import AnyApplication, GraphApplication, GridApplication
from topoplace.solving import Options, method_of, solve

METHODS = ("default", "hilbert", "nested-boxes", "bisection", "scotch")
"""Beside `auto`; the order by rank is `default`."""


def grid() -> GridApplication:
    """Return a closed grid of 16 x 16 x 16 tasks that send a byte to every neighbour."""
    return GridApplication(shape=[16] * 3, periodic=[True] * 3, bytes=[[1, 1]] * 3)


def points(seed: int, num: int = 4096, degree: int = 12) -> GraphApplication:
    """Return tasks at random points of a square that talk to some 12 near ones, 1 to 8 bytes."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 - heavy

    rng = np.random.default_rng(seed)
    near = (degree / (np.pi * num)) ** 0.5
    ends = cKDTree(rng.random((num, 2))).query_pairs(near, output_type="ndarray")
    sizes = rng.integers(1, 9, size=len(ends))
    return GraphApplication(
        num_tasks=num,
        sources=ends[:, 0].tolist(),
        targets=ends[:, 1].tolist(),
        bytes=sizes.tolist(),
    )


def cases(seed: int) -> list[tuple[str, str, AnyApplication]]:
    """Return names, machines and applications."""
    racks = "sharedmap:4:18:57/1:1:10"
    return [
        ("grid 16x16x16", "sharedmap:8:8:64/1:10:100", grid()),
        ("grid 16x16x16", "sharedmap:16:16:16/1:10:100", grid()),
        ("training, tensor last", racks, parallelism("pipeline=8,data=64,tensor=8")),
        ("training, tensor first", racks, parallelism("tensor=8,pipeline=8,data=64")),
        ("experts", racks, parallelism("pipeline=4,data=16,expert=16,tensor=4")),
        ("random points", "sharedmap:16:16:16/1:10:100", points(seed)),
    ]


@dataclass(frozen=True)
class Row:
    """What a method reached; `cost` is None where it refuses the problem."""

    application: str
    machine: str
    method: str
    cost: int | None
    bound: int | None
    cpu_seconds: float
    checked: bool | None


def cpu_seconds() -> float:
    """Return the CPU time used so far, by programs started as well."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def rows_of(name: str, on: str, problem: MappingProblem, options: Options) -> list[Row]:
    """Return a row for every method, that of `auto` with its bound last."""
    places = np.repeat(problem.nodes, problem.tasks_per_node)
    shuffled = np.random.default_rng(options.seed).permutation(places)[: problem.num_tasks]
    rows = [Row(name, on, "random", hop_bytes(problem, shuffled), None, 0.0, None)]
    for method in METHODS:
        began, cost = cpu_seconds(), None
        try:
            outcome = method_of("mapping", method).solver(problem, options)
            if outcome.solution is not None:
                cost = hop_bytes(problem, outcome.solution.nodes)
        except InputError as refused:
            print(f"{name}, {method}: {refused}")
        rows.append(Row(name, on, method, cost, None, cpu_seconds() - began, None))
        print(rows[-1], flush=True)
    began = cpu_seconds()
    result = solve(problem, "auto", options)
    spent = cpu_seconds() - began
    checked = check_document(result).holds
    rows.append(Row(name, on, "auto", result.objective, result.bound, spent, checked))
    print(rows[-1], flush=True)
    return [replace(row, bound=result.bound) for row in rows]


def page(rows: list[Row], seconds: float) -> str:
    """Return the study's page."""
    cells = [
        [
            row.application,
            row.machine.removeprefix("sharedmap:"),
            row.method,
            number(row.cost),
            percent(None if not row.cost or row.bound is None else 1 - row.bound / row.cost),
            number(row.bound) if row.method == "auto" else "",
            f"{row.cpu_seconds:.1f}",
        ]
        for row in rows
    ]
    head = ["application", "machine", "method", "cost", "gap", "bound", "CPU s"]
    return f"""# 4,096 tasks on trees of three levels

{stamp("study_levels.py", None)}

Machines are written as SharedMap does: `8:8:64/1:10:100` has 8 leaves in a domain, 8 of these in a
larger one and 64 of those, and a byte costs 1, 10 or 100 by the level at which its ends meet. Each
method had {seconds:g} s (of a busy machine: the last column has the CPU time it got, programs it
started included). *gap* is that to the bound, which holds for any mapping and comes with `auto`;
the checker has confirmed every certificate. `default` is the order by rank, `hilbert` the best of
three orders domain by domain, `bisection` recursive bisection of graph and machine at once. Scotch
knows regular trees only of its own kind (`tleaf`) and is asked for one task on a leaf (`-b0`).

The 57 racks are NVL72-like: trays of 4 GPUs, 18 of them in a rack where everything is equally
near, and 4,104 GPUs for 4,096 ranks; bytes between racks cost ten times as much. With the
tensor ranks last, the order by rank is nearly optimal; with them first it is not, which is the
topic of [training jobs](../guide/training-jobs.md). [Proofs](../proofs/levels.md) explains the
certificates.

{markdown(head, 3, cells)}
"""


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    compile_for("mapping", [*METHODS, "auto"])
    options = Options(time_limit=given.seconds, seed=given.seed)
    rows = []
    for name, on, application in cases(given.seed):
        rows += rows_of(name, on, problem_on(load_places(on), application), options)
        write_text(STUDIES / "levels.md", page(rows, given.seconds))
        write_rows(STUDIES / "levels.csv", rows)


if __name__ == "__main__":
    main()
