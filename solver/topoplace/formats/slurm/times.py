"""Times as Slurm's tools print them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from topoplace.errors import InputError

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
