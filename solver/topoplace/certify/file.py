"""Check a result file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from topoplace.certify.check import check_result
from topoplace.certify.mapping import check_mapping
from topoplace.certify.report import Claim, Report
from topoplace.certify.tree_machine import check_allocation
from topoplace.errors import InputError
from topoplace.result import RESULT_SCHEMA, PlacementResult, Result
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.application import MAPPING_SCHEMA, MappingInstance
from topoplace.snapshot.files import parse_document, parse_object, read_bytes
from topoplace.snapshot.normal import sha256_of
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot

AnyResult = Result[Any, Any, Any]

_MODELS: dict[str, type[PlacementResult] | type[MappingResult] | type[AllocationResult]] = {
    "mapping": MappingResult,
    "allocation": AllocationResult,
}


def check_file(path: str | Path, instance: str | Path | None = None) -> Report:
    """Read the result file of a placement, a mapping or an allocation and check all it claims.

    Which it is says its field `problem`.

    Parameters
    ----------
    instance
        The file of the instance that the result should be of: a snapshot, a mapping instance, or a
        result with its instance inside.

    Raises
    ------
    InputError
        If a file is no such document: an unreadable file claims nothing.
    """
    wanted = None if instance is None else sha256_of(_instance_of(instance))
    result = _read(path)
    report = check_document(result)
    if wanted is None:
        return report
    same = report.sha256 == wanted
    detail = f"sha256 {report.sha256}, {'as' if same else 'not'} {wanted} of {instance}"
    if same:
        detail = f"the instance is that of {instance}"
    return replace(report, claims=(*report.claims, Claim("whose", same, detail)))


def check_document(result: AnyResult) -> Report:
    """Check all claims of a result of any problem."""
    if isinstance(result, MappingResult):
        report = check_mapping(result)
    elif isinstance(result, AllocationResult):
        report = check_allocation(result)
    else:
        assert isinstance(result, PlacementResult)
        report = check_result(result)
    try:
        return replace(report, sha256=sha256_of(result.instance))
    except InputError:
        return report


def _read(path: str | Path) -> AnyResult:
    text, file = read_bytes(path), str(path)
    model = _MODELS.get(str(parse_object(text, file).get("problem")), PlacementResult)
    return parse_document(text, model, RESULT_SCHEMA, file)


def _instance_of(path: str | Path) -> Snapshot | MappingInstance:
    """Return the instance that a file is, or has inside.

    Raises
    ------
    InputError
        If it is neither a snapshot, a mapping instance nor a result.
    """
    text, file = read_bytes(path), str(path)
    schema = parse_object(text, file).get("schema")
    if schema == RESULT_SCHEMA:
        found: Snapshot | MappingInstance = _read(path).instance
        return found
    if schema == MAPPING_SCHEMA:
        return parse_document(text, MappingInstance, MAPPING_SCHEMA, file)
    return parse_document(text, Snapshot, SNAPSHOT_SCHEMA, file)
