"""Load what files and names hold, check it, and list what is shipped; options that many share."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from topoplace import kinds
from topoplace.errors import InputError, unknown_name
from topoplace.formats.text import name_of
from topoplace.kinds import kind_named, known
from topoplace.model import Machine, Model
from topoplace.options import Audit, Place, Queue, Solve, Watched, names_of
from topoplace.result import Interference, Result
from topoplace.result.base import Kept
from topoplace.result.reading import Checkable
from topoplace.snapshot.changes import request_of as request_of_fields
from topoplace.snapshot.files import machine_names, read_bytes, snapshot_names
from topoplace.snapshot.held import Choices
from topoplace.snapshot.machines import is_machine, load_machine
from topoplace.snapshot.schema import MappingInstance, Request, Snapshot, TreeObjective
from topoplace.solving import Options
from topoplace.solving import methods as registered
from topoplace.solving.outcome import Display, Progress
from topoplace.study.case import Document, File, State, load_checkable, load_document

if TYPE_CHECKING:
    from topoplace.result.several import Several

__all__ = [
    "MAX_SEED",
    "Display",
    "choices_of",
    "load",
    "load_checkable",
    "machines",
    "methods",
    "name_of",
    "options_of",
    "request_of",
    "require_one",
    "snapshots",
    "watched",
]

MAX_SEED = 2**31 - 1


def options_of(asked: Solve) -> Options:
    """Return the options of a solve; `InputError` names the argument that is none."""
    time_limit, seed = asked.time_limit, asked.seed
    interference = getattr(asked, "interference", Interference.STRICT)
    if time_limit is not None:
        is_number = isinstance(time_limit, Real) and math.isfinite(time_limit)
        if not is_number or time_limit < 0:
            expected = "a finite number of seconds, 0 or more"
            raise InputError(expected, field="time_limit", value=time_limit)
    if not isinstance(seed, Integral) or not 0 <= seed <= MAX_SEED:
        raise InputError(f"a seed from 0 to {MAX_SEED}", field="seed", value=seed)
    if interference not in list(Interference):
        raise unknown_name(interference, Interference, field="interference")
    first_level = getattr(asked, "first_level", False)
    solver = getattr(asked, "solver", None)
    if solver is not None and asked.method != "minizinc":
        raise InputError("method minizinc", field="--solver", found=f"{solver} for another")
    return Options(time_limit, Interference(interference), seed, first_level, solver=solver)


def choices_of(asked: Queue | Audit) -> Choices:
    """Return what is chosen in addition to a snapshot."""
    order = asked.order if isinstance(asked, Place) else None
    return Choices(names_of(asked.ignore), asked.value, order)


def require_one(method: object, command: str | None) -> None:
    """Raise `InputError` if both a method and a command are given."""
    if method is not None and command is not None:
        raise InputError("either --method or --command", field="--command", found="both")


@contextlib.contextmanager
def watched(options: Options, asked: Watched) -> Iterator[Options]:
    """Yield the options of a solve that is shown, told to a callback, or both."""
    with Display() if asked.display else contextlib.nullcontext() as shown:
        watches = [watch for watch in (shown, asked.callback) if watch is not None]

        def watch(progress: Progress) -> None:
            for each in watches:
                each(progress)

        yield replace(options, watch=watch) if watches else options


# ---- Documents -----------------------------------------------------------------------------------


Instance = Model | Snapshot | File | Document
Loaded: TypeAlias = "Model | Machine | MappingInstance | Result[Any, Any, Any] | Several"


def load(source: File | Document) -> Loaded:
    """Return what a file, a shipped name or a document in memory holds.

    Parameters
    ----------
    source
        A path, a shipped name such as ``blue_waters_60`` (a snapshot) or ``tpu_v4`` (a machine),
        a shorthand of a machine such as ``torus:8x8x8``, or a document as JSON has it.

    Returns
    -------
    Model, a machine such as TorusModel, MappingInstance, Result, Frontier, Optima
        For a snapshot, a machine, a mapping instance, a result, a frontier, or all optima.

    Raises
    ------
    InputError
        Naming the file and all fields at fault.
    """
    if not isinstance(source, str | Path | Mapping):
        expected = "a path, a shipped name or a document"
        raise InputError(expected, field="source", found=type(source).__name__)
    if isinstance(source, str) and is_machine(source):
        return load_machine(source)
    return _held(load_document(source))


def _held(found: State | Checkable) -> Loaded:
    """Return what a document holds, ready for users."""
    if isinstance(found, Kept):
        return found
    return Model.of(found.snapshot) if isinstance(found, kinds.State) else found.instance


def request_of(given: str | Path) -> Request:
    """Return a request from the text of its fields in JSON, or from a file of such a text."""
    text = read_bytes(given).decode(errors="replace") if isinstance(given, Path) else given
    return request_of_fields(text)


def machines() -> list[str]:
    """Return the names of the shipped machines, which `load` and `Model` take."""
    return machine_names()


def snapshots() -> list[str]:
    """Return the names of the shipped snapshots, which `load` and `place` take."""
    return snapshot_names()


def methods(problem: str | None = None) -> dict[str, str]:
    """Return the methods of a problem, each with what it does in a sentence.

    Parameters
    ----------
    problem
        ``placement`` (on tori), ``allocation`` (on trees), ``hierarchy``, ``cubes``, ``repack``,
        or ``mapping``; by default all, their names before those of the methods:
        ``placement exact``.

    Raises
    ------
    InputError
        If there is no such problem.
    """
    if problem is None:
        return {f"{kind} {name}": x for kind in known() for name, x in methods(kind).items()}
    return {name: method.summary for name, method in registered(kind_named(problem).name).items()}


def model_of(instance: Instance, objective: TreeObjective | None = None) -> Model:
    """Return the snapshot that is given, or that a file or a name stands for.

    It is checked as one of which the objective counts, if it is of a switch tree.
    """
    if isinstance(instance, Snapshot):
        instance = Model.of(instance)
    found: Any = instance
    if isinstance(instance, str | Path | Mapping):
        is_name = isinstance(instance, str) and is_machine(instance)
        found = load(instance) if is_name else _held(load_document(instance, objective))
    if not isinstance(found, Model):
        raise InputError("a snapshot", field="instance", found=type(found).__name__)
    return found
