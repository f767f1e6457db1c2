"""The Standard Workload Format: a job log of 18 numbers per line, read as a queue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError, unknown_name
from topoplace.snapshot.readers.lines import field_lines, integer
from topoplace.snapshot.schema import Request, Snapshot, TorusModel
from topoplace.snapshot.state import prepare

_NUM_FIELDS = 18
_JOB, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _REQUESTED_TIME = 0, 1, 3, 4, 7, 8
_STATUS, _EXECUTABLE = 10, 13
_PARTIAL = (2, 3, 4)  # lines of one stretch of a job that has a line of its own for the whole
_MAX_NODES = 1 << 31
_MAX_SECONDS = 1 << 40


@dataclass(frozen=True)
class SwfLog:
    """The jobs of a log, in its order.

    Attributes
    ----------
    requests
        One per job, `id` its job number.
    run_times
        Seconds each of them ran (field 4), None where unknown.
    num_without_size
        Jobs left out because the log says neither a requested nor an allocated size.
    num_partial
        Lines left out because they tell of one stretch of a job that was interrupted.
    """

    requests: tuple[Request, ...]
    run_times: tuple[int | None, ...]
    num_without_size: int
    num_partial: int


def read_swf(path: str | Path, *, procs_per_node: int = 1, node_class: str | None = None) -> SwfLog:
    """Read a log in the Standard Workload Format.

    A job's size is the processors requested (field 8), or allocated (field 5) where that is
    unknown, divided by `procs_per_node` and rounded up; its walltime is the time requested
    (field 9), or the run time (field 4). A field of -1 is unknown.

    Raises
    ------
    InputError
        Naming file, line, field and value.
    """
    if procs_per_node < 1:
        raise InputError("a positive integer", field="procs_per_node", value=procs_per_node)
    file = str(path)
    requests: list[Request] = []
    run_times: list[int | None] = []
    line_of: dict[int, str] = {}
    without_size = partial = 0
    for line, fields in field_lines(path, ";"):
        if len(fields) != _NUM_FIELDS:
            raise InputError(
                f"{_NUM_FIELDS} fields", file=file, field=line, value=f"{len(fields)} fields"
            )
        numbers = _numbers(fields, file, line)
        if numbers[_STATUS] in _PARTIAL:
            partial += 1
            continue
        job = numbers[_JOB]
        if job in line_of:
            raise InputError(
                f"each job once (it stands at {line_of[job]} too)",
                file=file,
                field=f"{line}, field 1",
                value=job,
            )
        line_of[job] = line
        procs = _first_known(numbers[_REQUESTED], numbers[_ALLOCATED], unknown=0)
        if procs is None:
            without_size += 1
            continue
        nodes = -(-procs // procs_per_node)
        if nodes > _MAX_NODES:
            raise InputError(f"at most {_MAX_NODES} nodes", file=file, field=line, value=nodes)
        executable = numbers[_EXECUTABLE]
        run_times.append(_first_known(numbers[_RUN], unknown=-1))
        requests.append(
            Request(
                id=str(job),
                nodes=nodes,
                node_class=node_class,
                application=None if executable < 0 else f"executable-{executable}",
                walltime=_first_known(numbers[_REQUESTED_TIME], numbers[_RUN], unknown=-1),
                submitted=_first_known(numbers[_SUBMIT], unknown=-1),
            )
        )
    return SwfLog(tuple(requests), tuple(run_times), without_size, partial)


def _numbers(fields: list[str], file: str, line: str) -> dict[int, int]:
    """Return the fields we use as integers; the others need not be."""
    used = (_JOB, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _REQUESTED_TIME, _STATUS, _EXECUTABLE)
    numbers = {
        k: integer(fields[k], 0 if k == _JOB else -1, file=file, field=f"{line}, field {k + 1}")
        for k in used
    }
    for k in (_SUBMIT, _RUN, _REQUESTED_TIME):
        if numbers[k] > _MAX_SECONDS:
            raise InputError(
                f"at most {_MAX_SECONDS} seconds",
                file=file,
                field=f"{line}, field {k + 1}",
                value=numbers[k],
            )
    return numbers


def _first_known(*values: int, unknown: int) -> int | None:
    """Return the first value above `unknown`."""
    return next((value for value in values if value > unknown), None)


def snapshot_of_swf(
    log: SwfLog, machine: TorusModel, name: str, limit: int | None = None
) -> tuple[Snapshot, int]:
    """Return an empty machine with a log as its queue, and how many jobs are too large for it.

    Parameters
    ----------
    log, machine, name
        What to combine, and the snapshot's name.
    limit
        Keep the first so many jobs that fit; later ones are not looked at.

    Raises
    ------
    InputError
        If the jobs ask for a class the machine has not.
    """
    if limit is not None and limit < 1:
        raise InputError("a positive integer", field="limit", value=limit)
    bare = prepare(Snapshot(schema_version="topoplace.snapshot/1", name=name, machine=machine))
    there = {c: int((bare.node_class == idx).sum()) for idx, c in enumerate(bare.classes)}
    queue: list[Request] = []
    num_too_large = 0
    for request in log.requests:
        wanted = request.node_class or machine.default_class
        if wanted not in there:
            raise unknown_name(wanted, there, field="class")
        if request.nodes > there[wanted]:
            num_too_large += 1
            continue
        queue.append(request)
        if len(queue) == limit:
            break
    snapshot = Snapshot(
        schema_version="topoplace.snapshot/1", name=name, machine=machine, queue=queue
    )
    return snapshot, num_too_large
