"""Recorded decisions of schedulers, a JSON object a line: what they saw, and what they chose.

Three forms are known, all documented in docs/reference/formats.md: of Kueue's topology-aware
scheduling, of Slurm's topology/block and topology/tree, and of pods of cubes.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from topoplace.errors import InputError, blamed_on, number_of, unknown_name
from topoplace.formats.declared import MAX_VALUE, Table, given_text, table, values_at
from topoplace.formats.slurm.blocks import BLOCK, asked_of_blocks
from topoplace.formats.slurm.topology_conf import topology_of_text
from topoplace.formats.text import require_once, text_of
from topoplace.formats.yaml_text import Parsed
from topoplace.machine.hostlist import NodeLists, format_host_list, parse_node_set
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.files import parse_object
from topoplace.snapshot.hierarchy_state import (
    hierarchy_of,
    hierarchy_written,
    prepare_hierarchy,
)
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    CubesModel,
    HierarchyModel,
    HostsModel,
    LeftOut,
    Model,
    Name,
    NodeSet,
    Part,
    Request,
    RunningJob,
    Segment,
    Size,
    Snapshot,
)

Taken = Mapping[str | None, Mapping[str, int]]
"""Units by host, by the name of a part; None is the name of a request without parts.

On a pod of cubes the hosts are chips, by their numbers.
"""


class Decided(StrEnum):
    """What a scheduler decided: to start the request, to let it wait, or never to take it."""

    STARTED = "started"
    WAITING = "waiting"
    REFUSED = "refused"


@dataclass(frozen=True)
class Decision:
    """A decision of a scheduler.

    Attributes
    ----------
    snapshot
        The machine before the decision, with the request as the queue.
    taken
        Which hosts got how many units, as it was recorded, lawful or not; None unless started.
    outcome
        What was decided.
    left_out
        What the scheduler was told and the snapshot does not say, such as ``--nodelist=n003``, or
        a field of the request that is not known.
    unknown
        Other fields of the line that are not known.
    group
        Which decisions it is counted with: the family and mode of Kueue's, and of Slurm's the
        plugin, what was asked for, and how the state came about.
    """

    snapshot: Snapshot
    taken: Taken | None
    outcome: Decided
    left_out: tuple[str, ...] = ()
    group: str = ""
    unknown: tuple[str, ...] = ()


class _Line(Model):
    """A recorded line, which may say more than is read."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


# ---- Kueue ---------------------------------------------------------------------------------------

GPUS = "gpus"
"""The resource of Kueue's recorded nodes and pods."""

Units = Annotated[int, Field(ge=0, le=1 << 20)]
Values = Annotated[list[Name], Field(min_length=1, max_length=16)]


class KueueNode(_Line):
    """A node: its label values, top first, and its units, of which some are free."""

    name: Name
    path: Values
    capacity: Units
    free: Units


class KueueLayer(_Line):
    """Slices of `size` pods, each in one domain of a level."""

    level: Name
    size: Size


class KueuePodset(_Line):
    """A number of equal pods, and where they may go."""

    name: Name | None = None
    count: Size
    mode: Literal["required", "preferred", "unconstrained", "slice-only"]
    level: Name | None = None
    slice_size: Size | None = None
    slice_level: Name | None = None
    slice_layers: list[KueueLayer] = Field(default_factory=list)
    pod_units: Annotated[int, Field(ge=1, le=1 << 20)] = 1
    group: Name | None = None
    balanced: bool = False


class KueuePods(_Line):
    """Pods that a node gets."""

    path: Values
    count: Annotated[int, Field(ge=1, le=1 << 21)]


class KueueLine(_Line):
    """A decision of Kueue's topology-aware scheduling."""

    id: Name
    kueue: str
    family: str = "kueue"
    levels: Values
    nodes: Annotated[list[KueueNode], Field(min_length=1)]
    request: KueuePodset | None = None
    requests: Annotated[list[KueuePodset], Field(min_length=1, max_length=4)] | None = None
    assignment: list[KueuePods] | None = None
    reason: str | None = None
    assignments: dict[str, list[KueuePods]] | None = None
    reasons: dict[str, str] | None = None


