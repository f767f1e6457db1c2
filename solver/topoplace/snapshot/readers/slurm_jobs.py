"""Slurm's jobs: the listing of squeue as text or JSON, and what a job wants."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from topoplace.errors import UNSEEN, InputError, number_of
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.snapshot.files import json_fault
from topoplace.snapshot.readers.declared import left_out, of_request
from topoplace.snapshot.readers.slurm_blocks import BLOCK
from topoplace.snapshot.readers.slurm_fields import (
    LISTED,
    NEEDED_COLUMNS,
    SCONTROL_JOB,
    SHOWN,
    SQUEUE_JSON,
    SQUEUE_LISTING,
    option_of_reason,
    shared_text,
)
from topoplace.snapshot.readers.slurm_nodes import records_of, settings_of
from topoplace.snapshot.readers.slurm_times import moment_of, seconds_of
from topoplace.snapshot.readers.tables import blamed_on, integer, require_once, text_of
from topoplace.snapshot.schema import (
    Communication,
    LeftOut,
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
_SHORT_STATES = {
    **{"PD": "PENDING", "R": "RUNNING", "CG": "COMPLETING", "CF": "CONFIGURING"},
    **{"S": "SUSPENDED", "ST": "STOPPED", "RQ": "REQUEUED", "RH": "REQUEUE_HOLD"},
}
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
        Of a node at least; CPUs on all nodes; in MB. 0 if nothing is wanted.
    """

    place: str
    partitions: tuple[str, ...] = ()
    shared: str = ""
    cpus: int = 0
    cpus_in_all: int = 0
    memory: int = 0
    memory_per_cpu: int = 0
    disk: int = 0


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

    @property
    def order(self) -> tuple[int, ...]:
        """Sort key: the numbers of the id."""
        return tuple(int(number) for number in re.findall(r"[0-9]{1,18}", self.id))

    @property
    def array(self) -> str:
        """The id of its array, or of the job alone."""
        return self.id.partition("_")[0]


@dataclass(frozen=True)
class _Entry:
    """A job as a file has it.

    Attributes
    ----------
    place
        Where it stands in the file.
    values
        By the names of fields of ``squeue --json``.
    names
        How the file calls fields, if otherwise; its values are texts then.
    now
        When the listing was made, in seconds; None if that is not known.
    """

    place: str
    values: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    now: int | None = None

    def field(self, name: str) -> str:
        """Return what a field is called in errors."""
        if not self.names:
            return f"{self.place}.{name}"
        return f"{self.place}, {self.names.get(name, name)}"

    def text(self, name: str) -> str:
        """Return a text; the empty one where nothing is said."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise InputError("text", field=self.field(name), value=value)
        return value

    def number(self, name: str, least: int = 0) -> int | None:
        """Return a number, plain or (since Slurm 23.02) with flags `set` and `infinite`."""
        value = self.values.get(name)
        if isinstance(value, dict):
            value = self._flagged(name, value)
        if value is None:
            return None
        if isinstance(value, str) and self.names:
            return integer(value, least, field=self.field(name))
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MAX_NUMBER:
            raise InputError("an integer from 0", field=self.field(name), value=value)
        return value

    def _flagged(self, name: str, value: dict[str, Any]) -> Any:
        for flag in ("set", "infinite"):
            if not isinstance(value.get(flag), bool):
                found = None if flag in value else "nothing"
                wrong = value.get(flag)
                expected, where = "true or false", f"{self.field(name)}.{flag}"
                raise InputError(expected, field=where, value=wrong, found=found)
        if value["infinite"] or not value["set"]:
            return None
        return value.get("number", "no number")

    def megabytes(self, name: str) -> int:
        """Return memory, a number of MB or a text such as ``4G``; 0 if none is wanted."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return self.number(name) or 0
        match = re.fullmatch(r"([0-9]{1,15})(?:\.[0-9]+)?([KMGT]?)[nc]?", value)
        if match is None:
            raise InputError("memory such as 4G", field=self.field(name), value=value)
        scale = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1 << 20}[match[2]]
        return int(int(match[1]) * scale)


