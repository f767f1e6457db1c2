"""Batches on a Dask cluster: a real scheduler and two workers on loopback."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from batch_runs import (
    alive,
    environment,
    results,
    wait_until,
    without_times,
    write_named,
    write_snapshots,
)
from topoplace import __version__
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError, TopoplaceError
from topoplace.study.batch.pool import Cluster, Pool, solve_below
from topoplace.study.batch.run import run_batch
from topoplace.study.batch.task import Ending, Failure, FailureStatus, Limits, Settings, Task

pytest.importorskip("distributed", reason="the extra dask is not installed")

FIRST_FIT = Settings("first-fit")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Run a scheduler in this process and two workers beside it."""
    from distributed import LocalCluster  # noqa: PLC0415 - optional

    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as running:
        yield running


def test_nothing_is_lost_when_a_worker_dies(cluster: Any, tmp_path: Path) -> None:
    number = 40
    folder = write_snapshots(tmp_path / "in", number)
    for name in ("segfault", "hangs"):
        write_named(folder, name)

    def batch(out: Path, executor: Pool) -> Path:
        return run_batch([folder], out, FIRST_FIT, executor=executor).table

    limits = Limits(kill_after=2.0)
    whole = batch(tmp_path / "whole", Pool("batch_solvers:poisoned", 2, limits))

    out = tmp_path / "out"
    at = random.Random(4).randrange(5, 30)

    def kill_in_the_middle() -> None:
        wait_until(lambda: len(results(out)) >= at)
        os.kill(victim, signal.SIGKILL)
        killed_at.append(len(results(out)))

    killed_at: list[int] = []
    victim = cluster.workers[0].pid
    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    table = batch(out, Cluster(cluster.scheduler_address, "batch_solvers:poisoned_slowly", limits))
    killer.join()
    assert at <= killed_at[0] < number
    assert without_times(table) == without_times(whole)
    assert not alive(victim)
    args = ["batch", str(folder), "-o", str(out), "--method", "first-fit"]
    # The poisoned ones stay so.
    assert run([*args, "--dask", cluster.scheduler_address]) == ExitCode.INTERNAL


def test_no_scheduler_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topoplace.study.batch.pool.CONNECT_SECONDS", 0.2)
    with pytest.raises(InputError, match="the address of a Dask scheduler"):
        Cluster("tcp://127.0.0.1:9", "batch_solvers:quick", Limits())


def test_without_the_extra_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    file = write_named(tmp_path, "any")
    arguments = ["batch", str(file), "-o", str(tmp_path / "out"), "--dask", "tcp://127.0.0.1:9"]
    assert run(arguments) == ExitCode.BAD_INPUT
    assert "'.[dask]'" in capsys.readouterr().err


def test_what_the_cluster_cannot_do_is_told_apart(cluster: Any) -> None:
    from distributed import KilledWorker  # noqa: PLC0415 - optional

    running = Cluster(cluster.scheduler_address, "batch_solvers:quick", Limits())
    killed: Future[Ending] = Future()
    killed.set_exception(KilledWorker("task", None, 3))
    ending = running._ending(killed)
    assert isinstance(ending, Failure)
    assert ending.status is FailureStatus.CRASH
    other = Task("0", "placement", "{}", FIRST_FIT, "0.0.0-other")
    with pytest.raises(TopoplaceError, match=r"the batch 0\.0\.0-other"):
        solve_below(other, "batch_solvers:quick", Limits())

    def tasks() -> Iterator[Task]:
        for key in range(100):
            yield Task(f"{key:x}", "placement", "{}", FIRST_FIT, __version__)
            if key == 20:
                cluster.close()

    with pytest.raises(TopoplaceError, match="the Dask scheduler is gone"):
        list(running.outcomes(tasks()))
    running.close()
