"""Job logs (SWF) and Cray's neighbour table, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError, unknown_name
from topoplace.machine import Torus
from topoplace.snapshot.faults import kind_of_json
from topoplace.snapshot.files import read_bytes
from topoplace.snapshot.schema import Request, Snapshot, TorusModel
from topoplace.snapshot.state import prepare, torus_of

# ---- Text files and their lines of fields, with errors that name file and line -------------------


def name_of(path: str | Path) -> str:
    """Return a file's stem as a name a document accepts."""
    return re.sub(r"[\s,;]+", "-", Path(path).stem)[:128] or "unnamed"


def text_of(path: str | Path, *, or_json: bool = False) -> str:
    """Return the content of a text file, which is no JSON document unless that will do too.

    Raises
    ------
    InputError
        If the file cannot be read or is not text.
    """
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError:
        raise InputError("a text file in UTF-8", file=str(path)) from None
    found = None if or_json else kind_of_json(text)
    if found is not None:
        raise InputError("a text file, not JSON", file=str(path), found=found)
    return text


def field_lines(path: str | Path, comment: str) -> Iterator[tuple[str, list[str]]]:
    """Yield ``("line 7", fields)`` for every line that is not empty and not a comment.

    Raises
    ------
    InputError
        If the file cannot be read or is not text.
    """
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith(comment):
            yield f"line {number}", stripped.split()


def integer(text: str, least: int, *, field: str, file: str | None = None) -> int:
    """Return a decimal integer of at most 18 digits that is not below `least`.

    Raises
    ------
    InputError
        If the text is anything else.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18) or int(text) < least:
        raise InputError(f"an integer from {least}", file=file, field=field, value=text)
    return int(text)


# ---- The Standard Workload Format: a job log of 18 numbers per line, read as a queue -------------

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


# ---- The Cray neighbour table: one line per node with its six neighbours and its coordinates -----

_COLUMNS = ("nid", "x+", "x-", "y+", "y-", "z+", "z-", "lx", "ly", "lz")


@dataclass(frozen=True)
class CrayTable:
    """A machine read from a neighbour table.

    Attributes
    ----------
    machine
        The torus; routers, with one node each, are numbered by coordinates.
    router_of_nid
        Our router number for each of the table's node ids, in the table's order.
    """

    machine: TorusModel
    router_of_nid: dict[int, int]


def read_cray_neighbours(path: str | Path, name: str | None = None) -> CrayTable:
    """Read a neighbour table and check that it is a torus.

    The coordinates must fill a box once, and every neighbour entry must be the node one step
    along that dimension, wrapping around (so a mesh, or a table with holes, is refused).

    Parameters
    ----------
    path
        Lines ``nid x+ x- y+ y- z+ z- lx ly lz``; ``#`` starts a comment.
    name
        Name of the machine, by default the file's, without spaces.

    Raises
    ------
    InputError
        Naming file, line, column and value.
    """
    file = str(path)
    rows: list[tuple[str, list[int]]] = []
    for line, fields in field_lines(path, "#"):
        if len(fields) != len(_COLUMNS):
            raise InputError(
                f"{len(_COLUMNS)} columns ({' '.join(_COLUMNS)})",
                file=file,
                field=line,
                value=f"{len(fields)} columns",
            )
        numbers = [
            integer(text, 0, file=file, field=f"{line}, {column}")
            for text, column in zip(fields, _COLUMNS, strict=True)
        ]
        rows.append((line, numbers))
    if not rows:
        raise InputError("a table with at least one node", file=file)
    machine, torus = _machine_of(rows, name or name_of(path), file)
    router_of_nid: dict[int, int] = {}
    nid_of_router: dict[int, int] = {}
    for line, numbers in rows:
        nid, router = numbers[0], torus.router(numbers[7:])
        if nid in router_of_nid:
            raise InputError("each nid once", file=file, field=f"{line}, nid", value=nid)
        if router in nid_of_router:
            raise InputError(
                "each coordinate once", file=file, field=f"{line}, lx ly lz", value=numbers[7:]
            )
        router_of_nid[nid] = router
        nid_of_router[router] = nid
    for line, numbers in rows:
        _require_neighbours(torus, nid_of_router, numbers, file, line)
    return CrayTable(machine, router_of_nid)


def _machine_of(
    rows: list[tuple[str, list[int]]], name: str, file: str
) -> tuple[TorusModel, Torus]:
    shape = [1 + max(numbers[7 + d] for _, numbers in rows) for d in range(3)]
    expected = shape[0] * shape[1] * shape[2]
    if expected != len(rows):
        raise InputError(
            f"coordinates that fill {'x'.join(map(str, shape))} = {expected} places",
            file=file,
            field="lx ly lz",
            value=f"{len(rows)} nodes",
        )
    machine = TorusModel(
        name=name,
        shape=shape,
        wrap=[True] * 3,
        bandwidth=[1] * 3,
        source="a Cray neighbour table; nodes numbered by coordinates",
    )
    return machine, torus_of(machine)


def _require_neighbours(
    torus: Torus, nid_of_router: dict[int, int], numbers: list[int], file: str, line: str
) -> None:
    here = numbers[7:]
    for k, column in enumerate(_COLUMNS[1:7]):
        d, step = k // 2, 1 if k % 2 == 0 else -1
        there = [(c + step) % n if e == d else c for e, (c, n) in enumerate(_pairs(here, torus))]
        expected = nid_of_router[torus.router(there)]
        if numbers[1 + k] != expected:
            raise InputError(
                f"the torus neighbour, nid {expected}",
                file=file,
                field=f"{line}, {column}",
                value=numbers[1 + k],
            )


def _pairs(coords: list[int], torus: Torus) -> list[tuple[int, int]]:
    return list(zip(coords, torus.shape, strict=True))
