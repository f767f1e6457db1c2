"""What is on a machine now: the snapshot file, its checks, and other tools' formats."""

from topoplace.snapshot.files import machine_names
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.load import load_any, load_snapshot, prepare_any, prepare_empty
from topoplace.snapshot.machines import load_machine, load_torus
from topoplace.snapshot.schema import (
    Communication,
    Request,
    RunningJob,
    Snapshot,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.state import QueuedState, RunningState, SnapshotState, prepare, torus_of
from topoplace.snapshot.tree_state import TreeRequest, TreeState, prepare_tree, tree_of

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
    "TreeModel",
    "TreeRequest",
    "TreeState",
    "load_any",
    "load_machine",
    "load_snapshot",
    "load_torus",
    "machine_names",
    "prepare",
    "prepare_any",
    "prepare_empty",
    "prepare_tree",
    "torus_of",
    "tree_of",
]
