"""Placing with the mapping in mind, against placing first and mapping then.

Five grids of Enos 2014 wait for the machine of a shipped snapshot, each as a job of just the nodes
that its tasks fill. They are placed by the levels of the machine and then mapped, and placed by
nodes and hop-bytes; every job is mapped by the same methods with the same limits. The checker
confirms both results. Writes docs/studies/joint.csv and the table of docs/studies/joint.md.

    python scripts/study_joint.py [--snapshots blue_waters_60 ..] [--seconds 240] [--work DIR]
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from study import SNAPSHOTS, Column, Record, Study, percent, table
from study_mapping_gaps import GRIDS as MOST_TASKS
from study_mapping_gaps import grid
from topoplace.certify import check_document
from topoplace.kernels import compile_for
from topoplace.machine import Prism
from topoplace.placement.torus.joint.applications import Applications
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.snapshot.machines import load_any
from topoplace.snapshot.schema import Request, Snapshot, TasksModel
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, solve

GRIDS = ("32x32x32", "110x120", "168x132", "11x12x11x12", "21x2x21x24")
"""Enos 2014, Tables III to VIII."""


def queue_of(name: str) -> Snapshot:
    """Return a shipped snapshot with the five grids as its queue."""
    snapshot = load_any(SNAPSHOTS / f"{name}.json").snapshot
    assert isinstance(snapshot, Snapshot)
    return snapshot.model_copy(update={"queue": [request(name) for name in GRIDS]})


def request(shape: str) -> Request:
    """Return a job of as many XE nodes as the tasks of a grid fill, a byte to every neighbour."""
    application, per_node = grid(shape), MOST_TASKS[shape]
    nodes = -(-math.prod(application.shape) // per_node)
    tasks = TasksModel(application=application, per_node=per_node)
    return Request(id=shape, nodes=nodes, node_class="xe", tasks=tasks)


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


def measure(name: str, seconds: float, keep: Path | None) -> Record:
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
    return Record(
        snapshot=name,
        started=len(result.solution.placements),
        nodes=nodes,
        nodes_bound=first.bound,
        place_then_map=then,
        joint=second.objective,
        bound=second.bound,
    )


COLUMNS: list[Column] = [
    *("snapshot", ("started", lambda row: f"{row.started} of {len(GRIDS)}"), "nodes"),
    *(("bound", "nodes_bound"), ("place, then map", "place_then_map"), ("jointly", "joint")),
    ("less", lambda row: percent(1 - row.joint / (row.place_then_map or 1)) if row.joint else "-"),
    ("bound of hop-bytes", "bound"),
]
"""How much less the joint placement takes has a dash where no job starts."""


def main(given: list[str] | None = None) -> None:
    """Run the study."""
    snapshots = [f"blue_waters_{k}" for k in (50, 60, 70)]
    study = Study("joint", __doc__, given, snapshots=[str], seconds=240.0, work=Path)
    own = study.options
    compile_for("placement", ["exact"])
    run = partial(measure, seconds=own.seconds, keep=own.work)
    rows = study.measured(run, own.snapshots or snapshots)
    study.write(rows)
    study.page(table(rows, COLUMNS))


if __name__ == "__main__":
    main()
