"""What ``scontrol show nodes`` and ``partition`` say, best with ``-o``."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from topoplace.errors import InputError, blamed_on
from topoplace.formats.declared import Table
from topoplace.formats.slurm.fields import (
    NODE_JSON,
    SCONTROL_NODE,
    SCONTROL_PARTITION,
)
from topoplace.formats.text import require_once, text_of
from topoplace.machine.hostlist import NodeLists
from topoplace.snapshot.faults import kind_of_json

File = str | Path

_RESERVED = {"RESERVED", "MAINT", "MAINTENANCE"}
_OPEN = {"IDLE", "PLANNED", "CLOUD", "DYNAMIC_NORM", "POWERED_DOWN", "POWERING_UP"}
_HELD = {"ALLOCATED", "MIXED", "COMPLETING"}
_OTHERS = {
    *("BLOCKED", "DOWN", "DRAIN", "DRAINED", "DRAINING", "DYNAMIC_FUTURE", "ERROR", "EXTERNAL"),
    *(
        "FAIL",
        "FAILED",
        "FAILING",
        "FUTURE",
        "INVAL",
        "INVALID",
        "INVALID_REG",
        "NET",
        "NOT_RESPONDING",
    ),
    *("NO_RESPOND", "PARTIAL", "PERFCTRS", "POWERING_DOWN", "POWER_DOWN", "POWER_DRAIN"),
    *("POWER_UP", "REBOOT", "REBOOT_CANCEL", "REBOOT_ISSUED", "REBOOT_REQUESTED"),
    *("RES", "RESUME", "UNDRAIN", "UNKNOWN"),
}
"""States and flags of nodes that take no jobs."""

NOTHING = {"", "(null)", "N/A", "n/a", "NO", "UNLIMITED", "None", "NONE"}


class NodeUse(Enum):
    """Whether a node may take a job (`OPEN`), has one (`HELD`), or may not (`CLOSED`)."""

    OPEN = "open"
    HELD = "held"
    CLOSED = "closed"


@dataclass(frozen=True)
class SlurmNode:
    """A node: whether it may take a job, its partitions, and what it has; None if not said.

    Attributes
    ----------
    unreserved
        What `use` would be without the reservation that its state may name.
    odd
        A state or a number that is not understood, as the listing has it; empty if there is none.
    seen
        The last moment that it tells of, as a local time.
    """

    use: NodeUse
    partitions: frozenset[str] | None = None
    cpus: int | None = None
    memory: int | None = None  # MB
    disk: int | None = None  # MB
    features: frozenset[str] | None = None  # None as well if some of them are not active
    gres: Mapping[str, int] | None = None  # by name, and by name and type: gpu, gpu:a100
    threads: int | None = None  # of a core
    cpus_held: int | None = None  # by jobs
    memory_held: int | None = None  # MB
    unreserved: NodeUse = NodeUse.OPEN
    seen: int | None = None
    weight: int | None = None  # Slurm takes nodes of less weight first
    odd: str = ""

    @property
    def cores(self) -> int | None:
        """How many cores it has; None if that is not said."""
        return self.cpus // self.threads if self.cpus and self.threads else None

    def amount(self, what: str, name: str) -> int | None:
        """Return how much it has of GRES of a name, or of ``cpus``, ``memory`` or ``disk``."""
        if what == "gres":
            return None if self.gres is None else self.gres.get(name, 0)
        found: int | None = getattr(self, what)
        return found


@dataclass(frozen=True)
class SlurmPartition:
    """A partition: its nodes, and why none, or not all, of its jobs start.

    Attributes
    ----------
    state
        Such as ``UP``; jobs of one that is not wait.
    whole_nodes
        Whether its jobs take whole nodes, whatever they ask for.
    most_nodes, least_nodes, most_seconds
        Limits of a job; None without a limit.
    others
        What else restricts its jobs, as text; empty if nothing does.
    tier
        Jobs of a higher one come first, whatever their priority.
    oversubscribes
        Whether several of its jobs may have a CPU.
    topology
        The name of its jobs' topology; empty for the default.
    allows
        What keeps some accounts, groups or QOS from it, as text.
    preempts
        How its jobs may be ended or stopped for others; empty if they may not.
    select
        How its jobs get CPUs, if that is by whole sockets.
    defaults
        What each GPU of a job brings unless it says that itself.
    least_loaded
        Whether its jobs get the least loaded nodes first.
    """

    nodes: frozenset[str]
    state: str
    whole_nodes: bool
    most_nodes: int | None
    least_nodes: int
    most_seconds: int | None
    others: str
    tier: int = 1
    oversubscribes: bool = False
    topology: str = ""
    allows: str = ""
    preempts: str = ""
    select: str = ""
    defaults: str = ""
    least_loaded: bool = False


# ---- Times ---------------------------------------------------------------------------------------

_TIME = re.compile(
    r"(?:([0-9]{1,6})-([0-9]{1,2}):([0-9]{2})|(?:([0-9]{1,6}):)?([0-9]{1,6})):([0-9]{2})"
)
_NO_LIMIT = {"UNLIMITED", "NOT_SET", "INVALID", "N/A", "NONE", "Unknown", "Partition_Limit"}


def seconds_of(text: str, field: str) -> int | None:
    """Return a duration such as ``365-00:00:00``, ``1:30:00`` or ``30:00`` in seconds."""
    if text in _NO_LIMIT:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise InputError("a time such as 1-12:00:00 or UNLIMITED", field=field, value=text)
    days, day_hours, day_minutes, hours, minutes, seconds = (int(x or 0) for x in match.groups())
    return ((days * 24 + day_hours + hours) * 60 + day_minutes + minutes) * 60 + seconds


def moment_of(text: str, field: str) -> int | None:
    """Return a local time in seconds; only differences of these are used."""
    if text in _NO_LIMIT:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError("a time such as 2026-01-31T12:00:00", field=field, value=text) from None
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())


def local_moment(text: str) -> tuple[int | None, bool]:
    """Return a time in seconds since 1970, None if it is none, and whether it says its zone.

    A time that does not is read in the zone of this computer.
    """
    try:
        moment = datetime.fromisoformat(text)
        return int(moment.timestamp()), moment.tzinfo is not None
    except (ValueError, OverflowError, OSError):
        return None, False


# ---- Records of settings -------------------------------------------------------------------------

_SETTING = re.compile(r"(?:^|\s)([A-Za-z][\w:/]*)=")


def settings_of(line: str) -> dict[str, str]:
    """Return the settings of a line that scontrol prints: a value goes on to the next key.

    Of a key that comes twice the first counts: the text of a comment may hold others.
    """
    marks = list(_SETTING.finditer(line))
    found: dict[str, str] = {}
    for mark, following in itertools.zip_longest(marks, marks[1:]):
        end = len(line) if following is None else following.start()
        found.setdefault(mark[1], line[mark.end() : end].strip())
    return found


def records_of(text: str, key: str) -> Iterator[tuple[str, str]]:
    """Yield place and text of every record: a line, and what stands indented below it.

    With ``-o`` scontrol prints a line each. Every record begins with the key that has its name.
    """
    place, record = "", list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        said = line.strip()
        if record and line[:1].isspace() and not said.startswith(f"{key}="):
            record.append(said)
            continue
        if record:
            yield place, " ".join(record)
        place, record = f"line {number}", [said] if said else []
    if record:
        yield place, " ".join(record)


def entries_in(path: str | Path, key: str, table: Table) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield name and settings of every record; its first key has the name."""
    expected = f"{key}=... State=..., as {table.title} -o writes"
    text = text_of(path, or_json=True)
    in_json = _nodes_of_json(text) if table is SCONTROL_NODE else None
    if in_json is None and (document := kind_of_json(text)):
        raise InputError(expected, file=str(path), found=document)
    place_of: dict[str, str] = {}
    records = in_json
    if records is None:
        records = [(place, line, settings_of(line)) for place, line in records_of(text, key)]
    if in_json is None and table is SCONTROL_NODE:
        _require_whole(text, records, path)
    for place, said, settings in records:
        with blamed_on(path, place):
            name = settings.get(key, "")
            if not said.startswith(f"{key}=") or not name or "State" not in settings:
                raise InputError(expected, value=said[:200])
            require_once(place_of, name, place, key.removesuffix("Name").lower())
            yield name, settings
    if not place_of:
        expected = f"at least one line {key}=..., as {table.title} -o writes"
        raise InputError(expected, file=str(path), found="an empty file")


