"""Job logs in the Standard Workload Format: lines of 18 numbers, read as a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from topoplace.errors import InputError, blamed_on, number_of, unknown_name
from topoplace.formats.declared import left_out, of_request, table
from topoplace.formats.text import field_lines, integer, require_once
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, LeftOut, Request, Snapshot, TorusModel
from topoplace.snapshot.state import prepare

SWF = table(
    "The Standard Workload Format",
    """
    read 1 job number: the request
    read 2 submit time: `submitted`
    neutral 3 wait time
    read 4 run time: the walltime, if field 9 does not say; replays
    read 5 allocated processors: the nodes, if field 8 does not say
    neutral 6 average CPU time, 7 used memory
    read 8 requested processors: the nodes
    read 9 requested time: the walltime
    neutral 10 requested memory: nodes of a class are alike
    read 11 status: lines for a part of a job are left out
    neutral 12 user, 13 group
    read 14 executable: the application
    read 15 queue: the priority, in replays that say which queue has which
    depends 16 partition -> partition: the log has jobs of several partitions: which nodes are \
        whose is not known, unless a replay says which class each is
    depends 17 preceding job -> preceding-job: the job has one, which has to end first
    neutral 18 think time: counts from the end of the preceding job
    """,
)

_NUM_FIELDS = 18
_JOB, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _REQUESTED_TIME = 0, 1, 3, 4, 7, 8
_STATUS, _EXECUTABLE, _QUEUE, _PARTITION, _PRECEDING = 10, 13, 14, 15, 16
_PARTIAL = (2, 3, 4)  # lines of one stretch of a job that has a line of its own for the whole
_MAX_NODES = 1 << 31
_MAX_SECONDS = 1 << 40


@dataclass(frozen=True)
class SwfLog:
    """The jobs of a log, in its order: requests, and the seconds each ran (None where unknown).

    Left out are jobs of which the log says neither a requested nor an allocated size, and lines
    that tell of one stretch of a job that was interrupted (`num_partial`). `left_out` has what
    restricts jobs and is not modelled.
    """

    requests: tuple[Request, ...]
    run_times: tuple[int | None, ...]
    num_without_size: int
    num_partial: int
    left_out: tuple[LeftOut, ...] = ()


def read_swf(
    path: str | Path,
    *,
    procs_per_node: int = 1,
    node_class: str | None = None,
    partitions: Mapping[str, str] = MappingProxyType({}),
    queues: Mapping[str, int] = MappingProxyType({}),
) -> SwfLog:
    """Read a log in the Standard Workload Format.

    A job's size is the processors requested (field 8), or allocated (field 5) where that is
    unknown, divided by `procs_per_node` and rounded up; its walltime is the time requested
    (field 9), or the run time (field 4). A field of -1 is unknown. A job is of `node_class`, unless
    `partitions` has the class of its partition, and has the priority that `queues` has for its
    queue, or 1.
    """
    if procs_per_node < 1:
        raise InputError("a positive integer", field="procs_per_node", value=procs_per_node)
    requests: list[Request] = []
    run_times: list[int | None] = []
    line_of: dict[int, str] = {}
    held: list[LeftOut] = []
    without_size = partial = 0
    for line, fields in field_lines(path, ";"):
        with blamed_on(path, line):
            numbers = _numbers(fields)
            if numbers[_STATUS] in _PARTIAL:
                partial += 1
                continue
            require_once(line_of, numbers[_JOB], line, "job", field="field 1")
            procs = _first_known(numbers[_REQUESTED], numbers[_ALLOCATED], unknown=0)
            if procs is None:
                without_size += 1
                continue
            nodes = -(-procs // procs_per_node)
            if nodes > _MAX_NODES:
                raise InputError(f"at most {_MAX_NODES} nodes", value=nodes)
        held += _restricting(fields, line)
        executable = numbers[_EXECUTABLE]
        run_times.append(_first_known(numbers[_RUN], unknown=-1))
        requests.append(
            Request(
                id=str(numbers[_JOB]),
                nodes=nodes,
                node_class=partitions.get(fields[_PARTITION], node_class),
                priority=queues.get(fields[_QUEUE], 1),
                application=None if executable < 0 else f"executable-{executable}",
                walltime=_first_known(numbers[_REQUESTED_TIME], numbers[_RUN], unknown=-1),
                submitted=_first_known(numbers[_SUBMIT], unknown=-1),
            )
        )
    several = len({one.value for one in held if one.option == "partition"}) > 1
    unknown = [one for one in held if several and one.value not in partitions]
    held = [one for one in held if one.option != "partition" or one in unknown]
    return SwfLog(tuple(requests), tuple(run_times), without_size, partial, tuple(held))


def _restricting(fields: list[str], line: str) -> list[LeftOut]:
    """Return what restricts a job: a partition, which matters if there are several, and a job."""
    found = []
    if fields[_PARTITION] != "-1":
        found.append(left_out("partition", fields[_PARTITION], f"{line}, field 16"))
    if fields[_PRECEDING] not in ("-1", "0"):
        found.append(left_out("preceding-job", fields[_PRECEDING], f"{line}, field 17"))
    return of_request(str(int(fields[_JOB])), found)


def _numbers(fields: list[str]) -> dict[int, int]:
    """Return the fields we use as integers; the others need not be."""
    if len(fields) != _NUM_FIELDS:
        raise InputError(f"{_NUM_FIELDS} fields", value=number_of(len(fields), "field"))
    used = (_JOB, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _REQUESTED_TIME, _STATUS, _EXECUTABLE)
    numbers = {k: integer(fields[k], -1 if k else 0, field=f"field {k + 1}") for k in used}
    for k in (_SUBMIT, _RUN, _REQUESTED_TIME):
        if numbers[k] > _MAX_SECONDS:
            expected = f"at most {_MAX_SECONDS} seconds"
            raise InputError(expected, field=f"field {k + 1}", value=numbers[k])
    return numbers


def _first_known(*values: int, unknown: int) -> int | None:
    """Return the first value above `unknown`."""
    return next((value for value in values if value > unknown), None)


def snapshot_of_swf(
    log: SwfLog, machine: TorusModel, name: str, limit: int | None = None
) -> tuple[Snapshot, int]:
    """Return an empty machine with a log as its queue, and how many jobs are too large for it.

    With `limit`, only that many jobs that fit are kept, the first ones.
    """
    if limit is not None and limit < 1:
        raise InputError("a positive integer", field="limit", value=limit)
    bare = Snapshot(schema_version=SNAPSHOT_SCHEMA, name=name, machine=machine)
    state = prepare(bare)
    there = {c: int((state.node_class == idx).sum()) for idx, c in enumerate(state.classes)}
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
    names = {request.id for request in queue}
    held = [one for one in log.left_out if one.request in names]
    return bare.model_copy(update={"queue": queue, "left_out": held}), num_too_large
