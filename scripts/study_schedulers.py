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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from anchored_torus import busy_torus
from nvl72 import HOSTS, cluster
from study_page import (
    STUDIES,
    markdown,
    number,
    percent,
    picture,
    stamp,
    write_between_markers,
    write_rows,
)
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TITLE = "Schedulers of hierarchies against the optimum"
END = "<!-- end of tables -->"

METHODS = (
    *("exact", "kueue", "kueue-balanced", "kueue-least-free", "slurm-block", "slurm-tree"),
    *("tree-best-fit", "first-fit", "random"),
)
QUEUE_METHODS = tuple(method for method in METHODS if method != "slurm-tree")
TORUS_METHODS = ("exact", "slurm-torus3d", "best-fit", "first-fit")
PLOTTED = ("kueue", "kueue-least-free", "slurm-block", "slurm-tree", "tree-best-fit", "first-fit")


def begin(part: str) -> str:
    """Return the marker before the tables of a part."""
    return f"<!-- {part}: written by scripts/study_schedulers.py -->"


@dataclass(frozen=True)
class RecordedRow:
    """A recorded decision: what is found, under a contract where it is held to one, and free.

    `used` and `fewest` are domains of the level of its regret; None where nothing counts.
    """

    scheduler: str
    decision: str
    group: str
    verdict: str
    free_verdict: str
    used: int | None
    fewest: int | None


@dataclass
class Counted:
    """Jobs placed one by one that could be, how a method does, added up.

    Attributes
    ----------
    fit, placed, optimal
        Jobs that fit; of these placed; of these with the least.
    used, fewest
        Over the jobs placed: what they use, racks or blocked nodes, and the least.
    """

    fit: int = 0
    placed: int = 0
    optimal: int = 0
    used: int = 0
    fewest: int = 0

    def count(self, is_placed: bool, used: int, fewest: int) -> None:
        """Add a job that fits."""
        self.fit += 1
        if is_placed:
            self.placed += 1
            self.optimal += used == fewest
            self.used += used
            self.fewest += fewest

    def add(self, other: Counted) -> None:
        """Add what others have counted."""
        for name in Counted.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def regret(self) -> float:
        """What is used above the least, as a share of the least."""
        return (self.used - self.fewest) / max(1, self.fewest)


@dataclass
class _Alone:
    load: int
    seed: int
    segments: bool
    method: str


@dataclass
class AloneRow(Counted, _Alone):
    """A method on a cluster, each job of its queue alone."""


@dataclass(frozen=True)
class QueueRow:
    """A method on the queue of a cluster; bounds of `exact` only."""

    load: int
    seed: int
    method: str
    jobs: int
    hosts: int
    bound: int | None
    racks: int
    racks_bound: int | None


@dataclass
class _Torus:
    load: int
    seed: int
    method: str


@dataclass
class TorusRow(Counted, _Torus):
    """A method on a torus: each job alone, and nodes started of the whole queue with the bound."""

    started: int = 0
    bound: int = 0


# ---- Recorded decisions --------------------------------------------------------------------------


def write_recorded(
    folder: Path, run: str, audits: Mapping[str, Audit], rows: Sequence[RecordedRow]
) -> None:
    """Write the tables of all audits, each on the page of its scheduler too, and the CSV file."""
    write_rows(folder / "schedulers_recorded.csv", rows)
    tables = {name: recorded_table(audit) for name, audit in audits.items()}
    joined = "\n\n".join(f"### {name}\n\n{table}" for name, table in tables.items())
    _write(folder, "recorded", f"{run}\n\n{joined}")
    pages = folder.parent / "guide" / "schedulers"
    for name, table in tables.items():
        path = pages / f"{name}.md"
        if path.exists():
            write_between_markers(path, begin("recorded"), END, name, table)


