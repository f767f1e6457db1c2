"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _kernels_compile_when_called() -> Iterator[None]:
    """Let commands in this process compile what they call when they call it, and say nothing.

    `test_kernels.py` has the other behaviour, in processes of its own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topoplace.kernels.ahead.missing", lambda groups: [])
        yield
