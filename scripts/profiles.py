"""The exact method on generated snapshots: run, check and measure, one process at a time.

`scripts/bench_place.py --unseen` is the command. Every run ends in a line of a file in the work
folder; what has a line is not run again, so that a profile that was stopped goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from families import Family
from topoplace.snapshot.files import write_document

ROOT = Path(__file__).resolve().parent.parent
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