_MAX_NUMBER = 10**18


def _job(entry: _Entry) -> SlurmJob | None:
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
        _walltime(entry),
        _moment(entry, "submit_time"),
        communication,
        patterns,
        _wants(entry),
        _segment(entry) or _segment_told(comment, entry.field("comment")),
        _words(entry, "shared") == ["topo"] or _words(entry, "exclusive") == ["topo"],
        _throttle(entry),
        () if holding else tuple(_restrictions(entry, num_nodes)),
    )


def _holds_nodes(states: list[str], where: str) -> bool | None:
    """Tell whether a job in these states holds nodes (True), waits (False) or has ended (None)."""
    known = _WAITING | _HOLDING | _ENDED
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


def _segment(entry: _Entry) -> int | None:
    size = entry.number("segment_size")
    if size is not None and size > _MAX_SEGMENT:
        expected = f"at most {_MAX_SEGMENT} nodes"
        raise InputError(expected, field=entry.field("segment_size"), value=size)
    return size


def _id(entry: _Entry) -> str:
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


def _walltime(entry: _Entry) -> int | None:
    if entry.names:
        return seconds_of(entry.text("time_limit"), entry.field("time_limit"))
    minutes = entry.number("time_limit")
    return None if minutes is None else 60 * minutes


def _moment(entry: _Entry, name: str) -> int | None:
    if not entry.names:
        return entry.number(name) or None
    return moment_of(entry.text(name), entry.field(name)) if entry.text(name) else None


def _words(entry: _Entry, name: str) -> list[str]:
    value = entry.values.get(name)
    words = value if isinstance(value, list) else [value]
    return [str(word).lower() for word in words if word]


# ---- What restricts a job that waits -------------------------------------------------------------


def _wants(entry: _Entry) -> Wants:
    says_shared = "shared" in entry.values
    partitions = [name.strip() for name in entry.text("partition").split(",")]
    return Wants(
        entry.place,
        tuple(filter(None, partitions)),
        shared_text(entry.values["shared"]) if says_shared else "",
        entry.number("minimum_cpus_per_node") or 0,
        entry.number("cpus") or 0,
        entry.megabytes("memory_per_node"),
        entry.megabytes("memory_per_cpu"),
        entry.megabytes("minimum_tmp_disk_per_node"),
    )


def _throttle(entry: _Entry) -> int | None:
    """Return how many tasks of an array may run at a time; None without a limit."""
    match = re.search(r"%([0-9]{1,9})", _id(entry))
    return int(match[1]) if match else entry.number("array_max_tasks") or None


def _restrictions(entry: _Entry, num_nodes: int) -> Iterator[LeftOut]:
    """Yield what restricts a waiting job and is not modelled, each option once."""
    given = {name: value for name, value in entry.values.items() if value is not None}
    found = [*SQUEUE_JSON.left_out(given, ""), *_by_fields(entry, num_nodes)]
    seen: set[str] = set()
    for one in found:
        if one.option not in seen:
            seen.add(one.option)
            name = (one.where or "").removeprefix(".")
            yield one.model_copy(update={"where": entry.field(name)})


def _by_fields(entry: _Entry, num_nodes: int) -> Iterator[LeftOut]:
    """Yield restrictions that more than one field tells of, or that depend on the moment."""
    if entry.values.get("hold") is True or entry.number("priority") == 0:
        yield left_out("hold", "", "priority")
    reason = entry.text("state_reason")
    option = option_of_reason(reason)
    if option is not None:
        yield left_out(option, reason, "state_reason")
    eligible = _moment(entry, "eligible_time")
    if eligible is not None and entry.now is not None and eligible > entry.now:
        yield left_out("begin_time", f"{eligible - entry.now} s from now", "eligible_time")
    sizes = _other_sizes(entry, num_nodes)
    if sizes:
        yield left_out("node_count", sizes, "node_count")
    if entry.number("het_job_id") or re.fullmatch(r"[0-9]+\+[0-9]+", _id(entry)):
        yield left_out("het_job", f"a component of {_id(entry)}", "het_job_id")