def _podset_lines(place: str) -> str:
    return f"""
    read {place}.name: of the part
    read {place}.count: its units
    read {place}.mode: `required`, `preferred`, or neither
    read {place}.level: of the mode
    read {place}.slice_size, {place}.slice_level: a segment
    read {place}.slice_layers: segments
    read {place}.pod_units: what a unit takes
    read {place}.group: `group` of a part
    read {place}.balanced: `balance`
    """


KUEUE = table(
    "Kueue",
    """
    read id, kueue, family: what it is called, and counted with
    read levels: the levels of the machine
    read nodes[].name, nodes[].path, nodes[].capacity, nodes[].free
    """
    + "".join(map(_podset_lines, ("request", "requests[]")))
    + """
    read assignment, assignments, reason, reasons: what was decided
    neutral assumptions_violated, note, truth, usage_by: about the record
    """,
)


def _of_kueue(line: KueueLine) -> Decision:
    """Return a decision of Kueue; one with a reason why not waits.

    Levels are its node labels. GPUs in use are running jobs: ``used-3`` holds three GPUs of each of
    its hosts. Podsets are the parts of one request; a request of one podset has no parts.
    """
    if (line.request is None) == (line.requests is None):
        found = "neither" if line.request is None else "both"
        raise InputError("either request or requests", field="request", found=found)
    machine, running = _kueue_machine(line)
    request = _kueue_request(line)
    snapshot = _snapshot(line.id, machine, running, request, f"of Kueue {line.kueue}")
    prepare_hierarchy(snapshot)
    taken = _kueue_taken(line)
    outcome = Decided.WAITING if taken is None else Decided.STARTED
    return Decision(snapshot, taken, outcome, group=f"{line.family}, {_kueue_mode(line)}")


def _snapshot(
    name: str,
    machine: HierarchyModel | CubesModel,
    running: list[RunningJob],
    request: Request,
    of: str,
    down: str = "",
) -> Snapshot:
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=name,
        machine=machine,
        down=down,
        running=running,
        queue=[request],
        source=f"a recorded decision {of}",
    )


def _kueue_mode(line: KueueLine) -> str:
    podsets = line.requests or [podset for podset in (line.request,) if podset is not None]
    if len(podsets) == 1:
        return podsets[0].mode
    return "leader group" if any(podset.group for podset in podsets) else "several podsets"


def _kueue_machine(line: KueueLine) -> tuple[HierarchyModel, list[RunningJob]]:
    used: dict[int, list[str]] = defaultdict(list)
    place_of: dict[str, str] = {}
    for idx, node in enumerate(line.nodes):
        field = f"nodes[{idx}]"
        require_once(place_of, node.name, field, "node", field=f"{field}.name")
        if len(node.path) != len(line.levels):
            expected = f"{number_of(len(line.levels), 'value')}, one for each level"
            raise InputError(expected, field=f"{field}.path", found=str(len(node.path)))
        if node.path[-1] != node.name:
            expected = f"the name of the node, {node.name}, last"
            raise InputError(expected, field=f"{field}.path", value=node.path[-1])
        if node.free > node.capacity:
            expected = f"at most the capacity, {node.capacity}"
            raise InputError(expected, field=f"{field}.free", value=node.free)
        if node.free < node.capacity:
            used[node.capacity - node.free].append(node.name)
    alike = itertools.groupby(line.nodes, key=lambda node: (node.path[:-1], node.capacity))
    hosts = [
        HostsModel(
            hosts=format_host_list(node.name for node in nodes),
            domains=path,
            capacity={GPUS: capacity},
        )
        for (path, capacity), nodes in alike
    ]
    machine = HierarchyModel(
        kind="hierarchy", name=f"{line.id}-nodes", levels=list(line.levels), hosts=hosts
    )
    running = [
        RunningJob(id=f"used-{units}", nodes=format_host_list(names), takes={GPUS: units})
        for units, names in sorted(used.items())
    ]
    return machine, running


