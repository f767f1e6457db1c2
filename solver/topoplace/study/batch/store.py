"""Instance files, the content addresses of their results, and the output folder.

Result files named by content are the whole state of a batch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from topoplace.errors import InputError
from topoplace.kinds import kind_of_schema
from topoplace.result.reading import AnyResult
from topoplace.snapshot.files import (
    file_meant,
    missing_file,
    read_bytes,
    text_of_document,
    write_text,
)
from topoplace.snapshot.held import AS_IS, Choices
from topoplace.snapshot.machines import problem_named
from topoplace.snapshot.reading import inputs_below, parted
from topoplace.snapshot.schema import Snapshot
from topoplace.solving.solve import frame_of, tree_objective
from topoplace.study.batch.task import Failure, Settings
from topoplace.study.case import load_instance
from topoplace.version import __version__

KEY_DIGITS = 16
"""Hexadecimal digits of a key: 64 bits, so that even 100 million instances hardly share one."""


@dataclass(frozen=True)
class Instance:
    """An instance file, and its canonical document: one form for one meaning."""

    name: str
    problem: str
    document: str


def read_instance(
    path: Path, settings: Settings | None = None, choices: Choices = AS_IS
) -> Instance:
    """Read a snapshot or a mapping instance (see `topoplace.study.case.load_instance`).

    A snapshot is taken as it is chosen.
    """
    found = load_instance(path)
    if not isinstance(found, Snapshot):
        problem = kind_of_schema(found.schema_version).name
    else:
        found = choices.of(found, strict=False)
        problem = problem_named(
            found, tree_objective(None if settings is None else settings.objective)
        )
    return Instance(found.name, problem, text_of_document(found))


def key_of(instance: Instance, settings: Settings) -> str:
    """Return the content address of the result: a hash of everything it depends on."""
    method = settings.method_for(instance.problem)
    asked = dataclasses.asdict(dataclasses.replace(settings, method=method))
    if settings.source is None:
        del asked["command"], asked["source"]
    asked["objective"] = instance.problem  # a default gives the same key as the same value given
    basis = json.dumps([__version__, asked, instance.document], sort_keys=True)
    return hashlib.sha256(basis.encode()).hexdigest()[:KEY_DIGITS]


def find_files(sources: Sequence[Path], outdir: Path) -> list[Path]:
    """Return the instance files of files and folders, sorted, each once.

    A folder stands for what may be an instance in and below it (`inputs_below`), without what is in
    `outdir`. A source that does not exist, and no files at all, are an `InputError`.
    """
    found: dict[Path, Path] = {}
    ours = outdir.resolve()
    for source in sources:
        if source.is_dir():
            files = inputs_below(source)
        elif file_meant(parted(source)[0]).exists():
            files = [file_meant(source)]
        else:
            raise missing_file(source, "a file or folder that exists")
        for path in files:
            real = path.resolve()
            if not real.is_relative_to(ours):
                found.setdefault(real, path)
    if not found:
        raise InputError(
            "at least one *.json file",
            field="DIR|FILES",
            value=", ".join(map(str, sources)) or None,
        )
    return sorted(found.values())


FAILURE_SCHEMA: Final = "topoplace.batch-failure/1"
TABLE = "table.csv"

_RESULTS, _FAILURES, _LOCK = "results", "failures", ".lock"
_NAMED = re.compile(rf"-([0-9a-f]{{{KEY_DIGITS}}})\.json$")
_MAX_STEM_BYTES = 160  # file systems take names of 255 bytes; key and temporary ending are longer


class Store:
    """The results and failures in an output folder, by key.

    A file is there whole or not at all (`snapshot.files`), so every file that is there is finished.
    A result counts only if it can be read and contains the same instance. `opened` locks the
    folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths = {kind: _files_by_key(folder / kind) for kind in (_RESULTS, _FAILURES)}

    def result(self, key: str, instance: Instance) -> AnyResult | None:
        """Return the result stored under a key; None if there is none of this instance."""
        try:
            result = read_result(read_bytes(self._paths[_RESULTS][key]), instance.problem)
        except (KeyError, InputError, ValidationError):
            return None
        return result if text_of_document(result.instance) == instance.document else None

    def result_file(self, key: str) -> str:
        """Return where the result of a key is, relative to the folder."""
        return self._paths[_RESULTS][key].relative_to(self.folder).as_posix()

    def failure(self, key: str) -> Failure | None:
        """Return the failure stored under a key, if any."""
        try:
            return TypeAdapter(Failure).validate_json(read_bytes(self._paths[_FAILURES][key]))
        except (KeyError, InputError, ValidationError):
            return None

    def save_result(self, key: str, stem: str, text: str) -> None:
        """Write a result, and forget a failure that came before it."""
        self._save(_RESULTS, key, stem, text)
        failure = self._paths[_FAILURES].pop(key, None)
        if failure is not None:
            failure.unlink(missing_ok=True)

    def save_failure(self, key: str, stem: str, failure: Failure) -> None:
        """Write a failure."""
        document = {"schema": FAILURE_SCHEMA, "key": key} | dataclasses.asdict(failure)
        self._save(_FAILURES, key, stem, json.dumps(document, ensure_ascii=False) + "\n")

    def _save(self, kind: str, key: str, stem: str, text: str) -> None:
        short = stem.encode()[:_MAX_STEM_BYTES].decode(errors="ignore")
        path = self._paths[kind].setdefault(key, self.folder / kind / f"{short}-{key}.json")
        write_text(path, text)


def _files_by_key(folder: Path) -> dict[str, Path]:
    """Return the files of a kind by key, and remove half-written files of a killed run."""
    found = {}
    for path in sorted(folder.iterdir()):
        match = _NAMED.search(path.name)
        if path.name.startswith("."):
            path.unlink()
        elif match is not None:
            found[match[1]] = path
    return found


def read_result(text: str | bytes, problem: str) -> AnyResult:
    """Return a result document of a problem; raise `ValidationError` if it is not one."""
    result: AnyResult = frame_of(problem).result.model_validate_json(text)
    return result


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """Make the output folder if necessary, and keep other batches out of it meanwhile."""
    try:
        for kind in (_RESULTS, _FAILURES):
            (folder / kind).mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"a folder that can be written ({error.strerror})", field="-o", value=str(folder)
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "a folder that no other batch is writing into", field="-o", value=str(folder)
            ) from None
        except OSError:
            pass  # some network file systems have no locks; files stay whole without
        for leftover in folder.glob(f".{TABLE}.*"):
            leftover.unlink()
        yield Store(folder)
    finally:
        os.close(lock)  # the lock goes with its last descriptor, also when the process is killed
