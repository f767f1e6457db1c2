"""Job logs replayed through an allocator (Mishra 2020, section 5.4; Enos 2014, section III)."""

from topoplace.study.replay.log import (
    MIXES,
    JobLog,
    LogJob,
    Protocol,
    Setup,
    read_log,
    with_intensive,
)
from topoplace.study.replay.run import (
    MethodRun,
    Replay,
    SnapshotWriter,
    run_method,
)

__all__ = [
    "MIXES",
    "JobLog",
    "LogJob",
    "MethodRun",
    "Protocol",
    "Replay",
    "Setup",
    "SnapshotWriter",
    "read_log",
    "run_method",
    "with_intensive",
]