def _kueue_request(line: KueueLine) -> Request:
    if line.request is not None:
        asked = _kueue_asked(line.request, line.levels, "request")
        return Request(id="request", nodes=line.request.count, **asked)
    parts = []
    for idx, podset in enumerate(line.requests or ()):
        field = f"requests[{idx}]"
        if podset.name is None:
            raise InputError("a value", field=f"{field}.name", found="nothing")
        asked = _kueue_asked(podset, line.levels, field)
        parts.append(Part(id=podset.name, nodes=podset.count, group=podset.group, **asked))
    return Request(id="request", nodes=sum(part.nodes for part in parts), parts=parts)


def _kueue_asked(podset: KueuePodset, levels: Sequence[str], field: str) -> dict[str, Any]:
    """Return what a podset asks for, as fields of a request or a part."""
    if (podset.level is not None) != (podset.mode in {"required", "preferred"}):
        expected = f"{'no' if podset.level is not None else 'a'} level, as it is {podset.mode}"
        raise InputError(expected, field=f"{field}.level", value=podset.level)
    if (podset.slice_size is None) != (podset.slice_level is None):
        expected = "both slice_size and slice_level, or neither"
        raise InputError(expected, field=f"{field}.slice_size", value=podset.slice_size)
    segments = [Segment(size=layer.size, level=layer.level) for layer in podset.slice_layers]
    if podset.slice_size is not None and podset.slice_level is not None:
        segments.append(Segment(size=podset.slice_size, level=podset.slice_level))
    for level in filter(None, (podset.level, *(segment.level for segment in segments))):
        if level not in levels:
            raise unknown_name(level, levels, field=field)
    asked: dict[str, Any] = {"takes": {GPUS: podset.pod_units}, "segments": segments}
    if podset.level is not None:
        asked[podset.mode] = podset.level
    if podset.balanced and podset.mode == "preferred":
        asked["balance"] = _balanced_level(podset, levels)
    return asked


def _balanced_level(podset: KueuePodset, levels: Sequence[str]) -> str:
    """Return the level over whose domains Kueue's balanced placement (KEP-2724) is even.

    It is the one below the preferred level, or that itself where it is the lowest, or the one of
    slices.
    """
    idx = levels.index(podset.level or "")
    if podset.level == podset.slice_level:
        return levels[idx]
    return levels[min(idx + 1, len(levels) - 1)]


def _kueue_taken(line: KueueLine) -> Taken | None:
    if line.request is not None:
        if line.assignment is None:
            return None
        return {None: _pods(line.assignment, line, "assignment")}
    if line.assignments is None or line.reasons:
        return None
    names = [podset.name or "" for podset in line.requests or ()]
    for name in line.assignments:
        if name not in names:
            raise unknown_name(name, names, field="assignments")
    return {
        name: _pods(line.assignments.get(name, ()), line, f"assignments.{name}") for name in names
    }


def _pods(pods: Sequence[KueuePods], line: KueueLine, field: str) -> dict[str, int]:
    hosts = {tuple(node.path): node.name for node in line.nodes}
    taken: dict[str, int] = {}
    for idx, some in enumerate(pods):
        host = hosts.get(tuple(some.path))
        if host is None or host in taken:
            expected = "the path of a node" if host is None else "each node once"
            raise InputError(expected, field=f"{field}[{idx}].path", value="/".join(some.path))
        taken[host] = some.count
    return taken


# ---- Slurm ---------------------------------------------------------------------------------------

_SLURM_OUTCOMES = {
    "running": Decided.STARTED,
    "pending": Decided.WAITING,
    "rejected": Decided.REFUSED,
}


