"""How far schedulers of hierarchies are from what is possible.

Four parts, each of which writes its tables into docs/studies/schedulers.md and a CSV file:

recorded
    Decisions that Slurm and Kueue took, audited. DATA has their files; the tables of a scheduler
    go into its page in docs/guide/schedulers/, too.
alone
    Jobs on clusters of NVL72 racks (`families.py`), each alone, by the rules of the schedulers:
    racks used, and the fewest.
queue
    The queues of these clusters at once: hosts started, and the bound.
torus
    Jobs on a torus with anchored prisms: what Slurm's rule blocks, and the least.

The checker verifies every optimum, or the study stops.

    python scripts/study_schedulers.py PART [--data DIR] [--seeds N N ..] [--time-limit S]
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from families import HOSTS, busy_torus, cluster
from study import Column, Record, Study, curve, groups, percent, sums, table, total, where
from topoplace.certify import check_document
from topoplace.errors import TopoplaceError
from topoplace.formats.decisions import decision_of
from topoplace.result import Result
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.schema import HierarchyModel, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, solve
from topoplace.study.audit.cases import Case, case_of_decision, load_cases
from topoplace.study.audit.judging import Verdict
from topoplace.study.audit.run import Audit, Group, audit_cases

Solved = Result[Any, Any, Any]

METHODS = (
    *("exact", "kueue", "kueue-balanced", "kueue-least-free", "slurm-block", "slurm-tree"),
    *("tree-best-fit", "first-fit", "random"),
)
QUEUE_METHODS = tuple(method for method in METHODS if method != "slurm-tree")
TORUS_METHODS = ("exact", "slurm-torus3d", "best-fit", "first-fit")
PLOTTED = ("kueue", "kueue-least-free", "slurm-block", "slurm-tree", "tree-best-fit", "first-fit")
LOADS = (50, 60, 70, 80, 90)
RACKS_OF_UNIT = 8


def finish(
    study: Study, part: str, rows: Sequence[Record], text: str, own: Mapping[str, str]
) -> None:
    """Write the records and the text of a part; pages of schedulers get tables of their `own`."""
    study.write(rows, f"_{part}")
    study.page(text, part=part, title="Schedulers of hierarchies against the optimum")
    for name, tables in own.items():
        page = study.folder.parent / "guide" / "schedulers" / f"{name}.md"
        if page.exists():
            study.page(tables, part=part, page=page)


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


def recorded(study: Study) -> None:
    """Audit the recorded decisions, those on blocks under Slurm's contract too.

    Records have what is found under the contract and free, and domains of the level of its regret.
    """
    audits = {
        name: audit_cases(cases, contract=name if name == "slurm-block" else None)
        for name, cases in recorded_cases(study.options.data).items()
    }
    rows = [
        Record(
            scheduler=name,
            decision=row.instance,
            group=row.group,
            verdict=row.verdict,
            free_verdict=row.free.verdict,
            used=row.free.used,
            fewest=row.free.fewest,
        )
        for name, audit in audits.items()
        for row in audit.rows
    ]
    tables = {name: recorded_table(audit) for name, audit in audits.items()}
    text = "\n\n".join(f"### {name}\n\n{table}" for name, table in tables.items())
    finish(study, "recorded", rows, text, tables)


def recorded_table(audit: Audit) -> str:
    """Return a table with a row per group of decisions, and one for all."""

    def optimal(group: Group) -> str:
        started = group.free.started
        return percent((started - group.free.above) / started if started else None)

    columns: list[Column] = [
        ("decisions", "name"),
        ("", "decisions"),
        ("started", lambda group: group.free.started),
        ("optimal", optimal),
        ("used", lambda group: group.free.used),
        ("fewest", lambda group: group.free.fewest),
        ("regret", lambda g: f"{float(g.free.percent):.1f} %" if g.free.started else "-"),
        ("waiting", "waiting"),
        *([] if audit.contract is None else [("fits the contract", "fits_contract")]),
        ("fits, free", "fits"),
        ("invalid", lambda group: group.verdicts[Verdict.INVALID]),
    ]
    return table([*audit.groups, audit.total], columns)


# ---- Solving -------------------------------------------------------------------------------------


def solved(snapshot: Snapshot, method: str, options: Options) -> Solved:
    """Solve a snapshot, of an exact method with the checker's word on it."""
    given = under_one_switch(snapshot) if method == "slurm-tree" else snapshot
    is_torus = not isinstance(snapshot.machine, HierarchyModel)
    result = solve(prepare(given) if is_torus else prepare_hierarchy(given), method, options)
    if method == "exact" and not check_document(result).holds:
        raise TopoplaceError(f"{snapshot.name}: a claim does not hold")
    return result


