"""Jobs as ``squeue -o '%i|%T|%D|%N|%k|%Q|%l|%S|%V'`` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from topoplace.errors import InputError
from topoplace.snapshot.readers.lines import integer
from topoplace.snapshot.readers.slurm.job import SlurmJob, holds_nodes, read_comment

SQUEUE_FORMAT = "%i|%T|%D|%N|%k|%Q|%l|%S|%V"
_HEADER = "JOBID|STATE|"
_NUM_BEFORE, _NUM_AFTER = 4, 4  # fields before and after the comment, which may hold a "|"
_TIME = re.compile(
    r"(?:([0-9]{1,6})-([0-9]{1,2}):([0-9]{2})|(?:([0-9]{1,6}):)?([0-9]{1,6})):([0-9]{2})"
)
_NO_LIMIT = {"UNLIMITED", "NOT_SET", "INVALID", "N/A"}


def read_squeue_text(text: str) -> Iterator[tuple[str, SlurmJob | None]]:
    """Yield place and job of every line; None for a job that has ended.

    Raises
    ------
    InputError
        Naming the line, the column and the value.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"line {number}"
        if not line.strip() or line.startswith(_HEADER):
            continue
        fields = line.strip().split("|")
        if len(fields) < _NUM_BEFORE + 1 + _NUM_AFTER:
            raise InputError(
                f"a line of squeue -o '{SQUEUE_FORMAT}'", field=place, value=line.strip()
            )
        yield place, _job(fields, place)


def _job(fields: list[str], place: str) -> SlurmJob | None:
    name, state, num_nodes, hosts = (field.strip() for field in fields[:_NUM_BEFORE])
    priority, limit, _, submitted = (field.strip() for field in fields[-_NUM_AFTER:])
    holding = holds_nodes([state], f"{place}, STATE")
    if holding is None:
        return None
    communication, patterns = read_comment(
        "|".join(fields[_NUM_BEFORE:-_NUM_AFTER]), f"{place}, COMMENT"
    )
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
    )


def _seconds(text: str, field: str) -> int | None:
    """Return a duration such as ``365-00:00:00``, ``1:30:00`` or ``30:00`` in seconds."""
    if text in _NO_LIMIT:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise InputError("a time such as 1-12:00:00 or UNLIMITED", field=field, value=text)
    days, day_hours, day_minutes, hours, minutes, seconds = (
        int(part or 0) for part in match.groups()
    )
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
