"""Slurm's jobs: what runs, what waits, what a job wants of nodes, and what restricts it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from topoplace.errors import UNSEEN, InputError, blamed_on, number_of
from topoplace.formats.declared import given_text, left_out, of_request
from topoplace.formats.slurm.blocks import BLOCK
from topoplace.formats.slurm.fields import (
    CERTAIN,
    SQUEUE_JSON,
    option_of_reason,
    shared_text,
)
from topoplace.formats.slurm.listings import Entry, listing_of
from topoplace.formats.slurm.nodes import gres_of
from topoplace.formats.text import integer, require_once, text_of
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.snapshot.hierarchy_state import require_shares
from topoplace.snapshot.schema import (
    Communication,
    LeftOut,
    Pattern,
    PatternUse,
    Plan,
    Request,
    RunningJob,
    Segment,
)

# ---- A job as Slurm tells of it, whatever the form of the listing --------------------------------

_WAITING = {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_HOLDING = {
    *("RUNNING", "COMPLETING", "CONFIGURING", "RESIZING"),
    *("SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED"),
}
_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}
_ON_HOLD = {"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_FLAGS = {"LAUNCH_FAILED", "RECONFIG_FAIL", "POWER_UP_NODE", "EXPEDITING", "UPDATE_DB"}
"""What a state may say besides: neither that a job holds nodes nor that it does not."""

_MAX_BYTES = 1 << 40
_MAX_SEGMENT = 1 << 21
_SEGMENT = re.compile(r"(?:^|[\s;])segment=([^\s;]*)", re.IGNORECASE)
_PATTERN = re.compile(r"(?:^|[\s;])pattern=([^\s;]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Wants:
    """What a waiting job wants of nodes, as far as the nodes have to be known to judge it.

    Attributes
    ----------
    place
        Where the job stands in its file.
    partitions
        Any of them will do; empty if the file does not say.
    shared
        How it shares nodes with others, if it may: a job of whole nodes does not, and no text says
        that it may.
    cpus, cpus_in_all, memory, memory_per_cpu, disk
        The least that a node has to have, and the CPUs on all nodes together; memory and disk in
        MB. 0 if the job needs none in particular.
    features, excluded, required
        What its nodes have to have, those that it may not have, and those that it has to have.
    gres, gres_per_job, gres_per_task
        The GRES of each node, of all together, and of each task, as Slurm says it.
    cpus_per_gres, memory_per_gres, tasks_per_gres
        What each of its GRES needs, memory in MB, as Slurm says it; and the tasks of each GPU.
    tasks, cpus_per_task, tasks_per_node
        How many tasks it has, and how they are laid out; 0 if that is not said.
    most_nodes, least_nodes
        The most nodes it may have, 0 if any number will do for its tasks; and the fewest, 0 if that
        is not said.
    all_memory
        Whether it wants all memory of its nodes (``--mem=0``).
    no_memory
        Whether the memory that it wants is said to be 0: where jobs are given memory, that is all.
    switches
        The most leaf switches it may have; 0 without a limit, -1 if that may be over.
    switches_for_now
        Whether it waits for them only for a time.
    has_several_priorities
        Whether its priority differs by partition.
    prefers
        The features that its nodes should have.
    left_free
        The cores of each node that it leaves to the system.
    contiguous
        Whether its nodes follow each other in the order in which Slurm lists all nodes.
    """

    place: str
    partitions: tuple[str, ...] = ()
    shared: str = ""
    cpus: int = 0
    cpus_in_all: int = 0
    memory: int = 0
    memory_per_cpu: int = 0
    disk: int = 0
    features: str = ""
    excluded: str = ""
    required: str = ""
    gres: str = ""
    gres_per_job: str = ""
    gres_per_task: str = ""
    cpus_per_gres: str = ""
    memory_per_gres: str = ""
    tasks_per_gres: int = 0
    tasks: int = 0
    cpus_per_task: int = 0
    tasks_per_node: int = 0
    most_nodes: int = 0
    least_nodes: int = 0
    all_memory: bool = False
    switches: int = 0
    switches_for_now: bool = False
    has_several_priorities: bool = False
    prefers: str = ""
    contiguous: bool = False
    left_free: int = 0
    no_memory: bool = False


@dataclass(frozen=True)
class Held:
    """What a running job holds of a node: CPUs, memory in MB, and GRES by name."""

    node: str
    cpus: int
    memory: int
    gres: Mapping[str, int]


@dataclass(frozen=True)
class SlurmJob:
    """A job of a listing."""

    id: str  # as squeue prints it; of a task of an array 12_3
    holding: bool  # whether it holds nodes (runs, completes, is stopped) or waits
    num_nodes: int  # wanted or held
    hosts: str  # the host list of those held
    priority: int  # Slurm's; 0 is a job on hold
    walltime: int | None  # seconds; None if there is no limit, or none known
    submitted: int | None  # seconds since any fixed moment
    communication: Communication
    patterns: tuple[PatternUse, ...]
    wants: Wants
    segment: int | None = None  # nodes of a segment, on blocks
    exclusive: bool = False  # of the blocks it is on
    throttle: int | None = None  # tasks of its array that may run at a time
    left_out: tuple[LeftOut, ...] = ()  # what restricts it and is not modelled
    suspended: bool = False  # others may run on its nodes
    ends: int | None = None  # of a job that runs: seconds from the listing on
    held: tuple[Held, ...] | None = None  # of a job that runs: by node; None if it is not said
    planned: Plan | None = None  # of a job that waits

    @property
    def order(self) -> tuple[int, ...]:
        """Sort key: the numbers of the id."""
        return tuple(int(number) for number in re.findall(r"[0-9]{1,18}", self.id))

    @property
    def turn(self) -> tuple[int, tuple[int, ...]]:
        """Sort key of the queue."""
        return -self.priority, self.order

    @property
    def array(self) -> str:
        """The id of its array, or of the job alone."""
        return self.id.partition("_")[0]


def _job(entry: Entry) -> SlurmJob | None:
    """Return the job of an entry; None if it has ended."""
    states = entry.values.get("job_state")
    states = states if isinstance(states, list) else [states]
    holding = _holds_nodes([str(s or "") for s in states], entry.field("job_state"))
    if holding is None:
        return None
    comment = entry.text("comment")
    communication, patterns = _communication(comment, entry.field("comment"))
    num_nodes = entry.number("node_count", 1)
    if not num_nodes:
        expected, where = "an integer from 1", entry.field("node_count")
        raise InputError(expected, field=where, value=num_nodes)
    return SlurmJob(
        _id(entry),
        holding,
        num_nodes,
        entry.text("nodes"),
        entry.number("priority") or 0,
        _time_limit(entry),
        entry.moment("submit_time"),
        communication,
        patterns,
        _wants_of_running(entry) if holding else _wants(entry),
        _segment(entry) or _segment_told(comment, entry.field("comment")),
        entry.words("shared") == ["topo"] or entry.words("exclusive") == ["topo"],
        _throttle(entry),
        tuple(_restrictions(entry, num_nodes, runs=holding)),
        "SUSPENDED" in states,
        _ends(entry) if holding else None,
        _held(entry) if holding else None,
        None if holding else _planned(entry),
    )


def _time_limit(entry: Entry) -> int | None:
    """Return the time limit of a job; with ``--time-min`` that one, as backfill plans with it."""
    limit = entry.seconds("time_limit")
    least = entry.seconds("time_minimum") if "time_minimum" in entry.values else None
    return min(filter(None, (limit, least)), default=limit)


def _ends(entry: Entry) -> int | None:
    """Return in how many seconds a running job ends at the latest; None without a limit."""
    end = entry.moment("end_time")
    if end is None or entry.now is None or entry.seconds("time_limit") is None:
        return None
    return max(1, end - entry.now)


def _planned(entry: Entry) -> Plan | None:
    """Return when and where Slurm plans to start a job, if its listing says so."""
    nodes = entry.values.get("scheduled_nodes")
    start = entry.moment("start_time")
    if not nodes or not isinstance(nodes, str) or start is None or entry.now is None:
        return None
    return Plan(at=max(0, start - entry.now), nodes=nodes)


def _held(entry: Entry) -> tuple[Held, ...] | None:
    """Return what a running job holds of each node, from ``job_resources`` of ``squeue --json``."""
    raw = entry.values.get("job_resources")
    gres = entry.values.get("gres_detail") or []
    try:
        listed = [*_allocation(raw)] if isinstance(raw, dict) else []
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if not listed or not isinstance(gres, list):
        return None
    details = [gres_of(str(one)) for one in gres] or [{}] * len(listed)
    found = [
        Held(name, cpus, memory, detail or {})
        for (name, cpus, memory), detail in zip(listed, details, strict=False)
    ]
    told = gres or "gres/" not in str(entry.values.get("tres_alloc_str") or "")
    complete = len(details) == len(listed) and None not in details and told
    return tuple(found) if complete else None


def _allocation(raw: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Yield name, CPUs and memory of nodes; Slurm before 23.11 lists the cores of their sockets."""
    if "allocated_nodes" in raw:
        for own in raw["allocated_nodes"]:
            cores = sum(len(socket["cores"]) for socket in own["sockets"].values())
            yield str(own["nodename"]), cores, int(own["memory_allocated"])
        return
    for own in raw["nodes"]["allocation"]:
        yield str(own["name"]), int(own["cpus"]["count"]), int(own["memory"]["allocated"])


