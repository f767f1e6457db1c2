"""Export instances and results to the programs of others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topoplace import options
from topoplace.errors import InputError
from topoplace.explicit.exported import Exported, exported
from topoplace.model import Model
from topoplace.options import takes
from topoplace.result import Result
from topoplace.result.base import Kept
from topoplace.snapshot.schema import MappingInstance, Snapshot
from topoplace.study.case import State, load_document, state_of


@takes(options.Export)
def export(asked: options.Export) -> Exported:
    """Write a level as a model for other solvers, or the proof of its bound for VeriPB.

    Returns
    -------
    Exported
        Its `texts` by name of a file; printed, it says what they are. `save` writes them.
    """
    return exported(_found(asked.source), asked.to_format, asked.level)


def _found(source: Any) -> State | Result[Any, Any, Any]:
    """Return a result, or an instance ready to be solved."""
    if isinstance(source, Model):
        source = source.snapshot
    if isinstance(source, Snapshot | MappingInstance):
        return state_of(source)
    found = load_document(source) if isinstance(source, str | Path | Mapping) else source
    if isinstance(found, Kept) and not isinstance(found, Result):
        raise InputError("an instance, or a result", field="SOURCE", found=type(found).__name__)
    return found
