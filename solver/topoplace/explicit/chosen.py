"""Which level of a problem or result is exported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topoplace.errors import InputError, unknown_name
from topoplace.result import Fraction as FractionModel
from topoplace.result import Result
from topoplace.solving.registry import Options
from topoplace.solving.solve import Problem, frame_of, problem_of, require_no_order
from topoplace.study.case import State, state_of


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
    def reached(self) -> list[int]:
        """What earlier levels must reach; `InputError` if of one nothing is known."""
        if any(v is None for v in self.earlier):
            raise InputError("values of all levels before", field="--level", value=self.name)
        return [v for v in self.earlier if v is not None]

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
    """Return what bounds of a level take for granted of the levels before it, all integers."""
    witness = getattr(result, "witness", None)
    found: list[int | None] = []
    for k in range(number):
        required = getattr(result.levels[k], "required", None)
        reached = result.levels[k].objective if witness is None else witness.values[k]
        least = reached if required is None else required
        found.append(least.numerator if isinstance(least, FractionModel) else least)
    return found
