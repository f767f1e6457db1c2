"""Export a level of an instance or of a result: its model, its data, or the proof of its bound."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from topoplace.errors import InputError, unknown_name
from topoplace.explicit.chosen import Chosen, chosen
from topoplace.explicit.model import Model
from topoplace.explicit.writers import WRITERS
from topoplace.kinds import kind_named
from topoplace.result import Result
from topoplace.shipped import EXPORTS
from topoplace.snapshot.files import write_text
from topoplace.study.case import State
from topoplace.types import IntArray


class Explicit(Protocol):
    """The model of a level, made by what `Kind.exported` names."""

    @property
    def model(self) -> Model:
        """The model, with a solution if there is a result that has one."""

    def prove(self, own: Chosen, write: Callable[[str], object]) -> None:
        """Write the proof of the bound of a result's level."""

    @property
    def first(self) -> Any:
        """A solution of the problem to begin with: nothing starts, or tasks in their order."""

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
    what = "an instance, or a result,"
    if form == "minizinc":
        name, data = kind.offered("reference", what, value=kind.name)(own)
        text = json.dumps(data, default=sorted) + "\n"
        models = " ".join(f"{one}.mzn" for one in name.split())
        how = f"in the folder models: minizinc --solver gecode {models} data.json"
        return Exported({"data.json": text}, (own.title, how))
    explicit: Explicit = kind.offered("exported", what, value=kind.name)(own)
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
