"""Slurm's jobs: the listing of squeue as text or JSON, and what a job wants."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from topoplace.errors import UNSEEN, InputError
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.snapshot.readers.slurm_blocks import BLOCK
from topoplace.snapshot.readers.tables import blamed_on, integer, require_once, text_of
from topoplace.snapshot.schema import (
    Communication,
    Pattern,
    PatternUse,
    Request,
    RunningJob,
    Segment,
)
from topoplace.snapshot.tree_state import require_shares

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
_MAX_BYTES = 1 << 40
_MAX_SEGMENT = 1 << 21
_SEGMENT = re.compile(r"(?:^|[\s;])segment=([^\s;]*)", re.IGNORECASE)
_PATTERN = re.compile(r"(?:^|[\s;])pattern=([^\s;]*)", re.IGNORECASE)


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
    segment: int | None = None  # nodes of a segment, on blocks
    exclusive: bool = False  # of the blocks it is on

    @property
    def order(self) -> tuple[int, ...]:
        """Sort key: the numbers of the id."""
        return tuple(int(number) for number in re.findall(r"[0-9]{1,18}", self.id))


def _holds_nodes(states: list[str], field: str) -> bool | None:
    """Tell whether a job in these states holds nodes (True), waits (False) or has ended (None)."""
    known = _WAITING | _HOLDING | _ENDED
    for state in states or [""]:
        if state not in known:
            raise InputError("a job state such as RUNNING", field=field, value=state)
    if set(states) & _HOLDING:  # an ended job that is still completing has not left its nodes
        return True
    return False if set(states) & _WAITING else None


def _communication(comment: str, field: str) -> tuple[Communication, tuple[PatternUse, ...]]:
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
    patterns = tuple(_pattern_use(part, field) for part in text.split(","))
    require_shares(patterns, field)
    return Communication.STRICT, patterns


def _segment_told(comment: str, field: str) -> int | None:
    """Return the size of a segment, from a word ``segment=4`` of a job's comment."""
    match = _SEGMENT.search(comment)
    return None if match is None else integer(match[1], 1, _MAX_SEGMENT, field=field)


def _pattern_use(text: str, field: str) -> PatternUse:
    name, *numbers = text.split(":")
    if name not in list(Pattern) or len(numbers) > 2:
        expected = f"PATTERN[:SHARE[:BYTES]] with one of {', '.join(Pattern)}, or none"
        raise InputError(expected, field=field, value=text)
    limits = (("share", 100), ("message_bytes", _MAX_BYTES))
    uses: dict[str, int] = {}
    for number, (what, most) in zip(numbers, limits, strict=False):
        uses[what] = integer(number, 1, field=field)
        if uses[what] > most:
            raise InputError(f"at most {most}", field=field, value=number)
    return PatternUse(pattern=Pattern(name), **uses)


def _tasks_of(job: SlurmJob, field: str, lists: NodeLists) -> list[SlurmJob]:
    """Return the tasks of a job array that waits (id ``12_[1-5,7%2]``), or the job alone."""
    if "[" not in job.id:
        return [job]
    ids = lists.hosts(re.sub(r"%[0-9]+\]$", "]", job.id), field)
    return [replace(job, id=one) for one in ids]


# ---- Jobs as ``squeue -o '%i|%T|%D|%N|%k|%Q|%l|%S|%V'`` prints them ------------------------------

SQUEUE_FORMAT = "%i|%T|%D|%N|%k|%Q|%l|%S|%V"
_HEADER = "JOBID|STATE|"
_NUM_BEFORE, _NUM_AFTER = 4, 4  # fields before and after the comment, which may hold a "|"
_TIME = re.compile(
    r"(?:([0-9]{1,6})-([0-9]{1,2}):([0-9]{2})|(?:([0-9]{1,6}):)?([0-9]{1,6})):([0-9]{2})"
)
_NO_LIMIT = {"UNLIMITED", "NOT_SET", "INVALID", "N/A"}