def value(result: Solved, level: str) -> int:
    """Return what a result reaches on a level."""
    return next(one.objective or 0 for one in result.levels if one.name == level)


def bound(result: Solved, level: str) -> int | None:
    """Return the bound of a result on a level."""
    return next(one.bound for one in result.levels if one.name == level)


def one_by_one(
    snapshot: Snapshot, methods: Sequence[str], options: Options, *levels: str, before: int = 0
) -> dict[str, dict[str, int]]:
    """Return how every method places the jobs of a queue, each as if it were alone.

    Of the jobs that `fit` some are `placed`; of these some are `optimal`: they use no more than the
    least. What is `used`, and the `fewest`, are those of the first level that differs, else of the
    last, above what is used `before` any job comes.
    """
    fields = ("fit", "placed", "optimal", "used", "fewest")
    counted = {method: dict.fromkeys(fields, 0) for method in methods}
    for request in snapshot.queue:
        one = snapshot.model_copy(update={"queue": [request]})
        best = solved(one, "exact", options)
        for method, counts in counted.items() if value(best, "nodes") else ():
            own = best if method == "exact" else solved(one, method, options)
            pairs = [(value(own, level), bound(best, level) or 0) for level in levels]
            used, fewest = next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])
            counts["fit"] += 1
            if value(own, "nodes"):
                counts["placed"] += 1
                counts["optimal"] += used == fewest
                counts["used"] += used - before
                counts["fewest"] += fewest - before
    return counted


def regret(rows: Sequence[Record]) -> float | None:
    """Return what is used above the fewest, as a share of these."""
    fewest = total(rows, "fewest")
    return (total(rows, "used") - fewest) / max(1, fewest) if total(rows, "placed") else None


def alone_table(rows: Sequence[Record]) -> str:
    """Return a table with a row per method: all loads added up, and the regret by load."""

    def optimal(own: Sequence[Record]) -> str:
        placed = total(own, "placed")
        return percent(total(own, "optimal") / placed if placed else None)

    columns: list[Column] = [
        *("method", ("jobs that fit", "fit"), "placed", ("with the least", optimal)),
        *("used", ("least", "fewest")),
        ("regret", lambda own: percent(regret(own))),
    ]
    for load in sorted({row.load for row in rows}):
        columns.append((f"at {load} %", lambda own, at=load: percent(regret(where(own, load=at)))))
    return table(groups(rows, "method").values(), columns)


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


def drawn(study: Study, jobs: int) -> Iterator[tuple[int, int, Snapshot]]:
    """Yield the clusters of a study: load, seed and snapshot."""
    for load, seed in itertools.product(LOADS, study.options.seeds):
        yield load, seed, cluster(seed, study.options.racks, load=load / 100, jobs=jobs)


def alone(study: Study, jobs: int, options: Options) -> Iterator[Record]:
    """Place the jobs of every cluster one by one, with segments and without."""
    for load, seed, snapshot in drawn(study, jobs):
        for segments in (True, False):
            own = asked(in_units(snapshot), segments)
            for method, counts in one_by_one(own, METHODS, options, "unit", "rack").items():
                yield Record(load=load, seed=seed, segments=segments, method=method, **counts)


def write_alone(study: Study, rows: Sequence[Record]) -> None:
    """Write the tables, and draw the regret of methods that place half of the jobs at least."""
    kinds = {True: "With segments", False: "Without segments"}
    parts = [f"### {title}\n\n{alone_table(where(rows, segments=k))}" for k, title in kinds.items()]
    finish(study, "alone", rows, "\n\n".join(parts), {})
    with study.picture("_alone", 1, 2, figsize=(10, 4)) as (figure, panels):
        for panel, (segments, title) in zip(panels[0], kinds.items(), strict=True):
            for colour, method in enumerate(PLOTTED):
                own = groups(where(rows, segments=segments, method=method), "load")
                if all(2 * total(some, "placed") >= total(some, "fit") for some in own.values()):
                    points = [(load, 100 * (regret(some) or 0)) for load, some in own.items()]
                    curve(panel, points, color=f"C{colour}", label=method)
            panel.set_title(f"each job alone, {title.lower()}", size=10)
            panel.set(xlabel="hosts in use, %", ylabel="domains above the fewest, %")
            panel.legend(fontsize=8)
        figure.tight_layout()


