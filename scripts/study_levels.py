"""Mapping 4,096 tasks onto trees of three levels: our methods, Scotch and the order by rank.

Every application is mapped by every method in one run, the searches within 60 s each; the last
row has the bound, whose certificate the checker has confirmed. Writes the table of
docs/studies/levels.md and its figures as CSV.

    python scripts/study_levels.py [--seconds 60] [--seed N]
"""

from __future__ import annotations

import resource
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from study import Column, Record, Study, percent, table, timed
from study_mapping_gaps import grid
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.kernels import compile_for
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.parallelism import parallelism
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import AnyApplication, GraphApplication
from topoplace.solving import Options, method_of, solve

METHODS = ("default", "hilbert", "nested-boxes", "bisection", "scotch")
"""Beside `auto`; the order by rank is `default`."""


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
        ("grid 16x16x16", "sharedmap:8:8:64/1:10:100", grid("16x16x16", periodic=True)),
        ("grid 16x16x16", "sharedmap:16:16:16/1:10:100", grid("16x16x16", periodic=True)),
        ("training, tensor last", racks, parallelism("pipeline=8,data=64,tensor=8")),
        ("training, tensor first", racks, parallelism("tensor=8,pipeline=8,data=64")),
        ("experts", racks, parallelism("pipeline=4,data=16,expert=16,tensor=4")),
        ("random points", "sharedmap:16:16:16/1:10:100", points(seed)),
    ]


def cpu_seconds() -> float:
    """Return the CPU time used so far, by programs started as well."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def records(name: str, on: str, problem: MappingProblem, options: Options) -> Iterator[Record]:
    """Yield a record for every method, that of `auto` last, without the bound.

    The cost is None where a method refuses the problem.
    """
    about = {"application": name, "machine": on}
    places = np.repeat(problem.nodes, problem.tasks_per_node)
    shuffled = np.random.default_rng(options.seed).permutation(places)[: problem.num_tasks]
    rest = {"bound": None, "cpu_seconds": 0.0, "checked": None}
    yield Record(**about, method="random", cost=hop_bytes(problem, shuffled), **rest)
    for method in METHODS:
        row = Record(**about, method=method, cost=None, **rest)
        try:
            run = partial(method_of("mapping", method).solver, problem, options)
            outcome, row.cpu_seconds = timed(run, cpu_seconds)
            if outcome.solution is not None:
                row.cost = hop_bytes(problem, outcome.solution.nodes)
        except InputError as refused:
            print(f"{name}, {method}: {refused}")
        yield row
    result, seconds = timed(partial(solve, problem, "auto", options), cpu_seconds)
    rest = {"bound": result.bound, "cpu_seconds": seconds}
    checked = check_document(result).holds
    yield Record(**about, method="auto", cost=result.objective, **rest, checked=checked)


def _gap(row: Record) -> str:
    return percent(None if not row.cost or row.bound is None else 1 - row.bound / row.cost)


COLUMNS: list[Column] = [
    *("application", ("machine", lambda row: row.machine.removeprefix("sharedmap:")), "method"),
    *("cost", ("gap", _gap), ("bound", lambda row: row.bound if row.method == "auto" else "")),
    ("CPU s", lambda row: f"{row.cpu_seconds:.1f}"),
]


def main(given: Sequence[str] | None = None) -> None:
    """Run the study."""
    study = Study("levels", __doc__, given, seconds=60.0, seed=0)
    seed = study.options.seed
    compile_for("mapping", [*METHODS, "auto"])
    options = Options(time_limit=study.options.seconds, seed=seed)
    rows: list[Record] = []
    for name, on, application in cases(seed):
        problem = problem_on(load_places(on), application)
        own = study.measured(lambda row: row, records(name, on, problem, options))
        for row in own:
            row.bound = own[-1].bound
        rows += own
        study.write(rows)
        study.page(table(rows, COLUMNS, 3))


if __name__ == "__main__":
    main()
