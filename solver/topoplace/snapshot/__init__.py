"""What is on a machine now: the snapshot file, its checks, and other tools' formats."""

from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.load import load_snapshot
from topoplace.snapshot.machines import load_machine, machine_names
from topoplace.snapshot.schema import Communication, Request, RunningJob, Snapshot, TorusModel
from topoplace.snapshot.state import QueuedState, RunningState, SnapshotState, prepare

__all__ = [
    "Communication",
    "Geometry",
    "QueuedState",
    "Request",
    "RunningJob",
    "RunningState",
    "Snapshot",
    "SnapshotState",
    "TorusModel",
    "load_machine",
    "load_snapshot",
    "machine_names",
    "prepare",
]
