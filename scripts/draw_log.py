"""Draw a job log from the workload of Enos 2014, Table II, in the Standard Workload Format.

``python scripts/draw_log.py --jobs 1000 --load 70 --seed 2014 -o log.swf``, and then
``topoplace replay log.swf --on blue_waters --method best-fit``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from generate_snapshots import Workload, load_workload, workload_jobs
from study import parsed
from topoplace.errors import InputError
from topoplace.snapshot.files import write_text
from topoplace.snapshot.machines import load_torus, prepare_empty
from topoplace.snapshot.state import SnapshotState
from topoplace.study.replay import LogJob

MAX_JOBS = 1_000_000
_LEAST_SHARE = 0.5
"""Least share of its time limit that a job runs."""

_DEFAULT = "xe"
"""What the table calls the default class."""


def draw_log(
    workload: Workload,
    num_nodes: Mapping[str | None, int],
    num_jobs: int,
    load_percent: float,
    seed: int,
    *,
    shares: Mapping[str, float] | None = None,
    wave: int = 0,
    default: str = _DEFAULT,
) -> tuple[LogJob, ...]:
    """Draw a log: multiple instances of every job of a table, submitted at random times.

    Every size of the table is drawn as often as any other, as in the test of Enos 2014, section
    III.B, unless applications have shares. A job asks for its time limit, drawn in whole minutes
    from the table's range, and runs for half of it to all of it, evenly. Jobs come at exponential
    intervals.

    Parameters
    ----------
    workload
        The table.
    num_nodes
        The nodes of the machine that the log is for, by class; None is the default one. Only jobs
        of these classes are drawn, and no larger ones.
    load_percent
        How dense the submissions are: the node-seconds of the log, in percent of those that
        all these nodes have over the time of the submissions. Of the mean: a log as drawn is
        off by some percent.
    seed
        Same seed, same log.
    shares
        By application its share of the node-seconds, in any unit, where not every size is to be
        drawn as often as any other; other applications are left out.
    wave
        Seconds between the waves in which jobs are submitted together (Enos 2014, section III.B);
        with 0 each comes alone.
    default
        What the table calls the default class.

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
    known = {name or default: name for name in num_nodes}
    kinds = [
        (job.nodes, row.minutes, row.application, known[job.node_class])
        for row in workload.rows
        for job in workload_jobs(workload.model_copy(update={"rows": [row]}))
        if job.node_class in known and job.nodes <= num_nodes[known[job.node_class]]
        if shares is None or shares.get(row.application)
    ]
    if not kinds:
        raise InputError("classes and applications with jobs that fit", field="class")
    share = (1 + _LEAST_SHARE) / 2
    works = np.array([nodes * share * 30 * (low + high) for nodes, (low, high), *_ in kinds])
    odds = np.full(len(kinds), 1 / len(kinds))
    if shares is not None:  # every size of an application as often as any other
        names = np.array([name for *_, name, _ in kinds])
        odds = np.array([shares[name] / works[names == name].sum() for name in names])
        odds /= odds.sum()
    gap = 100 * float(works @ odds) / (sum(num_nodes.values()) * load_percent)
    rng = np.random.default_rng(seed)
    jobs = []
    at = 0.0
    for number in range(1, num_jobs + 1):
        drawn = rng.integers(len(kinds)) if shares is None else rng.choice(len(kinds), p=odds)
        nodes, (low, high), name, own = kinds[int(drawn)]
        walltime = 60 * int(rng.integers(low, high + 1))
        seconds = int(rng.integers(int(_LEAST_SHARE * walltime), walltime + 1))
        then = int(at) // wave * wave if wave else int(at)
        jobs.append(
            LogJob(str(number), nodes, then, seconds, walltime, application=name, node_class=own)
        )
        at += float(rng.exponential(gap))
    return tuple(jobs)


def nodes_by_class(state: SnapshotState, classes: Sequence[str]) -> dict[str | None, int]:
    """Return the nodes of some classes of a machine; None is the default one."""
    return {
        None if k == 0 else name: int(np.count_nonzero(state.node_class == k))
        for k, name in enumerate(state.classes)
        if name in classes
    }


def swf_text(jobs: Sequence[LogJob], comment: str) -> str:
    """Return jobs in the Standard Workload Format, whose ids are their job numbers.

    Executables are the numbers of the applications and partitions those of the classes, from 1;
    comments name both.
    """
    names = sorted({job.application for job in jobs if job.application})
    classes = sorted({job.node_class or _DEFAULT for job in jobs})
    lines = [f"; {comment}", *(f"; executable {k}: {name}" for k, name in enumerate(names))]
    lines += [f"; Partition: {k} {name}" for k, name in enumerate(classes, 1)]
    for job in jobs:
        fields = [job.id, job.submitted, -1, job.seconds, job.nodes, -1, -1, job.nodes]
        executable = names.index(job.application) if job.application else -1
        partition = 1 + classes.index(job.node_class or _DEFAULT)
        fields += [job.walltime, -1, 1, -1, -1, executable, -1, partition, -1, -1]
        lines.append(" ".join(map(str, fields)))
    return "\n".join(lines) + "\n"


def main(given: Sequence[str] | None = None) -> None:
    """Write a log for jobs of some classes of a machine."""
    options = {
        "on": "blue_waters",
        "jobs": 1000,
        "load": 70.0,
        "seed": 2014,
        "classes": [str],
        "shares": [str],
        "wave": 0,
    }
    own = parsed(__doc__, given, output=Path("log.swf"), **options)
    state = prepare_empty(load_torus(own.on))
    num_nodes = nodes_by_class(state, own.classes or [_DEFAULT])
    shares = {name: float(share) for name, _, share in (one.partition("=") for one in own.shares)}
    workload = load_workload()
    jobs = draw_log(
        workload, num_nodes, own.jobs, own.load, own.seed, shares=shares or None, wave=own.wave
    )
    comment = (
        f"{own.jobs} jobs drawn from {workload.name} for {own.on}, "
        f"load {own.load:g} %, seed {own.seed}"
    )
    write_text(own.output, swf_text(jobs, comment))


if __name__ == "__main__":
    main()
