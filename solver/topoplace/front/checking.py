"""Check what results and frontiers claim."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topoplace.certify import check as certify
from topoplace.certify.check import check_document
from topoplace.errors import InputError
from topoplace.front.documents import load
from topoplace.model import Model
from topoplace.result.base import Kept, Report
from topoplace.snapshot.reading import other_snapshot
from topoplace.snapshot.schema import MappingInstance, Snapshot
from topoplace.study.case import Document, File


def check(result: Kept | File | Document, instance: Any = None) -> Report:
    """Recompute every claim of a result or frontier from the instance inside.

    Parameters
    ----------
    instance
        What the instance has to be: a `Model`, a snapshot, a mapping instance, a result with its
        instance inside, or the file of one.

    Returns
    -------
    Report
        Its claims, and whether all hold (`holds`) and are verified here (`verified`).

    Raises
    ------
    InputError
        If what is given is no result.
    """
    found = result if isinstance(result, Kept) else load(result)
    if not isinstance(found, Kept):
        raise InputError("a result", field="result", found=type(found).__name__)
    if instance is None:
        return check_document(found)
    told = str(instance) if isinstance(instance, str | Path) else "the instance given"
    held = load(instance) if isinstance(instance, str | Path | Mapping) else instance
    wanted = getattr(held, "instance", held.snapshot if isinstance(held, Model) else held)
    if not isinstance(wanted, Snapshot | MappingInstance):
        expected = "a model, a snapshot, a mapping instance, a result, or the file of one"
        raise InputError(expected, field="instance", found=type(held).__name__)
    return certify.check_of(found, wanted, told)


def check_file(path: File, instance: File | None = None) -> Report:
    """Check a result file, and whether it is of an instance, also one that another tool wrote."""
    other = None if instance is None else other_snapshot(instance)
    return certify.check_file(path, instance if other is None else other)
