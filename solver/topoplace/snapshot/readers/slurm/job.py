"""A job as Slurm tells of it, whatever the form of the listing."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list
from topoplace.snapshot.readers.lines import integer
from topoplace.snapshot.schema import Communication, Pattern, PatternUse
from topoplace.snapshot.tree_state import require_shares

_WAITING = {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_HOLDING = {
    "RUNNING",
    "COMPLETING",
    "CONFIGURING",
    "RESIZING",
    "SIGNALING",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
}
_ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
}
_MAX_BYTES = 1 << 40
_PATTERN = re.compile(r"(?:^|[\s;])pattern=([^\s;]*)", re.IGNORECASE)


@dataclass(frozen=True)
class SlurmJob:
    """A job of a listing.

    Attributes
    ----------
    id
        As ``squeue`` prints it; of a task of an array ``12_3``.
    holding
        Whether it holds nodes (runs, completes, is stopped) or waits.
    num_nodes, hosts
        Nodes wanted or held, and the host list of those held.
    priority
        Slurm's; 0 is a job on hold.
    walltime, submitted
        Seconds; `submitted` since any fixed moment. None if there is no limit, or none known.
    communication, patterns
        What its comment says: see `read_comment`.
    """

    id: str
    holding: bool
    num_nodes: int
    hosts: str
    priority: int
    walltime: int | None
    submitted: int | None
    communication: Communication
    patterns: tuple[PatternUse, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """Sort key: the numbers of the id."""
        return tuple(int(number) for number in re.findall(r"[0-9]{1,18}", self.id))


def holds_nodes(states: list[str], field: str) -> bool | None:
    """Tell whether a job in these states holds nodes (True), waits (False) or has ended (None).

    Raises
    ------
    InputError
        For a state Slurm does not have.
    """
    known = _WAITING | _HOLDING | _ENDED
    for state in states or [""]:
        if state not in known:
            raise InputError("a job state such as RUNNING", field=field, value=state)
    if set(states) & _HOLDING:  # an ended job that is still completing has not left its nodes
        return True
    return False if set(states) & _WAITING else None


def read_comment(comment: str, field: str) -> tuple[Communication, tuple[PatternUse, ...]]:
    """Return how a job communicates, from a word ``pattern=...`` of its comment.

    ``pattern=rhvd:60:1024,rd:30`` is a list of patterns (`schema.Pattern`), each with its share
    of the run time in percent (100 if left out) and the bytes of its messages (1). With
    ``pattern=none`` the job does not communicate. Without such a word its patterns are unknown:
    while it runs it counts as communication-intensive, the careful choice; while it waits
    nothing can be minimised for it, and it counts as compute-intensive.

    Raises
    ------
    InputError
        For an unknown pattern, a bad number, or shares above 100 in all.
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


def _pattern_use(text: str, field: str) -> PatternUse:
    name, *numbers = text.split(":")
    if name not in list(Pattern) or len(numbers) > 2:
        raise InputError(
            f"PATTERN[:SHARE[:BYTES]] with one of {', '.join(Pattern)}, or none",
            field=field,
            value=text,
        )
    limits = (("share", 100), ("message_bytes", _MAX_BYTES))
    uses: dict[str, int] = {}
    for number, (what, most) in zip(numbers, limits, strict=False):
        uses[what] = integer(number, 1, field=field)
        if uses[what] > most:
            raise InputError(f"at most {most}", field=field, value=number)
    return PatternUse(pattern=Pattern(name), **uses)


def tasks_of(job: SlurmJob, field: str) -> list[SlurmJob]:
    """Return the tasks of a job array that waits (id ``12_[1-5,7%2]``), or the job alone.

    Raises
    ------
    InputError
        If the tasks are not told in full.
    """
    if "[" not in job.id:
        return [job]
    ids = expand_host_list(re.sub(r"%[0-9]+\]$", "]", job.id), field)
    return [replace(job, id=one) for one in ids]
