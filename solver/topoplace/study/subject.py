"""What a study works on: a snapshot, or a result with the snapshot it was computed from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError
from topoplace.result import RESULT_SCHEMA, Result
from topoplace.result.mapping import MappingResult
from topoplace.snapshot import SnapshotState, load_snapshot, prepare
from topoplace.snapshot.files import read_bytes, read_document
from topoplace.snapshot.machines import resolve_machine


@dataclass(frozen=True)
class Subject:
    """A snapshot to study, with the result that came along, if any."""

    name: str
    state: SnapshotState
    result: Result | None = None


def load_result(path: str | Path) -> tuple[Result, SnapshotState]:
    """Read a result file and prepare the instance inside.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    result = read_document(path, Result, RESULT_SCHEMA)
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


def problem_of(path: str | Path) -> str:
    """Return what problem a result file answers: placement, mapping or allocation.

    Raises
    ------
    InputError
        If the file is no JSON object.
    """
    try:
        raw = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        raise InputError("a JSON document", file=str(path)) from None
    if not isinstance(raw, dict):
        raise InputError("a JSON object", file=str(path))
    return str(raw.get("problem"))


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
