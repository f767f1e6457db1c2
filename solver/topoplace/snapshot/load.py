"""Load a snapshot file, checked and ready to solve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from topoplace.errors import InputError
from topoplace.snapshot.files import read_document
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    Snapshot,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.state import SnapshotState, prepare
from topoplace.snapshot.tree_state import TreeState, prepare_tree

State = TypeVar("State")


def load_snapshot(path: str | Path) -> SnapshotState:
    """Read a snapshot file of a torus or mesh and check it against its machine.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    return _load(path, prepare)


def load_any(path: str | Path) -> SnapshotState | TreeState:
    """Read a snapshot file of any machine and check it against it.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    return _load(path, prepare_any)


def prepare_any(snapshot: Snapshot) -> SnapshotState | TreeState:
    """Check a snapshot whose machine is resolved, by the kind of the machine.

    Raises
    ------
    InputError
        With the field at fault.
    """
    if isinstance(snapshot.machine, TreeModel):
        return prepare_tree(snapshot)
    return prepare(snapshot)


def prepare_empty(machine: TorusModel | TreeModel) -> SnapshotState | TreeState:
    """Return a machine on which nothing runs."""
    return prepare_any(Snapshot(schema_version=SNAPSHOT_SCHEMA, name=machine.name, machine=machine))


def _load(path: str | Path, prepared: Callable[[Snapshot], State]) -> State:
    snapshot = read_document(path, Snapshot, SNAPSHOT_SCHEMA)
    try:
        return prepared(resolve_machine(snapshot))
    except InputError as error:
        raise error.located(str(path)) from None
