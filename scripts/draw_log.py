"""Draw a job log from the workload of Enos 2014, Table II, in the Standard Workload Format.

``python scripts/draw_log.py --jobs 1000 --load 70 --seed 2014 -o log.swf``, and then
``topoplace replay log.swf --on blue_waters --method best-fit``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from generate_snapshots import Workload, load_workload, workload_jobs
from study import parsed
from topoplace.errors import InputError
from topoplace.snapshot.files import write_text
from topoplace.snapshot.machines import load_torus, prepare_empty
from topoplace.study.replay import LogJob

MAX_JOBS = 1_000_000
_LEAST_SHARE = 0.5
"""Least share of its time limit that a job runs."""


def draw_log(
    workload: Workload,
    node_class: str,
    num_jobs: int,
    num_nodes: int,
    load_percent: float,
    seed: int,
) -> tuple[LogJob, ...]:
    """Draw a log: multiple instances of every job of a table, submitted at random times.

    Every size of the table is drawn as often as any other, as in the test of Enos 2014, section
    III.B. A job asks for its time limit, drawn in whole minutes from the table's range, and runs
    for half of it to all of it, evenly. Jobs come at exponential intervals.

    Parameters
    ----------
    workload
        The table.
    node_class
        Draw only from its jobs of this class.
    num_nodes
        The nodes of the machine that the log is for; larger jobs are not drawn.
    load_percent
        How dense the submissions are: the node-seconds of the log, in percent of those that
        `num_nodes` nodes have over the time of the submissions. Of the mean: a log as drawn is
        off by some percent.
    seed
        Same seed, same log.

    Raises
    ------
    InputError
        If the load is not positive, the number of jobs is not from 1 to `MAX_JOBS`, or the table
        has no job of the class that fits.
    """
    if not 1 <= num_jobs <= MAX_JOBS:
        raise InputError(f"a number from 1 to {MAX_JOBS}", field="jobs", value=num_jobs)
    if not 0 < load_percent < float("inf"):
        raise InputError("a positive number of percent", field="load", value=load_percent)
    kinds = [
        (job.nodes, row.minutes, row.application)
        for row in workload.rows
        for job in workload_jobs(workload.model_copy(update={"rows": [row]}))
        if job.node_class == node_class and job.nodes <= num_nodes
    ]
    if not kinds:
        raise InputError("a class with jobs that fit", field="class", value=node_class)
    share = (1 + _LEAST_SHARE) / 2
    work = np.mean([nodes * share * 30 * (low + high) for nodes, (low, high), _ in kinds])
    gap = 100 * float(work) / (num_nodes * load_percent)
    rng = np.random.default_rng(seed)
    jobs = []
    at = 0.0
    for number in range(1, num_jobs + 1):
        nodes, (low, high), name = kinds[int(rng.integers(len(kinds)))]
        walltime = 60 * int(rng.integers(low, high + 1))
        seconds = int(rng.integers(int(_LEAST_SHARE * walltime), walltime + 1))
        jobs.append(LogJob(str(number), nodes, int(at), seconds, walltime, application=name))
        at += float(rng.exponential(gap))
    return tuple(jobs)


def swf_text(jobs: Sequence[LogJob], comment: str) -> str:
    """Return jobs in the Standard Workload Format, whose ids are their job numbers.

    Executables are the numbers of the applications, which comments name.
    """
    names = sorted({job.application for job in jobs if job.application})
    lines = [f"; {comment}", *(f"; executable {k}: {name}" for k, name in enumerate(names))]
    for job in jobs:
        fields = [job.id, job.submitted, -1, job.seconds, job.nodes, -1, -1, job.nodes]
        executable = names.index(job.application) if job.application else -1
        fields += [job.walltime, -1, 1, -1, -1, executable, *[-1] * 4]
        lines.append(" ".join(map(str, fields)))
    return "\n".join(lines) + "\n"


def main(given: Sequence[str] | None = None) -> None:
    """Write a log for jobs of the main class of a machine."""
    options = {"on": "blue_waters", "jobs": 1000, "load": 70.0, "seed": 2014}
    own = parsed(__doc__, given, output=Path("log.swf"), **options)
    machine = load_torus(own.on)
    num_nodes = int(np.count_nonzero(prepare_empty(machine).node_class == 0))
    workload = load_workload()
    jobs = draw_log(workload, machine.default_class, own.jobs, num_nodes, own.load, own.seed)
    comment = (
        f"{own.jobs} jobs drawn from {workload.name} for {own.on}, "
        f"load {own.load:g} %, seed {own.seed}"
    )
    write_text(own.output, swf_text(jobs, comment))


if __name__ == "__main__":
    main()