def _other_sizes(entry: _Entry, num_nodes: int) -> str:
    """Return what else a job may start on than so many nodes; nothing if its size is fixed.

    `node_count` is Slurm's estimate where the job asks for a range, or for tasks alone. The most
    nodes are 0 once Slurm has tried to start a job, whatever it asked for.
    """
    most, tasks = entry.number("max_nodes"), entry.number("tasks") or 0
    if most and most != num_nodes:
        return f"{num_nodes} to {most}"
    least = re.search(r"(?:^|,)node=([0-9]{1,9})(?:,|$)", entry.text("tres_req_str"))
    if least and int(least[1]) != num_nodes:
        return f"{least[1]} or more"
    by_tasks = "EXACT_TASK_COUNT_REQUESTED" in (entry.values.get("flags") or ())
    return f"by {number_of(tasks, 'task')}" if by_tasks and most == 0 and tasks > 1 else ""


# ---- Jobs as ``squeue -o`` prints them, with a header that names the columns ---------------------

SQUEUE_FORMAT = "%i|%T|%D|%N|%k|%Q|%l|%S|%V|%P|%r|%f|%E|%b"
_FORMS = f"what squeue --json, scontrol show job -o or squeue -o '{SQUEUE_FORMAT}' prints"
_FREE = ("COMMENT", "NAME", "FEATURES", "LICENSES", "COMMAND", "WORK_DIR")  # may hold a |
_MOST_EXTRA = 6
_USUAL = ["JOBID", "STATE", "NODES", "NODELIST", "COMMENT"]
_USUAL += ["PRIORITY", "TIME_LIMIT", "START_TIME", "SUBMIT_TIME"]
_NOTHING = {"", "(null)", "N/A", "n/a", "null"}
_ALWAYS = ("id", "node_count", "priority", "job_state", "comment")
_MUST_HAVE = ("JOBID", "NODES", "PRIORITY")


@dataclass(frozen=True)
class _Listing:
    """The entries of a file, and what it does not say or says in fields that are not known."""

    entries: list[_Entry]
    notes: tuple[str, ...] = ()


def _listed_lines(text: str) -> _Listing:
    """Return the lines of squeue as entries; without a header the columns are the usual ones."""
    header, entries = _USUAL, []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [part.strip() for part in line.strip().split("|")]
        if "JOBID" in fields and not any(one.isdecimal() for one in fields):
            header = fields
        elif line.strip():
            entries.append(_listed_entry(fields, header, f"line {number}"))
    if not text.strip():
        raise InputError(_FORMS, found="an empty file")
    lacking = [name for name in (*_MUST_HAVE,) if name not in header]
    if lacking:
        expected = f"a column {lacking[0]}, as squeue -o '{SQUEUE_FORMAT}' writes"
        raise InputError(expected, field="line 1", value="|".join(header)[:200])
    unseen = [name for name in NEEDED_COLUMNS if name not in header]
    if "NODELIST(REASON)" in header:
        unseen = [name for name in unseen if name != "REASON"]
    notes = []
    if unseen:
        notes.append(
            f"not seen, as squeue's listing has no column {', '.join(unseen)}: what these keep "
            "jobs from (squeue --json has all)"
        )
    return _Listing(entries, (*notes, *_unknown(SQUEUE_LISTING.unknown(header), "columns")))


def _listed_entry(fields: list[str], header: list[str], place: str) -> _Entry:
    """Return a line as an entry."""
    fields = _in_columns(fields, header, place)
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    for column, value in zip(header, fields, strict=True):
        name = LISTED.get(column)
        if name is None or name in values:
            continue
        said = value
        if name == "nodes_or_reason":
            name, said = _nodes_or_reason(value)
        names[name] = column
        if name in _ALWAYS or said not in _NOTHING:
            values[name] = said
    if names.get("job_state") == "ST":
        values["job_state"] = _SHORT_STATES.get(values["job_state"], values["job_state"])
    return _Entry(place, _usual_texts(values), names)


