"""Job logs (SWF) and Cray's neighbour table, line by line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from topoplace.errors import UNSEEN, InputError, blamed_on, number_of, unknown_name
from topoplace.formats.declared import left_out, of_request, table
from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.faults import kind_of_json
from topoplace.snapshot.files import read_bytes
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, LeftOut, Request, Snapshot, TorusModel
from topoplace.snapshot.state import prepare, torus_of
from topoplace.types import IntArray

Key = TypeVar("Key")

# ---- Text files and their lines of fields, with errors that name file and line -------------------


def name_of(path: str | Path) -> str:
    """Return a file's stem as a name a document accepts."""
    return re.sub(rf"[\s,;{UNSEEN}]+", "-", Path(path).stem)[:128] or "unnamed"


def text_of(path: str | Path, *, or_json: bool = False) -> str:
    """Return the content of a text file, which is no JSON document unless that will do too."""
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError:
        raise InputError("a text file in UTF-8", file=str(path)) from None
    found = None if or_json else kind_of_json(text)
    if found is not None:
        raise InputError("a text file, not JSON", file=str(path), found=found)
    return text


def first_said(text: str) -> str:
    """Return the first line that is neither blank, nor a comment, nor begins a YAML document."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and line[0] != "#" and line != "---"), "")


def lines_of(path: str | Path, comments: str = "") -> Iterator[tuple[str, str]]:
    """Yield ``("line 7", line)`` for every line, stripped, but empty ones and comments.

    A comment begins with one of the letters of `comments`.
    """
    for number, text in enumerate(text_of(path).splitlines(), start=1):
        line = text.strip()
        if line and line[0] not in comments:
            yield f"line {number}", line


def field_lines(path: str | Path, comment: str) -> Iterator[tuple[str, list[str]]]:
    """Yield ``("line 7", fields)`` as `lines_of`."""
    for place, line in lines_of(path, comment):
        yield place, line.split()


def require_once(
    place_of: dict[Key, str], key: Key, place: str, what: str, *, field: str | None = None
) -> None:
    """Raise `InputError` if a job, a switch, a node has a place in the file already."""
    if key in place_of:
        expected = f"each {what} once (it stands at {place_of[key]} too)"
        raise InputError(expected, field=field, value=key)
    place_of[key] = place


def integer(
    text: str, least: int, most: int | None = None, *, field: str, file: str | None = None
) -> int:
    """Return a decimal integer of at most 18 digits that is in a range."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 18:
        number = int(text)
        if number >= least and (most is None or number <= most):
            return number
    until = "" if most is None else f" to {most}"
    raise InputError(f"an integer from {least}{until}", file=file, field=field, value=text)


# ---- The Standard Workload Format: a job log of 18 numbers per line, read as a queue -------------

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


# ---- The Cray neighbour table: one line per node with its six neighbours and its coordinates -----

_COLUMNS = ("nid", "x+", "x-", "y+", "y-", "z+", "z-", "lx", "ly", "lz")


def read_cray_neighbours(path: str | Path, name: str | None = None) -> TorusModel:
    """Read a neighbour table and check that it is a torus, whose nodes are called ``nid00012``.

    The coordinates must fill a box once, and every neighbour entry must be the node one step
    along that dimension, wrapping around (so a mesh, or a table with holes, is refused).
    Lines are ``nid x+ x- y+ y- z+ z- lx ly lz``; ``#`` starts a comment. The machine is named as
    the file if not told otherwise.
    """
    rows: list[tuple[str, list[int]]] = []
    for line, fields in field_lines(path, "#"):
        with blamed_on(path, line):
            if len(fields) != len(_COLUMNS):
                expected = f"{number_of(len(_COLUMNS), 'column')} ({' '.join(_COLUMNS)})"
                raise InputError(expected, value=number_of(len(fields), "column"))
            pairs = zip(fields, _COLUMNS, strict=True)
            rows.append((line, [integer(own, 0, field=column) for own, column in pairs]))
    if not rows:
        raise InputError("a table with at least one node", file=str(path))
    with blamed_on(path):
        return _table([line for line, _ in rows], np.asarray([row for _, row in rows]), path, name)


def _table(lines: list[str], numbers: IntArray, path: str | Path, name: str | None) -> TorusModel:
    nids, coords = numbers[:, 0], numbers[:, 7:]
    shape = (coords.max(axis=0) + 1).tolist()
    if math.prod(shape) != len(lines):
        expected = (
            f"coordinates that fill {'x'.join(map(str, shape))} = "
            f"{number_of(math.prod(shape), 'place')}"
        )
        raise InputError(expected, field="lx ly lz", value=number_of(len(lines), "node"))
    machine = TorusModel(
        name=name or name_of(path),
        shape=shape,
        wrap=[True] * 3,
        bandwidth=[1] * 3,
        source="a Cray neighbour table; nodes numbered by coordinates",
    )
    torus = torus_of(machine)
    line_of_nid: dict[int, str] = {}
    line_of_coords: dict[tuple[int, ...], str] = {}
    for line, nid, at in zip(lines, nids.tolist(), coords.tolist(), strict=True):
        with blamed_on(path, line):
            require_once(line_of_nid, nid, line, "nid", field="nid")
            require_once(line_of_coords, tuple(at), line, "coordinate", field="lx ly lz")
    routers = coords @ torus.strides
    nid_of_router = np.zeros(len(lines), dtype=np.int64)
    nid_of_router[routers] = nids
    steps = np.concatenate([(step, -step) for step in np.eye(3, dtype=np.int64)])  # as columns
    expected_nids = nid_of_router[((coords[:, None] + steps) % shape) @ torus.strides]
    wrong = np.argwhere(numbers[:, 1:7] != expected_nids)
    if len(wrong):
        row, k = wrong[0]
        raise InputError(
            f"the torus neighbour, nid {expected_nids[row, k]}",
            field=f"{lines[row]}, {_COLUMNS[1 + k]}",
            value=int(numbers[row, 1 + k]),
        )
    names = format_host_list(f"nid{nid:05d}" for nid in nid_of_router.tolist())
    return machine.model_copy(update={"names": names})
