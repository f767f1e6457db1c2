"""Job logs replayed through an allocator on a tree machine (Mishra 2020, section 5.4)."""

from topoplace.study.replay.individual import individual_runs, occupied
from topoplace.study.replay.log import JobLog, LogJob, read_log
from topoplace.study.replay.metrics import (
    JobRecord,
    Metrics,
    improvements,
    mean_execution_gain,
    metrics_of,
)
from topoplace.study.replay.mix import MIXES, with_intensive
from topoplace.study.replay.placing import Decision, Placer
from topoplace.study.replay.run import MethodRun, Protocol, Setup, run_method
from topoplace.study.replay.scheduler import Replay
from topoplace.study.replay.snapshots import SnapshotWriter

__all__ = [
    "MIXES",
    "Decision",
    "JobLog",
    "JobRecord",
    "LogJob",
    "MethodRun",
    "Metrics",
    "Placer",
    "Protocol",
    "Replay",
    "Setup",
    "SnapshotWriter",
    "improvements",
    "individual_runs",
    "mean_execution_gain",
    "metrics_of",
    "occupied",
    "read_log",
    "run_method",
    "with_intensive",
]
