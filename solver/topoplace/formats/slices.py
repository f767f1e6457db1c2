"""Slices of tori: scenarios of slice-packer-torus (JSON), and traces of RFold (CSV)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.declared import left_out, table, unknown_fields
from topoplace.formats.text import lines_of, name_of, require_once
from topoplace.formats.yaml_text import Parsed
from topoplace.machine import format_node_set
from topoplace.snapshot.files import parse_object, read_bytes
from topoplace.snapshot.held import ORDER
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    LeftOut,
    Model,
    Name,
    PrismModel,
    Request,
    RunningJob,
    Size,
    Snapshot,
    TorusModel,
)
from topoplace.snapshot.state import prepare, torus_of

_LEAST_RING = 3
_MAX_SIDE = 1 << 12
_MAX_SHAPES = 5000

# ---- Scenarios of slice-packer-torus -------------------------------------------------------------


SCENARIO = table(
    "Scenarios of slice-packer-torus",
    f"""
    read pod.k, pod.n, pod.extents: the machine
    depends pod.wrap -> seam: nobody, but is named where there are rings: no slice of \
        slice-packer crosses the seam of a ring, and prisms here do
    read unhealthy: nodes that are down
    read allocations: running jobs with their prisms
    read demand[].job_id, demand[].chips: the request
    read demand[].shape, demand[].min_torus_dims: its shapes
    read demand[].tenant: the application
    depends demand[].priority -> {ORDER}: nobody, but is named: an order
    depends domains: nobody, but is named where there are several tenants: with isolation, which \
        is an option of slice-packer, each has domains of its own
    neutral _comment
    """,
)

TRACE = table(
    "Traces of RFold",
    """
    read job id: the request
    read arrival time (sec): `submitted`
    read topology, shape: its shapes, on as many dimensions
    read size: its nodes
    read duration (sec): its walltime
    """,
)


class _Scenario(Model):
    model_config = ConfigDict(extra="ignore", defer_build=True)


_Side = Annotated[int, Field(ge=1, le=_MAX_SIDE)]
_Coords = Annotated[
    list[Annotated[int, Field(ge=0, le=_MAX_SIDE)]], Field(min_length=1, max_length=8)
]
_Shape = Annotated[list[_Side], Field(min_length=1, max_length=8)]


class _Pod(_Scenario):
    k: _Side | None = None
    n: Annotated[int, Field(ge=1, le=8)] | None = None
    extents: _Shape | None = None
    wrap: bool | list[bool] = True


class _Slice(_Scenario):
    origin: _Coords
    extent: _Shape
    tenant: str | None = None


class _Demand(_Scenario):
    job_id: Name
    chips: Size
    shape: _Shape | None = None
    min_torus_dims: Annotated[int, Field(ge=0, le=8)] = 0
    tenant: str | None = None
    priority: int = 0


class _Document(_Scenario):
    pod: _Pod
    unhealthy: list[_Coords] = Field(default_factory=list)
    allocations: dict[Name, _Slice] | None = None
    demand: list[_Demand] = Field(default_factory=list)
    domains: dict[str, Any] | None = None


def read_slice_scenario(path: str | Path) -> tuple[Snapshot, tuple[str, ...]]:
    """Read a scenario of slice-packer-torus: a pod, slices in use, and the slices that are wanted.

    Chips are nodes, one on every router. A request takes any slice of exactly its chips, or of
    the shape that it names, with as many closed rings as it asks for. Tenants become the
    application. That slices cross no seam of a ring, domains of tenants, and the order are left
    out, of no request.

    Raises
    ------
    InputError
        With the field at fault.
    """
    raw = parse_object(read_bytes(path), str(path))
    with blamed_on(path):
        document = Parsed(raw, {}).validated(_Document)
        machine = _pod(document.pod, f"{name_of(path)}-pod")
        shape, wrap = machine.shape, machine.wrap or []
        strides = torus_of(machine).strides
        down = [
            _number(coords, shape, strides, f"unhealthy[{idx}]")
            for idx, coords in enumerate(document.unhealthy)
        ]
        running = [
            _running(job, own, shape, strides) for job, own in (document.allocations or {}).items()
        ]
        queue, num_without = [], 0
        for idx, wanted in enumerate(document.demand):
            shapes = _shapes(wanted, shape, wrap, f"demand[{idx}]")
            num_without += not shapes
            if shapes:
                own_id, chips = wanted.job_id, wanted.chips
                queue.append(
                    Request(id=own_id, nodes=chips, shapes=shapes, application=wanted.tenant)
                )
        snapshot = Snapshot(
            schema_version=SNAPSHOT_SCHEMA,
            name=name_of(path),
            machine=machine,
            down=format_node_set(down),
            running=running,
            queue=queue,
            left_out=[*_left_out(document, machine), *unknown_fields(SCENARIO.unknown_in(raw))],
            source="a scenario of slice-packer-torus",
        )
        prepare(snapshot)
    notes = [f"{number_of(len(running), 'job')} running, {len(queue)} queued"]
    if num_without:
        notes.append(f"jobs left out, of a size or shape that the pod has not: {num_without}")
    return snapshot, tuple(notes)


def _left_out(document: _Document, machine: TorusModel) -> Iterator[LeftOut]:
    """Yield what restricts slices in slice-packer and is of no request alone."""
    if any(machine.wrap or ()):
        yield left_out("seam", "of rings, which no slice crosses", "pod.wrap")
    tenants = {own.tenant for own in document.demand}
    tenants |= {own.tenant for own in (document.allocations or {}).values()}
    if document.domains is not None and len(tenants - {None}) > 1:
        yield left_out("domains", "of tenants", "domains")
    if len(document.demand) > 1:
        yield left_out(ORDER, "of the list, or by priority", "demand")


def _pod(pod: _Pod, name: str) -> TorusModel:
    if pod.extents is None:
        if pod.k is None or pod.n is None:
            raise InputError("k and n, or extents", field="pod", found="neither")
        shape = [pod.k] * pod.n
    else:
        shape = pod.extents
    wrap = [pod.wrap] * len(shape) if isinstance(pod.wrap, bool) else pod.wrap
    if len(wrap) != len(shape):
        expected = f"{number_of(len(shape), 'entry')}, one for each dimension"
        raise InputError(expected, field="pod.wrap", found=str(len(wrap)))
    for idx, (side, wraps) in enumerate(zip(shape, wrap, strict=True)):
        if wraps and side < _LEAST_RING:
            expected = f"no ring of fewer than {_LEAST_RING} chips"
            raise InputError(expected, field=f"pod.wrap[{idx}]", found=f"one of {side}")
    machine = TorusModel(name=name, shape=shape, wrap=wrap, source="a pod of slice-packer-torus")
    with blamed_on(None, "pod"):
        torus_of(machine)
    return machine


def _number(coords: Sequence[int], shape: Sequence[int], strides: Sequence[int], field: str) -> int:
    if len(coords) != len(shape) or any(c >= s for c, s in zip(coords, shape, strict=False)):
        expected = f"coordinates of the pod, {'x'.join(map(str, shape))}"
        raise InputError(expected, field=field, value=coords)
    return sum(c * s for c, s in zip(coords, strides, strict=True))


def _running(job: str, own: _Slice, shape: Sequence[int], strides: Sequence[int]) -> RunningJob:
    field = f"allocations.{job}"
    _number(own.origin, shape, strides, f"{field}.origin")
    if len(own.extent) != len(shape):
        expected = number_of(len(shape), "dimension")
        raise InputError(expected, field=f"{field}.extent", value=own.extent)
    for at, length, side in zip(own.origin, own.extent, shape, strict=True):
        if at + length > side:
            expected = "a slice inside the pod, without crossing a seam"
            raise InputError(expected, field=f"{field}.extent", value=own.extent)
    places = (range(at, at + n) for at, n in zip(own.origin, own.extent, strict=True))
    nodes = (
        sum(c * s for c, s in zip(coords, strides, strict=True))
        for coords in itertools.product(*places)
    )
    return RunningJob(
        id=job,
        nodes=format_node_set(nodes),
        prism=PrismModel(origin=own.origin, extents=own.extent),
        application=own.tenant,
    )


def _shapes(wanted: _Demand, shape: Sequence[int], wrap: Sequence[bool], field: str) -> str:
    """Return the shapes that a slice may have; empty if there is none in the pod."""
    if wanted.shape is not None:
        if math.prod(wanted.shape) != wanted.chips or len(wanted.shape) != len(shape):
            expected = (
                f"{number_of(len(shape), 'extent')} that hold the {number_of(wanted.chips, 'chip')}"
            )
            raise InputError(expected, field=f"{field}.shape", value=wanted.shape)
        found: Iterable[Sequence[int]] = [wanted.shape]
        if any(n > side for n, side in zip(wanted.shape, shape, strict=True)):
            found = []
    else:
        found = _factors(wanted.chips, shape)
    closed = [
        own
        for own in found
        if sum(w and n == side for n, side, w in zip(own, shape, wrap, strict=True))
        >= wanted.min_torus_dims
    ]
    if len(closed) > _MAX_SHAPES:
        raise InputError(f"at most {_MAX_SHAPES} shapes", field=field, found=str(len(closed)))
    return "/".join("x".join(map(str, own)) for own in closed)


def _factors(chips: int, shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all extents within a shape that have the given number of chips."""
    if len(shape) == 1:
        if chips <= shape[0]:
            yield (chips,)
        return
    for n in range(1, min(shape[0], chips) + 1):
        if chips % n == 0:
            yield from ((n, *rest) for rest in _factors(chips // n, shape[1:]))


# ---- Traces of RFold -----------------------------------------------------------------------------

_COLUMNS = ("job id", "arrival time (sec)", "topology", "shape", "size", "duration (sec)")
_TORI = {"MESH2D": 2, "T2D": 2, "MESH3D": 3, "T3D_NT": 3, "T3D_T": 3}
_CLOS = "CLOS"
_MAX_SECONDS = 1 << 40


def is_rfold(path: str | Path) -> bool:
    """Tell whether the first line of a file that is no comment has the columns of a trace."""
    first = next((text for _, text in lines_of(path, "#;")), "")
    return first.count(",") == len(_COLUMNS) - 1


def read_rfold(
    path: str | Path, machine: TorusModel, limit: int | None = None
) -> tuple[Snapshot, tuple[str, ...]]:
    """Read a trace of RFold (`rfold_jobs`) as the queue of an empty torus or mesh.

    Raises
    ------
    InputError
        With the line and the column at fault.
    """
    queue, left_out = rfold_jobs(path, machine, limit)
    snapshot = Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=name_of(path),
        machine=machine,
        queue=queue,
        source="a trace of RFold",
    )
    with blamed_on(path):
        prepare(snapshot)
    notes = [f"{number_of(len(queue), 'job')} queued"]
    return snapshot, (*notes, *(f"left out, {why}: {n}" for why, n in left_out.items() if n))


def rfold_jobs(
    path: str | Path, machine: TorusModel, limit: int | None = None
) -> tuple[list[Request], dict[str, int]]:
    """Return the jobs of a trace of RFold that fit a torus or mesh, and how many do not, by reason.

    Lines are ``job id,arrival time,topology,shape,size,duration``; ``#`` starts a comment. A job
    of a torus or mesh with as many dimensions as the machine takes its shape, turned in any way.
    Others, and those of Clos networks, take any prism. What is not whole is rounded up. Walltimes
    are the durations.

    Raises
    ------
    InputError
        With the line and the column at fault.
    """
    prepare(Snapshot(schema_version=SNAPSHOT_SCHEMA, name="empty", machine=machine))
    num_nodes = math.prod(machine.shape) * machine.nodes_per_router
    jobs: list[Request] = []
    line_of: dict[str, str] = {}
    left_out = {"larger than the machine": 0, "of a shape that does not fit": 0}
    for line, text in lines_of(path, "#"):
        with blamed_on(path, line):
            request, shapes = _traced(text.split(","), machine)
            require_once(line_of, request.id, line, "job", field=_COLUMNS[0])
            if request.nodes > num_nodes:
                left_out["larger than the machine"] += 1
            elif shapes is not None and not shapes:
                left_out["of a shape that does not fit"] += 1
            else:
                jobs.append(request)
        if len(jobs) == limit:
            break
    return jobs, left_out


def _traced(fields: Sequence[str], machine: TorusModel) -> tuple[Request, str | None]:
    """Return the request of a line, and its shapes; None if any will do."""
    if len(fields) != len(_COLUMNS):
        expected = f"{number_of(len(_COLUMNS), 'column')} ({','.join(_COLUMNS)})"
        raise InputError(expected, value=number_of(len(fields), "column"))
    job, arrival, topology, shape, size, duration = (field.strip() for field in fields)
    if topology not in (*_TORI, _CLOS):
        expected = f"one of {', '.join((*_TORI, _CLOS))}"
        raise InputError(expected, field=_COLUMNS[2], value=topology)
    nodes = _whole(size, 1, 1 << 31, _COLUMNS[4])
    separator = "+" if topology == _CLOS else "x"
    sides = [_whole(part, 1, 1 << 31, _COLUMNS[3]) for part in shape.split(separator)]
    shapes = None
    if topology != _CLOS:
        if len(sides) != _TORI[topology] or math.prod(sides) != nodes:
            expected = f"{_TORI[topology]} extents that hold the size, {nodes}"
            raise InputError(expected, field=_COLUMNS[3], value=shape)
        if len(machine.shape) == len(sides):
            shapes = _turned(sides, machine.shape)
    request = Request(
        id=str(_whole(job, 0, 10**18, _COLUMNS[0])),
        nodes=nodes,
        shapes=shapes or None,
        walltime=_whole(duration, 0, _MAX_SECONDS, _COLUMNS[5]),
        submitted=_whole(arrival, 0, _MAX_SECONDS, _COLUMNS[1]),
    )
    return request, shapes


def _turned(sides: Sequence[int], shape: Sequence[int]) -> str:
    turned = dict.fromkeys(itertools.permutations(sides))
    fitting = [own for own in turned if all(n <= s for n, s in zip(own, shape, strict=True))]
    return "/".join("x".join(map(str, own)) for own in fitting)


def _whole(text: str, least: int, most: int, field: str) -> int:
    """Return a number, rounded up, that is in a range."""
    try:
        number = math.ceil(float(text))
    except (ValueError, OverflowError):
        raise InputError("a number", field=field, value=text) from None
    if not least <= number <= most:
        raise InputError(f"a number from {least} to {most}", field=field, value=text)
    return number
