"""What `scontrol show nodes -o` says: which nodes may take a job."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

from topoplace.errors import InputError
from topoplace.snapshot.readers.lines import text_of

_NAME = re.compile(r"NodeName=(\S+)")
_STATE = re.compile(r"\sState=(\S+)")
_OPEN = {"IDLE", "PLANNED", "CLOUD", "DYNAMIC_NORM", "POWERED_DOWN", "POWERING_UP"}
_HELD = {"ALLOCATED", "MIXED", "COMPLETING"}


class NodeUse(Enum):
    """Whether a node may take a job (`OPEN`), has one (`HELD`), or may not (`CLOSED`)."""

    OPEN = "open"
    HELD = "held"
    CLOSED = "closed"


def read_slurm_nodes(path: str | Path) -> dict[str, NodeUse]:
    """Read the output of ``scontrol show nodes -o``, one line per node.

    A state is a word with flags, such as ``ALLOCATED+DRAIN``. A node is open if all of them let a
    job start (idle, planned, powered down), held if the others say that it has a job (allocated,
    mixed, completing), and closed by any other: down, draining, drained, fail, maint, reserved,
    not responding (also written ``*``), unknown.

    Raises
    ------
    InputError
        Naming file, line and value.
    """
    uses: dict[str, NodeUse] = {}
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        if not line.strip():
            continue
        field = f"line {number}"
        name, state = _NAME.match(line.strip()), _STATE.search(line)
        if name is None or state is None:
            raise InputError(
                "NodeName=... State=..., as scontrol show nodes -o writes",
                file=str(path),
                field=field,
                value=line,
            )
        if name[1] in uses:
            raise InputError("each node once", file=str(path), field=field, value=name[1])
        uses[name[1]] = _use_of(state[1])
    if not uses:
        raise InputError("at least one line NodeName=...", file=str(path))
    return uses


def _use_of(state: str) -> NodeUse:
    words = set(state.upper().split("+"))
    if words - _OPEN - _HELD:
        return NodeUse.CLOSED
    return NodeUse.HELD if words & _HELD else NodeUse.OPEN
