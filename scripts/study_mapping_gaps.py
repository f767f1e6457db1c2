"""Certified gaps of the mappings of the papers' applications, against any mapping at all.

Two tables: the grids of Enos 2014 and Fiedler 2014 on Blue Waters, with nothing unusable and on the
shipped snapshots, and Table 3 of Bhatele 2008. Beside the structured mapping stands the best one
an unrestricted local search finds from it, to show which side of a gap is loose.
Writes the tables of docs/studies/mapping_gaps.md and their figures as CSV.

    python scripts/study_mapping_gaps.py [--snapshots empty 40 80] [--search SECONDS] [--seed N]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np

from study import FILLS, SNAPSHOTS, Column, Record, Study, percent, table, where
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.mapping.onto import Places, load_places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.schema import GridApplication
from topoplace.solving import Options, solve

GRIDS = {
    "110x120": 16,
    "168x132": 16,
    "32x32x32": 32,
    "40x30x25": 32,
    "8x8x8x8": 16,
    "11x12x11x12": 24,
    "21x2x21x24": 12,
}
"""Grids of Enos 2014 section IV and Fiedler 2014, with their most tasks per node."""

BHATELE_MESHES = ("4x4x8", "4x8x8", "8x8x8", "8x8x16")
BHATELE_GRIDS = (32, 16)

Case = tuple[str, str, MappingProblem]
"""Name of the machine, method of the structured mapping, and problem."""


def grid(shape: str, *, periodic: bool = False, num_bytes: int = 1) -> GridApplication:
    """Return a grid such as 4x8x8 with so many bytes for every neighbour."""
    extents = [int(n) for n in shape.split("x")]
    dims = len(extents)
    return GridApplication(
        shape=extents, periodic=[periodic] * dims, bytes=[[num_bytes] * 2] * dims
    )


def problem_of(shape: str, tasks_per_node: int, places: Places) -> MappingProblem:
    """Return the problem of a grid that does not wrap, a byte for every neighbour."""
    return problem_on(places, grid(shape), tasks_per_node, name=shape)


def blue_waters(names: Sequence[str]) -> list[Case]:
    """Return the papers' grids: on an ideal machine, then on every snapshot."""
    machines = {"nothing unusable": load_places("torus:24x24x24:2")}
    for name in names:
        path = SNAPSHOTS / f"blue_waters_{name}.json"
        machines[path.stem] = load_places(str(path))
    return [
        (machine, "pencils", problem_of(*one, places))
        for machine, places in machines.items()
        for one in GRIDS.items()
    ]


def bhatele() -> list[Case]:
    """Return Table 3 of Bhatele 2008: periodic 3D grids on meshes of dual-core nodes."""
    found = []
    for side in BHATELE_GRIDS:
        for mesh in BHATELE_MESHES:
            places, shape = load_places(f"mesh:{mesh}"), f"{side}x{side}x{side}"
            tasks_per_node = side**3 // len(places.nodes)
            application = grid(shape, periodic=True)
            problem = problem_on(places, application, tasks_per_node, name=shape)
            found.append((f"mesh {mesh}", "blocks", problem))
    return found


def measure(case: Case, search: float, seed: int) -> Record:
    """Map by the method, then by local search from its mapping, unless that is proven optimal.

    `best` is the structured mapping's hop-bytes, None if there is none; `searched` the best known
    with the local search.
    """
    machine, method, problem = case
    results: list[MappingResult] = []
    try:
        results.append(solve(problem, method, Options(time_limit=30, seed=seed)))
    except InputError as error:
        print(f"{machine} {problem.instance.name}: {error}", file=sys.stderr)
    first = results[0] if results else None
    if first is None or first.objective != first.bound:
        start = None
        if first is not None and first.solution is not None:
            start = np.asarray(first.solution.nodes, dtype=np.int64)
        options = Options(time_limit=search, seed=seed, start=start)
        # polish what there is; else begin with constructions for any graph
        results.append(solve(problem, "search" if start is None else "local-search", options))
    checked = all(check_document(result).holds for result in results)
    assert checked, f"the checker refuses {machine} {problem.instance.name}"
    return Record(
        machine=machine,
        grid=problem.instance.name,
        method=method,
        best=None if first is None else first.objective,
        searched=min((r.objective for r in results if r.objective is not None), default=None),
        bound=results[-1].bound,
        checked=checked,
    )


def _gap(field: str) -> Column:
    def gap(row: Record) -> str:
        value = getattr(row, field)
        return percent(None if value is None else (value - row.bound) / value)

    return "gap", gap


COLUMNS: list[Column] = [
    *(("nodes", "machine"), "grid", ("structured", "best"), _gap("best")),
    *(("with local search", "searched"), _gap("searched"), "bound"),
]


def write(study: Study, rows: Sequence[Record]) -> None:
    """Write the records and both tables."""
    study.write(rows)
    study.page(table(where(rows, method="pencils"), COLUMNS, 2))
    study.page(table(where(rows, method="blocks"), COLUMNS, 2), part="Bhatele")


def main(given: Sequence[str] | None = None) -> None:
    """Run both studies and write the page and its table."""
    study = Study("mapping_gaps", __doc__, given, snapshots=FILLS, search=20.0, seed=0)
    run = partial(measure, search=study.options.search, seed=study.options.seed)
    write(study, study.measured(run, [*blue_waters(study.options.snapshots), *bhatele()]))


if __name__ == "__main__":
    main()
