"""A small snapshot as a plain document, for tests that bend it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def small_document() -> dict[str, Any]:
    """Return a 4x4x3 torus of two nodes per router with a running job and three requests."""
    return {
        "schema": "topoplace.snapshot/1",
        "name": "small",
        "machine": {
            "kind": "torus",
            "name": "small-torus",
            "shape": [4, 4, 3],
            "nodes_per_router": 2,
            "default_class": "xe",
            "classes": {"xk": "48-55"},
            "service": "0-1",
        },
        "down": "9",
        "running": [
            {
                "id": "busy",
                "nodes": "24-27",
                "prism": {"origin": [1, 0, 0], "extents": [1, 1, 2]},
            }
        ],
        "queue": [
            {"id": "first", "nodes": 8, "shapes": "2x1x2/1x2x2"},
            {"id": "second", "nodes": 4},
            {"id": "third", "nodes": 4, "class": "xk"},
        ],
    }


def write_small(folder: Path, **changes: Any) -> Path:
    """Write the small snapshot with some of its fields replaced, and return its path."""
    path = folder / "snapshot.json"
    path.write_text(json.dumps(small_document() | changes))
    return path
