"""The exact method on generated snapshots that nobody looked at: run, checked and profiled.

Solves N snapshots of every family, each in a process of its own, has every result checked, and
writes profiles.md (between its markers), profiles.csv and the picture of all runs in the work
folder. Every run ends in a line of a file there; what has a line is not run again, so that a
profile that was stopped goes on.

    python scripts/study_profiles.py N [--from-seed S] [--families NAME ...] [--before CHECKOUT]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from families import FAMILIES, Family
from study_page import STUDIES, markdown, picture, stamp, write_between_markers, write_rows
from topoplace.snapshot.files import write_document

ROOT = Path(__file__).resolve().parent.parent
THIS = "now"
BEFORE = "before"
WORK = ROOT / "out" / "profiles"
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
    every claim.
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
                    print(_told(run), file=sys.stderr, flush=True)


def read_runs(path: Path) -> Iterator[Run]:
    """Yield the runs of a file of lines; none if there is no file."""
    if path.exists():
        for line in path.read_text().splitlines():
            raw = json.loads(line)
            yield Run(**raw | {"trace": [tuple(entry) for entry in raw["trace"]]})


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
        [tuple(entry) for entry in raw["trace"]],
    )


def _process(command: list[str], checkout: Path) -> tuple[float, float, int]:
    """Run a command of a checkout; return its seconds, its peak in MB and its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "solver")}
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - start, round(usage.ru_maxrss / 1024, 1), process.returncode


def _told(run: Run) -> str:
    who = f"{run.family} {run.seed} {run.version}"
    if run.objective is None or run.bound is None:
        return f"{who}: failed"
    gap = (run.bound - run.objective) / max(1, run.objective)
    return (
        f"{who}: {run.objective:,} of {run.bound:,}, gap {100 * gap:.2f} %, {run.seconds:.1f} s, "
        f"{run.peak_mb:.0f} MB, {run.certificate_bytes / 1e6:.1f} MB, "
        f"check {run.check_seconds:.1f} s, {'accepted' if run.checked else 'NOT ACCEPTED'}"
    )


BEGIN = "<!-- tables: written by scripts/study_profiles.py -->"
END = "<!-- end of tables -->"
TITLE = "Exact placement on snapshots nobody looked at"
MOMENTS = (1, 10, 30, 60, 120)
"""Seconds of a solve at which a profile is taken, as far as the time limit reaches."""

_FIRST_PANEL = "blue_waters"  # families whose names begin so share a panel


def write_profile(folder: Path, families: Sequence[Family], runs: Sequence[Run]) -> None:
    """Write the tables of the page between its markers, the picture and all runs."""
    ordered = sorted(runs, key=lambda run: (run.family, run.seed, run.version))
    write_rows(folder / "profiles.csv", [_row(run) for run in ordered])
    parts = [
        _head(runs),
        "",
        "## This version",
        "",
        _profile(families, runs),
        "",
        _needs(families, runs),
    ]
    if any(run.version == BEFORE for run in runs):
        parts += ["", "## Compared with the version before", "", _beside(families, runs)]
    write_between_markers(folder / "profiles.md", BEGIN, END, TITLE, "\n".join(parts))
    draw(folder / "profiles.png", families, [run for run in runs if run.version == THIS])


def _head(runs: Sequence[Run]) -> str:
    """Say of what the tables are; every row has its seeds in the CSV file."""
    seeds = sorted({run.seed for run in runs})
    return (
        f"{stamp('study_profiles.py', None)}\n\nSeeds {seeds[0]} to {seeds[-1]}, {os.cpu_count()} "
        "cores, one solve at a time, in a process of its own."
    )


def _row(run: Run) -> dict[str, object]:
    """Return a run as a line of the CSV file: shares at moments instead of the trace."""
    return {
        "family": run.family,
        "seed": run.seed,
        "version": run.version,
        "time_limit": run.time_limit,
        "objective": run.objective,
        "bound": run.bound,
        "proven_after": run.proven,
        **{f"gap_{moment}": run.gap(moment) for moment in MOMENTS},
        "seconds": run.seconds,
        "command_seconds": run.command_seconds,
        "peak_mb": run.peak_mb,
        "certificate_bytes": run.certificate_bytes,
        "check_seconds": run.check_seconds,
        "checked": run.checked,
    }


def _of(family: Family, runs: Sequence[Run], version: str = THIS) -> list[Run]:
    return [run for run in runs if (run.family, run.version) == (family.name, version)]


def _moments(runs: Iterable[Run]) -> list[int]:
    longest = max(run.time_limit for run in runs)
    return [moment for moment in MOMENTS if moment <= longest]


def share_proven(runs: Sequence[Run], seconds: float) -> float:
    """Return the share of runs whose first level was proven optimal within so many seconds."""
    return sum(run.proven is not None and run.proven <= seconds for run in runs) / len(runs)


def _profile(families: Sequence[Family], runs: Sequence[Run]) -> str:
    """Return the table of what is proven, and of the gaps there are, after some seconds."""
    moments = _moments(runs)
    head = ["snapshots", "number", *(f"proven in {moment} s" for moment in moments)]
    head += [f"gap at {moment} s" for moment in moments]
    lines = []
    for family in families:
        mine = _of(family, runs)
        if mine:
            shares = [f"{100 * share_proven(mine, moment):.0f} %" for moment in moments]
            gaps = [_gaps(mine, moment) for moment in moments]
            lines.append([family.title, str(len(mine)), *shares, *gaps])
    return markdown(head, 1, lines)