def recorded_table(audit: Audit) -> str:
    """Return a table with a row per group of decisions, and one for all."""
    head = ["decisions", "", "started", "optimal", "used", "fewest", "regret"]
    head += ["waiting", "fits, free", "invalid"]
    if audit.contract is not None:
        head[8:8] = ["fits the contract"]
    return markdown(head, 1, [_recorded_cells(group) for group in (*audit.groups, audit.total)])


def _recorded_cells(group: Group) -> list[str]:
    free, started = group.free, group.free.started
    cells = [group.name, number(group.decisions), number(started)]
    cells += [percent((started - free.above) / started if started else None)]
    cells += [number(free.used), number(free.fewest)]
    cells += [f"{float(free.percent):.1f} %" if started else "-", number(group.waiting)]
    cells += [] if group.fits_contract is None else [number(group.fits_contract)]
    return [*cells, number(group.fits), number(group.verdicts[Verdict.INVALID])]


# ---- Drawn states --------------------------------------------------------------------------------

Row = TypeVar("Row", AloneRow, TorusRow)


def summed(rows: Iterable[Counted]) -> Counted:
    """Return what rows have counted, added up."""
    total = Counted()
    for row in rows:
        total.add(row)
    return total


def write_alone(folder: Path, run: str, rows: Sequence[AloneRow]) -> None:
    """Write the tables of jobs placed one by one, the CSV file and the plots."""
    write_rows(folder / "schedulers_alone.csv", rows)
    parts = [run]
    for segments, title in ((True, "With segments"), (False, "Without segments")):
        own = [row for row in rows if row.segments is segments]
        parts.append(f"### {title}\n\n{alone_table(own, METHODS)}")
    _write(folder, "alone", "\n\n".join(parts))
    _draw_alone(folder / "schedulers_alone.png", rows)


