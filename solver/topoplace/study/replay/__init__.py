"""Job logs replayed through an allocator (Mishra 2020, section 5.4; Enos 2014, section III)."""

from topoplace.study.replay.figures import (
    Efficiency,
    JobRecord,
    Metrics,
    Moment,
    efficiency_of,
    improvements,
    mean_execution_gain,
    metrics_of,
)
from topoplace.study.replay.log import MIXES, JobLog, LogJob, read_log, with_intensive
from topoplace.study.replay.run import (
    MethodRun,
    Protocol,
    Replay,
    Setup,
    SnapshotWriter,
    run_method,
)
from topoplace.study.replay.site import Decision
from topoplace.study.replay.trees import TreeSite, individual_runs, occupied

__all__ = [
    "MIXES",
    "Decision",
    "Efficiency",
    "JobLog",
    "JobRecord",
    "LogJob",
    "MethodRun",
    "Metrics",
    "Moment",
    "Protocol",
    "Replay",
    "Setup",
    "SnapshotWriter",
    "TreeSite",
    "efficiency_of",
    "improvements",
    "individual_runs",
    "mean_execution_gain",
    "metrics_of",
    "occupied",
    "read_log",
    "run_method",
    "with_intensive",
]
