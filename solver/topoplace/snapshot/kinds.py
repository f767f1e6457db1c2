"""What kind of file something is, and which commands take it: for whoever gave the wrong one."""

from __future__ import annotations

import json
import re
from typing import Any

SWF = "a job log (SWF), which topoplace replay and convert --from swf take"

_SCHEMAS = {
    "topoplace.snapshot/1": (
        "a snapshot",
        "topoplace place, compare, batch and map --on",
    ),
    "topoplace.mapping/1": ("a mapping instance", "topoplace compare and batch"),
    "topoplace.workload/1": ("a workload table", ""),
    "topoplace.result/1": ("a result", "topoplace check, show, compare and map --on"),
}

_TEXTS = (
    (re.compile(rb"\s*(#[^\n]*\n\s*)*SwitchName\s*=", re.I), "a Slurm topology.conf", "--on and"),
    (re.compile(rb"\s*(#[^\n]*\n\s*)*NodeName\s*=", re.I), "Slurm's node states", "--nodes of"),
)

_SWF_LINE = re.compile(rb"\s*(;|(-?\d+(\.\d+)?\s+){17}-?\d+(\.\d+)?\s*$)", re.MULTILINE)


def kind_named(schema: object) -> str:
    """Return what documents of a schema are, with the schema, for messages."""
    what = _SCHEMAS.get(str(schema), ("", ""))[0]
    return f'{what} ("{schema}")' if what else f'"{schema}"'


def kind_of_document(raw: dict[str, Any]) -> str:
    """Tell what a JSON object is and which commands take it."""
    schema = raw.get("schema")
    if schema in _SCHEMAS:
        takers = _SCHEMAS[schema][1]
        return kind_named(schema) + (f", which {takers} take" if takers else "")
    if schema is None and raw.get("name") and {"shape", "switches", "distances"} & raw.keys():
        return "a machine, which the option --on takes"
    return "nothing" if schema is None else json.dumps(schema)[:80]


def kind_of_text(text: bytes) -> str | None:
    """Tell what a text that is no JSON is and which commands take it; None if it is unknown."""
    if _SWF_LINE.match(text):
        return SWF
    for pattern, what, option in _TEXTS:
        if pattern.match(text):
            return f"{what}, which {option} topoplace convert --from slurm take"
    return None


def kind_of_json(text: str) -> str | None:
    """Tell what a text is that ought not to be a JSON object; None if it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None
    known = isinstance(raw, dict) and kind_of_document(raw)
    return str(known) if known and known != "nothing" else "a JSON document"
