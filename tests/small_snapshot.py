"""A small snapshot as a plain document, for tests that bend it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def small_document() -> dict[str, Any]:
    """Return a 4x4x3 torus of two nodes per router with a running job and three requests."""
    return json.loads(Path(__file__).with_suffix(".json").read_text())


def write_small(folder: Path, **changes: Any) -> Path:
    """Write the small snapshot with some of its fields replaced, and return its path."""
    path = folder / "snapshot.json"
    path.write_text(json.dumps(small_document() | changes))
    return path