_LAST = "CfgTRES"
"""The last key of a node that is needed, and every node has since Slurm 17.02."""


def _require_whole(text: str, records: list[tuple[str, str, dict[str, str]]], path: File) -> None:
    """Raise `InputError` if a record ends before its end, as where a listing was cut off.

    A node in no partition has no ``Partitions``.
    """
    lacking = [place for place, _, settings in records if _LAST not in settings]
    if not lacking:
        return
    key, cut = _LAST, len(lacking) < len(records)
    if not cut:
        *others, (_, _, last) = records
        key = "Partitions"
        cut = key not in last and bool(others) and all(key in own for _, _, own in others)
        if not cut and "CoresPerSocket" in last:  # as scontrol writes it, to the end of a line
            key, cut = _LAST, not text.endswith("\n")
    if cut:
        expected = f"a whole record, to {key}=... (the listing was cut off)"
        raise InputError(expected, file=str(path), field=lacking[-1], found="the end of it before")


def _nodes_of_json(text: str) -> list[tuple[str, str, dict[str, str]]] | None:
    """Return place, text and settings of the nodes in what ``scontrol show nodes --json`` prints.

    None if the text is something else.
    """
    try:
        raw = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    nodes = raw.get("nodes") if isinstance(raw, dict) else None
    if not isinstance(nodes, list) or not all(isinstance(one, dict) for one in nodes):
        return None
    found = []
    for idx, one in enumerate(nodes):
        own = {key: one[name] for name, key in NODE_JSON.items() if one.get(name) is not None}
        texts = {key: "+".join(map(str, v)) for key, v in own.items() if key == "State" and v}
        lists = {key: ",".join(map(str, v)) for key, v in own.items() if isinstance(v, list)}
        plain = {key: str(value) for key, value in own.items()}
        said = " ".join(f"{key}={value}" for key, value in (plain | lists | texts).items())
        found.append((f"nodes[{idx}]", said, plain | lists | texts))
    return found


