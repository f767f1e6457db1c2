"""Reading documents that may be of any problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from topoplace.errors import InputError
from topoplace.kinds import Ref, kind_named, known, loaded
from topoplace.result.base import FRONTIER_SCHEMA, OPTIMA_SCHEMA, RESULT_SCHEMA, Result
from topoplace.snapshot.files import parse_document, parse_object
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, MappingInstance, Snapshot

if TYPE_CHECKING:
    from topoplace.result.several import Frontier, Optima

AnyResult = Result[Any, Any, Any]
AnyInstance = Snapshot | MappingInstance
Checkable: TypeAlias = "AnyResult | Frontier | Optima"

_SEVERAL: dict[str, Ref] = {
    FRONTIER_SCHEMA: "topoplace.result.several:Frontier",
    OPTIMA_SCHEMA: "topoplace.result.several:Optima",
}

CHECKABLE = (RESULT_SCHEMA, *_SEVERAL)
"""Schemas of the documents that `check` takes."""


def parse_checkable(text: bytes, file: str) -> Checkable:
    """Return the result, the frontier or the optima that a text is."""
    schema = parse_object(text, file).get("schema")
    if not isinstance(schema, str) or schema not in _SEVERAL:
        return parse_result(text, file)
    model: type[Frontier | Optima] = loaded(_SEVERAL[schema])
    return parse_document(text, model, schema, file)


def parse_result(text: bytes, file: str) -> AnyResult:
    """Return the result that a text is, of the problem that its field `problem` names."""
    problem = parse_object(text, file).get("problem", "placement")
    if problem == "objects":
        expected, found = (
            "a result of this version",
            "objects of an earlier one, to be mapped again",
        )
        raise InputError(expected, file=file, field="problem", found=found)
    model: type[AnyResult] = kind_named(str(problem)).get("result")
    return parse_document(text, model, RESULT_SCHEMA, file)


def parse_instance(text: bytes, file: str) -> AnyInstance:
    """Return the snapshot, or the instance of a mapping, that a text is."""
    schema = parse_object(text, file).get("schema")
    for kind in known().values():
        if kind.schema is not None and kind.schema == schema:
            model: type[AnyInstance] = kind.get("instance")
            return parse_document(text, model, kind.schema, file)
    return parse_document(text, Snapshot, SNAPSHOT_SCHEMA, file)
