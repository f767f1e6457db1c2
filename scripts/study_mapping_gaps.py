"""Certified gaps of the mappings of the papers' applications, against any mapping at all.

Two tables: the grids of Enos 2014 and Fiedler 2014 on Blue Waters, with nothing unusable and on the
shipped snapshots, and Table 3 of Bhatele 2008. Beside the structured mapping stands the best one
an unrestricted local search finds from it, to show which side of a gap is loose.
Writes docs/studies/mapping_gaps.md and its figures as CSV.

    python scripts/study_mapping_gaps.py [--snapshots empty,40,80] [--search SECONDS] [--seed N]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from study_page import STUDIES, markdown, number, percent, stamp, write_rows
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.mapping.onto import Places, load_places
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.files import write_text
from topoplace.snapshot.schema import GridApplication, MappingInstance
from topoplace.solving import Options, solve

SNAPSHOTS = STUDIES.parent.parent / "instances" / "snapshots"

GRIDS = (
    ("2D", (110, 120), 16),
    ("2D", (168, 132), 16),
    ("3D", (32, 32, 32), 32),
    ("3D", (40, 30, 25), 32),
    ("4D", (8, 8, 8, 8), 16),
    ("4D", (11, 12, 11, 12), 24),
    ("4D", (21, 2, 21, 24), 12),
)
"""Grids of Enos 2014 section IV and Fiedler 2014, with their most tasks per node."""

BHATELE_MESHES = ((4, 4, 8), (4, 8, 8), (8, 8, 8), (8, 8, 16))
BHATELE_GRIDS = (32, 16)


@dataclass(frozen=True)
class Row:
    """One application on one set of nodes.

    `best` is the structured mapping's hop-bytes, None if there is none; `searched` the best known
    with the local search.
    """

    machine: str
    grid: str
    method: str
    best: int | None
    searched: int | None
    bound: int
    checked: bool

    @property
    def gap(self) -> float | None:
        """Gap of the structured mapping."""
        return None if self.best is None else (self.best - self.bound) / self.best

    @property
    def searched_gap(self) -> float | None:
        """Gap of the best mapping known."""
        return None if self.searched is None else (self.searched - self.bound) / self.searched


def problem_of(
    grid: tuple[int, ...],
    periodic: bool,
    tasks_per_node: int,
    places: Places,
    num_bytes: int = 1,
) -> MappingProblem:
    """Return the mapping problem of a grid with so many bytes for every neighbour."""
    dims = len(grid)
    return prepare_mapping(
        MappingInstance(
            schema_version="topoplace.mapping/1",
            name="x".join(map(str, grid)),
            machine=places.machine,
            nodes=places.node_set,
            tasks_per_node=tasks_per_node,
            application=GridApplication(
                shape=list(grid), periodic=[periodic] * dims, bytes=[[num_bytes] * 2] * dims
            ),
        )
    )


def row_of(problem: MappingProblem, machine: str, method: str, search: float, seed: int) -> Row:
    """Return the row of a problem: the method, then the local search from its mapping."""
    first: MappingResult | None = None
    try:
        first = solve(problem, method, Options(time_limit=30, seed=seed))
    except InputError as error:
        print(f"{machine} {problem.instance.name}: {error}", file=sys.stderr)
    results = [] if first is None else [first]
    if first is None or first.objective != first.bound:
        start = None
        if first is not None and first.solution is not None:
            start = np.asarray(first.solution.nodes, dtype=np.int64)
        options = Options(time_limit=search, seed=seed, start=start)
        # polish what there is; else begin with constructions for any graph
        results.append(solve(problem, "search" if start is None else "local-search", options))
    found = [r.objective for r in results if r.objective is not None]
    bound = results[-1].bound
    assert bound is not None
    return Row(
        machine=machine,
        grid=problem.instance.name,
        method=method,
        best=None if first is None else first.objective,
        searched=min(found, default=None),
        bound=bound,
        checked=all(check_document(result).holds for result in results),
    )


def blue_waters_rows(names: list[str], search: float, seed: int) -> list[Row]:
    """Return the rows of the papers' grids: on an ideal machine, then on every snapshot."""
    machines = {"nothing unusable": load_places("torus:24x24x24:2")}
    for name in names:
        path = SNAPSHOTS / f"blue_waters_{name}.json"
        machines[path.stem] = load_places(str(path))
    rows = []
    for machine, places in machines.items():
        for _, grid, tasks_per_node in GRIDS:
            problem = problem_of(grid, False, tasks_per_node, places)
            rows.append(row_of(problem, machine, "pencils", search, seed))
            print(rows[-1], file=sys.stderr)
    return rows


def bhatele_rows(search: float, seed: int) -> list[Row]:
    """Return the rows of Bhatele 2008, Table 3: periodic 3D grids on meshes of dual-core nodes."""
    rows = []
    for side in BHATELE_GRIDS:
        for mesh in BHATELE_MESHES:
            text = "x".join(map(str, mesh))
            places = load_places(f"mesh:{text}")
            tasks_per_node = side**3 // len(places.nodes)
            problem = problem_of((side,) * 3, True, tasks_per_node, places)
            rows.append(row_of(problem, f"mesh {text}", "blocks", search, seed))
            print(rows[-1], file=sys.stderr)
    return rows


def table(rows: list[Row]) -> str:
    """Return rows as a Markdown table."""
    head = ["nodes", "grid", "structured", "gap", "with local search", "gap", "bound"]
    lines = []
    for row in rows:
        assert row.checked, f"the checker refuses {row}"
        best, searched = number(row.best), number(row.searched)
        gaps = percent(row.gap), percent(row.searched_gap)
        lines.append([row.machine, row.grid, best, gaps[0], searched, gaps[1], number(row.bound)])
    return markdown(head, 2, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both studies and write the page and its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--snapshots", default="empty,20,30,40,50,60,70,80")
    parser.add_argument("--search", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    names = [name for name in options.snapshots.split(",") if name]
    blue_waters = blue_waters_rows(names, options.search, options.seed)
    bhatele = bhatele_rows(options.search, options.seed)
    page = [
        "# Certified gaps of mappings",
        "",
        stamp("study_mapping_gaps.py", arguments),
        "",
        "Hop-bytes with one byte to every neighbour. *structured* is the best pencil placement",
        "over all layouts and windows within 30 s (the second table: Bhatele's topology-aware",
        f"blocks), *with local search* the best mapping after {options.search:g} s of unrestricted",
        "search from it (from recursive bisection where there is none),",
        "*bound* holds for any mapping of that many tasks per node onto the usable nodes. Every",
        "result was accepted by the checker. Where the search closes little of a gap, the bound is",
        "likely the loose side.",
        "",
        "## Blue Waters",
        "",
        table(blue_waters),
        "",
        "A dash: no pencil window was found within the 30 s.",
        "",
        "## Bhatele 2008, Table 3",
        "",
        "Periodic 3D grids of chares on meshes (XT3 partitions, no wrap), 512^3 elements in",
        "chares of 16^3 (32x32x32) and 32^3 (16x16x16); *structured* equals the paper's counts.",
        "",
        table(bhatele),
    ]
    write_text(STUDIES / "mapping_gaps.md", "\n".join(page) + "\n")
    write_rows(STUDIES / "mapping_gaps.csv", [*blue_waters, *bhatele])


if __name__ == "__main__":
    main()
