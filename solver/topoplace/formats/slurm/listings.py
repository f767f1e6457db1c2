"""Slurm's three listings of jobs, as entries with the fields of ``squeue --json``.

What ``squeue --json`` prints has these fields already; `fields` says how the columns of
``squeue -o`` and the keys of ``scontrol show job`` are called otherwise.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from topoplace.errors import InputError, number_of
from topoplace.formats.slurm.fields import (
    LISTED,
    NEEDED_COLUMNS,
    SCONTROL_JOB,
    SHOWN,
    SQUEUE_JSON,
    SQUEUE_LISTING,
    UNSAID,
    shared_of,
    unseen_in,
)
from topoplace.formats.slurm.nodes import moment_of, records_of, seconds_of, settings_of
from topoplace.formats.text import integer
from topoplace.snapshot.files import json_fault

_MAX_NUMBER = 10**18


@dataclass(frozen=True)
class Entry:
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

    def words(self, name: str) -> list[str]:
        """Return a word or a list of words, in small letters."""
        value = self.values.get(name)
        words = value if isinstance(value, list) else [value]
        return [str(word).lower() for word in words if word]

    def moment(self, name: str) -> int | None:
        """Return a moment in seconds; None if nothing is said."""
        if not self.names:
            return self.number(name) or None
        text = self.text(name)
        return moment_of(text, self.field(name)) if text else None

    def seconds(self, name: str) -> int | None:
        """Return a time limit in seconds; None without one. Slurm's numbers are minutes."""
        if self.names:
            return seconds_of(self.text(name), self.field(name))
        minutes = self.number(name)
        return None if minutes is None else 60 * minutes


@dataclass(frozen=True)
class Listing:
    """The entries of a file.

    Attributes
    ----------
    notes
        Lines on what it does not say, or says in fields that are not known.
    unseen
        What its form cannot show.
    now
        When it was made, in seconds since 1970; None if that is not known.
    """

    entries: list[Entry]
    notes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    now: int | None = None


def listing_of(text: str) -> Listing:
    """Return the entries of a text that any of Slurm's three commands printed."""
    beginning = text.lstrip()
    if beginning.startswith("{"):
        return _listed_entries(text)
    if beginning.startswith("No jobs in the system"):  # as scontrol says it
        return Listing([])
    return _shown_lines(text) if beginning.startswith("JobId=") else _listed_lines(text)


# ---- Jobs as ``squeue -o`` prints them, with a header that names the columns ---------------------

_FORMS = "what squeue --json prints (scontrol show job -o and squeue -o show less)"
_FREE = ("COMMENT", "NAME", "FEATURES", "LICENSES", "COMMAND", "WORK_DIR")  # may hold a |
_MOST_EXTRA = 6
_USUAL = ["JOBID", "STATE", "NODES", "NODELIST", "COMMENT"]
_USUAL += ["PRIORITY", "TIME_LIMIT", "START_TIME", "SUBMIT_TIME"]
_NOTHING = {"", "(null)", "N/A", "n/a", "null"}
_SHORT_STATES = {
    **{"PD": "PENDING", "R": "RUNNING", "CG": "COMPLETING", "CF": "CONFIGURING"},
    **{"S": "SUSPENDED", "ST": "STOPPED", "RQ": "REQUEUED", "RH": "REQUEUE_HOLD"},
}
_ALWAYS = ("id", "node_count", "priority", "job_state", "comment")
_MUST_HAVE = ("JOBID", "NODES", "PRIORITY")


def _listed_lines(text: str) -> Listing:
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
        expected = f"a column {lacking[0]}, or what squeue --json prints, which has all"
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
    notes += _unknown(SQUEUE_LISTING.unknown(header), "columns")
    return Listing(entries, tuple(notes), unseen_in(LISTED.get(name, name) for name in header))


def _listed_entry(fields: list[str], header: list[str], place: str) -> Entry:
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
    return Entry(place, _usual_texts(values), names)


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
    """Return the fields of a number of columns; a column is wider by one each time it is given."""
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


