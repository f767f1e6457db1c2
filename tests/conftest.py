"""What holds for all tests."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from topoplace.study.batch import worker
from topoplace.study.batch.task import Ending, Task

# Set before numpy is loaded: the workers of the tests have a core each, and several threads of
# linear algebra on one core wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A busy machine is no fault of an example: how long one takes to draw or to run says nothing here.
settings.register_profile("topoplace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("topoplace")

# A shell that starts the tests in the background of a script has SIGINT ignored, and so would all
# processes that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = (
    "test_checked_fields.py",
    "test_mutants.py",
    "test_tutorial.py",
    "test_cli_signals.py",
    "test_every_mode.py",
)
"""Files begun first: a file stays with one worker, and the last to end should be a short one."""

TOGETHER = {"tests/test_mutants.py": "tests/test_checked_fields.py"}
"""Files that stay with the worker of another one: both need what takes long to solve."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


class FilesTogether(LoadFileScheduling):
    """Gives a worker whole files, some of them together."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesTogether:
    return FilesTogether(config, log)


@pytest.fixture(autouse=True, scope="session")
def _kernels_compile_when_called() -> Iterator[None]:
    """Let commands in this process compile what they call when they call it, and say nothing.

    `test_kernels.py` has the other behaviour, in processes of its own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topoplace.kernels.compiling.missing", lambda groups: [])
        yield


@pytest.fixture(autouse=True)
def _quiet_commands_quiet_no_other_test() -> Iterator[None]:
    """Set the level of the log back, which a command in this process sets."""
    log = logging.getLogger("topoplace")
    level = log.level
    yield
    log.setLevel(level)


@pytest.fixture
def batches_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let batches solve in this process: for tests of what comes of them, not of the workers."""
    one_at_a_time = threading.Lock()

    def solve(workers: worker.Workers, task: Task) -> Ending:
        module, _, name = workers._solver.partition(":")
        with one_at_a_time:
            return worker._outcome(getattr(importlib.import_module(module), name), task)

    monkeypatch.setattr(worker.Workers, "solve", solve)