class SlurmRequest(_Line):
    """What sbatch was told: ``-N nodes [--segment=segment] [options]``."""

    nodes: Size
    segment: Size | None = None
    options: str = ""


class SlurmLine(_Line):
    """A decision of Slurm's select/cons_tres on whole nodes."""

    config: Name
    slurm: str
    plugin: Literal["topology/block", "topology/tree"]
    topology: str
    free: list[Name]
    down: list[Name]
    busy: list[Name]
    request: SlurmRequest
    outcome: Literal["running", "pending", "rejected"]
    chosen: list[Name] | None = None
    how: str = ""


SLURM = table(
    "Slurm",
    """
    read config, slurm, plugin, how: what it is called, and counted with
    read topology: the machine
    read free, down, busy: the state of the nodes
    read request.nodes: its units
    read request.segment: `segments` on blocks; not said on trees. Slurm before 25.05 refuses \
        one that does not divide the nodes: it holds the request
    read request.options: `--exclude`, `--exclusive=topo` on blocks and `--switches=N` on trees; \
        others are not said
    read outcome, chosen: what was decided
    neutral reason, note: about the record
    """,
)


def _of_slurm(line: SlurmLine) -> Decision:
    """Return a decision of Slurm: busy nodes are held by one running job, down ones are down.

    Of topology/tree levels of switches are levels of the machine, ``leaf`` the lowest.
    """
    machine = _slurm_machine(line)
    names = hierarchy_of(machine).host_names
    _require_states(line, names)
    request, excluded, left_out = _slurm_request(line, machine)
    down = {*line.down, *excluded}
    busy = format_host_list(line.busy)
    snapshot = _snapshot(
        f"slurm-{line.config}",
        machine,
        [RunningJob(id="busy", nodes=busy)] if busy else [],
        request,
        f"of Slurm {line.slurm}, {line.plugin}",
        format_host_list(name for name in names if name in down),
    )
    prepare_hierarchy(snapshot)
    if request.parts and _before(line.slurm, (25, 5)):
        nodes = number_of(line.request.nodes, "node")
        value = f"{line.request.segment}, which does not divide {nodes}"
        refused = LeftOut(request=request.id, option="--segment", value=value, certain=True)
        snapshot = snapshot.model_copy(update={"left_out": [refused]})
    outcome = _outcome_of(line, "nodes", f"{len(line.chosen or [])}")
    taken = _slurm_taken(line, request, set(names)) if outcome is Decided.STARTED else None
    return Decision(snapshot, taken, outcome, left_out, _slurm_group(line))