def _holds_nodes(states: list[str], where: str) -> bool | None:
    """Tell whether a job in these states holds nodes (True), waits (False) or has ended (None)."""
    known = _WAITING | _HOLDING | _ENDED | _FLAGS
    for state in states or [""]:
        if state not in known:
            raise InputError("a job state such as RUNNING", field=where, value=state)
    if set(states) & _HOLDING:  # an ended job that is still completing has not left its nodes
        return True
    return False if set(states) & _WAITING else None


def _communication(comment: str, where: str) -> tuple[Communication, tuple[PatternUse, ...]]:
    """Return how a job communicates, from a word ``pattern=...`` of its comment.

    ``pattern=rhvd:60:1024,rd:30`` is a list of patterns (`schema.Pattern`), each with its share
    of the run time in percent (100 if left out) and the bytes of its messages (1). With
    ``pattern=none`` the job does not communicate. Without such a word its patterns are unknown:
    while it runs it counts as communication-intensive, the careful choice; while it waits
    nothing can be minimised for it, and it counts as compute-intensive.
    """
    match = _PATTERN.search(comment)
    if match is None:
        return Communication.STRICT, ()
    text = match[1].lower()
    if text == Communication.NONE:
        return Communication.NONE, ()
    patterns = tuple(_pattern_use(part, where) for part in text.split(","))
    require_shares(patterns, where)
    return Communication.STRICT, patterns


