"""Measure `topoplace place` on the shipped snapshots beside the naive model; run by `make bench`.

The first group (50 to 80 % busy) is timed as a user sees it, the whole command with its start-up;
the naive model runs in the same session, in a process of its own. `--all` adds the snapshots that
take minutes; `--write` puts the tables into docs/develop/benchmarks.md.

    python scripts/bench_place.py --unseen N --from-seed S [--families NAME ...] [--before CHECKOUT]

solves N generated snapshots of every family instead, each in a process of its own, has every
result checked, and writes the profile (docs/studies/profiles.md) of all runs in the work folder. A
run that is there is not repeated.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from families import FAMILIES
from profile_page import write_profile
from profiles import LINES, read_runs, run_all
from study_page import STUDIES

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOTS = ROOT / "instances" / "snapshots"
BENCHMARKS = ROOT / "docs" / "develop" / "benchmarks.md"
QUICK = ("50", "60", "70", "80")
LONG = (("20", 120), ("30", 120), ("40", 120), ("empty", 300))
WORKERS = 2
WORK = ROOT / "out" / "profiles"

QUICK_HEAD = (
    "snapshot",
    "command, min (median) s",
    "status",
    "objective",
    "bound",
    "gap",
    "naive model",
    "candidates",
    "s (in CP-SAT)",
    "status",
    "objective",
    "bound",
    "gap",
    "ratio (CP-SAT)",
)
LONG_HEAD = ("snapshot", "limit s", "command s", "status", "objective", "bound", "gap", "checked")


def main() -> None:
    """Measure, print, and write if asked to."""
    options = _options()
    if options.unseen:
        _profile(options)
        return
    # the first run of all compiles the kernels, so it is not timed
    _, warm_up = _run("80", None)
    lines = _quick_table(options.snapshots, options.runs, options.naive_limit)
    if options.all:
        print()
        lines += ["", *_long_table()]
    if options.write:
        _write(lines, options.naive_limit, warm_up["versions"])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also 20, 30, 40 %% busy and empty")
    parser.add_argument("--write", action="store_true", help="write docs/develop/benchmarks.md")
    parser.add_argument("--runs", type=int, default=3, help="runs of the command per snapshot")
    parser.add_argument("--naive-limit", type=float, default=60, help="seconds for CP-SAT")
    parser.add_argument(
        "--snapshots", nargs="*", choices=QUICK, default=QUICK, help="those of the first group"
    )
    unseen = parser.add_argument_group("profile of generated snapshots")
    unseen.add_argument("--unseen", type=int, metavar="N", help="snapshots per family")
    unseen.add_argument("--from-seed", type=int, default=500, metavar="S", help="their first seed")
    names = [family.name for family in FAMILIES]
    unseen.add_argument("--families", nargs="*", choices=names, default=names, metavar="NAME")
    unseen.add_argument("--time-limit", type=float, default=120, metavar="S", help="of a solve")
    unseen.add_argument("--before", type=Path, metavar="DIR", help="checkout to run by turns")
    unseen.add_argument("--work", type=Path, default=WORK, metavar="DIR", help="runs are kept")
    unseen.add_argument("-o", "--output", type=Path, default=STUDIES, metavar="DIR")
    return parser.parse_args()


def _profile(options: argparse.Namespace) -> None:
    """Solve generated snapshots, and write the profile of all that the work folder holds."""
    families = [family for family in FAMILIES if family.name in options.families]
    seeds = range(options.from_seed, options.from_seed + options.unseen)
    run_all(families, seeds, options.time_limit, options.work, options.before)
    write_profile(options.output, FAMILIES, list(read_runs(options.work / LINES)))


def _quick_table(labels: tuple[str, ...], runs: int, naive_limit: float) -> list[str]:
    lines = _say([_row(QUICK_HEAD), _row(["---"] * len(QUICK_HEAD))])
    for label in labels:
        timed = [_run(label, None) for _ in range(runs)]
        seconds = [took for took, _ in timed]
        ours = timed[0][1]
        for name, minimal in (("all", False), ("minimal", True)):
            naive = _naive(label, minimal=minimal, time_limit=naive_limit)
            lines += _say([_row(_quick_row(label, seconds, ours, name, naive))])
    return lines


def _quick_row(
    label: str, seconds: list[float], ours: dict[str, Any], name: str, naive: dict[str, Any]
) -> list[str]:
    best = min(seconds)
    ratio = "" if naive["status"] == "OPTIMAL" else "> "
    ratio += f"{naive['seconds'] / best:.1f} ({naive['solving'] / best:.1f})"
    if naive["status"] == "TOO LARGE":
        ratio = "-"
    gap = None
    if naive["objective"] is not None and naive["bound"] is not None:
        gap = abs(naive["objective"] - naive["bound"]) / max(1, abs(naive["objective"]))
    return [
        label,
        f"{best:.2f} ({statistics.median(seconds):.2f})",
        *_figures(ours),
        name,
        f"{naive['num_candidates']:,}",
        f"{naive['seconds']:.1f} ({naive['solving']:.1f})",
        naive["status"].lower(),
        _number(naive["objective"]),
        _number(naive["bound"]),
        _percent(gap),
        ratio,
    ]


def _long_table() -> list[str]:
    lines = _say([_row(LONG_HEAD), _row(["---"] * len(LONG_HEAD))])
    for label, limit in LONG:
        seconds, document = _run(label, limit, check=True)
        row = [label, str(limit), f"{seconds:.1f}", *_figures(document), document["checked"]]
        lines += _say([_row(row)])
    return lines


def _run(label: str, limit: float | None, *, check: bool = False) -> tuple[float, dict[str, Any]]:
    """Run the command, and return its wall time and the result document."""
    topoplace = [sys.executable, "-m", "topoplace"]
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "result.json"
        limited = [] if limit is None else ["--time-limit", str(limit)]
        snapshot = str(SNAPSHOTS / f"blue_waters_{label}.json")
        start = time.perf_counter()
        subprocess.run(
            [*topoplace, "place", snapshot, "-o", str(written), *limited],
            check=True,
            stdout=subprocess.DEVNULL,
            env=_environment(),
        )
        seconds = time.perf_counter() - start
        document = json.loads(written.read_text())
        if check:
            done = subprocess.run(
                [*topoplace, "check", str(written)],
                check=False,
                stdout=subprocess.DEVNULL,
                env=_environment(),
            )
            document["checked"] = "holds" if done.returncode == 0 else "FAILS"
        return seconds, document


def _environment() -> dict[str, str]:
    """Run this checkout's package, whatever is installed."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "solver")}


