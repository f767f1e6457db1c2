"""Cases of which `make test` runs the first few, and `make test-all` every one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few_of(cases: Iterable[Any], few: int) -> list[Any]:
    """Return cases as parameters, those after the first few marked slow."""
    return [
        pytest.param(case, marks=[pytest.mark.slow] if number >= few else [])
        for number, case in enumerate(cases)
    ]
