"""Job logs replayed through an allocator (Mishra 2020, section 5.4; Enos 2014, section III)."""

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
from topoplace.study.replay.placing import Placer
from topoplace.study.replay.run import MethodRun, Protocol, Setup, run_method
from topoplace.study.replay.scheduler import Replay
from topoplace.study.replay.site import Decision
from topoplace.study.replay.snapshots import SnapshotWriter
from topoplace.study.replay.timeline import Efficiency, Moment, efficiency_of
from topoplace.study.replay.torus_chooser import placement_method

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
    "Placer",
    "Protocol",
    "Replay",
    "Setup",
    "SnapshotWriter",
    "efficiency_of",
    "improvements",
    "individual_runs",
    "mean_execution_gain",
    "metrics_of",
    "occupied",
    "placement_method",
    "read_log",
    "run_method",
    "with_intensive",
]
