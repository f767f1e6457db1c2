"""The output folder: result files named by content, which are all the state a batch has."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from topoplace.errors import InputError
from topoplace.result import PlacementResult
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import read_bytes, text_of_document, write_document, write_text
from topoplace.snapshot.schema import Model
from topoplace.study.batch.instance import KEY_DIGITS, Instance
from topoplace.study.batch.table import AnyResult
from topoplace.study.batch.task import Failure, FailureStatus, Problem

FAILURE_SCHEMA: Final = "topoplace.batch-failure/1"
TABLE = "table.csv"

_RESULTS, _FAILURES, _LOCK = "results", "failures", ".lock"
_NAMED = re.compile(rf"-([0-9a-f]{{{KEY_DIGITS}}})\.json$")
_MAX_STEM_BYTES = 160  # file systems take names of 255 bytes; key and temporary ending are longer
_MODELS: dict[Problem, type[AnyResult]] = {
    Problem.PLACEMENT: PlacementResult,
    Problem.ALLOCATION: AllocationResult,
    Problem.MAPPING: MappingResult,
}


class FailureDocument(Model):
    """Why an instance has no result (``topoplace.batch-failure/1``)."""

    schema_version: Annotated[Literal["topoplace.batch-failure/1"], Field(alias="schema")]
    key: str
    status: Annotated[FailureStatus, Field(strict=False)]
    message: str
    seconds: float
    detail: str
    verdict: dict[str, object] | None = None


class Store:
    """The results and failures in an output folder, by key.

    A file is there whole or not at all (`snapshot.files`), so whatever is there is done. A result
    counts only if it reads and holds the very instance that is asked about.

    Parameters
    ----------
    folder
        The output folder, locked by `opened`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths = {kind: self._scan(kind) for kind in (_RESULTS, _FAILURES)}

    def result(self, key: str, instance: Instance) -> AnyResult | None:
        """Return the result stored under a key; None if there is none, or none of this instance."""
        path = self._paths[_RESULTS].get(key)
        if path is None:
            return None
        try:
            result = read_result(read_bytes(path), instance.problem)
        except (InputError, ValidationError):
            return None
        return result if text_of_document(result.instance) == instance.document else None

    def result_file(self, key: str) -> str:
        """Return where the result of a key is, relative to the folder."""
        return self._paths[_RESULTS][key].relative_to(self.folder).as_posix()

    def failure(self, key: str) -> Failure | None:
        """Return the failure stored under a key, if any."""
        path = self._paths[_FAILURES].get(key)
        if path is None:
            return None
        try:
            found = FailureDocument.model_validate_json(read_bytes(path))
        except (InputError, ValidationError):
            return None
        return Failure(found.status, found.message, found.seconds, found.detail, found.verdict)

    def save_result(self, key: str, stem: str, text: str) -> None:
        """Write a result, and forget a failure that came before it."""
        path = self._paths[_RESULTS].setdefault(key, self._path(_RESULTS, key, stem))
        write_text(path, text)
        failure = self._paths[_FAILURES].pop(key, None)
        if failure is not None:
            failure.unlink(missing_ok=True)

    def save_failure(self, key: str, stem: str, failure: Failure) -> None:
        """Write a failure."""
        path = self._paths[_FAILURES].setdefault(key, self._path(_FAILURES, key, stem))
        document = FailureDocument(
            schema_version=FAILURE_SCHEMA,
            key=key,
            status=failure.status,
            message=failure.message,
            seconds=failure.seconds,
            detail=failure.detail,
            verdict=failure.verdict,
        )
        write_document(path, document)

    def write_table(self, text: str) -> Path:
        """Write the table and return its path."""
        path = self.folder / TABLE
        write_text(path, text)
        return path

    def _path(self, kind: str, key: str, stem: str) -> Path:
        short = stem.encode()[:_MAX_STEM_BYTES].decode(errors="ignore")
        return self.folder / kind / f"{short}-{key}.json"

    def _scan(self, kind: str) -> dict[str, Path]:
        """Return the files of a kind by key, and remove what a killed run left half-written."""
        found = {}
        for path in sorted((self.folder / kind).iterdir()):
            match = _NAMED.search(path.name)
            if path.name.startswith("."):
                path.unlink()
            elif match is not None:
                found[match[1]] = path
        return found


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """Make the output folder if need be, and keep other batches out of it meanwhile.

    Raises
    ------
    InputError
        If there can be no such folder, or another batch writes into it.
    """
    try:
        for kind in (_RESULTS, _FAILURES):
            (folder / kind).mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"a folder that can be written ({error.strerror})", field="-o", value=str(folder)
        ) from None
    try:
        _take(lock, folder)
        for leftover in folder.glob(f".{TABLE}.*"):
            leftover.unlink()
        yield Store(folder)
    finally:
        os.close(lock)  # the lock goes with its last descriptor, also when the process is killed


def read_result(text: str | bytes, problem: Problem) -> AnyResult:
    """Return a result document of a kind of problem.

    Raises
    ------
    ValidationError
        If it is none.
    """
    return _MODELS[problem].model_validate_json(text)


def _take(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            "a folder that no other batch is writing into", field="-o", value=str(folder)
        ) from None
    except OSError:
        pass  # some network file systems have no locks; files stay whole without
