"""How far schedulers of hierarchies are from what is possible.

Four parts, each of which writes its tables into docs/studies/schedulers.md and a CSV file:

recorded
    Decisions that Slurm and Kueue took, audited. DATA has their files; the tables of a scheduler
    go into its page in docs/guide/schedulers/, too.
alone
    Jobs on clusters of NVL72 racks (`nvl72.py`), each alone, by the rules of the schedulers: racks
    used, and the fewest.
queue
    The queues of these clusters at once: hosts started, and the bound.
torus
    Jobs on a torus with anchored prisms: what Slurm's rule blocks, and the least.

The checker verifies every optimum, or the study stops.

    python scripts/study_schedulers.py PART [--data DIR] [--seeds N N ..] [--time-limit S]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import schedulers_page as page
from anchored_torus import busy_torus
from nvl72 import HOSTS, cluster
from schedulers_page import AloneRow, QueueRow, RecordedRow, TorusRow
from study_page import STUDIES, stamp
from topoplace.certify import check_document
from topoplace.errors import TopoplaceError
from topoplace.formats.decisions import decision_of
from topoplace.result import Result
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.schema import HierarchyModel, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, solve
from topoplace.study.audit.cases import Case, case_of_decision, load_cases
from topoplace.study.audit.run import Audit, audit_cases

LOADS = (50, 60, 70, 80, 90)
SEEDS = (500, 501, 502)
RACKS = 56
RACKS_OF_UNIT = 8
JOBS = {"alone": 12, "queue": 40, "torus": 12}

# ---- Recorded decisions --------------------------------------------------------------------------


def recorded_cases(data: Path) -> dict[str, list[Case]]:
    """Return the recorded decisions by the page of their scheduler."""
    slurm = load_cases([data / "slurm_block" / "decisions.jsonl"])[0]
    tree = [case for case in slurm if case.group.startswith("tree")]
    return {
        "slurm-block": [case for case in slurm if case not in tree],
        "slurm-tree": [*tree, *linear_cases(data / "slurm_real")],
        "kueue": load_cases([data / "kueue_real" / "decisions.jsonl"])[0],
    }


def linear_cases(folder: Path) -> Iterator[Case]:
    """Yield what a Slurm of select/linear decided on a tree: free nodes, a number, a choice."""
    topology = (folder / "topology.conf").read_text()
    every = {f"n{k:03d}" for k in range(1, 65)}
    for one in json.loads((folder / "decisions.json").read_text()):
        line = {
            "config": "linear",
            "slurm": "22.05.8",
            "plugin": "topology/tree",
            "topology": topology,
            "free": one["free"],
            "down": [],
            "busy": sorted(every - set(one["free"])),
            "request": {"nodes": one["nodes"], "segment": None, "options": ""},
            "outcome": "running",
            "chosen": one["chosen"],
            "how": "live",
        }
        case = case_of_decision(decision_of(line))
        yield Case(case.snapshot, case.started, case.outcome, case.levels, "tree, select/linear")


def recorded(data: Path) -> dict[str, Audit]:
    """Audit the recorded decisions, those on blocks under Slurm's contract too."""
    contracts = {"slurm-block": "slurm-block"}
    return {
        name: audit_cases(cases, contract=contracts.get(name))
        for name, cases in recorded_cases(data).items()
    }


def recorded_rows(audits: Mapping[str, Audit]) -> list[RecordedRow]:
    """Return a row per decision."""
    return [
        RecordedRow(
            name,
            row.instance,
            row.group,
            row.verdict,
            row.free.verdict,
            row.free.used,
            row.free.fewest,
        )
        for name, audit in audits.items()
        for row in audit.rows
    ]


# ---- Clusters of racks ---------------------------------------------------------------------------


def asked(snapshot: Snapshot, segments: bool) -> Snapshot:
    """Return a cluster as a site would have it.

    Racks are base blocks of Slurm, and the only size that is enforced. All requests prefer racks,
    which tells Kueue to pack them; the optimum does not read it. Without segments they ask for
    nothing else.
    """
    changes: dict[str, Any] = {"preferred": "rack"} | ({} if segments else {"segments": None})
    queue = [request.model_copy(update=changes) for request in snapshot.queue]
    return _with_machine(snapshot, block_sizes=[HOSTS]).model_copy(update={"queue": queue})


def in_units(snapshot: Snapshot) -> Snapshot:
    """Return a cluster with a level above racks: units of eight."""
    names = [own.domains[0] for own in _model(snapshot).hosts if own.domains]
    units = {name: f"u{k // RACKS_OF_UNIT}" for k, name in enumerate(dict.fromkeys(names))}
    return _below(snapshot, "unit", [units[name] for name in names])


def under_one_switch(snapshot: Snapshot) -> Snapshot:
    """Return a cluster with a common switch: without one no job of Slurm spans two units."""
    rooted = _below(snapshot, "root", ["root"] * len(_model(snapshot).hosts))
    return _with_machine(rooted, block_sizes=None)


def _model(snapshot: Snapshot) -> HierarchyModel:
    assert isinstance(snapshot.machine, HierarchyModel)
    return snapshot.machine


def _with_machine(snapshot: Snapshot, **changes: Any) -> Snapshot:
    return snapshot.model_copy(update={"machine": _model(snapshot).model_copy(update=changes)})


