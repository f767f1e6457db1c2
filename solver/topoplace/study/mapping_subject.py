"""What a study of mappings works on: an instance, or a result with the instance inside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result import RESULT_SCHEMA
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.application import MAPPING_SCHEMA, MappingInstance
from topoplace.snapshot.files import parse_object, read_bytes, read_document
from topoplace.study.subject import load_mapping_result


@dataclass(frozen=True)
class MappingSubject:
    """A mapping instance to study, with the result that came along, if any."""

    problem: MappingProblem
    result: MappingResult | None = None

    @property
    def name(self) -> str:
        """Name of the instance."""
        return self.problem.instance.name


def is_mapping(path: str | Path) -> bool:
    """Tell whether a file is a mapping instance, or the result of a mapping.

    What cannot be read is none: its reader will say what is wrong with it.
    """
    try:
        raw = parse_object(read_bytes(path), str(path))
    except InputError:
        return False
    return raw.get("schema") == MAPPING_SCHEMA or raw.get("problem") == "mapping"


def load_mapping_subject(path: str | Path) -> MappingSubject:
    """Read a mapping instance, or a result file with its instance.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    result = None
    try:
        instance = read_document(path, MappingInstance, MAPPING_SCHEMA)
    except InputError as error:
        if error.field != "schema" or error.value != RESULT_SCHEMA:
            raise
        result = load_mapping_result(path)
        instance = result.instance
    try:
        return MappingSubject(prepare_mapping(instance), result)
    except InputError as error:
        raise error.located(str(path)) from None