def _in_columns(fields: list[str], header: list[str], place: str) -> list[str]:
    """Return a field for each column: comments, names and features may hold a ``|``.

    Where several columns may, the others tell which of them does; if they do not, it is an error.
    """
    if len(fields) == 1:
        raise InputError(_FORMS, field=place, value=fields[0][:200])
    extra = len(fields) - len(header)
    free = [at for at, column in enumerate(header) if column in _FREE]
    ways = []
    if 0 <= extra <= _MOST_EXTRA or (extra > 0 and len(free) == 1):
        ways = [
            _joined(fields, len(header), wide)
            for wide in itertools.combinations_with_replacement(free, extra)
        ]
    if len(ways) > 1:
        ways = [way for way in ways if _is_job(dict(zip(header, way, strict=True)))]
    if len(ways) != 1:
        columns = number_of(len(header), "field")
        expected = f"{columns}, one a column (if values hold |, take squeue --json)"
        raise InputError(expected, field=place, found=str(len(fields)))
    return ways[0]


def _joined(fields: list[str], num_columns: int, wide: Sequence[int]) -> list[str]:
    """Return the fields of so many columns; a column is wider by one for each time it is given."""
    rest = iter(fields)
    return [
        "|".join(itertools.islice(rest, 1 + wide.count(column))) for column in range(num_columns)
    ]


def _is_job(line: Mapping[str, str]) -> bool:
    state = line.get("STATE", line.get("ST", ""))
    return re.fullmatch("[A-Z_]+", state) is not None and all(
        line.get(column, "0").isdecimal() for column in ("NODES", "PRIORITY")
    )


def _nodes_or_reason(value: str) -> tuple[str, str]:
    if value.startswith("("):
        return "state_reason", value.strip("()")
    return "nodes", value


