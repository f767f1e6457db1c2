"""Check a result file."""

from __future__ import annotations

import json
from pathlib import Path

from topoplace.certify.check import check_result
from topoplace.certify.mapping import check_mapping
from topoplace.certify.report import Report
from topoplace.certify.tree_machine import check_allocation
from topoplace.errors import InputError
from topoplace.result import RESULT_SCHEMA, Result
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import TreeResult

LARGEST_FILE = 64 << 20

_MODELS: dict[str, type[Result] | type[MappingResult] | type[TreeResult]] = {
    "mapping": MappingResult,
    "allocation": TreeResult,
}


def check_file(path: str | Path) -> Report:
    """Read the result file of a placement, a mapping or an allocation and check all it claims.

    Which it is says its field `problem`.

    Raises
    ------
    InputError
        If the file is no result document: an unreadable file claims nothing.
    """
    file = str(path)
    text = _read(file)
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("a JSON document", file=file) from None
    if not isinstance(raw, dict) or raw.get("schema") != RESULT_SCHEMA:
        found = raw.get("schema") if isinstance(raw, dict) else None
        raise InputError(f'"{RESULT_SCHEMA}"', file=file, field="schema", value=found)
    try:
        result = _MODELS.get(str(raw.get("problem")), Result).model_validate_json(text)
    except ValueError as error:  # pydantic's report: one line per problem, the first ones tell
        where, what, *_ = [*str(error).splitlines()[1:], "", ""]
        expected = what.strip().split(" [type=")[0] or "a result document"
        raise InputError(expected, file=file, field=where.strip() or None) from None
    if isinstance(result, MappingResult):
        return check_mapping(result)
    return check_allocation(result) if isinstance(result, TreeResult) else check_result(result)


def _read(file: str) -> bytes:
    try:
        with Path(file).open("rb") as stream:
            text = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"a readable file ({error.strerror})", file=file) from None
    if len(text) > LARGEST_FILE:
        raise InputError(f"at most {LARGEST_FILE >> 20} MiB", file=file)
    return text
