"""Load a snapshot file, checked and ready to solve."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.snapshot.files import read_document
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from topoplace.snapshot.state import SnapshotState, prepare


def load_snapshot(path: str | Path) -> SnapshotState:
    """Read a snapshot file and check it against its machine.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    snapshot = read_document(path, Snapshot, SNAPSHOT_SCHEMA)
    try:
        return prepare(resolve_machine(snapshot))
    except InputError as error:
        raise error.located(str(path)) from None