def _usual_texts(values: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a text listing in the forms that ``squeue --json`` has."""
    if values.get("contiguous", "0").lower() in ("0", "no"):
        values.pop("contiguous", None)
    if values.get("comment") in _NOTHING:
        values["comment"] = ""
    values.setdefault("time_limit", "UNLIMITED")
    return values


# ---- Jobs as ``scontrol show job -o`` prints them ------------------------------------------------


def _shown_lines(text: str) -> _Listing:
    """Return the records of scontrol as entries."""
    entries, known = [], set[str]()
    for place, line in records_of(text, "JobId"):
        settings = settings_of(line)
        if not line.startswith("JobId=") or "JobState" not in settings:
            expected = f"JobId=... JobState=..., as {SCONTROL_JOB.title} -o writes"
            raise InputError(expected, field=place, value=line[:200])
        known |= settings.keys()
        given = {
            SHOWN[key]: value
            for key, value in settings.items()
            if key in SHOWN and value not in _NOTHING
        }
        names = {name: key for key, name in SHOWN.items()}
        entries.append(_Entry(place, _shown_values(given), names))
    return _Listing(entries, tuple(_unknown(SCONTROL_JOB.unknown(known), "keys")))


def _shown_values(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a line of scontrol in the forms that squeue's listings have."""
    least, _, most = given.pop("node_range", "").partition("-")
    given["node_count"] = least
    if most or least:
        given["max_nodes"] = most or least
    array, tasks = given.pop("array_job_id", ""), given.pop("array_tasks", "")
    number = given.pop("job_id", "")
    given["id"] = number
    if array and tasks:
        given["id"] = f"{array}_{tasks}" if tasks.isdecimal() else f"{array}_[{tasks}]"
    elif "het_job_id" in given:
        given["id"] = f"{given['het_job_id']}+{given.get('het_job_offset', '0')}"
    given["required_switches"] = given.get("required_switches", "").partition("@")[0]
    given["priority"] = given.get("priority", "0")
    return _usual_texts({name: value for name, value in given.items() if value != ""})


# ---- Jobs as ``squeue --json`` prints them (Slurm 21.08 and later) -------------------------------


def _listed_entries(text: str) -> _Listing:
    """Return the jobs of a JSON document as entries."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise json_fault(error) from None
    jobs = raw.get("jobs") if isinstance(raw, dict) else None
    if not isinstance(jobs, list):
        found = "nothing" if jobs is None else None
        expected = "a list of jobs, as squeue --json writes"
        raise InputError(expected, field="jobs", value=jobs, found=found)
    entries, unknown = [], set[str]()
    for idx, job in enumerate(jobs):
        if not isinstance(job, dict):
            raise InputError("an object", field=f"jobs[{idx}]", value=job)
        entries.append(_Entry(f"jobs[{idx}]", job))
        unknown |= {name for name in SQUEUE_JSON.unknown(job) if _says_something(job[name])}
    now = _Entry("", raw).number("last_update") or _latest(entries)
    entries = [replace(entry, now=now) for entry in entries]
    return _Listing(entries, tuple(_unknown(sorted(unknown), "fields")))


def _says_something(value: Any) -> bool:
    if isinstance(value, dict) and "set" in value:
        return bool(value.get("set") and value.get("number"))
    return bool(value)


def _latest(entries: list[_Entry]) -> int | None:
    """Return the last moment that a listing tells of: it was made then, or soon after."""
    told = [entry.number("submit_time") for entry in entries]
    return max((moment for moment in told if moment), default=None)


def _unknown(names: list[str], what: str) -> list[str]:
    return [f"{what} not known here, and not read: {', '.join(names)}"] if names else []


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
    wants
        What the requests of the queue want of nodes, by id.
    left_out
        What restricts them and is not modelled.
    notes
        Lines on what the listing does not say, or says in fields that are not known.
    """

    running: tuple[RunningJob, ...] = ()
    queue: tuple[Request, ...] = ()
    wants: Mapping[str, Wants] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()


def read_slurm_jobs(path: str | Path) -> SlurmJobs:
    """Read the output of ``squeue --json``, ``squeue -o '%i|%T|...'`` or ``scontrol show job -o``.

    Jobs that have ended are left out. Every request has priority 1: Slurm's priorities say only
    which job comes first. What a comment may say of a job stands in docs/reference/formats.md.
    """
    text = text_of(path, or_json=True)
    lists = NodeLists()
    with blamed_on(path):
        listing = _listing_of(text)
        holding: list[tuple[str, SlurmJob]] = []
        waiting: list[SlurmJob] = []
        place_of: dict[str, str] = {}
        for entry in listing.entries:
            job = _job(entry)
            for task in [] if job is None else _tasks_of(job, entry.place, lists):
                _require_usable(task, entry.place, place_of)
                if task.holding:
                    holding.append((entry.place, task))
                else:
                    waiting.append(task)
        holding.sort(key=lambda pair: pair[1].order)
        running = tuple(_running(job, place, lists) for place, job in holding)
    told = [job.submitted for job in [*waiting, *(job for _, job in holding)]]
    start = min((moment for moment in told if moment is not None), default=0)
    waiting.sort(key=lambda job: (-job.priority, job.order))
    waiting = _throttled(waiting, [job for _, job in holding])
    return SlurmJobs(
        running,
        tuple(_request(job, start) for job in waiting),
        {job.id: job.wants for job in waiting},
        tuple(one for job in waiting for one in of_request(job.id, job.left_out)),
        listing.notes,
    )


def _listing_of(text: str) -> _Listing:
    beginning = text.lstrip()
    if beginning.startswith("{"):
        return _listed_entries(text)
    if beginning.startswith("No jobs in the system"):  # as scontrol says it
        return _Listing([])
    return _shown_lines(text) if beginning.startswith("JobId=") else _listed_lines(text)


def _tasks_of(job: SlurmJob, where: str, lists: NodeLists) -> list[SlurmJob]:
    """Return the tasks of a job array that waits (id ``12_[1-5,7%2]``), or the job alone."""
    if "[" not in job.id:
        return [job]
    ids = lists.hosts(re.sub(r"%[0-9]+\]$", "]", job.id), where)
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
                own = (*own, left_out("array_throttle", text, job.wants.place))
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