def _before(version: str, other: tuple[int, int]) -> bool:
    """Return whether a version of Slurm, such as 24.11.5, is known to be before another."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) < other


def _outcome_of(line: SlurmLine | PodLine, what: str, chosen: str) -> Decided:
    """Return what was decided; only a job that runs has nodes or chips that were chosen."""
    outcome = _SLURM_OUTCOMES[line.outcome]
    if (outcome is Decided.STARTED) != bool(line.chosen):
        expected = f"{what} if the outcome is running, and none else"
        found = f"{chosen} of a job that is {line.outcome}"
        raise InputError(expected, field="chosen", found=found)
    return outcome


def _slurm_group(line: SlurmLine) -> str:
    """Return the plugin, what was asked for, and how the state came about."""
    asked = "segments" if line.request.segment is not None else "no segments"
    words = [line.plugin.removeprefix("topology/"), "options" if line.request.options else asked]
    if "picked by search" in line.how:
        words.append("picked by search")
    elif "random" in line.how or line.how.startswith("live: other jobs"):
        words.append("random states")
    elif line.how:
        words.append("made by hand")
    return ", ".join(words)


def _slurm_machine(line: SlurmLine) -> HierarchyModel:
    with blamed_on(None, "topology"):
        machine = topology_of_text(line.topology, f"slurm-{line.config}-nodes")
    is_blocks = line.plugin == "topology/block"
    if machine.has_contention is is_blocks:
        expected = f"the {'blocks' if is_blocks else 'switches'} of {line.plugin}"
        raise InputError(expected, field="topology", value=line.topology[:40])
    return hierarchy_written(machine)


def _require_states(line: SlurmLine, names: Sequence[str]) -> None:
    """Raise `InputError` unless every node is in one of the lists free, down and busy."""
    missing = set(names)
    for field in ("free", "down", "busy"):
        for idx, name in enumerate(getattr(line, field)):
            if name not in missing:
                expected = "each node once" if name in names else "nodes of the topology"
                raise InputError(expected, field=f"{field}[{idx}]", value=name)
            missing.remove(name)
    if missing:
        raise InputError("every node in free, down or busy", field="free", value=min(missing))


def _slurm_request(
    line: SlurmLine, machine: HierarchyModel
) -> tuple[Request, list[str], tuple[str, ...]]:
    """Return the request, nodes that it excludes, and options that it does not say."""
    wanted, segment = line.request.nodes, line.request.segment
    on_blocks = line.plugin == "topology/block"
    asked: dict[str, Any] = {}
    excluded: list[str] = []
    left_out: list[str] = []
    lists = NodeLists()
    if segment is not None and not on_blocks:
        left_out.append(f"--segment={segment}")
    for text in line.request.options.split():
        key, _, value = text.partition("=")
        if key == "--exclude":
            excluded += lists.hosts(value, "request.options")
        elif text == "--exclusive=topo" and on_blocks:
            asked["exclusive"] = BLOCK
        elif key == "--switches" and value.partition("@")[0] == "1" and not on_blocks:
            asked["preferred" if "@" in value else "required"] = machine.levels[-2]
        elif key == "--switches" and value.isdecimal() and int(value) and not on_blocks:
            asked["at_most"] = Segment(size=int(value), level=machine.levels[-2])
        else:
            left_out.append(text)
    if on_blocks:
        asked |= asked_of_blocks(wanted, segment, asked.pop("exclusive", None))
    return Request(id="request", nodes=wanted, **asked), excluded, tuple(left_out)


def _slurm_taken(line: SlurmLine, request: Request, names: set[str]) -> Taken:
    if request.parts is not None:
        expected = (
            f"a segment that divides the {number_of(request.nodes, 'node')}, as they were chosen"
        )
        raise InputError(expected, field="request.segment", value=line.request.segment)
    chosen = line.chosen or []
    for idx, name in enumerate(chosen):
        if name not in names or name in chosen[:idx]:
            expected = "each node once" if name in names else "nodes of the topology"
            raise InputError(expected, field=f"chosen[{idx}]", value=name)
    return {None: dict.fromkeys(chosen, 1)}


# ---- Pods of cubes -------------------------------------------------------------------------------


class PodRequest(_Line):
    """A number of chips, and the shapes that they may have, as in a request of a snapshot."""

    nodes: Size
    shapes: Annotated[str, Field(max_length=1000)] | None = None


class PodLine(_Line):
    """A decision on a pod of cubes: the chips that jobs hold, those down, and those chosen."""

    id: Name
    pod: str
    family: str = "pod"
    cubes: Annotated[int, Field(ge=1, le=1024)]
    side: Annotated[list[Size], Field(min_length=1, max_length=4)] = Field(default=[4, 4, 4])
    busy: NodeSet = ""
    down: NodeSet = ""
    request: PodRequest
    outcome: Literal["running", "pending", "rejected"]
    chosen: NodeSet | None = None


POD = table(
    "Pods of cubes",
    """
    read id, pod, family: what it is called, and counted with
    read cubes, side: the machine
    read busy, down: the state of the chips
    read request.nodes, request.shapes: the request
    read outcome, chosen: what was decided
    neutral reason, note: about the record
    """,
)


def _of_pod(line: PodLine) -> Decision:
    """Return a decision on a pod of cubes."""
    request = Request(id="request", nodes=line.request.nodes, shapes=line.request.shapes)
    machine = CubesModel(kind="cubes", name="pod", cubes=line.cubes, side=line.side)
    running = [RunningJob(id="busy", nodes=line.busy)] if line.busy else []
    of = f"on a pod of cubes, {line.pod}"
    snapshot = _snapshot(line.id, machine, running, request, of, line.down)
    num_chips = prepare_cubes(snapshot).machine.num_chips
    outcome = _outcome_of(line, "chips", "those")
    taken: Taken | None = None
    if outcome is Decided.STARTED:
        chosen = parse_node_set(line.chosen or "", num_chips, "chosen")
        taken = {None: {str(chip): 1 for chip in chosen.tolist()}}
    part = "whole cubes" if line.request.nodes >= math.prod(line.side) else "parts"
    return Decision(snapshot, taken, outcome, group=f"{line.family}, {part}")


# ---- Lines of any form ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A form of lines: what is read of one, who reads it, and the fields that an answer gives.

    `unanswered` are what a line says before there is an answer.
    """

    model: type[_Line]
    table: Table
    read: Callable[[Any], Decision]
    answers: tuple[str, ...]
    unanswered: Mapping[str, str]


