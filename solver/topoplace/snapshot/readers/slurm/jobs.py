"""A listing of Slurm's jobs as running jobs and a queue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.snapshot.readers.lines import text_of
from topoplace.snapshot.readers.slurm.job import SlurmJob, tasks_of
from topoplace.snapshot.readers.slurm.squeue_json import read_squeue_json
from topoplace.snapshot.readers.slurm.squeue_text import read_squeue_text
from topoplace.snapshot.schema import Request, RunningJob

_MAX_NODES = 1 << 31
_MAX_SECONDS = 1 << 40
_MAX_ID = 128


@dataclass(frozen=True)
class SlurmJobs:
    """The jobs of a listing.

    Attributes
    ----------
    running
        Jobs that hold nodes, by id.
    queue
        Jobs that wait, by descending priority, then id; `submitted` counts from the first
        submission among the jobs of both lists.
    num_held
        Jobs left out because they wait on hold (priority 0).
    """

    running: tuple[RunningJob, ...]
    queue: tuple[Request, ...]
    num_held: int


def read_slurm_jobs(path: str | Path) -> SlurmJobs:
    """Read the output of ``squeue --json`` or ``squeue -o '%i|%T|%D|%N|%k|%Q|%l|%S|%V'``.

    Jobs that have ended are left out. Every request has priority 1: Slurm's priorities say only
    which job comes first. What a comment may say of a job: `job.read_comment`.

    Raises
    ------
    InputError
        Naming file, line or entry, and value.
    """
    text = text_of(path, or_json=True)
    read = read_squeue_json if text.lstrip().startswith("{") else read_squeue_text
    holding: list[tuple[str, SlurmJob]] = []
    waiting: list[SlurmJob] = []
    place_of: dict[str, str] = {}
    try:
        for place, job in read(text):
            for task in [] if job is None else tasks_of(job, place):
                _require_usable(task, place, place_of)
                if task.holding:
                    holding.append((place, task))
                else:
                    waiting.append(task)
        running = tuple(
            _running(job, place) for place, job in sorted(holding, key=lambda pair: pair[1].order)
        )
    except InputError as error:
        raise error.located(str(path)) from None
    told = [job.submitted for job in [*waiting, *(job for _, job in holding)]]
    start = min((moment for moment in told if moment is not None), default=0)
    ready = sorted(
        (job for job in waiting if job.priority > 0), key=lambda job: (-job.priority, job.order)
    )
    queue = tuple(_request(job, start) for job in ready)
    return SlurmJobs(running, queue, len(waiting) - len(queue))


def _require_usable(job: SlurmJob, place: str, place_of: dict[str, str]) -> None:
    if not 1 <= len(job.id) <= _MAX_ID or set(job.id) & set(" \t,;"):
        raise InputError("a job id", field=place, value=job.id)
    if job.id in place_of:
        raise InputError(
            f"each job once (it stands at {place_of[job.id]} too)", field=place, value=job.id
        )
    place_of[job.id] = place
    if job.num_nodes > _MAX_NODES:
        raise InputError(f"at most {_MAX_NODES} nodes", field=place, value=job.num_nodes)
    if max(job.walltime or 0, job.submitted or 0) > _MAX_SECONDS:
        raise InputError(f"times of at most {_MAX_SECONDS} seconds", field=place, value=job.id)


def _running(job: SlurmJob, place: str) -> RunningJob:
    hosts = expand_host_list(job.hosts, f"{place}, nodes of job {job.id}")
    if len(hosts) != job.num_nodes:
        raise InputError(f"the {job.num_nodes} nodes of job {job.id}", field=place, value=job.hosts)
    return RunningJob(
        id=job.id,
        nodes=format_host_list(hosts),
        communication=job.communication,
        patterns=list(job.patterns) or None,
    )


def _request(job: SlurmJob, start: int) -> Request:
    return Request(
        id=job.id,
        nodes=job.num_nodes,
        communication=job.communication,
        patterns=list(job.patterns) or None,
        walltime=job.walltime,
        submitted=None if job.submitted is None else job.submitted - start,
    )
