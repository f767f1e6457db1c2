"""Instance files: finding them, reading them, and the content address of what they ask for."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from topoplace import __version__
from topoplace.errors import InputError
from topoplace.snapshot.application import MAPPING_SCHEMA, MappingInstance
from topoplace.snapshot.files import files_below, missing_file, read_document, text_of_document
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot, TreeModel
from topoplace.snapshot.shipped import file_meant
from topoplace.study.batch.task import Problem, Settings

KEY_DIGITS = 16
"""Hexadecimal digits of a key: 64 bits, so that even 100 million instances hardly share one."""


@dataclass(frozen=True)
class Instance:
    """What an instance file says.

    Attributes
    ----------
    document
        Its canonical document: defaults and the machine written out, one form for one meaning.
    """

    name: str
    problem: Problem
    document: str


def read_instance(path: Path) -> Instance:
    """Read a snapshot or a mapping instance.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    try:
        snapshot = read_document(path, Snapshot, SNAPSHOT_SCHEMA)
    except InputError as error:
        if error.field != "schema" or error.value != MAPPING_SCHEMA:
            raise
        mapping = read_document(path, MappingInstance, MAPPING_SCHEMA)
        return Instance(mapping.name, Problem.MAPPING, text_of_document(mapping))
    try:
        snapshot = resolve_machine(snapshot)
    except InputError as error:
        raise error.located(str(path)) from None
    is_tree = isinstance(snapshot.machine, TreeModel)
    problem = Problem.ALLOCATION if is_tree else Problem.PLACEMENT
    return Instance(snapshot.name, problem, text_of_document(snapshot))


def key_of(instance: Instance, settings: Settings) -> str:
    """Return the content address of the result: what it depends on, hashed."""
    method = settings.method_for(instance.problem)
    asked = dataclasses.asdict(dataclasses.replace(settings, method=method))
    if settings.source is None:
        del asked["command"], asked["source"]
    basis = json.dumps([__version__, asked, instance.document], sort_keys=True)
    return hashlib.sha256(basis.encode()).hexdigest()[:KEY_DIGITS]


def find_files(sources: Sequence[Path], outdir: Path) -> list[Path]:
    """Return the instance files that files and folders stand for, sorted, each once.

    A folder stands for the ``*.json`` files in and below it, without hidden ones and without
    those in `outdir`.

    Raises
    ------
    InputError
        If a source does not exist, or there are no files at all.
    """
    found: dict[Path, Path] = {}
    ours = outdir.resolve()
    for source in sources:
        if source.is_dir():
            files = files_below(source)
        elif file_meant(source).exists():
            files = [file_meant(source)]
        else:
            raise missing_file(source, "a file or folder that exists")
        for path in files:
            real = path.resolve()
            if not real.is_relative_to(ours):
                found.setdefault(real, path)
    if not found:
        raise InputError("at least one *.json file", field="DIR|FILES", value=str(sources[0]))
    return sorted(found.values())