def _pattern_use(text: str, where: str) -> PatternUse:
    name, *numbers = text.split(":")
    if name not in list(Pattern) or len(numbers) > 2:
        expected = f"PATTERN[:SHARE[:BYTES]] with one of {', '.join(Pattern)}, or none"
        raise InputError(expected, field=where, value=text)
    limits = (("share", 100), ("message_bytes", _MAX_BYTES))
    uses: dict[str, int] = {}
    for number, (what, most) in zip(numbers, limits, strict=False):
        uses[what] = integer(number, 1, field=where)
        if uses[what] > most:
            raise InputError(f"at most {most}", field=where, value=number)
    return PatternUse(pattern=Pattern(name), **uses)


def _segment_told(comment: str, where: str) -> int | None:
    """Return the size of a segment, from a word ``segment=4`` of a job's comment."""
    match = _SEGMENT.search(comment)
    return None if match is None else integer(match[1], 1, _MAX_SEGMENT, field=where)


def _segment(entry: Entry) -> int | None:
    size = entry.number("segment_size")
    if size is not None and size > _MAX_SEGMENT:
        expected = f"at most {_MAX_SEGMENT} nodes"
        raise InputError(expected, field=entry.field("segment_size"), value=size)
    return size


def _id(entry: Entry) -> str:
    """Return the id as squeue's ``%i`` prints it."""
    if "id" in entry.values:
        return entry.text("id")
    number = entry.number("job_id")
    if number is None:
        raise InputError("a job number", field=entry.field("job_id"), value=None)
    array, task = entry.number("array_job_id"), entry.number("array_task_id")
    tasks = entry.text("array_task_string")
    if array and (tasks or task is not None):
        return f"{array}_[{tasks}]" if tasks else f"{array}_{task}"
    component = entry.number("het_job_id")
    if component:
        return f"{component}+{entry.number('het_job_offset') or 0}"
    return str(number)