_OUTCOME = ("outcome", "chosen", "reason")
_PENDING = {"outcome": "pending"}
FORMS = {
    "kueue": Form(
        KueueLine, KUEUE, _of_kueue, ("assignment", "reason", "assignments", "reasons"), {}
    ),
    "slurm": Form(SlurmLine, SLURM, _of_slurm, _OUTCOME, _PENDING),
    "pod": Form(PodLine, POD, _of_pod, _OUTCOME, _PENDING),
}
"""The forms, by the field that a line of each has."""


def form_of(line: Mapping[str, Any]) -> Form:
    """Return the form of a line.

    Raises
    ------
    InputError
        If it is of none.
    """
    form = next((own for key, own in FORMS.items() if key in line), None)
    if form is None:
        raise InputError("a decision, with the version of kueue, slurm or pod", found="none")
    return form


def decision_of(line: Mapping[str, Any]) -> Decision:
    """Return the decision that a line records, of any form.

    Raises
    ------
    InputError
        With the field of the line at fault.
    """
    form = form_of(line)
    decision = form.read(Parsed(dict(line), {}).validated(form.model))
    left_out, unknown = _unread(line, form.table)
    return replace(decision, left_out=(*decision.left_out, *left_out), unknown=unknown)


_MATTERS = ("request.", "requests[].", "nodes[].")
"""What a decision rests on: an unknown field in there may restrict it."""


def _unread(line: Mapping[str, Any], table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return fields of a line that its table does not know.

    The first are those of the request or of nodes that say anything, with what they say: the
    optimum is not known then. The others are names of further fields.
    """
    names = table.unknown_in(line)
    said = []
    for name in names:
        value = given_text([value for value in values_at(line, name) if value])
        if name.startswith(_MATTERS) and value:
            said.append(f"{name}={value}"[:MAX_VALUE])
    return tuple(said), tuple(name for name in names if not name.startswith(_MATTERS))


def read_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any], Decision]]:
    """Yield the lines of a file, one JSON object each, of any form: number, fields and decision.

    Decisions of Slurm, which have no names, are numbered by their lines: ``slurm-A-17``.
    """
    for number, text in enumerate(text_of(path, or_json=True).splitlines(), start=1):
        if text.strip():
            with blamed_on(path, f"line {number}"):
                raw = parse_object(text.encode(), str(path))
                decision = decision_of(raw)
            if "slurm" in raw:
                name = f"{decision.snapshot.name}-{number}"
                snapshot = decision.snapshot.model_copy(update={"name": name})
                decision = replace(decision, snapshot=snapshot)
            yield number, raw, decision


def read_decisions(path: str | Path) -> Iterator[Decision]:
    """Yield the decisions of a file, as `read_lines`."""
    for _, _, decision in read_lines(path):
        yield decision