# ---- Nodes ---------------------------------------------------------------------------------------


def read_slurm_nodes(path: str | Path) -> dict[str, SlurmNode]:
    """Read the output of ``scontrol show nodes -o``, one line per node.

    A state is a word with flags, such as ``ALLOCATED+DRAIN``. A node is open if all of them let a
    job start (idle, planned, powered down), held if the others say that it has a job (allocated,
    mixed, completing), and closed by any other: down, draining, drained, fail, maint, reserved,
    not responding (also written ``*``), unknown. So is one that has an owner or a label.
    """
    found = {}
    for name, settings in entries_in(path, "NodeName", SCONTROL_NODE):
        use = _use_of(settings["State"])
        owned = any(settings.get(key, "") not in NOTHING for key in ("Owner", "MCS_label"))
        partitions = settings.get("Partitions")
        found[name] = SlurmNode(
            NodeUse.CLOSED if owned else use,
            None if partitions is None else frozenset(filter(None, partitions.split(","))),
            _number(settings, "CPUEfctv") or _number(settings, "CPUTot"),
            _memory(settings),
            _number(settings, "TmpDisk"),
            _features(settings),
            None if "Gres" not in settings else gres_of(settings["Gres"]),
            _number(settings, "ThreadsPerCore"),
            _number(settings, "CPUAlloc"),
            _number(settings, "AllocMem"),
            NodeUse.CLOSED if owned else _use_of(settings["State"], _RESERVED),
            local_moment(settings.get("LastBusyTime", ""))[0],
            _number(settings, "Weight"),
            _odd(settings),
        )
    return found


def _odd(settings: Mapping[str, str]) -> str:
    """Return the state or number of a node that is not understood; empty if there is none."""
    known = _OPEN | _HELD | _RESERVED | _OTHERS
    if {word.rstrip("*~#!%$@^-") for word in _words_of(settings["State"])} - known:
        return f"State={settings['State']}"
    keys = ("CPUEfctv", "CPUTot", "CPUAlloc", "RealMemory", "AllocMem", "MemSpecLimit")
    given = {key: settings[key] for key in keys if settings.get(key, "") not in NOTHING}
    return next((f"{key}={own}" for key, own in given.items() if not own.isdecimal()), "")