# ---- What restricts a job that waits -------------------------------------------------------------


def _wants(entry: Entry) -> Wants:
    says_shared = "shared" in entry.values
    memory_per_gres = entry.text("memory_per_tres")
    partitions = [name.strip() for name in entry.text("partition").split(",")]
    return Wants(
        entry.place,
        tuple(filter(None, partitions)),
        shared_text(entry.values["shared"]) if says_shared else "",
        entry.number("minimum_cpus_per_node") or 0,
        entry.number("cpus") or 0,
        0 if memory_per_gres else entry.megabytes("memory_per_node"),  # that of a GPU then
        entry.megabytes("memory_per_cpu"),
        entry.megabytes("minimum_tmp_disk_per_node"),
        entry.text("features"),
        entry.text("excluded_nodes"),
        entry.text("required_nodes"),
        entry.text("tres_per_node"),
        entry.text("tres_per_job"),
        re.sub(r"(^|,)cpu[=:][0-9]+", "", entry.text("tres_per_task")).strip(","),
        entry.text("cpus_per_tres"),
        memory_per_gres,
        entry.number("tasks_per_tres") or 0,
        entry.number("tasks") or 0,
        entry.number("cpus_per_task") or 0,
        entry.number("tasks_per_node") or 0,
        entry.number("max_nodes") or 0,
        _least_nodes(entry) or 0,
        _all_memory(entry),
        _switches(entry),
        (entry.number("maximum_switch_wait_time") or 0) > 0,
        bool(entry.values.get("priority_by_partition")),
        entry.text("prefer"),
        bool(given_text(entry.values.get("contiguous"))),
        _left_free(entry),
        _no_memory(entry),
    )


_UNSET = 32_766
"""What listings have in `thread_spec` if it is not set."""


def _left_free(entry: Entry) -> int:
    """Return the cores, or threads, of each node that a job leaves to the system."""
    own = (entry.number(name) or 0 for name in ("core_spec", "thread_spec"))
    return max((n for n in own if n < _UNSET), default=0)


def _wants_of_running(entry: Entry) -> Wants:
    """Return what a job that runs asked for: its CPUs are then those that it got."""
    wants = _wants(entry)
    return replace(wants, cpus_in_all=wants.tasks * max(1, wants.cpus_per_task))


def _all_memory(entry: Entry) -> bool:
    """Return whether a job wants memory, but no amount by node or CPU: all that its nodes have."""
    amounts = entry.megabytes("memory_per_node") or entry.megabytes("memory_per_cpu")
    told = amounts or entry.text("memory_per_tres")
    return not told and re.search(r"(?:^|,)mem=", entry.text("tres_req_str")) is not None


def _no_memory(entry: Entry) -> bool:
    """Return whether a listing says that a job wants 0 MB of each node, and none by CPU or GPU."""
    said = entry.values.get("memory_per_node")
    is_set = said.get("set") is True if isinstance(said, dict) else said is not None
    amounts = entry.megabytes("memory_per_node") or entry.megabytes("memory_per_cpu")
    return is_set and not amounts and not entry.text("memory_per_tres")


def _least_nodes(entry: Entry) -> int | None:
    """Return the fewest nodes that a job asks for; None if that is not said."""
    least = re.search(r"(?:^|,)node=([0-9]{1,9})(?:,|$)", entry.text("tres_req_str"))
    return int(least[1]) if least else None


