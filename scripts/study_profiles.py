"""The exact method on generated snapshots that nobody looked at: run, checked and profiled.

Solves N snapshots of every family, each in a process of its own, has every result checked, and
writes profiles.md (between its markers), profiles.csv and the picture of all runs in the work
folder. Every run ends in a line of a file there; what has a line is not run again, so that a
profile that was stopped goes on.

    python scripts/study_profiles.py N [--from-seed S] [--families NAME ...] [--before CHECKOUT]
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from families import FAMILIES, Family
from study import ROOT, Column, Record, Study, groups, percent, table
from topoplace.snapshot.files import write_document

THIS = "now"
BEFORE = "before"
LINES = "runs.jsonl"
"""The file of the work folder that has a line for every run."""

Trace = list[tuple[float, int | None, int | None]]
"""Seconds of the solve, objective and bound of the first level, at every change seen."""


@dataclass(frozen=True)
class Run:
    """One solve of one snapshot by one version.

    `objective` and `bound` are those of the first level, None if the version refuses the snapshot
    or fails; `seconds` are those of the solve,
    `command_seconds` the whole process with its start-up. `certificate_bytes` is the size of the
    result file, `check_seconds` the whole command `check`; `checked` tells whether it accepts
    every claim. `all_proven` tells whether every level is proven optimal.
    """

    family: str
    seed: int
    version: str
    time_limit: float
    objective: int | None
    bound: int | None
    seconds: float
    command_seconds: float
    peak_mb: float
    certificate_bytes: int
    check_seconds: float
    checked: bool
    trace: Trace
    all_proven: bool = False

    @property
    def proven(self) -> float | None:
        """When the first level was proven optimal, in seconds of the solve."""
        return self.trace[-1][0] if self.trace and self.objective == self.bound else None

    def gap(self, seconds: float) -> float | None:
        """Return the gap of the first level that was there then; None without a bound."""
        last = next((entry for entry in reversed(self.trace) if entry[0] <= seconds), None)
        if last is None or last[1] is None or last[2] is None:
            return None
        return (last[2] - last[1]) / max(1, last[1])


def run_all(
    families: Sequence[Family],
    seeds: Sequence[int],
    time_limit: float,
    work: Path,
    before: Path | None = None,
) -> None:
    """Run what has no line yet, all versions of a snapshot by turns.

    Parameters
    ----------
    families, seeds
        Which snapshots.
    time_limit
        Seconds of a solve.
    work
        Folder for snapshots, results and lines.
    before
        Checkout of a version to run beside this one.
    """
    work.mkdir(parents=True, exist_ok=True)
    versions = {THIS: ROOT} | ({BEFORE: before} if before else {})
    lines = work / LINES
    wanted = {(f.name, seed, v) for f in families for seed in seeds for v in versions}
    done = {
        (run.family, run.seed, run.version)
        for run in read_runs(lines)
        if run.time_limit == time_limit
    }
    if wanted - done:
        for checkout in versions.values():
            _process([sys.executable, "-m", "topoplace", "warmup"], checkout)
    for seed in seeds:
        for family in families:
            for version, checkout in versions.items():
                if (family.name, seed, version) not in done:
                    run = _run(family, seed, version, checkout, time_limit, work)
                    with lines.open("a") as stream:
                        stream.write(json.dumps(asdict(run)) + "\n")
                    print(record(run), file=sys.stderr, flush=True)


def read_runs(path: Path) -> Iterator[Run]:
    """Yield the runs of a file of lines; none if there is no file."""
    if path.exists():
        for line in path.read_text().splitlines():
            yield Run(**json.loads(line))


def _run(
    family: Family, seed: int, version: str, checkout: Path, time_limit: float, work: Path
) -> Run:
    snapshot = work / f"{family.name}-{seed}.json"
    if not snapshot.exists():
        write_document(snapshot, family.generate(seed))
    result, trace = (
        work / f"{snapshot.stem}-{version}.{kind}.json" for kind in ("result", "trace")
    )
    command = [str(ROOT / "scripts" / "place_traced.py"), str(snapshot), str(result), str(trace)]
    whole, peak, code = _process(
        [sys.executable, *command, str(time_limit), family.interference], checkout
    )
    about = (family.name, seed, version, time_limit)
    if code:
        return Run(*about, None, None, round(whole, 2), round(whole, 2), peak, 0, 0.0, False, [])
    # by the same checker, whatever version solved
    check_seconds, _, code = _process(
        [sys.executable, "-m", "topoplace", "check", str(result)], ROOT
    )
    raw, solved = json.loads(trace.read_text()), json.loads(result.read_text())
    level = solved["levels"][0]
    return Run(
        *about,
        level["objective"],
        level["bound"],
        round(raw["seconds"], 2),
        round(whole, 2),
        peak,
        result.stat().st_size,
        round(check_seconds, 2),
        code == 0,
        raw["trace"],
        all(one["objective"] == one["bound"] for one in solved["levels"]),
    )


def _process(command: list[str], checkout: Path) -> tuple[float, float, int]:
    """Run a command of a checkout; return its seconds, its peak in MB and its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "solver")}
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - start, round(usage.ru_maxrss / 1024, 1), process.returncode