def _below(snapshot: Snapshot, level: str, domains: Sequence[str]) -> Snapshot:
    """Return a cluster with one more level on top, and its domain of each entry of hosts."""
    model = _model(snapshot)
    hosts = [
        own.model_copy(update={"domains": [top, *(own.domains or [])]})
        for own, top in zip(model.hosts, domains, strict=True)
    ]
    return _with_machine(snapshot, levels=[level, *model.levels], hosts=hosts)


def solved(snapshot: Snapshot, method: str, options: Options) -> Result[Any, Any, Any]:
    """Solve a snapshot, of an exact method with the checker's word on it."""
    given = under_one_switch(snapshot) if method == "slurm-tree" else snapshot
    is_torus = not isinstance(snapshot.machine, HierarchyModel)
    result = solve(prepare(given) if is_torus else prepare_hierarchy(given), method, options)
    if method == "exact" and not check_document(result).holds:
        raise TopoplaceError(f"{snapshot.name}: a claim does not hold")
    return result


def value(result: Result[Any, Any, Any], level: str) -> int:
    """Return what a result reaches on a level."""
    return next(one.objective or 0 for one in result.levels if one.name == level)


def bound(result: Result[Any, Any, Any], level: str) -> int | None:
    """Return the bound of a result on a level."""
    return next(one.bound for one in result.levels if one.name == level)


def regret(
    own: Result[Any, Any, Any], best: Result[Any, Any, Any], levels: Sequence[str]
) -> tuple[int, int]:
    """Return what is used and the least on the first level that differs, else on the last."""
    used = least = 0
    for level in levels:
        used, least = value(own, level), bound(best, level) or 0
        if used != least:
            break
    return used, least


def alone(seeds: Sequence[int], racks: int, jobs: int, options: Options) -> Iterator[AloneRow]:
    """Yield a row per cluster, kind of request and method, over all its jobs one by one."""
    for load, seed, segments in ((ld, s, g) for ld in LOADS for s in seeds for g in (True, False)):
        drawn = in_units(cluster(seed, racks, load=load / 100, jobs=jobs))
        snapshot = asked(drawn, segments)
        rows = {m: AloneRow(load, seed, segments, m) for m in page.METHODS}
        for request in snapshot.queue:
            one = snapshot.model_copy(update={"queue": [request]})
            best = solved(one, "exact", options)
            if value(best, "nodes") == 0:
                continue
            for method, row in rows.items():
                own = best if method == "exact" else solved(one, method, options)
                row.count(value(own, "nodes") > 0, *regret(own, best, ("unit", "rack")))
        yield from rows.values()


def queue(seeds: Sequence[int], racks: int, jobs: int, options: Options) -> Iterator[QueueRow]:
    """Yield a row per cluster and method, its whole queue at once."""
    for load, seed in ((ld, s) for ld in LOADS for s in seeds):
        snapshot = asked(cluster(seed, racks, load=load / 100, jobs=jobs), segments=True)
        for method in page.QUEUE_METHODS:
            result = solved(snapshot, method, options)
            placements = result.solution.placements if result.solution is not None else ()
            yield QueueRow(
                load,
                seed,
                method,
                len(placements),
                value(result, "nodes"),
                bound(result, "nodes"),
                value(result, "rack"),
                bound(result, "rack"),
            )


# ---- A torus with anchored prisms ----------------------------------------------------------------


def torus(seeds: Sequence[int], jobs: int, options: Options) -> Iterator[TorusRow]:
    """Yield a row per torus and method: its jobs one by one, and all at once."""
    for load, seed in ((ld, s) for ld in LOADS for s in seeds):
        snapshot = busy_torus(seed, load / 100, jobs)
        rows = {m: TorusRow(load, seed, m) for m in page.TORUS_METHODS}
        results = {m: solved(snapshot, m, options) for m in rows}
        for method, row in rows.items():
            row.started = value(results[method], "nodes")
            row.bound = bound(results["exact"], "nodes") or 0
        idle = solved(snapshot.model_copy(update={"queue": []}), "first-fit", options)
        before = value(idle, "fragmentation")
        for request in snapshot.queue:
            one = snapshot.model_copy(update={"queue": [request]})
            best = solved(one, "exact", options)
            if value(best, "nodes") == 0:
                continue
            for method, row in rows.items():
                own = best if method == "exact" else solved(one, method, options)
                used, least = regret(own, best, ["fragmentation"])
                row.count(value(own, "nodes") > 0, used - before, least - before)
        yield from rows.values()


# ---- The command ---------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one part and write it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("part", choices=("recorded", "alone", "queue", "torus"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--racks", type=int, default=RACKS)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--time-limit", type=float, default=10.0, help="of exact; default 10 s")
    parser.add_argument("-o", "--output", type=Path, default=STUDIES)
    given = parser.parse_args(arguments)
    run = stamp("study_schedulers.py", arguments)
    options = Options(time_limit=given.time_limit)
    jobs = given.jobs or JOBS.get(given.part, 0)
    if given.part == "recorded":
        audits = recorded(given.data)
        page.write_recorded(given.output, run, audits, recorded_rows(audits))
    elif given.part == "alone":
        page.write_alone(given.output, run, list(alone(given.seeds, given.racks, jobs, options)))
    elif given.part == "queue":
        page.write_queue(given.output, run, list(queue(given.seeds, given.racks, jobs, options)))
    else:
        page.write_torus(given.output, run, list(torus(given.seeds, jobs, options)))


if __name__ == "__main__":
    main()