def alone_table(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """Return a table with a row per method: all loads added up, and the regret by load."""
    loads = sorted({row.load for row in rows})
    head = ["method", "jobs that fit", "placed", "with the least", "used", "least", "regret"]
    head += [f"at {load} %" for load in loads]
    return markdown(head, 1, [_alone_cells(rows, method, loads) for method in methods])


def _alone_cells(rows: Sequence[Row], method: str, loads: Sequence[int]) -> list[str]:
    own = [row for row in rows if row.method == method]
    total = summed(own)
    cells = [method, number(total.fit), number(total.placed)]
    cells += [percent(total.optimal / total.placed if total.placed else None)]
    cells += [number(total.used), number(total.fewest), _regret(total)]
    return cells + [_regret(summed(row for row in own if row.load == load)) for load in loads]


def _regret(counted: Counted) -> str:
    return percent(counted.regret if counted.placed else None)


def _draw_alone(path: Path, rows: Sequence[AloneRow]) -> None:
    with picture(path, 1, 2, figsize=(10, 4)) as (figure, panels):
        for panel, segments in zip(panels[0], (True, False), strict=True):
            own = [row for row in rows if row.segments is segments]
            _lines(panel, own, PLOTTED, lambda some: 100 * summed(some).regret)
            panel.set_title(f"each job alone, with{'' if segments else 'out'} segments", size=10)
            panel.set_ylabel("domains above the fewest, %")
        figure.tight_layout()


def _lines(
    panel: Axes,
    rows: Sequence[Row],
    methods: Sequence[str],
    figure_of: Callable[[list[Row]], float],
) -> None:
    """Draw a line per method over the loads, if it places half of the jobs at least."""
    loads = sorted({row.load for row in rows})
    for colour, method in enumerate(methods):
        own = [[r for r in rows if r.method == method and r.load == load] for load in loads]
        if all(2 * summed(some).placed >= summed(some).fit for some in own):
            values = [figure_of(some) for some in own]
            panel.plot(loads, values, "o-", ms=4, color=f"C{colour}", label=method)
    panel.set_xlabel("hosts in use, %")
    panel.legend(fontsize=8)


def write_queue(folder: Path, run: str, rows: Sequence[QueueRow]) -> None:
    """Write the table of whole queues, the CSV file and the plot."""
    write_rows(folder / "schedulers_queue.csv", rows)
    loads = sorted({row.load for row in rows})
    head = ["load", *QUEUE_METHODS, "bound", "proven", "racks of exact", "bound"]
    _write(
        folder, "queue", f"{run}\n\n{markdown(head, 1, [_queue_cells(rows, ld) for ld in loads])}"
    )
    _draw_queue(folder / "schedulers_queue.png", rows, loads)


def _queue_cells(rows: Sequence[QueueRow], load: int) -> list[str]:
    by_method = {
        m: [row for row in rows if row.load == load and row.method == m] for m in QUEUE_METHODS
    }
    exact = by_method["exact"]
    proven = sum(row.hosts == row.bound for row in exact)
    return [
        f"{load} %",
        *(number(sum(row.hosts for row in own)) for own in by_method.values()),
        number(sum(row.bound or 0 for row in exact)),
        f"{proven} of {len(exact)}",
        number(sum(row.racks for row in exact)),
        number(sum(row.racks_bound or 0 for row in exact)),
    ]


def _draw_queue(path: Path, rows: Sequence[QueueRow], loads: Sequence[int]) -> None:
    def total(method: str, load: int, figure_of: Callable[[QueueRow], int]) -> int:
        return sum(figure_of(r) for r in rows if r.method == method and r.load == load)

    bounds = [total("exact", load, lambda row: row.bound or 0) for load in loads]
    with picture(path, 1, 1, figsize=(6, 4)) as (figure, panels):
        panel = panels[0, 0]
        for colour, method in enumerate((*QUEUE_METHODS[1:], "exact")):
            hosts = [total(method, load, lambda row: row.hosts) for load in loads]
            short = [100 * (most - own) / most for own, most in zip(hosts, bounds, strict=True)]
            panel.plot(loads, short, "o-", ms=4, color=f"C{colour}", label=method)
        panel.set_title("whole queues, with segments", size=10)
        panel.set_ylabel("hosts not started, % of the bound")
        panel.set_xlabel("hosts in use, %")
        panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.tight_layout()


def write_torus(folder: Path, run: str, rows: Sequence[TorusRow]) -> None:
    """Write the tables of tori with anchored prisms, on Slurm's page too, and the CSV file."""
    write_rows(folder / "schedulers_torus.csv", rows)
    table = f"{alone_table(rows, TORUS_METHODS)}\n\n{_started_table(rows)}"
    _write(folder, "torus", f"{run}\n\n{table}")
    path = folder.parent / "guide" / "schedulers" / "slurm-torus3d.md"
    if path.exists():
        write_between_markers(path, begin("torus"), END, "slurm-torus3d", table)


def _started_table(rows: Sequence[TorusRow]) -> str:
    loads = sorted({row.load for row in rows})
    cells = []
    for load in loads:
        by_method = [[r for r in rows if r.load == load and r.method == m] for m in TORUS_METHODS]
        started = [number(sum(row.started for row in own)) for own in by_method]
        cells.append([f"{load} %", *started, number(sum(row.bound for row in by_method[0]))])
    return markdown(["load", *TORUS_METHODS, "bound"], 1, cells)


def _write(folder: Path, part: str, text: str) -> None:
    write_between_markers(folder / "schedulers.md", begin(part), END, TITLE, text)


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
        rows = {m: AloneRow(load, seed, segments, m) for m in METHODS}
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
        for method in QUEUE_METHODS:
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
        rows = {m: TorusRow(load, seed, m) for m in TORUS_METHODS}
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
        write_recorded(given.output, run, audits, recorded_rows(audits))
    elif given.part == "alone":
        write_alone(given.output, run, list(alone(given.seeds, given.racks, jobs, options)))
    elif given.part == "queue":
        write_queue(given.output, run, list(queue(given.seeds, given.racks, jobs, options)))
    else:
        write_torus(given.output, run, list(torus(given.seeds, jobs, options)))


if __name__ == "__main__":
    main()