MOMENTS = (1, 10, 30, 60, 120, 600, 3600)
"""Seconds of a solve at which a profile is taken, as far as the time limit reaches."""

FIELDS = (
    "seconds",
    "command_seconds",
    "peak_mb",
    "certificate_bytes",
    "check_seconds",
    "checked",
    "all_proven",
)
_FIRST_PANEL = "blue_waters"  # families whose names begin so share a panel

Pair = tuple[Family, list[Run], list[Run]]
"""A family with its runs of this version, and of the version before."""


def write(study: Study, families: Sequence[Family], runs: Sequence[Run]) -> None:
    """Write all runs, the tables of every time limit, and the picture of the most usual one."""
    ordered = sorted(runs, key=lambda run: (run.time_limit, run.family, run.seed, run.version))
    study.write([record(run) for run in ordered])
    parts = [f"{os.cpu_count()} cores; every solve is in a process of its own."]
    of_limit = groups(ordered, "time_limit")
    for limit, own in of_limit.items():
        parts += _tables(families, own, limit)
    study.page(*parts, title="Exact placement on snapshots nobody looked at")
    usual = max(of_limit, key=lambda limit: len({run.family for run in of_limit[limit]}))
    draw(study, _by_family(families, of_limit[usual]), usual)


def _by_family(families: Sequence[Family], runs: Sequence[Run]) -> list[Pair]:
    """Return the families of which there are runs of this version, with these."""
    pairs = [(one, *(_of(one, runs, version) for version in (THIS, BEFORE))) for one in families]
    return [pair for pair in pairs if pair[1]]


def _tables(families: Sequence[Family], runs: Sequence[Run], limit: float) -> list[str]:
    """Return what a page has of the runs with one time limit."""
    there = _by_family(families, runs)
    moments = [moment for moment in MOMENTS if moment <= limit]
    profile = [*SNAPSHOTS, *map(_proven_in, moments), ALL_PROVEN, *map(_gap_at, moments)]
    seeds = sorted({run.seed for run in runs})
    parts = [
        f"## With a time limit of {limit:g} s",
        f"Seeds {seeds[0]} to {seeds[-1]}." if len(seeds) > 1 else f"Seed {seeds[0]}.",
        table(there, profile),
        table(there, NEEDS),
    ]
    if any(run.version == BEFORE for run in runs):
        both = [(family, *_common(*own)) for family, *own in there]
        parts += [
            f"### {limit:g} s, compared with the version before",
            table([pair for pair in both if pair[1]], BESIDE),
        ]
    return parts


def record(run: Run) -> Record:
    """Return a run as a line of the CSV file: gaps at moments instead of the trace."""
    return Record(
        **{name: getattr(run, name) for name in ("family", "seed", "version", "time_limit")},
        objective=run.objective,
        bound=run.bound,
        proven_after=run.proven,
        **{f"gap_{moment}": run.gap(moment) for moment in MOMENTS},
        **{name: getattr(run, name) for name in FIELDS},
    )


def _of(family: Family, runs: Sequence[Run], version: str) -> list[Run]:
    return [run for run in runs if (run.family, run.version) == (family.name, version)]


def _common(now: Sequence[Run], before: Sequence[Run]) -> list[list[Run]]:
    """Return the runs of two versions on the snapshots that both ran on."""
    seeds = {run.seed for run in now} & {run.seed for run in before}
    return [[run for run in runs if run.seed in seeds] for runs in (now, before)]


def num_proven(runs: Sequence[Run], seconds: float) -> int:
    """Count the runs whose first level was proven optimal within so many seconds."""
    return sum(run.proven is not None and run.proven <= seconds for run in runs)


