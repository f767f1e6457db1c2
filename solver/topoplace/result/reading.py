"""Reading documents that may be of any problem."""

from __future__ import annotations

from topoplace.result.base import RESULT_SCHEMA
from topoplace.result.cubes import CubesResult
from topoplace.result.hierarchy import HierarchyResult
from topoplace.result.mapping import MappingResult
from topoplace.result.objects import ObjectsResult
from topoplace.result.placement import PlacementResult
from topoplace.result.repack import RepackResult
from topoplace.result.several import FRONTIER_SCHEMA, OPTIMA_SCHEMA, Frontier, Optima
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import parse_document, parse_object
from topoplace.snapshot.objects import OBJECTS_SCHEMA, ObjectsInstance
from topoplace.snapshot.schema import MAPPING_SCHEMA, SNAPSHOT_SCHEMA, MappingInstance, Snapshot

AnyResult = (
    PlacementResult
    | AllocationResult
    | HierarchyResult
    | CubesResult
    | RepackResult
    | MappingResult
    | ObjectsResult
)
AnyInstance = Snapshot | MappingInstance | ObjectsInstance


Checkable = AnyResult | Frontier | Optima

CHECKABLE = (RESULT_SCHEMA, FRONTIER_SCHEMA, OPTIMA_SCHEMA)
"""Schemas of the documents that `check` takes."""


def parse_checkable(text: bytes, file: str) -> Checkable:
    """Return the result, the frontier or the optima that a text is."""
    schema = parse_object(text, file).get("schema")
    if schema == FRONTIER_SCHEMA:
        return parse_document(text, Frontier, FRONTIER_SCHEMA, file)
    if schema == OPTIMA_SCHEMA:
        return parse_document(text, Optima, OPTIMA_SCHEMA, file)
    return parse_result(text, file)


def parse_result(text: bytes, file: str) -> AnyResult:
    """Return the result that a text is, of the problem that its field `problem` names."""
    models: dict[str, type[AnyResult]] = {
        "allocation": AllocationResult,
        "hierarchy": HierarchyResult,
        "cubes": CubesResult,
        "repack": RepackResult,
        "mapping": MappingResult,
        "objects": ObjectsResult,
    }
    model = models.get(str(parse_object(text, file).get("problem")), PlacementResult)
    return parse_document(text, model, RESULT_SCHEMA, file)


def parse_instance(text: bytes, file: str) -> AnyInstance:
    """Return the snapshot, or the instance of a mapping or of objects, that a text is."""
    if parse_object(text, file).get("schema") == OBJECTS_SCHEMA:
        return parse_document(text, ObjectsInstance, OBJECTS_SCHEMA, file)
    if parse_object(text, file).get("schema") == MAPPING_SCHEMA:
        return parse_document(text, MappingInstance, MAPPING_SCHEMA, file)
    return parse_document(text, Snapshot, SNAPSHOT_SCHEMA, file)