def _switches(entry: Entry) -> int:
    """Return the most leaf switches that a job takes; 0 without a limit.

    -1 if it may have waited for them as long as it wants to.
    """
    wanted = entry.number("required_switches") or 0
    longest, begun = entry.number("maximum_switch_wait_time"), entry.moment("eligible_time")
    begun = begun or entry.moment("submit_time")
    if not longest:
        return wanted
    known = begun is not None and entry.now is not None
    over = not known or (entry.now or 0) - (begun or 0) >= longest
    return -1 if wanted and over else wanted


def _throttle(entry: Entry) -> int | None:
    """Return how many tasks of an array may run at a time; None without a limit."""
    match = re.search(r"%([0-9]{1,9})", _id(entry))
    return int(match[1]) if match else entry.number("array_max_tasks") or None


_OVER = {*CERTAIN, "licenses"}
"""Options that a job which has started is done with, wherever it goes."""


def _restrictions(entry: Entry, num_nodes: int, *, runs: bool) -> Iterator[LeftOut]:
    """Yield what restricts a job, where it starts or may go, and is not modelled, once each."""
    given = {name: value for name, value in entry.values.items() if value is not None}
    found = [*SQUEUE_JSON.left_out(given, ""), *([] if runs else _by_fields(entry, num_nodes))]
    found += _components(entry)
    seen = _OVER.copy() if runs else set()
    for one in found:
        if one.option not in seen:
            seen.add(one.option)
            name = (one.where or "").removeprefix(".")
            certain = one.certain or one.option in CERTAIN
            update = {"where": entry.field(name), "certain": certain}
            yield one.model_copy(update=update)


def _by_fields(entry: Entry, num_nodes: int) -> Iterator[LeftOut]:
    """Yield restrictions that more than one field tells of, or that depend on the moment."""
    if entry.values.get("hold") is True or entry.number("priority") == 0:
        yield left_out("hold", "", "priority")
    flags = {word.upper() for word in entry.words("job_state")} & _ON_HOLD
    if flags:
        yield left_out("hold", ", ".join(sorted(flags)), "job_state")
    reason = entry.text("state_reason")
    option = option_of_reason(reason)
    if option is not None:
        yield left_out(option, reason, "state_reason")
    eligible = entry.moment("eligible_time")
    if eligible is not None and entry.now is not None and eligible > entry.now:
        yield left_out("begin_time", f"{eligible - entry.now} s from now", "eligible_time")
    late = _too_late(entry)
    if late:
        own = left_out("deadline", late, "deadline")
        yield own.model_copy(update={"certain": entry.now is not None})
    sizes = _other_sizes(entry, num_nodes)
    if sizes:
        yield left_out("node_count", sizes, "node_count")


def _components(entry: Entry) -> Iterator[LeftOut]:
    """Yield that a job is one of several components, if it is."""
    if entry.number("het_job_id") or re.fullmatch(r"[0-9]+\+[0-9]+", _id(entry)):
        yield left_out("het_job", f"a component of {_id(entry)}", "het_job_id")


def _too_late(entry: Entry) -> str:
    """Return why a job cannot end before its deadline, or may not; nothing if it can."""
    deadline = entry.moment("deadline")
    if deadline is None or entry.now is None:
        return "" if deadline is None else entry.text("deadline")
    left = deadline - entry.now
    return f"in {left} s" if left < (_time_limit(entry) or 0) else ""


def _other_sizes(entry: Entry, num_nodes: int) -> str:
    """Return the other sizes that a job may start with; nothing if its size is fixed.

    `node_count` is Slurm's estimate where the job asks for a range, or for tasks alone. The most
    nodes are 0 once Slurm has tried to start a job, whatever it asked for.
    """
    most, tasks = entry.number("max_nodes"), entry.number("tasks") or 0
    least, sizes = _least_nodes(entry), entry.words("job_size_str")
    if sizes not in ([], [""], [str(num_nodes)]):
        return f"one of {','.join(sizes)}"
    if most and (most != num_nodes or (least or most) != most):
        return f"{least or num_nodes} to {most}, and Slurm takes as many as it can"
    if least is not None and least != num_nodes:
        return f"{least} or more, and Slurm takes as many as its tasks need"
    flags = entry.values.get("flags")
    by_tasks = tasks > num_nodes if flags is None else "EXACT_TASK_COUNT_REQUESTED" in flags
    return f"by {number_of(tasks, 'task')}" if by_tasks and most == 0 and tasks > 1 else ""


