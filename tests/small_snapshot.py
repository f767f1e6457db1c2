"""Small snapshots made by hand: one as a plain document to be bent, and others in few words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot, TorusModel


def small_document() -> dict[str, Any]:
    """Return a 4x4x3 torus of two nodes per router with a running job and three requests."""
    return json.loads(Path(__file__).with_suffix(".json").read_text())


def write_small(folder: Path, **changes: Any) -> Path:
    """Write the small snapshot with some of its fields replaced, and return its path."""
    path = folder / "snapshot.json"
    path.write_text(json.dumps(small_document() | changes))
    return path


def snapshot_of(shape: list[int], queue: list[dict[str, Any]], **more: Any) -> Snapshot:
    """Return a snapshot of a machine and requests; `more` are fields of it or of the machine."""
    if isinstance(more.get("wrap"), bool):  # for all dimensions
        more["wrap"] = [more["wrap"]] * len(shape)
    machine = {key: more.pop(key) for key in TorusModel.model_fields if key in more}
    document = {
        "schema": SNAPSHOT_SCHEMA,
        "name": "hand-made",
        "machine": {"name": "machine", "shape": shape, **machine},
        "queue": [{"id": f"job{k}", **request} for k, request in enumerate(queue)],
    }
    return Snapshot.model_validate(document | more)