def _words_of(state: str) -> set[str]:
    """Return the words of a state; marks such as the ``*`` of a node that does not respond stay."""
    return set(state.upper().split()[0].split("+")) if state else {""}


def _use_of(state: str, but: Set[str] = frozenset()) -> NodeUse:
    words = _words_of(state)
    words = words - but or words
    if "POWERING_UP" in words:  # it does not respond yet, and takes jobs
        words -= {"NOT_RESPONDING"}
    if words - _OPEN - _HELD:
        return NodeUse.CLOSED
    return NodeUse.HELD if words & _HELD else NodeUse.OPEN


_GRES = re.compile(r"(?:gres[:/])?([\w.-]+)(?:[:=]([A-Za-z_][\w.-]*))?(?:[:=]([0-9]{1,9}))?")


def gres_of(text: str) -> dict[str, int] | None:
    """Return amounts of GRES by name, and by name and type, of a text such as ``gpu:a100:4(S:0)``.

    Jobs write ``gres/gpu:4``, and ``gpu(CNT:4)`` for what they hold of GRES without files. None if
    the text is of another form.
    """
    found: dict[str, int] = {}
    text = re.sub(r"\(CNT:([0-9]+)\)", r":\1", text)
    for own in filter(None, re.sub(r"\([^()]*\)", "", text).split(",")):
        match = _GRES.fullmatch(own)
        if match is None:
            return None
        name, kind, amount = match[1], match[2], int(match[3] or 1)
        for key in (name, *([f"{name}:{kind}"] if kind else [])):
            found[key] = found.get(key, 0) + amount
    return found


def _memory(settings: Mapping[str, str]) -> int | None:
    """Return the memory that jobs may have: the rest is for the system."""
    memory, system = _number(settings, "RealMemory"), _number(settings, "MemSpecLimit") or 0
    return None if memory is None else max(0, memory - system)


def _features(settings: Mapping[str, str]) -> frozenset[str] | None:
    active, there = (settings.get(f"{which}Features") for which in ("Active", "Available"))
    if active is None or active != there:
        return None
    return frozenset(filter(None, active.removeprefix("(null)").split(",")))


def _number(settings: Mapping[str, str], key: str) -> int | None:
    text = settings.get(key, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 15 else None


_ALLOWS = ("AllowGroups", "AllowAccounts", "AllowQos", "DenyAccounts", "DenyQos")


# ---- Partitions ----------------------------------------------------------------------------------


def read_slurm_partitions(path: str | Path) -> dict[str, SlurmPartition]:
    """Read the output of ``scontrol show partition -o``, one line per partition."""
    found, lists = {}, NodeLists()
    for name, settings in entries_in(path, "PartitionName", SCONTROL_PARTITION):
        given = {key: value for key, value in settings.items() if value not in NOTHING}
        held = SCONTROL_PARTITION.left_out(given, name)
        with blamed_on(path, f"partition {name}"):
            limit = settings.get("MaxTime", "UNLIMITED")
            found[name] = SlurmPartition(
                frozenset(lists.hosts(given.get("Nodes", ""), "Nodes")),
                settings.get("State", "UP"),
                settings.get("OverSubscribe") == "EXCLUSIVE",
                _number(settings, "MaxNodes"),
                _number(settings, "MinNodes") or 0,
                seconds_of(limit, "MaxTime"),
                ", ".join(f"{(one.where or '').rpartition('.')[2]}={one.value}" for one in held),
                1 if (tier := _number(settings, "PriorityTier")) is None else tier,
                settings.get("OverSubscribe", "").startswith(("FORCE", "YES")),
                given.get("Topology", ""),
                next((f"{k}={given[k]}" for k in _ALLOWS if given.get(k, "ALL") != "ALL"), ""),
                re.sub("OFF|GANG|^,|,$", "", given.get("PreemptMode", "")).strip(","),
                own if "SOCKET" in (own := given.get("SelectTypeParameters", "")) else "",
                given.get("JobDefaults", ""),
                given.get("LLN") == "YES",
            )
    return found