def _listed_lines(text: str) -> Iterator[tuple[str, SlurmJob | None]]:
    """Yield place and job of every line; None for a job that has ended."""
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"line {number}"
        if not line.strip() or line.startswith(_HEADER):
            continue
        fields = line.strip().split("|")
        if len(fields) < _NUM_BEFORE + 1 + _NUM_AFTER:
            expected = f"a line of squeue -o '{SQUEUE_FORMAT}'"
            raise InputError(expected, field=place, value=line.strip())
        yield place, _job(fields, place)


def _job(fields: list[str], place: str) -> SlurmJob | None:
    name, state, num_nodes, hosts = (field.strip() for field in fields[:_NUM_BEFORE])
    priority, limit, _, submitted = (field.strip() for field in fields[-_NUM_AFTER:])
    holding = _holds_nodes([state], f"{place}, STATE")
    if holding is None:
        return None
    comment = "|".join(fields[_NUM_BEFORE:-_NUM_AFTER])
    communication, patterns = _communication(comment, f"{place}, COMMENT")
    return SlurmJob(
        name,
        holding,
        integer(num_nodes, 1, field=f"{place}, NODES"),
        hosts,
        integer(priority, 0, field=f"{place}, PRIORITY"),
        _seconds(limit, f"{place}, TIME_LIMIT"),
        _moment(submitted, f"{place}, SUBMIT_TIME"),
        communication,
        patterns,
        _segment_told(comment, f"{place}, COMMENT"),
    )


def _seconds(text: str, field: str) -> int | None:
    """Return a duration such as ``365-00:00:00``, ``1:30:00`` or ``30:00`` in seconds."""
    if text in _NO_LIMIT:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise InputError("a time such as 1-12:00:00 or UNLIMITED", field=field, value=text)
    days, day_hours, day_minutes, hours, minutes, seconds = (int(x or 0) for x in match.groups())
    return ((days * 24 + day_hours + hours) * 60 + day_minutes + minutes) * 60 + seconds


def _moment(text: str, field: str) -> int | None:
    """Return a local time in seconds; only differences of these are used."""
    if text in _NO_LIMIT:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError("a time such as 2026-01-31T12:00:00", field=field, value=text) from None
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())


# ---- Jobs as ``squeue --json`` prints them (Slurm 21.08 and later) -------------------------------

_MAX_NUMBER = 10**18


def _listed_entries(text: str) -> Iterator[tuple[str, SlurmJob | None]]:
    """Yield place and job of every entry; None for a job that has ended."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("a JSON document") from None
    jobs = raw.get("jobs") if isinstance(raw, dict) else None
    if not isinstance(jobs, list):
        found = "nothing" if jobs is None else None
        expected = "a list of jobs, as squeue --json writes"
        raise InputError(expected, field="jobs", value=jobs, found=found)
    for idx, job in enumerate(jobs):
        place = f"jobs[{idx}]"
        if not isinstance(job, dict):
            raise InputError("an object", field=place, value=job)
        yield place, _json_job(job, place)


def _json_job(raw: dict[str, Any], place: str) -> SlurmJob | None:
    states = raw.get("job_state")
    states = states if isinstance(states, list) else [states]
    holding = _holds_nodes([str(state) for state in states], f"{place}.job_state")
    if holding is None:
        return None
    comment = _text(raw, "comment", place)
    communication, patterns = _communication(comment, f"{place}.comment")
    shared = raw.get("shared")
    shared = shared if isinstance(shared, list) else [shared]
    minutes = _number(raw, "time_limit", place)
    num_nodes = _number(raw, "node_count", place)
    if not num_nodes:
        raise InputError("an integer from 1", field=f"{place}.node_count", value=num_nodes)
    return SlurmJob(
        _id(raw, place),
        holding,
        num_nodes,
        _text(raw, "nodes", place),
        _number(raw, "priority", place) or 0,
        None if minutes is None else 60 * minutes,
        _number(raw, "submit_time", place) or None,
        communication,
        patterns,
        _json_segment(raw, place) or _segment_told(comment, f"{place}.comment"),
        "topo" in shared,
    )


def _json_segment(raw: dict[str, Any], place: str) -> int | None:
    size = _number(raw, "segment_size", place)
    if size is not None and size > _MAX_SEGMENT:
        expected = f"at most {_MAX_SEGMENT} nodes"
        raise InputError(expected, field=f"{place}.segment_size", value=size)
    return size


def _id(raw: dict[str, Any], place: str) -> str:
    """Return the id as squeue's ``%i`` prints it."""
    number = _number(raw, "job_id", place)
    if number is None:
        raise InputError("a job number", field=f"{place}.job_id", value=raw.get("job_id"))
    array, task = _number(raw, "array_job_id", place), _number(raw, "array_task_id", place)
    tasks = _text(raw, "array_task_string", place)
    if array and (tasks or task is not None):
        return f"{array}_[{tasks}]" if tasks else f"{array}_{task}"
    component = _number(raw, "het_job_id", place)
    if component:
        return f"{component}+{_number(raw, 'het_job_offset', place) or 0}"
    return str(number)


