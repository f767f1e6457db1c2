"""Solve thousands of instances, for the command line: its results are all the state of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from topoplace.front.arguments import options_of
from topoplace.kernels import compile_for
from topoplace.solving.solve import tree_objective
from topoplace.study.batch.pool import Cluster, Pool
from topoplace.study.batch.run import SOLVER, Batch, num_cores, run_batch
from topoplace.study.batch.task import Limits, Settings


def batch(
    sources: Sequence[Path],
    output: Path,
    method: str | None,
    *,
    command: str | None,
    time_limit: float | None,
    thorough: bool,
    interference: str,
    objective: str | None,
    ignore: Sequence[str],
    seed: int,
    jobs: int | None,
    kill_after: float | None,
    memory: int | None,
    retry_failed: bool,
    dask: str | None,
    progress: Callable[[int, int], None],
) -> Batch:
    """Solve every instance that has no result in a folder yet (`run_batch`).

    Parameters
    ----------
    jobs
        Processes, by default one per core; with `dask`, the address of a scheduler, its workers.
    kill_after, memory
        Seconds and bytes of an instance at most.
    """
    options_of(time_limit, seed, interference)  # checks them
    tree_objective(objective)  # checks it
    limits = Limits(kill_after, memory)
    executor = Cluster(dask, SOLVER, limits) if dask else Pool(SOLVER, jobs or num_cores(), limits)
    settings = Settings(
        method,
        time_limit,
        interference,
        seed,
        command,
        thorough=thorough,
        objective=objective,
    )
    return run_batch(
        sources,
        output,
        settings,
        executor=executor,
        retry_failed=retry_failed,
        ignore=ignore,
        progress=progress,
        # Workers on other machines compile what they miss.
        prepare=None if dask else lambda problem, method: compile_for(problem, [method]),
    )
