"""What requests are worth by the definition, and snapshots whose value counts GPUs or jobs."""

from __future__ import annotations

import json
import random
from typing import Any

from topoplace.snapshot.schema import Counted, Request, Snapshot


def value_of(snapshot: Snapshot, request: Request) -> int:
    """Return what a request that starts adds to the first level."""
    if snapshot.value == "jobs":
        return request.priority
    if snapshot.value == "nodes":
        return request.priority * request.nodes
    parts = [request] if request.parts is None else request.parts
    return request.priority * sum(p.nodes * (p.takes or {}).get("gpus", 0) for p in parts)


def with_value(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in which the value is in jobs, now and then."""
    rng = random.Random(f"value of {snapshot.model_dump_json()}")
    return snapshot.model_copy(update={"value": Counted.JOBS}) if rng.random() < 0.3 else snapshot


def add_value(document: dict[str, Any]) -> None:
    """Have the value of a hierarchy count GPUs, where there are any, or jobs, now and then."""
    rng = random.Random(f"value of {json.dumps(document)}")
    has_gpus = any("gpus" in own["capacity"] for own in document["machine"]["hosts"])
    if rng.random() < (0.7 if has_gpus else 0.2):
        document["value"] = "gpus" if has_gpus and rng.random() < 0.7 else "jobs"
