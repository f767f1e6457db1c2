"""The public data beside the checkout, which tests use where it is present."""

from __future__ import annotations

from pathlib import Path

import pytest

_SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def real_file(name: str) -> Path:
    """Return a file of the public data, or skip the test with the reason."""
    path = _SHARED / name
    if not path.exists():
        pytest.skip(f"the real file {name} is not on this machine (looked in ../shared/data)")
    return path