def _gaps(runs: Sequence[Run], seconds: float) -> str:
    """Return the median gap, and the largest; a dash where there is none yet."""
    gaps = sorted(_or_infinite(run.gap(seconds)) for run in runs)
    return f"{_percent(gaps[len(gaps) // 2])} ({_percent(gaps[-1])})"


def _or_infinite(gap: float | None) -> float:
    return float("inf") if gap is None else gap


def _percent(gap: float) -> str:
    return "-" if gap == float("inf") else "0" if gap == 0 else f"{100 * gap:.2f} %"


def _needs(families: Sequence[Family], runs: Sequence[Run]) -> str:
    """Return the table of time, memory, certificates and their check."""
    head = ["snapshots", "solve, median s", "longest s", "of a limit of", "peak memory, MB"]
    head += ["largest result, MB", "longest check, s", "check / solve, most", "accepted"]
    lines = []
    for family in families:
        mine = _of(family, runs)
        if mine:
            lines.append(
                [
                    family.title,
                    f"{statistics.median(run.seconds for run in mine):.1f}",
                    f"{max(run.seconds for run in mine):.1f}",
                    f"{mine[0].time_limit:g}",
                    f"{max(run.peak_mb for run in mine):.0f}",
                    f"{max(run.certificate_bytes for run in mine) / 1e6:.1f}",
                    f"{max(run.check_seconds for run in mine):.1f}",
                    f"{max(run.check_seconds / run.command_seconds for run in mine):.2f}",
                    f"{sum(run.checked for run in mine)} of {len(mine)}",
                ]
            )
    return markdown(head, 1, lines)


def _beside(families: Sequence[Family], runs: Sequence[Run]) -> str:
    """Return the table of this version and the one before, where both have a run."""
    head = ["snapshots", "number"]
    for what in ("proven in 30 s", "proven in the limit", "gap at the limit", "solve, median s"):
        head += [what, "before"]
    lines = []
    for family in families:
        both = {version: _of(family, runs, version) for version in (THIS, BEFORE)}
        common = {run.seed for run in both[THIS]} & {run.seed for run in both[BEFORE]}
        pair = [[run for run in mine if run.seed in common] for mine in both.values()]
        if common:
            cells = [family.title, str(len(common))]
            for mine in zip(*(_compared(mine) for mine in pair), strict=True):
                cells += mine
            lines.append(cells)
    return markdown(head, 1, lines)


def _compared(runs: Sequence[Run]) -> list[str]:
    limit = runs[0].time_limit
    return [
        f"{round(len(runs) * share_proven(runs, 30))}",
        f"{round(len(runs) * share_proven(runs, limit + 1))}",
        _gaps(runs, limit + 1),
        f"{statistics.median(run.seconds for run in runs):.1f}",
    ]


def draw(path: Path, families: Sequence[Family], runs: Sequence[Run]) -> None:
    """Draw the share of snapshots that are proven over the seconds of the solve."""
    longest = max(run.time_limit for run in runs)
    there = [family for family in families if _of(family, runs)]
    sides = {
        "Blue Waters by fill": [f for f in there if f.name.startswith(_FIRST_PANEL)],
        "other families": [f for f in there if not f.name.startswith(_FIRST_PANEL)],
    }
    shown = {title: side for title, side in sides.items() if side}
    size = (5.5 * len(shown), 4.5)
    with picture(path, 1, len(shown), figsize=size, sharey=True) as (_, panels):
        panels[0, 0].set_ylabel("snapshots proven optimal, %")
        for panel, (title, side) in zip(panels[0], shown.items(), strict=True):
            for family in side:
                mine = _of(family, runs)
                times = sorted(run.proven for run in mine if run.proven is not None)
                shares = [100 * k / len(mine) for k in range(len(times) + 1)]
                steps = [0.1, *times, longest], [*shares, shares[-1]]
                panel.step(*steps, where="post", label=family.title)
            panel.set(title=title, xscale="log", xlabel="seconds of the solve")
            panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2)


def main() -> None:
    """Solve generated snapshots, and write the profile of all that the work folder holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [family.name for family in FAMILIES]
    parser.add_argument("number", type=int, metavar="N", help="snapshots per family")
    parser.add_argument("--from-seed", type=int, default=500, metavar="S", help="their first seed")
    parser.add_argument("--families", nargs="*", choices=names, default=names, metavar="NAME")
    parser.add_argument("--time-limit", type=float, default=120, metavar="S", help="of a solve")
    parser.add_argument("--before", type=Path, metavar="DIR", help="checkout to run by turns")
    parser.add_argument("--work", type=Path, default=WORK, metavar="DIR", help="runs are kept")
    parser.add_argument("-o", "--output", type=Path, default=STUDIES, metavar="DIR")
    options = parser.parse_args()
    families = [family for family in FAMILIES if family.name in options.families]
    seeds = range(options.from_seed, options.from_seed + options.number)
    run_all(families, seeds, options.time_limit, options.work, options.before)
    write_profile(options.output, FAMILIES, list(read_runs(options.work / LINES)))


if __name__ == "__main__":
    main()