# ---- A listing of Slurm's jobs as running jobs and a queue ---------------------------------------

_MAX_NODES = 1 << 31
_MAX_SECONDS = 1 << 40
_MAX_ID = 128


@dataclass(frozen=True)
class SlurmJobs:
    """The jobs of a listing.

    The queue is by descending priority, then id; `submitted` counts from the first submission
    among all jobs.

    Attributes
    ----------
    begun
        What the jobs that run asked for.
    wants
        What all of them want of nodes, by id.
    turns
        By what the queue is sorted, of all jobs by id.
    held
        What the running jobs hold of each node, by id, as far as that is said.
    sharing
        The jobs that may share nodes, running or waiting, by id.
    suspended
        Those that are stopped, by id: others may have their CPUs.
    left_out
        What restricts them and is not modelled.
    notes
        Lines on what the listing does not say, or says in fields that are not known.
    unseen
        What a listing of its form cannot show.
    now
        When it was made, in seconds since 1970; None if that is not known.
    select
        What some running job has as a whole, if that is more than cores: sockets or boards.
    """

    running: tuple[RunningJob, ...] = ()
    queue: tuple[Request, ...] = ()
    begun: tuple[Request, ...] = ()
    wants: Mapping[str, Wants] = field(default_factory=dict)
    turns: Mapping[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    held: Mapping[str, tuple[Held, ...]] = field(default_factory=dict)
    sharing: frozenset[str] = frozenset()
    suspended: frozenset[str] = frozenset()
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    now: int | None = None
    select: str = ""


def read_slurm_jobs(path: str | Path) -> SlurmJobs:
    """Read the output of ``squeue --json``, ``squeue -o '%i|%T|...'`` or ``scontrol show job -o``.

    Jobs that have ended are left out. Every request has priority 1: Slurm's priorities say only
    which job comes first. What a comment may say of a job stands in docs/reference/formats.md.
    """
    text = text_of(path, or_json=True)
    lists = NodeLists()
    with blamed_on(path):
        listing = listing_of(text)
        holding: list[tuple[str, SlurmJob]] = []
        waiting: list[SlurmJob] = []
        place_of: dict[str, str] = {}
        unseen = listing.unseen
        for entry in listing.entries:
            job = _job(entry)
            if job is not None and f",{_CUT}" in job.id and _CUT_TASKS not in unseen:
                unseen = (*unseen, _CUT_TASKS)
            for task in [] if job is None else _tasks_of(job, entry.place, lists):
                _require_usable(task, entry.place, place_of)
                if task.holding:
                    holding.append((entry.place, task))
                else:
                    waiting.append(task)
        # nodes of several jobs are held by the first: by those that run on them
        holding.sort(key=lambda pair: (pair[1].suspended, pair[1].order))
        running = tuple(_running(job, place, lists) for place, job in holding)
    told = [job.submitted for job in [*waiting, *(job for _, job in holding)]]
    start = min((moment for moment in told if moment is not None), default=0)
    waiting.sort(key=lambda job: job.turn)
    waiting = _throttled(waiting, [job for _, job in holding])
    every = [*waiting, *(job for _, job in holding)]
    return SlurmJobs(
        running,
        tuple(_request(job, start) for job in waiting),
        tuple(_request(job, start) for _, job in holding),
        {job.id: job.wants for job in every},
        {job.id: job.turn for job in every},
        {job.id: _of_suspended(job, job.held) for _, job in holding if job.held is not None},
        frozenset(job.id for job in every if job.wants.shared),
        frozenset(job.id for job in every if job.suspended),
        tuple(one for job in every for one in of_request(job.id, job.left_out)),
        listing.notes,
        unseen,
        listing.now,
        next(filter(None, map(_select, listing.entries)), ""),
    )


def _select(entry: Entry) -> str:
    """Return what Slurm gives a running job as a whole, if that is more than cores."""
    raw = entry.values.get("job_resources")
    types = raw.get("select_type") if isinstance(raw, dict) else None
    found = {*types} & {"SOCKET", "BOARD"} if isinstance(types, list) else {}
    return ", ".join(sorted(found)).lower()


def _of_suspended(job: SlurmJob, held: tuple[Held, ...]) -> tuple[Held, ...]:
    """Return what a job holds; the CPUs of a suspended one are others' to have."""
    return tuple(replace(one, cpus=0) for one in held) if job.suspended else held


_CUT = "..."
"""Stands for the tasks of an array beyond those that squeue lists."""

_CUT_TASKS = "tasks of long arrays (SLURM_BITSTR_LEN=0 squeue --json lists all)"

_STEPS = re.compile(r"([0-9]{1,7})-([0-9]{1,7}):([1-9][0-9]{0,6})")


def _each_step(match: re.Match[str]) -> str:
    """Return the tasks of ``0-20:5`` one by one."""
    first, last, step = map(int, match.groups())
    return ",".join(map(str, range(first, last + 1, step))) or match[0]


def _tasks_of(job: SlurmJob, where: str, lists: NodeLists) -> list[SlurmJob]:
    """Return the tasks of a job array that waits (id ``12_[1-5,7%2]``), or the job alone."""
    if "[" not in job.id:
        return [job]
    text = re.sub(r"%[0-9]+\]$", "]", job.id).replace(f",{_CUT}", "")
    ids = lists.hosts(_STEPS.sub(_each_step, text), where)
    return [replace(job, id=one) for one in ids]


def _throttled(waiting: list[SlurmJob], holding: list[SlurmJob]) -> list[SlurmJob]:
    """Hold the tasks of arrays beyond those that may run at a time; tasks of an array are equal."""
    running: dict[str, int] = {}
    for job in holding:
        running[job.array] = running.get(job.array, 0) + ("_" in job.id)
    found = []
    for job in waiting:
        before, own = running.get(job.array, 0), job.left_out
        if job.throttle is not None and "_" in job.id:
            running[job.array] = before + 1
            if before >= job.throttle:
                text = f"{job.throttle} at a time"
                late = left_out("array_throttle", text, job.wants.place)
                own = (*own, late.model_copy(update={"certain": True}))
        found.append(replace(job, left_out=own))
    return found


def _require_usable(job: SlurmJob, place: str, place_of: dict[str, str]) -> None:
    if not 1 <= len(job.id) <= _MAX_ID or re.search(rf"[\s,;{UNSEEN}]", job.id):
        raise InputError("a job id", field=place, value=job.id)
    require_once(place_of, job.id, place, "job", field=place)
    if job.num_nodes > _MAX_NODES:
        raise InputError(f"at most {_MAX_NODES} nodes", field=place, value=job.num_nodes)
    if max(job.walltime or 0, job.submitted or 0) > _MAX_SECONDS:
        raise InputError(f"times of at most {_MAX_SECONDS} seconds", field=place, value=job.id)


def _running(job: SlurmJob, place: str, lists: NodeLists) -> RunningJob:
    hosts = lists.hosts(job.hosts, f"{place}, nodes of job {job.id}")
    if len(hosts) != job.num_nodes:
        raise InputError(
            f"the {number_of(job.num_nodes, 'node')} of job {job.id}", field=place, value=job.hosts
        )
    return RunningJob(
        id=job.id,
        nodes=format_host_list(hosts),
        communication=job.communication,
        patterns=list(job.patterns) or None,
        ends=job.ends,
    )


def _request(job: SlurmJob, start: int) -> Request:
    return Request(
        id=job.id,
        nodes=job.num_nodes,
        communication=job.communication,
        patterns=list(job.patterns) or None,
        segments=None if job.segment is None else [Segment(size=job.segment, level=BLOCK)],
        exclusive=BLOCK if job.exclusive else None,
        walltime=job.walltime,
        submitted=None if job.submitted is None else job.submitted - start,
        planned=job.planned,
    )
