"""What is read of recorded decisions: tables, one for each form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topoplace.formats.declared import (
    MAX_VALUE,
    Table,
    given_text,
    neutral,
    read,
    values_at,
)

_PODSET = {
    "count": "its units",
    "mode": "`required`, `preferred`, or neither",
    "level": "of the mode",
    "slice_size": "a segment",
    "slice_level": "a segment",
    "slice_layers": "segments",
    "pod_units": "what a unit takes",
    "group": "`group` of a part",
    "balanced": "`balance`",
}

KUEUE = Table(
    "Kueue",
    (
        *read("id", "kueue", "family", about="what it is called, and counted with"),
        *read("levels", about="the levels of the machine"),
        *read("nodes[].name", "nodes[].path", "nodes[].capacity", "nodes[].free"),
        *(
            field
            for place in ("request", "requests[]")
            for name, about in ({"name": "of the part"} | _PODSET).items()
            for field in read(f"{place}.{name}", about=about)
        ),
        *read("assignment", "assignments", "reason", "reasons", about="what was decided"),
        *neutral("assumptions_violated", "note", "truth", "usage_by", about="about the record"),
    ),
)

SLURM = Table(
    "Slurm",
    (
        *read("config", "slurm", "plugin", "how", about="what it is called, and counted with"),
        *read("topology", about="the machine"),
        *read("free", "down", "busy", about="the state of the nodes"),
        *read("request.nodes", about="its units"),
        *read("request.segment", about="`segments` on blocks; not said on trees"),
        *read(
            "request.options",
            about="`--exclude`, `--exclusive=topo` on blocks and `--switches=1` on trees; "
            "others are not said",
        ),
        *read("outcome", "chosen", about="what was decided"),
        *neutral("reason", "note", about="about the record"),
    ),
)

POD = Table(
    "Pods of cubes",
    (
        *read("id", "pod", "family", about="what it is called, and counted with"),
        *read("cubes", "side", about="the machine"),
        *read("busy", "down", about="the state of the chips"),
        *read("request.nodes", "request.shapes", about="the request"),
        *read("outcome", "chosen", about="what was decided"),
        *neutral("reason", "note", about="about the record"),
    ),
)

_MATTERS = ("request", "requests[]", "nodes[]")
"""What a decision rests on: an unknown field in there may restrict it."""


def unread(line: Mapping[str, Any], table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return fields of a line that its table does not know.

    The first are those of the request or of nodes that say anything, with what they say: the
    optimum is not known then. The others are names of further fields.
    """
    names = table.unknown_in(line)
    inside = [name for name in names if name.startswith(tuple(f"{one}." for one in _MATTERS))]
    said = []
    for name in inside:
        value = given_text([value for value in values_at(line, name) if value])
        said += [f"{name}={value}"[:MAX_VALUE]] if value else []
    return tuple(said), tuple(name for name in names if name not in inside)
