"""Load a snapshot file, checked and ready to solve."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.snapshot.files import read_document
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot, TorusModel, TreeModel
from topoplace.snapshot.state import SnapshotState, prepare
from topoplace.snapshot.tree_state import TreeState, prepare_tree


def load_any(path: str | Path) -> SnapshotState | TreeState:
    """Read a snapshot file of any machine and check it against it.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    snapshot = read_document(path, Snapshot, SNAPSHOT_SCHEMA)
    try:
        return prepare_any(resolve_machine(snapshot))
    except InputError as error:
        raise error.located(str(path)) from None


def load_snapshot(path: str | Path) -> SnapshotState:
    """Read a snapshot as `load_any` does, where only a torus or mesh will do."""
    state = load_any(path)
    if isinstance(state, TreeState):
        expected = "a torus or mesh machine"
        raise InputError(expected, file=str(path), field="machine.kind", value="tree")
    return state


def prepare_any(snapshot: Snapshot) -> SnapshotState | TreeState:
    """Check a snapshot whose machine is resolved, by the kind of the machine.

    Raises
    ------
    InputError
        With the field at fault.
    """
    is_tree = isinstance(snapshot.machine, TreeModel)
    return prepare_tree(snapshot) if is_tree else prepare(snapshot)


def prepare_empty(machine: TorusModel | TreeModel) -> SnapshotState | TreeState:
    """Return a machine on which nothing runs."""
    return prepare_any(Snapshot(schema_version=SNAPSHOT_SCHEMA, name=machine.name, machine=machine))