def _naive(label: str, *, minimal: bool, time_limit: float) -> dict[str, Any]:
    """Run the naive model in a process of its own: its memory goes back to the machine."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_naive_run, (label, minimal, time_limit))


def _naive_run(label: str, minimal: bool, time_limit: float) -> dict[str, Any]:
    from naive_cpsat import solve_naively  # noqa: PLC0415 - only this process needs it
    from topoplace.placement.torus.problem import PlacementProblem  # noqa: PLC0415
    from topoplace.snapshot.machines import load_snapshot  # noqa: PLC0415

    problem = PlacementProblem(load_snapshot(SNAPSHOTS / f"blue_waters_{label}.json"))
    run = solve_naively(problem, minimal=minimal, time_limit=time_limit, workers=WORKERS)
    return asdict(run)


def _figures(document: dict[str, Any]) -> list[str]:
    numbers = [_number(document[name]) for name in ("objective", "bound")]
    return [document["status"], *numbers, _percent(document["gap"])]


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _percent(gap: float | None) -> str:
    return "-" if gap is None else f"{100 * gap:.2f} %"


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _say(lines: list[str]) -> list[str]:
    for line in lines:
        print(line, flush=True)
    return lines


def _write(lines: list[str], naive_limit: float, versions: dict[str, str]) -> None:
    """Write the tables with the date and what they were measured on; later sections stay."""
    used = ", ".join(f"{name} {version}" for name, version in versions.items())
    text = f"""# Benchmarks

Written by `scripts/bench_place.py --write` on {datetime.date.today().isoformat()},
{os.cpu_count()} cores; {used}.

The command is `topoplace place FILE -o RESULT` as a whole, with its start-up; all three levels are
solved. The naive model gives the candidates of level 1 to CP-SAT ({WORKERS} workers,
{naive_limit:g} s): all of them, or only the minimal ones, which contain no other candidate of their
request. Its seconds count the search for candidates and the building of the model, in brackets
CP-SAT alone. `ratio` is that over the fastest run of the command, and a lower bound if the naive
model did not finish. A model too large for a workstation's memory is not built.

"""
    _, later, kept = BENCHMARKS.read_text().partition("\n## Long runs\n")
    BENCHMARKS.write_text(text + "\n".join(lines) + "\n" + later + kept)


if __name__ == "__main__":
    main()
