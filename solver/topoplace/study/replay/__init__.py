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
from topoplace.study.replay.scheduler import Replay

__all__ = [
    "MIXES",
    "Decision",
    "JobLog",
    "JobRecord",
    "LogJob",
    "Metrics",
    "Placer",
    "Replay",
    "improvements",
    "individual_runs",
    "mean_execution_gain",
    "metrics_of",
    "occupied",
    "read_log",
    "with_intensive",
]
