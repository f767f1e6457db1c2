"""A linear model: variables of 0 and 1, rows over integers, and an objective to be minimised."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from topoplace.errors import InputError
from topoplace.types import IntArray


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum of variables, given by their numbers, times coefficients."""

    variables: IntArray
    coefficients: IntArray

    @classmethod
    def of(cls, terms: Mapping[int, int]) -> Sum:
        """Return a sum from the coefficients by variable; those of 0 are left out."""
        kept = {v: c for v, c in terms.items() if c}
        return cls(
            np.array(list(kept), dtype=np.int64), np.array(list(kept.values()), dtype=np.int64)
        )

    def terms(self) -> Iterable[tuple[int, int]]:
        """Return pairs of variable and coefficient."""
        return zip(self.variables.tolist(), self.coefficients.tolist(), strict=True)

    def at(self, values: IntArray) -> int:
        """Return the sum at values of all variables."""
        return int(self.coefficients @ values[self.variables])


@dataclass(frozen=True, eq=False)
class Row:
    """A row: the sum is at least, at most or equal to the limit, as `sense` says."""

    name: str
    sum: Sum
    sense: str
    limit: int

    def holds(self, values: IntArray) -> bool:
        """Return whether values of all variables keep the row."""
        found = self.sum.at(values)
        return {">=": found >= self.limit, "<=": found <= self.limit, "=": found == self.limit}[
            self.sense
        ]


@dataclass
class Model:
    """A model.

    Attributes
    ----------
    notes
        What it is about, for people.
    variables
        Their names, which consist of letters, digits and underscores.
    objective
        What is minimised.
    solution
        A value of every variable that keeps all rows; None if none is known.
    sign, offset
        The level is the objective times `sign`, plus `offset`.
    """

    notes: list[str]
    sign: int = 1
    offset: int = 0
    variables: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    objective: Sum = field(default_factory=lambda: Sum.of({}))
    solution: IntArray | None = None
    _names: set[str] = field(default_factory=set)

    def variable(self, name: str) -> int:
        """Add a variable, and return its number."""
        self.variables.append(name)
        return len(self.variables) - 1

    def add(self, name: str, terms: Sum | Mapping[int, int], sense: str, limit: int) -> int:
        """Add a row, under a name that no other has, and return its number."""
        name = f"{name}_{len(self.rows)}" if name in self._names else name
        self._names.add(name)
        own = terms if isinstance(terms, Sum) else Sum.of(terms)
        self.rows.append(Row(name, own, sense, limit))
        return len(self.rows) - 1

    def reported(self, objective: int) -> int:
        """Return the level's value of an objective."""
        return self.sign * objective + self.offset

    def told(self, level: str) -> str:
        """Return how a level follows from the objective, for a note."""
        offset = f" + {self.offset}" if self.offset else ""
        return f"{level} = {'-' * (self.sign < 0)}objective{offset}"

    def require_solution(self) -> None:
        """Raise `InputError` if the solution breaks a row: then model and result do not agree."""
        for row in self.rows if self.solution is not None else ():
            if self.solution is not None and not row.holds(self.solution):
                expected = f"a solution that keeps the row {row.name} of the model"
                raise InputError(expected, field="solution", value=row.sum.at(self.solution))


def word(text: str) -> str:
    """Return a text with all but letters and digits turned into underscores."""
    return re.sub(r"[^A-Za-z0-9]", "_", text)