def queue(study: Study, jobs: int, options: Options) -> Iterator[Record]:
    """Place the whole queue of every cluster at once; bounds are those of `exact`."""
    for load, seed, snapshot in drawn(study, jobs):
        for method in QUEUE_METHODS:
            result = solved(asked(snapshot, segments=True), method, options)
            yield Record(
                load=load,
                seed=seed,
                method=method,
                jobs=len(result.solution.placements if result.solution is not None else ()),
                hosts=value(result, "nodes"),
                bound=bound(result, "nodes"),
                racks=value(result, "rack"),
                racks_bound=bound(result, "rack"),
            )


def write_queue(study: Study, rows: Sequence[Record]) -> None:
    """Write the table, and draw how many hosts each method starts less than the bound."""

    def proven(own: Sequence[Record]) -> str:
        best = where(own, method="exact")
        return f"{sum(row.hosts == row.bound for row in best)} of {len(best)}"

    columns: list[Column] = [
        ("load", lambda own: f"{own[0].load} %"),
        *((method, sums("hosts", method=method)) for method in QUEUE_METHODS),
        *(("bound", sums("bound", method="exact")), ("proven", proven)),
        *(("racks of exact", sums("racks", method="exact")), ("bound", "racks_bound")),
    ]
    by_load = groups(rows, "load")
    finish(study, "queue", rows, table(by_load.values(), columns), {})
    with study.picture("_queue", 1, 1, figsize=(6, 4)) as (figure, ((panel,),)):
        for colour, method in enumerate((*QUEUE_METHODS[1:], "exact")):
            points = []
            for load, own in by_load.items():
                most = total(where(own, method="exact"), "bound")
                points.append((load, 100 * (most - sums("hosts", method=method)(own)) / most))
            curve(panel, points, color=f"C{colour}", label=method)
        panel.set_title("whole queues, with segments", size=10)
        panel.set(xlabel="hosts in use, %", ylabel="hosts not started, % of the bound")
        panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.tight_layout()


# ---- A torus with anchored prisms ----------------------------------------------------------------


def torus(study: Study, jobs: int, options: Options) -> Iterator[Record]:
    """Place the jobs of every torus one by one, and all at once."""
    for load, seed in itertools.product(LOADS, study.options.seeds):
        snapshot = busy_torus(seed, load / 100, jobs)
        results = {m: solved(snapshot, m, options) for m in TORUS_METHODS}
        most = bound(results["exact"], "nodes") or 0
        idle = solved(snapshot.model_copy(update={"queue": []}), "first-fit", options)
        before = value(idle, "fragmentation")
        counted = one_by_one(snapshot, TORUS_METHODS, options, "fragmentation", before=before)
        for method, counts in counted.items():
            about = {"load": load, "seed": seed, "method": method} | counts
            yield Record(**about, started=value(results[method], "nodes"), bound=most)


def write_torus(study: Study, rows: Sequence[Record]) -> None:
    """Write the tables of jobs one by one, and of nodes started by load with the bound."""
    columns: list[Column] = [
        ("load", lambda own: f"{own[0].load} %"),
        *((method, sums("started", method=method)) for method in TORUS_METHODS),
        ("bound", sums("bound", method="exact")),
    ]
    text = f"{alone_table(rows)}\n\n{table(groups(rows, 'load').values(), columns)}"
    finish(study, "torus", rows, text, {"slurm-torus3d": text})


PARTS = {
    "alone": (alone, write_alone, 12),
    "queue": (queue, write_queue, 40),
    "torus": (torus, write_torus, 12),
}
"""What measures a part, what writes it, and how many jobs wait."""


def main(given: Sequence[str] | None = None) -> None:
    """Measure one part and write it."""
    parts, data = {"part": ("recorded", *PARTS)}, Path("../shared/data")
    options = {"data": data, "seeds": [500, 501, 502], "racks": 56, "jobs": int}
    study = Study("schedulers", __doc__, given, parts, **options, time_limit=10.0)
    if study.options.part == "recorded":
        recorded(study)
        return
    measure, write, jobs = PARTS[study.options.part]
    limit = Options(time_limit=study.options.time_limit)
    write(study, list(measure(study, study.options.jobs or jobs, limit)))


if __name__ == "__main__":
    main()
