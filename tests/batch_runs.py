"""Batches for tests: folders of tiny instances, and runs in processes that may be killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from random_instances import random_snapshot
from topoplace.snapshot.files import write_document
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.run import Batch, run_batch
from topoplace.study.batch.task import Limits, Settings

PATIENCE_SECONDS = 60
FIRST_FIT = Settings("first-fit")

PROGRAM = """
import sys
from pathlib import Path
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.run import run_batch
from topoplace.study.batch.task import Limits, Settings

if __name__ == "__main__":
    source, out, solver, kill_after = sys.argv[1:]
    executor = Pool("batch_solvers:" + solver, 2, Limits(float(kill_after) or None))
    run_batch([Path(source)], Path(out), Settings("first-fit"), executor=executor)
"""


def write_snapshots(folder: Path, number: int) -> Path:
    """Write random tiny snapshots into a new folder and return it."""
    folder.mkdir(parents=True)
    for seed in range(number):
        write_document(folder / f"s{seed:04}.json", random_snapshot(random.Random(seed)))
    return folder


def write_named(folder: Path, name: str, source: str | None = None) -> Path:
    """Write a random tiny snapshot with a certain name and return its path."""
    path = folder / f"{name}.json"
    changes = {"name": name, "source": source}
    write_document(path, random_snapshot(random.Random(0)).model_copy(update=changes))
    return path


def started(*arguments: str | Path, folder: Path | None = None) -> subprocess.Popen[str]:
    """Start Python with such arguments, in a folder."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=folder,
    )


def signalled(
    arguments: list[str],
    folder: Path,
    number: int | None,
    said: str | None = None,
    seconds: float = 0.0,
) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, and send it a signal, if any, on the way.

    That is some seconds after it `said` something on stderr, or else has made the file `started`.
    """
    process = started(*arguments, folder=folder)
    assert process.stderr is not None
    try:
        if number is not None and said is None:
            wait_until(lambda: process.poll() is not None or (folder / "started").exists())
        while said and said not in (line := process.stderr.readline()):
            assert line
        if number is not None:
            time.sleep(seconds)
            assert process.poll() is None, process.communicate()
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def environment() -> dict[str, str]:
    """Return the environment in which another process finds the package and the tests."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def results(outdir: Path) -> list[Path]:
    """Return the result files there are."""
    return sorted((outdir / "results").glob("[!.]*.json"))


def stamps(outdir: Path) -> dict[str, tuple[int, int]]:
    """Return what changes when a result file is written again: its inode and time."""
    stats = {path.name: path.stat() for path in results(outdir)}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}


def without_times(table: Path) -> list[str]:
    """Return the lines of a table without its last column, the time."""
    lines = table.read_text().splitlines()
    assert lines[0].endswith(",seconds")
    return [line.rpartition(",")[0] for line in lines]


def wait_until(happened: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for something, for some time."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pool(solver: str = "quick", jobs: int = 1, **limits: float | None) -> Pool:
    """Return a pool with a solver of `batch_solvers` and limits such as ``kill_after=2``."""
    return Pool(f"batch_solvers:{solver}", jobs, Limits(**limits))


def quick_batch(sources: list[Path], out: Path, seed: int = 0) -> Batch:
    """Run a batch whose answers take no time."""
    return run_batch(sources, out, Settings("first-fit", seed=seed), executor=pool())