def _number(raw: dict[str, Any], key: str, place: str) -> int | None:
    """Return a number, plain or (since Slurm 23.02) with flags `set` and `infinite`."""
    value = raw.get(key)
    if isinstance(value, dict):
        for flag in ("set", "infinite"):
            if not isinstance(value.get(flag), bool):
                found = None if flag in value else "nothing"
                field, wrong = f"{place}.{key}.{flag}", value.get(flag)
                raise InputError("true or false", field=field, value=wrong, found=found)
        if value["infinite"] or not value["set"]:
            return None
        value = value.get("number", "no number")
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MAX_NUMBER:
        raise InputError("an integer from 0", field=f"{place}.{key}", value=value)
    return value


def _text(raw: dict[str, Any], key: str, place: str) -> str:
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError("text", field=f"{place}.{key}", value=value)
    return value


# ---- A listing of Slurm's jobs as running jobs and a queue ---------------------------------------

_MAX_NODES = 1 << 31
_MAX_SECONDS = 1 << 40
_MAX_ID = 128


@dataclass(frozen=True)
class SlurmJobs:
    """The jobs of a listing.

    The queue is by descending priority, then id; `submitted` counts from the first submission
    among all jobs. `num_held` jobs are left out because they wait on hold (priority 0).
    """

    running: tuple[RunningJob, ...]
    queue: tuple[Request, ...]
    num_held: int


def read_slurm_jobs(path: str | Path) -> SlurmJobs:
    """Read the output of ``squeue --json`` or ``squeue -o '%i|%T|%D|%N|%k|%Q|%l|%S|%V'``.

    Jobs that have ended are left out. Every request has priority 1: Slurm's priorities say only
    which job comes first. What a comment may say of a job stands in docs/formats.md.
    """
    text = text_of(path, or_json=True)
    listed = _listed_entries if text.lstrip().startswith("{") else _listed_lines
    holding: list[tuple[str, SlurmJob]] = []
    waiting: list[SlurmJob] = []
    place_of: dict[str, str] = {}
    lists = NodeLists()
    with blamed_on(path):
        for place, job in listed(text):
            for task in [] if job is None else _tasks_of(job, place, lists):
                _require_usable(task, place, place_of)
                if task.holding:
                    holding.append((place, task))
                else:
                    waiting.append(task)
        holding.sort(key=lambda pair: pair[1].order)
        running = tuple(_running(job, place, lists) for place, job in holding)
    told = [job.submitted for job in [*waiting, *(job for _, job in holding)]]
    start = min((moment for moment in told if moment is not None), default=0)
    ready = sorted(
        (job for job in waiting if job.priority > 0), key=lambda job: (-job.priority, job.order)
    )
    queue = tuple(_request(job, start) for job in ready)
    return SlurmJobs(running, queue, len(waiting) - len(queue))


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
        segments=None if job.segment is None else [Segment(size=job.segment, level=BLOCK)],
        exclusive=BLOCK if job.exclusive else None,
        walltime=job.walltime,
        submitted=None if job.submitted is None else job.submitted - start,
    )