def _gaps(runs: Sequence[Run], seconds: float) -> str:
    """Return the median gap, and the largest; a dash where there is none yet."""
    known = [run.gap(seconds) for run in runs]
    gaps = sorted(math.inf if gap is None else gap for gap in known)
    median, most = (
        "-" if gap == math.inf else percent(gap, 2) if gap else "0"
        for gap in (gaps[len(gaps) // 2], gaps[-1])
    )
    return f"{median} ({most})"


def _proven_in(at: float) -> Column:
    return f"proven in {at} s", lambda pair: percent(num_proven(pair[1], at) / len(pair[1]), 0)


def _gap_at(at: float) -> Column:
    return f"gap at {at} s", lambda pair: _gaps(pair[1], at)


def _over(runs: Callable[[Sequence[float]], float], of: Callable[[Run], float], digits: int) -> Any:
    """Return what has the median or the largest figure of this version's runs."""
    return lambda pair: f"{runs([of(run) for run in pair[1]]):.{digits}f}"


SNAPSHOTS: list[Column] = [
    ("snapshots", lambda pair: pair[0].title),
    ("number", lambda pair: len(pair[1])),
]
ALL_PROVEN: Column = (
    "all levels proven",
    lambda pair: percent(sum(run.all_proven for run in pair[1]) / len(pair[1]), 0),
)
NEEDS: list[Column] = [
    SNAPSHOTS[0],
    ("solve, median s", _over(statistics.median, lambda run: run.seconds, 1)),
    ("longest s", _over(max, lambda run: run.seconds, 1)),
    ("peak memory, MB", _over(max, lambda run: run.peak_mb, 0)),
    ("largest result, MB", _over(max, lambda run: run.certificate_bytes / 1e6, 1)),
    ("longest check, s", _over(max, lambda run: run.check_seconds, 1)),
    ("check / solve, most", _over(max, lambda r: r.check_seconds / r.command_seconds, 2)),
    ("accepted", lambda pair: f"{sum(run.checked for run in pair[1])} of {len(pair[1])}"),
]
COMPARED: dict[str, Callable[[list[Run]], str]] = {
    "proven in 30 s": lambda runs: f"{num_proven(runs, 30)}",
    "proven in the limit": lambda runs: f"{num_proven(runs, runs[0].time_limit + 1)}",
    "all levels proven": lambda runs: f"{sum(run.all_proven for run in runs)}",
    "gap at the limit": lambda runs: _gaps(runs, runs[0].time_limit + 1),
    "solve, median s": lambda runs: f"{statistics.median(run.seconds for run in runs):.1f}",
}
BESIDE: list[Column] = [*SNAPSHOTS]
for _what, _figure in COMPARED.items():
    BESIDE.append((_what, lambda pair, figure=_figure: figure(pair[1])))
    BESIDE.append(("before", lambda pair, figure=_figure: figure(pair[2])))


def draw(study: Study, pairs: Sequence[Pair], longest: float) -> None:
    """Draw the share of snapshots that are proven over the seconds of the solve."""
    sides: dict[str, list[Pair]] = {"Blue Waters by fill": [], "other families": []}
    for pair in pairs:
        of_first = pair[0].name.startswith(_FIRST_PANEL)
        sides["Blue Waters by fill" if of_first else "other families"].append(pair)
    shown = {title: side for title, side in sides.items() if side}
    size = (5.5 * len(shown), 4.5)
    with study.picture("", 1, len(shown), figsize=size, sharey=True) as (_, panels):
        panels[0, 0].set_ylabel("snapshots proven optimal, %")
        for panel, (title, side) in zip(panels[0], shown.items(), strict=True):
            for family, mine, _ in side:
                times = sorted(run.proven for run in mine if run.proven is not None)
                shares = [100 * k / len(mine) for k in range(len(times) + 1)]
                steps = [0.1, *times, longest], [*shares, shares[-1]]
                panel.step(*steps, where="post", label=family.title)
            panel.set(title=title, xscale="log", xlabel="seconds of the solve")
            panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2)


def main(given: Sequence[str] | None = None) -> None:
    """Solve generated snapshots, and write the profile of all that the work folder holds."""
    options = {
        "from_seed": 500,
        "families": [family.name for family in FAMILIES],
        "time_limit": 120.0,  # of a solve
        "before": Path,  # a checkout to run by turns
        "work": ROOT / "out" / "profiles",  # runs are kept here
    }
    study = Study("profiles", __doc__, given, {"number": int}, **options)
    own = study.options
    families = [family for family in FAMILIES if family.name in own.families]
    seeds = range(own.from_seed, own.from_seed + own.number)
    run_all(families, seeds, own.time_limit, own.work, own.before)
    write(study, FAMILIES, list(read_runs(own.work / LINES)))


if __name__ == "__main__":
    main()
