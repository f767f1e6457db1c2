"""Write docs/schema/*.schema.json from the models that read and write the documents."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from topoplace.formats.decisions import KueueLine, PodLine, SlurmLine
from topoplace.result import PlacementResult
from topoplace.result.several import Frontier, Optima
from topoplace.snapshot.files import write_text
from topoplace.snapshot.objects import ObjectsApplication
from topoplace.snapshot.schema import HierarchyModel, Snapshot, TorusModel, TreeModel
from topoplace.study.external.trial import Placements, TreePlacements

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schema"
MODELS: dict[str, type[BaseModel]] = {
    "snapshot": Snapshot,
    "machine": TorusModel,
    "tree-machine": TreeModel,
    "hierarchy-machine": HierarchyModel,
    "result": PlacementResult,
    "application": ObjectsApplication,
    "frontier": Frontier,
    "optima": Optima,
    "placements": Placements,
    "tree-placements": TreePlacements,
    "kueue-decision": KueueLine,
    "slurm-decision": SlurmLine,
    "pod-decision": PodLine,
}


def schema_text(name: str) -> str:
    """Return the JSON Schema of a document, as it stands in `docs/schema`."""
    raw = MODELS[name].model_json_schema()
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    plain = _without_variants(dialect | raw)
    return json.dumps(plain, indent=1, sort_keys=True) + "\n"


def _without_variants(node: object) -> object:
    """Drop what only some versions of pydantic write.

    That is the `enum` of one value beside a `const`, and the lengths of the names in a mapping
    (1 to 128, which `patternProperties` does not say).
    """
    if isinstance(node, list):
        return [_without_variants(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_variants(value)
        for key, value in node.items()
        if not (key == "enum" and "const" in node)
        and not (key == "propertyNames" and "patternProperties" in node)
    }


def main() -> None:
    """Write every schema."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        write_text(FOLDER / f"{name}.schema.json", schema_text(name))


if __name__ == "__main__":
    main()
