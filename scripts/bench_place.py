"""Measure `topoplace place` on the shipped snapshots beside the naive model; run by `make bench`.

The naive model gives the candidates of every request to CP-SAT at once, level 1 only. It is what a
modeller would write first, so it is what the exact method is measured against: once with all
candidates, and once with the minimal ones alone, those that contain no other candidate of their
request. The others start the same nodes and take more routers and links, so no optimum of level 1
needs them; to see that is the first thing a modeller would do against the size.

The command is timed as a user sees it, with its start-up; the naive model runs in a process of its
own: its memory goes back to the machine. Long runs are those of `topoplace batch --time-limit`.

    python scripts/bench_place.py [--snapshots 80] [--runs N] [--naive-limit S]
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from study import ROOT, SNAPSHOTS, Column, Record, groups, parsed, percent, spawned, table, timed
from topoplace.machine import Prism, uses_whole_ring
from topoplace.placement.torus.footprints import Footprints
from topoplace.placement.torus.oracle import _minimal
from topoplace.placement.torus.oracle.groups import Group, list_minimal
from topoplace.placement.torus.oracle.pricing import ScanPricer
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot.machines import load_snapshot

WORKERS = 2
MAX_CANDIDATES = 1_000_000
MAX_LITERALS = 60_000_000
"""More than this would take many GB of memory in CP-SAT; such a model is not built."""


# ---- The naive model -----------------------------------------------------------------------------


def solve_naively(
    problem: PlacementProblem, *, minimal: bool, time_limit: float, workers: int
) -> Record:
    """Maximise the nodes started by CP-SAT, over all candidates or over the minimal ones.

    `solving` are the seconds of CP-SAT, the last part of all.
    """
    found = Record(status="too large", objective=None, bound=None, candidates=0, solving=0.0)
    tables = list(_tables(problem, minimal=minimal))
    found.candidates = sum(len(requests) * number for requests, number, _ in tables)
    if found.candidates > MAX_CANDIDATES:
        return found
    candidates = [
        Candidate(i, p) for requests, _, prisms in tables for p in prisms for i in requests
    ]
    covered = _covered(problem, candidates)
    if sum(map(len, covered)) > MAX_LITERALS:
        return found
    model = cp_model.CpModel()
    variables = [model.new_bool_var("") for _ in candidates]
    for members in _groups(covered):
        model.proto.constraints.add().at_most_one.literals.extend(members)
    for own in groups(range(len(candidates)), lambda k: candidates[k].request_idx).values():
        model.add_at_most_one(variables[k] for k in own)
    values = [problem.requests[candidate.request_idx].value for candidate in candidates]
    model.maximize(cp_model.LinearExpr.weighted_sum(variables, values))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit
    solver.parameters.num_workers = workers
    status, found.solving = timed(partial(solver.solve, model))
    found.status = solver.status_name(status).lower()
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found.objective = round(solver.objective_value)
    # 0 is what CP-SAT says before it has a bound: with candidates no bound can be that low
    bound = math.floor(solver.best_objective_bound + 1e-6)
    found.bound = bound if bound or not candidates else None
    return found


def _covered(problem: PlacementProblem, candidates: list[Candidate]) -> list[NDArray[np.int32]]:
    """Return the packing rows of every candidate that can decide anything.

    A link with both ends in a prism is shared only by prisms that share its routers, so a link's
    row is left out if no candidate uses the link from outside.
    """
    torus, rows = problem.torus, TorusPacking(problem)
    from_outside = np.zeros(rows.num_rows, dtype=bool)
    from_outside[: rows.num_covers] = True
    for candidate in candidates:
        sizes = zip(candidate.prism.extents, torus.shape, strict=True)
        if any(e < n and uses_whole_ring(torus, d, e) for d, (e, n) in enumerate(sizes)):
            from_outside[rows.rows_of(candidate)] = True
    every = map(rows.rows_of, candidates)
    return [own[from_outside[own]].astype(np.int32) for own in every]


def _groups(covered: list[NDArray[np.int32]]) -> Iterator[list[int]]:
    """Yield the candidates that hold a row, for every set of at least two, once."""
    if not covered:
        return
    flat = np.concatenate(covered)
    owner = np.repeat(np.arange(len(covered), dtype=np.int32), [len(rows) for rows in covered])
    order = np.argsort(flat, kind="stable")
    ends = np.flatnonzero(np.diff(flat[order])) + 1
    holders = {members.tobytes(): members for members in np.split(owner[order], ends)}
    yield from (members.tolist() for members in holders.values() if len(members) > 1)


def _tables(
    problem: PlacementProblem, *, minimal: bool
) -> Iterator[tuple[list[int], int, Iterator[Prism]]]:
    """Yield requests of a size, how many prisms they may take, and the prisms.

    Raises
    ------
    ValueError
        If a request has a geometry: its candidates are few, and containment says nothing there.
    """
    if any(request.geometries for request in problem.requests):
        raise ValueError("the naive model knows no geometries")
    for group in ScanPricer(problem).groups:
        for nodes in sorted({problem.requests[idx].nodes for idx in group.requests}):
            alike = [idx for idx in group.requests if problem.requests[idx].nodes == nodes]
            yield alike, *(_minimal_prisms if minimal else _all_prisms)(group, nodes)


def _minimal_prisms(group: Group, nodes: int) -> tuple[int, Iterator[Prism]]:
    """Return how many prisms there are that contain no smaller one, and yield them."""
    view = group.view
    alone = replace(group, sizes=np.array([nodes]))
    found = list_minimal(alone, 1, math.inf, np.arange(len(view.bases)))
    assert found is not None, "the machines here have few enough"

    def prisms() -> Iterator[Prism]:
        for listing in found:
            for i, (f, line) in enumerate(zip(listing.footprints, listing.at, strict=True)):
                for entry in listing.entries[listing.starts[i] : listing.starts[i + 1]]:
                    z, past = _minimal.extent_of(entry, view.depth)
                    yield _prism(view, int(f), int(line), int(z), past + 1)

    return sum(len(listing.entries) for listing in found), prisms()


def _all_prisms(group: Group, nodes: int) -> tuple[int, Iterator[Prism]]:
    """Return how many free prisms hold the nodes, and yield them."""
    view, reach = group.view, group.depths[group.row]
    low = np.full(reach.shape, np.iinfo(np.int16).max, dtype=np.int16)
    ahead = np.arange(view.depth)[:, None] + np.arange(view.depth)  # slices from every first one
    for f in range(len(reach)):
        lines, first = np.nonzero(reach[f])
        corners = view.bases[:, None] + view.box[f]
        per_slice = np.einsum("lkz,k->lz", group.count_sat[corners], view.signs)
        held = np.take(per_slice, ahead % view.depth, axis=1)[lines, first].cumsum(axis=1)
        low[f, lines, first] = (held < nodes).sum(axis=1) + 1
    numbers = np.maximum(reach.astype(np.int64) - low + 1, 0)

    def prisms() -> Iterator[Prism]:
        for f, line, z in np.argwhere(numbers).tolist():
            for depth in range(low[f, line, z], reach[f, line, z] + 1):
                yield _prism(view, f, line, z, depth)

    return int(numbers.sum()), prisms()


def _prism(view: Footprints, f: int, line: int, z: int, depth: int) -> Prism:
    return view.prism(((f * view.depth + depth - 1) * len(view.bases) + line) * view.depth + z)


# ---- Measuring -----------------------------------------------------------------------------------


def naive(label: str, *, minimal: bool, time_limit: float) -> Record:
    """Solve a shipped snapshot by the naive model."""
    problem = PlacementProblem(load_snapshot(SNAPSHOTS / f"blue_waters_{label}.json"))
    run = partial(solve_naively, problem, minimal=minimal, time_limit=time_limit, workers=WORKERS)
    found, found_seconds = timed(run)
    return Record(**vars(found), seconds=found_seconds)


def command(label: str) -> tuple[Record, float]:
    """Run the command; return the result document and its wall time."""
    snapshot = str(SNAPSHOTS / f"blue_waters_{label}.json")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        call = [sys.executable, "-m", "topoplace", "place", snapshot, "-o", str(result)]
        # this checkout's package, whatever is installed
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "solver")}
        run = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL, env=environment)
        _, seconds = timed(lambda: run(call))
        return Record(**json.loads(result.read_text())), seconds


def _gap(run: Record) -> str | None:
    if run.objective is None or run.bound is None:
        return None
    return percent(abs(run.objective - run.bound) / max(1, abs(run.objective)), 2)


def _ratio(row: Record) -> str:
    run, best = row.naive, min(row.seconds)
    if run.status == "too large":
        return "-"
    more = "" if run.status == "optimal" else "> "
    return f"{more}{run.seconds / best:.1f} ({run.solving / best:.1f})"


def _of(name: str) -> list[Column]:
    """Return the columns of a run: of the command (`ours`), or of the naive model."""
    return [
        ("status", lambda row: getattr(row, name).status),
        ("objective", lambda row: getattr(row, name).objective),
        ("bound", lambda row: getattr(row, name).bound),
        ("gap", lambda row: _gap(getattr(row, name))),
    ]


COLUMNS: list[Column] = [
    "snapshot",
    ("command, min (median) s", lambda row: f"{min(row.seconds):.2f} ({row.median:.2f})"),
    *(*_of("ours"), ("naive model", "model"), ("candidates", lambda row: row.naive.candidates)),
    ("s (in CP-SAT)", lambda row: f"{row.naive.seconds:.1f} ({row.naive.solving:.1f})"),
    *(*_of("naive"), ("ratio (CP-SAT)", _ratio)),
]


def main(given: Sequence[str] | None = None) -> None:
    """Measure and print the command beside the naive model (docs/develop/benchmarks.md)."""
    labels = ["50", "60", "70", "80"]
    options = parsed(__doc__, given, snapshots=labels, runs=3, naive_limit=60.0)
    command("80")  # the first run of all compiles the kernels, so it is not timed
    rows = []
    for label in options.snapshots:
        documents, seconds = zip(*(command(label) for _ in range(options.runs)), strict=True)
        median = statistics.median(seconds)
        ours = Record(snapshot=label, ours=documents[0], seconds=seconds, median=median)
        for model, minimal in (("all", False), ("minimal", True)):
            with spawned(1) as pool:
                run = partial(naive, label, minimal=minimal, time_limit=options.naive_limit)
                rows.append(Record(**vars(ours), model=model, naive=pool.submit(run).result()))
            print(table(rows[-1:], COLUMNS, len(COLUMNS)).splitlines()[-1], file=sys.stderr)
    print(table(rows, COLUMNS, len(COLUMNS)))


if __name__ == "__main__":
    main()