def _shown_lines(text: str) -> Listing:
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
        entries.append(Entry(place, _shown_values(given), names))
    notes = _unknown(SCONTROL_JOB.unknown(known), "keys")
    return Listing(entries, tuple(notes), unseen_in(SHOWN.values()))


_OF_TASKS = ("tasks_per_node", "tasks_per_board", "tasks_per_socket")
_OF_REQUESTS = ("boards", "sockets_per_board", "cores_per_socket", "threads_per_core")


def _layout(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return what a value such as ``0:0:*:1`` says by name, where that is a number from 1 on."""
    numbers = zip(names, text.split(":"), strict=False)
    return {name: n for name, n in numbers if n.isdecimal() and int(n) and name != "boards"}


def _shown_values(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a line of scontrol in the forms that squeue's listings have."""
    least, _, most = given.pop("node_range", "").partition("-")
    given["node_count"] = least
    given["max_nodes"] = most or "0"
    given |= _layout(given.pop("tasks_per_node", ""), _OF_TASKS)
    given |= _layout(given.pop("node_layout", ""), _OF_REQUESTS)
    given |= _layout(given.pop("sockets_per_node", ""), ("sockets_per_node",))
    array, tasks = given.pop("array_job_id", ""), given.pop("array_tasks", "")
    number = given.pop("job_id", "")
    given["id"] = number
    if array and tasks:
        given["id"] = f"{array}_{tasks}" if tasks.isdecimal() else f"{array}_[{tasks}]"
    elif "het_job_id" in given:
        given["id"] = f"{given['het_job_id']}+{given.get('het_job_offset', '0')}"
    given["required_switches"], _, longest = given.get("required_switches", "").partition("@")
    if longest:  # it may be over, as the listing does not say when it was made
        given["maximum_switch_wait_time"] = str(seconds_of(longest, "Switches") or "")
    given["priority"] = given.get("priority", "0")
    if "exclusive" in given:
        given["shared"] = shared_of(given["exclusive"], given.get("shared"))
    return _usual_texts({name: value for name, value in given.items() if value != ""})


# ---- Jobs as ``squeue --json`` prints them (Slurm 21.08 and later) -------------------------------


def _listed_entries(text: str) -> Listing:
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
        entries.append(Entry(f"jobs[{idx}]", job | _shared(job, _parser_of(raw))))
        unknown |= {name for name in SQUEUE_JSON.unknown(job) if _says_something(job[name])}
    now = Entry("", raw).number("last_update") or _latest(entries)
    entries = [replace(entry, now=now) for entry in entries]
    return Listing(entries, tuple(_unknown(sorted(unknown), "fields")), now=now)


_WITHOUT_SHARED = 45
"""The data parser from which on ``shared`` is a placeholder (v0.0.45, of Slurm 26.05)."""


def _parser_of(raw: Mapping[str, Any]) -> int:
    """Return the version of the data parser that wrote a document; 0 if that is not said."""
    found = re.search(r'"data_parser": "[^"]*v0\.0\.([0-9]{1,6})', json.dumps(raw.get("meta")))
    return int(found[1]) if found else 0


def _shared(job: Mapping[str, Any], parser: int) -> dict[str, Any]:
    """Return how a job shares nodes where newer versions say it otherwise, or not at all."""
    if "exclusive" in job or "oversubscribe" in job:
        return {"shared": shared_of(job.get("exclusive"), job.get("oversubscribe"))}
    return {"shared": [UNSAID]} if parser >= _WITHOUT_SHARED else {}


def _says_something(value: Any) -> bool:
    if isinstance(value, dict) and "set" in value:
        return bool(value.get("set") and value.get("number"))
    return bool(value)


def _latest(entries: list[Entry]) -> int | None:
    """Return the last moment that a listing tells of: it was made then, or soon after."""
    told = [entry.number("submit_time") for entry in entries]
    return max((moment for moment in told if moment), default=None)


def _unknown(names: list[str], what: str) -> list[str]:
    return [f"{what} not known here, and not read: {', '.join(names)}"] if names else []
