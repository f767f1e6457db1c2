"""The cases of a study: an instance, and existing results of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from topoplace import kinds
from topoplace.errors import InputError, blamed_on
from topoplace.kinds import kind_named, kind_of_schema, known
from topoplace.result import RESULT_SCHEMA, Result
from topoplace.result.base import Kept
from topoplace.result.reading import (
    CHECKABLE,
    AnyInstance,
    AnyResult,
    Checkable,
    parse_checkable,
    parse_instance,
    parse_result,
)
from topoplace.snapshot.files import ForeignError, parse_object, read_bytes
from topoplace.snapshot.held import AS_IS, Choices
from topoplace.snapshot.machines import AnyState, prepare_any, resolve_machine
from topoplace.snapshot.normal import sha256_of
from topoplace.snapshot.reading import inputs_below, is_other_snapshot, other_snapshot
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot, TreeObjective
from topoplace.solving import Options
from topoplace.solving.solve import Problem, frame_of, problem_of

if TYPE_CHECKING:
    from topoplace.mapping.problem import MappingProblem

    State: TypeAlias = AnyState | MappingProblem
else:
    State = Any  # a placement does without the module of mappings
File = str | Path
Document = Mapping[str, Any]
Source = File | Document | AnyInstance | AnyResult

_MOST_NAMED = 3
_DOCUMENT = "document"


@dataclass(frozen=True)
class Case:
    """An instance, checked and ready to solve, and results of it."""

    state: State
    results: tuple[AnyResult, ...] = ()

    @cached_property
    def problem(self) -> Problem:
        """The problem, under the strictest rule where there are several."""
        return problem_of(self.state, Options())

    @property
    def kind(self) -> str:
        """The problem, as result documents name it."""
        return self.problem.kind

    @property
    def instance(self) -> AnyInstance:
        """The document of the instance."""
        instance: AnyInstance = frame_of(self.kind).instance(self.problem)
        return instance

    @cached_property
    def sha256(self) -> str:
        """The sum that identifies instances (see `sha256_of`)."""
        return sha256_of(self.instance)


def load_document(
    source: File | Document, objective: TreeObjective | None = None
) -> State | Checkable:
    """Read a snapshot, an instance of tasks or objects, a result or similar, by its `schema`.

    The source is a file (also what another tool writes: `other_snapshot`), the name of a shipped
    snapshot, ``-`` for standard input, or the document itself. Instances are checked and ready to
    solve; that of a result is checked by `state_of`. `objective` is that on switch trees; other
    machines do not have it.

    Raises
    ------
    InputError
        Naming the file, the field and the value at fault.
    """
    found: AnyInstance | None = other_snapshot(source) if isinstance(source, File) else None
    if found is None:
        text, name = _read(source)
        if parse_object(text, name).get("schema") in CHECKABLE:
            return parse_checkable(text, name)
        found = parse_instance(text, name)
    with blamed_on(source if isinstance(source, File) else _DOCUMENT):
        return state_of(found, objective)


def load_result(source: File | Document) -> AnyResult:
    """Read the result of any problem (see `load_document`)."""
    return parse_result(*_read(source))


def load_checkable(source: File | Document) -> Checkable:
    """Read a result, a frontier or all optima."""
    return parse_checkable(*_read(source))


def load_instance(source: File | Document) -> AnyInstance:
    """Read an instance without checking it; that of a snapshot with its machine written out."""
    found = other_snapshot(source) if isinstance(source, File) else None
    if found is not None:
        return found
    text, name = _read(source)
    instance = parse_instance(text, name)
    with blamed_on(name):
        return resolve_machine(instance) if isinstance(instance, Snapshot) else instance


def state_of(document: AnyInstance | AnyResult, objective: TreeObjective | None = None) -> State:
    """Check an instance, or that inside a result; `InputError` names the field at fault.

    `objective` is that of a snapshot of a switch tree; a result has its own.
    """
    if isinstance(document, Result):
        prepare = kind_named(document.problem).offered(
            "prepare", "a result", field="problem", value=document.problem
        )
        instance = document.instance
        resolved = resolve_machine(instance) if isinstance(instance, Snapshot) else instance
        state: State = prepare(resolved)
        return state
    if not isinstance(document, Snapshot):
        problem: State = kind_of_schema(document.schema_version).get("prepare")(document)
        return problem
    instance = resolve_machine(document)
    return prepare_any(instance, objective if instance.written.has_contention else None)


def load_case(
    source: Source, objective: TreeObjective | None = None, choices: Choices = AS_IS
) -> Case:
    """Read an instance, or a result with its instance (see `load_document`).

    An instance is taken as it is chosen; a result is as it is.
    """
    if isinstance(source, AnyInstance):
        return Case(_chosen(state_of(source, objective), objective, choices))
    document = source if isinstance(source, Result) else load_document(source, objective)
    if not isinstance(document, Kept):
        return Case(_chosen(document, objective, choices))
    is_open = any(getattr(level, "required", None) for level in document.levels)
    if is_open or not isinstance(document, Result):
        expected = "an instance, or a result whose levels are solved one after the other"
        raise InputError(expected, file=str(source) if isinstance(source, File) else None)
    with blamed_on(str(source) if isinstance(source, File) else "document"):
        case = Case(state_of(document), (document,))
        names = [name for name, _ in frame_of(document.problem).levels(case.problem)]
        if [level.name for level in document.levels] != names:
            raise InputError(f"the levels {', '.join(names)}", field="levels", found="others")
        return case


def _chosen(state: State, objective: TreeObjective | None, choices: Choices) -> State:
    """Return an instance as it is chosen."""
    if choices == AS_IS or not isinstance(state, kinds.State):
        return state
    return prepare_any(choices.of(state.snapshot, strict=False), objective)


def load_cases(
    sources: Iterable[Source],
    objective: TreeObjective | None = None,
    choices: Choices = AS_IS,
) -> tuple[list[Case], list[str]]:
    """Read all that `load_case` takes, and the files in and below folders, in the order of names.

    A folder without any documents is an `InputError`; one with documents of other kinds, which are
    skipped, gets a line of notes.
    """
    cases: list[Case] = []
    notes: list[str] = []
    for source in sources:
        folder = Path(source) if isinstance(source, File) and Path(source).is_dir() else None
        if folder is None or is_other_snapshot(folder):
            cases.append(load_case(source, objective, choices))
            continue
        files = inputs_below(folder)
        schemas = {SNAPSHOT_SCHEMA, RESULT_SCHEMA, *(kind.schema for kind in known().values())}
        taken = [p for p in files if is_other_snapshot(p) or _schema(p) in schemas - {None}]
        if not taken:
            raise InputError("a folder of instances or results (*.json)", file=str(source))
        cases += [load_case(path, objective, choices) for path in taken]
        others = [path.name for path in files if path not in taken]
        if others:
            more = ", ..." if len(others) > _MOST_NAMED else ""
            shown = ", ".join(others[:_MOST_NAMED]) + more
            notes.append(f"{source}: skipped {len(others)} of other kinds: {shown}")
    return cases, notes


def _read(source: File | Document) -> tuple[bytes, str]:
    if isinstance(source, File):
        return read_bytes(source), str(source)
    if not isinstance(source, Mapping):
        found = type(source).__name__
        raise InputError("a path, a shipped name or a document", field="source", found=found)
    try:
        return json.dumps(source).encode(), _DOCUMENT
    except (TypeError, ValueError) as error:
        raise InputError(f"a document of JSON values ({error})") from None


def _schema(path: Path) -> object:
    with contextlib.suppress(ForeignError):
        return parse_object(read_bytes(path), str(path)).get("schema")
    return None
