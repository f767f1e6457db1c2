"""Placing with the mapping in mind, against placing first and mapping then.

Five grids of Enos 2014 wait for the machine of a shipped snapshot, each as a job of just the nodes
that its tasks fill. They are placed by the levels of the machine and then mapped, and placed by
nodes and hop-bytes; every job is mapped by the same methods with the same limits. The checker
confirms both results. Writes docs/studies/joint.csv and the table of docs/studies/joint.md.

    python scripts/study_joint.py [--snapshots blue_waters_60 ..] [--seconds 240]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

from study_mapping_gaps import SNAPSHOTS
from study_page import STUDIES, markdown, number, percent, stamp, write_between_markers, write_rows
from topoplace.certify import check_document
from topoplace.kernels import compile_for
from topoplace.machine import Prism
from topoplace.placement.torus.joint.applications import Applications
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.snapshot.machines import load_any
from topoplace.snapshot.schema import GridApplication, Request, Snapshot, TasksModel
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, solve

GRIDS = (
    ("32x32x32", 32),
    ("110x120", 16),
    ("168x132", 16),
    ("11x12x11x12", 24),
    ("21x2x21x24", 12),
)
"""Enos 2014, Tables III to VIII, with their most tasks per node."""

BEGIN = "<!-- tables: written by scripts/study_joint.py -->"
END = "<!-- end of tables -->"


@dataclass(frozen=True)
class Row:
    """Hop-bytes of the jobs that start on a snapshot, and what is proven of any placement."""

    snapshot: str
    started: int
    nodes: int
    nodes_bound: int | None
    place_then_map: int
    joint: int
    bound: int | None


def queue_of(name: str) -> Snapshot:
    """Return a shipped snapshot with the five grids as its queue."""
    snapshot = load_any(SNAPSHOTS / f"{name}.json").snapshot
    assert isinstance(snapshot, Snapshot)
    return snapshot.model_copy(update={"queue": [request(*grid) for grid in GRIDS]})


def request(grid: str, per_node: int) -> Request:
    """Return a job of as many XE nodes as the tasks of a grid fill, a byte to every neighbour."""
    shape = [int(n) for n in grid.split("x")]
    dims = len(shape)
    application = GridApplication(shape=shape, periodic=[False] * dims, bytes=[[1, 1]] * dims)
    nodes = -(-math.prod(shape) // per_node)
    tasks = TasksModel(application=application, per_node=per_node)
    return Request(id=grid, nodes=nodes, node_class="xe", tasks=tasks)


def placed_then_mapped(snapshot: Snapshot, seconds: float) -> tuple[int, int]:
    """Return nodes and hop-bytes of the placement by the levels of the machine."""
    state = prepare(snapshot)
    result = solve(state, "exact", Options(time_limit=seconds))
    assert check_document(result).holds, "the checker confirms it"
    assert result.solution is not None
    names = [one.id for one in snapshot.queue]
    applications = Applications(PlacementProblem(state, maps=True))
    total = 0
    for started in result.solution.placements:
        assert started.prism is not None
        prism = Prism(tuple(started.prism.origin), tuple(started.prism.extents))
        job = applications.mapped(Candidate(names.index(started.request), prism), 0)
        assert isinstance(job, MappedJob)
        print(f"    {started.request} in {prism.text}: {job.hop_bytes:,}", flush=True)
        total += job.hop_bytes
    assert result.objective is not None
    return result.objective, total


def row_of(name: str, seconds: float, keep: Path | None) -> Row:
    """Return what comes out on a snapshot."""
    snapshot = queue_of(name)
    print(f"{name}: place, then map", flush=True)
    nodes, then = placed_then_mapped(snapshot, seconds / 2)
    print(f"    {nodes:,} nodes, {then:,} hop-bytes; jointly", flush=True)
    result = solve(prepare(snapshot), "exact", Options(time_limit=seconds, maps=True))
    report = check_document(result)
    assert report.verified, str(report)
    if keep is not None:
        result.save(keep / f"{name}.json")
    assert result.solution is not None
    for one in result.solution.placements:
        assert one.prism is not None
        assert one.mapping is not None
        extents = "x".join(map(str, one.prism.extents))
        print(f"    {one.request} in {extents}: {one.mapping.hop_bytes:,}", flush=True)
    print(result, flush=True)
    first, second = result.levels
    assert first.objective == nodes, "both start as many nodes"
    assert second.objective is not None
    started = len(result.solution.placements)
    return Row(name, started, nodes, first.bound, then, second.objective, second.bound)


def table_of(rows: list[Row]) -> str:
    """Return the rows as a table."""
    head = ["snapshot", "started", "nodes", "bound", "place, then map", "jointly"]
    head += ["less", "bound of hop-bytes"]
    return markdown(
        head,
        1,
        [
            [
                *(row.snapshot, f"{row.started} of {len(GRIDS)}", number(row.nodes)),
                *(number(row.nodes_bound), number(row.place_then_map), number(row.joint)),
                _less(row),
                number(row.bound),
            ]
            for row in rows
        ],
    )


def _less(row: Row) -> str:
    """Return how much less the joint placement takes; a dash where no job starts."""
    return percent(1 - row.joint / row.place_then_map) if row.place_then_map else "-"


def main(arguments: list[str] | None = None) -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    busy = [f"blue_waters_{k}" for k in (50, 60, 70)]
    parser.add_argument("--snapshots", nargs="+", default=busy)
    parser.add_argument("--seconds", type=float, default=240.0, help="for each joint search")
    parser.add_argument("--work", type=Path, help="a folder for the results")
    options = parser.parse_args(arguments)
    compile_for("placement", ["exact"])
    rows = [row_of(name, options.seconds, options.work) for name in options.snapshots]
    write_rows(STUDIES / "joint.csv", rows)
    text = f"{stamp('study_joint.py', arguments)}\n\n{table_of(rows)}\n"
    write_between_markers(STUDIES / "joint.md", BEGIN, END, "Joint", text)


if __name__ == "__main__":
    main()
