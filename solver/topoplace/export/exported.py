"""Export a level of an instance or of a result: its model, its data, or the proof of its bound."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from topoplace.errors import InputError, unknown_name
from topoplace.export.model import Model
from topoplace.export.writers import WRITERS
from topoplace.kinds import kind_named
from topoplace.result import Result
from topoplace.shipped import EXPORTS
from topoplace.snapshot.files import write_text
from topoplace.solving import Options
from topoplace.solving.solve import Problem, frame_of, problem_of, require_no_order
from topoplace.study.case import State, state_of
from topoplace.types import IntArray


@dataclass(frozen=True)
class Chosen:
    """A level of a problem.

    Attributes
    ----------
    number, name
        Of the level.
    earlier
        What earlier levels must reach, as it is reported; None where nothing is required.
    result
        The result that says so; None for an instance, of which the first level is exported.
    """

    problem: Problem
    number: int
    name: str
    earlier: Sequence[int | None]
    result: Any = None

    @property
    def level(self) -> Any:
        """The level of the result, None without one."""
        return None if self.result is None else self.result.levels[self.number]

    @property
    def title(self) -> str:
        """What is exported, in words."""
        instance = frame_of(self.problem.kind).instance(self.problem).name
        held = zip(frame_of(self.problem.kind).levels(self.problem), self.earlier, strict=False)
        kept = [
            f"{name} {'>=' if sense == 'max' else '<='} {v}"
            for (name, sense), v in held
            if v is not None
        ]
        return f"{instance}: {self.name}{', with ' + ', '.join(kept) if kept else ''}"


class Explicit(Protocol):
    """The model of a level, made by what `Kind.exported` names."""

    @property
    def model(self) -> Model:
        """The model, with a solution if there is a result that has one."""

    def prove(self, own: Chosen, write: Callable[[str], object]) -> None:
        """Write the proof of the bound of a result's level."""

    def solution(self, values: IntArray) -> Any:
        """Return the solution of the problem that values of the variables stand for."""


@dataclass(frozen=True)
class Exported:
    """Files by name, and what a person should know about them.

    Attributes
    ----------
    texts
        The files.
    notes
        How they were made, and the command that reads them.
    """

    texts: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of the only file."""
        (text,) = self.texts.values()
        return text

    def save(self, path: str | Path) -> Path:
        """Write the only file, or all files into a folder; return the path."""
        path = Path(path)
        if len(self.texts) == 1:
            write_text(path, self.text)
        else:
            path.mkdir(parents=True, exist_ok=True)
            for name, text in self.texts.items():
                write_text(path / name, text)
        return path

    def __repr__(self) -> str:
        return "\n".join([f"Exported {', '.join(self.texts)}", *self.notes])


def exported(found: State | Result[Any, Any, Any], form: str, level: str | None = None) -> Exported:
    """Return a level of an instance or of a result in a format of `EXPORTS`.

    Raises
    ------
    InputError
        If the level is not known, too large, or has no proof that can be expressed.
    """
    if form not in EXPORTS:
        raise unknown_name(form, EXPORTS, field="--to")
    own = chosen(found, level)
    kind = kind_named(own.problem.kind)
    if form == "minizinc":
        raise NotImplementedError
    explicit: Explicit = kind.offered("exported", "an instance, or a result,")(own)
    if form != "veripb":
        ending, lines = WRITERS[form]
        return Exported({f"model.{ending}": "\n".join(lines(explicit.model)) + "\n"}, (own.title,))
    if own.level is None or own.level.bound is None:
        raise InputError("a result with a bound of the level", field="--to", value=form)
    proof = io.StringIO()
    explicit.prove(own, proof.write)
    model = "\n".join(WRITERS["opb"][1](explicit.model)) + "\n"
    texts = {"model.opb": model, "proof.pbp": proof.getvalue()}
    return Exported(texts, (own.title, "to check the proof: veripb model.opb proof.pbp"))


def chosen(found: State | Result[Any, Any, Any], level: str | None = None) -> Chosen:
    """Return a level, by default the first one.

    Raises
    ------
    InputError
        If there is no such level, or nothing is known of the levels before it.
    """
    result = found if isinstance(found, Result) else None
    state = state_of(found) if isinstance(found, Result) else found
    rule = getattr(getattr(result, "limits", None), "interference", None)
    options = Options() if rule is None else Options(interference=rule)
    problem = problem_of(state, options)
    require_no_order(problem, "a model")
    names = [name for name, _ in frame_of(problem.kind).levels(problem)]
    if result is not None and [one.name for one in result.levels] != names:
        raise InputError(f"the levels {', '.join(names)}", field="levels", found="others")
    if level is not None and level not in names:
        raise unknown_name(level, names, field="--level")
    number = 0 if level is None else names.index(level)
    if result is None and number:
        raise InputError("a result, for a level after the first", field="--level", value=level)
    return Chosen(problem, number, names[number], _held(result, number), result)


def _held(result: Any, number: int) -> list[int | None]:
    """Return what bounds of a level take for granted of the levels before it."""
    witness = getattr(result, "witness", None)
    found: list[int | None] = []
    for k in range(number):
        required = getattr(result.levels[k], "required", None)
        reached = result.levels[k].objective if witness is None else witness.values[k]
        found.append(reached if required is None else required)
    return found
