"""What a study works on: a snapshot, or a result with the snapshot it was computed from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError
from topoplace.result import RESULT_SCHEMA, PlacementResult
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import SnapshotState, load_machine, load_snapshot, prepare
from topoplace.snapshot.files import parse_object, read_bytes, read_document
from topoplace.snapshot.load import load_any, prepare_any
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.tree_state import TreeState


@dataclass(frozen=True)
class TreeSubject:
    """A snapshot of a tree machine to study, with the result that came along, if any.

    `others` are results of allocators that are not ours.
    """

    name: str
    state: TreeState
    result: AllocationResult | None = None
    others: tuple[AllocationResult, ...] = ()


@dataclass(frozen=True)
class Subject:
    """A snapshot to study, with the result that came along, if any.

    `others` are results of allocators that are not ours.
    """

    name: str
    state: SnapshotState
    result: PlacementResult | None = None
    others: tuple[PlacementResult, ...] = ()


def load_result(path: str | Path) -> tuple[PlacementResult, SnapshotState]:
    """Read a result file and prepare the instance inside.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    result = read_document(path, PlacementResult, RESULT_SCHEMA)
    try:
        return result, prepare(resolve_machine(result.instance))
    except InputError as error:
        raise error.located(str(path)) from None


def load_mapping_result(path: str | Path) -> MappingResult:
    """Read the result of a mapping.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    return read_document(path, MappingResult, RESULT_SCHEMA)


def load_tree_result(path: str | Path) -> AllocationResult:
    """Read the result of an allocation on a tree.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    return read_document(path, AllocationResult, RESULT_SCHEMA)


def problem_of(path: str | Path) -> str:
    """Return what problem a result file answers: placement, mapping or allocation.

    Raises
    ------
    InputError
        If the file is no JSON object.
    """
    return str(parse_object(read_bytes(path), str(path)).get("problem"))


def load_subject(path: str | Path) -> Subject:
    """Read a snapshot file, or a result file with its instance.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    try:
        state = load_snapshot(path)
    except InputError as error:
        if error.field != "schema" or error.value != RESULT_SCHEMA:
            raise
        result, state = load_result(path)
        return Subject(state.snapshot.name, state, result)
    return Subject(state.snapshot.name, state)


def load_tree_subject(path: str | Path) -> TreeSubject:
    """Read a snapshot file of a tree machine, or a result file with its instance.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    try:
        state = load_any(path)
    except InputError as error:
        if error.field != "schema" or error.value != RESULT_SCHEMA:
            raise
        result = load_tree_result(path)
        try:
            state = prepare_any(resolve_machine(result.instance))
        except InputError as problem:
            raise problem.located(str(path)) from None
        return TreeSubject(result.instance.name, _tree(state, path), result)
    return TreeSubject(state.snapshot.name, _tree(state, path))


def has_tree(path: str | Path) -> bool:
    """Tell whether a snapshot or result file is about a tree machine.

    What cannot be read has none: its reader will say what is wrong with it.
    """
    try:
        raw = parse_object(read_bytes(path), str(path))
    except InputError:
        return False
    holder = raw.get("instance", raw)
    machine = holder.get("machine") if isinstance(holder, dict) else None
    if isinstance(machine, str):
        try:
            machine = load_machine(machine).model_dump()
        except InputError:
            return False
    return isinstance(machine, dict) and machine.get("kind") == "tree"


def _tree(state: SnapshotState | TreeState, path: str | Path) -> TreeState:
    if not isinstance(state, TreeState):
        raise InputError("a tree machine", file=str(path), field="machine.kind", value="torus")
    return state
