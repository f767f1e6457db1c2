"""Proofs in VeriPB's format 3.0: their steps, and the numbers of constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from topoplace.explicit.model import Model

Terms = Mapping[str, int]
"""Coefficients by literal."""


def negated(literal: str) -> str:
    """Return the other literal of a variable."""
    return literal[1:] if literal.startswith("~") else f"~{literal}"


def written(terms: Terms, least: int) -> str:
    """Return a constraint: the sum is at least a number."""
    return " ".join(f"{c:+d} {v}" for v, c in terms.items() if c) + f" >= {least}"


class Script:
    """Lines of a proof, and the numbers of its constraints; those of the model come first."""

    def __init__(self, write: Callable[[str], object], num_constraints: int, model: Model) -> None:
        self._write, self.last, self._fresh = write, num_constraints, 0
        self.line("pseudo-Boolean proof version 3.0")
        self.line(f"f {num_constraints};")
        if model.solution is not None:
            pairs = zip(model.variables, model.solution.tolist(), strict=True)
            self.line(f"sol {' '.join(name if x else f'~{name}' for name, x in pairs)};")

    def line(self, text: str) -> None:
        """Write a line."""
        self._write(text + "\n")

    def step(self, text: str) -> int:
        """Write a step that adds a constraint, and return its number."""
        self.line(text + ";")
        self.last += 1
        return self.last

    def fresh(self, name: str) -> str:
        """Return a variable that is not used yet."""
        self._fresh += 1
        return f"p{self._fresh}_{name}"

    def total(self, parts: Iterable[tuple[int | str, int]]) -> int:
        """Add up constraints, or literals, times positive factors."""
        words: list[str] = []
        for one, times in parts:
            if times:
                words.append(f"{one}" if times == 1 else f"{one} {times} *")
                words += ["+"] if len(words) > 1 else []
        return self.step("pol " + " ".join(words) if words else "rup >= 0")

    def rup(self, literals: Iterable[str], hints: Iterable[int]) -> int:
        """Add a clause that follows from others by propagation."""
        clause = written(dict.fromkeys(literals, 1), 1)
        return self.step(f"rup {clause} : {' '.join(map(str, dict.fromkeys(hints)))}")

    def reified(self, name: str, terms: Terms, least: int) -> tuple[str, int, int]:
        """Add a variable that is 1 exactly if a sum is at least a number.

        Returns
        -------
        tuple
            The variable, what follows if it is 1, and what follows if it is 0.
        """
        variable = self.fresh(name)
        low = sum(min(0, c) for c in terms.values())
        high = sum(max(0, c) for c in terms.values())
        then = {**terms, f"~{variable}": max(0, least - low)}
        other = {v: -c for v, c in terms.items()} | {variable: max(0, high - least + 1)}
        one = self.step(f"red {written(then, least)} : {variable} -> 0")
        two = self.step(f"red {written(other, 1 - least)} : {variable} -> 1")
        return variable, one, two

    def delete(self, number: int) -> None:
        """Forget a constraint."""
        self.line(f"del id {number};")


def numbers_of(model: Model) -> tuple[list[int], int]:
    """Return the number of each row's constraint, and the last one; an equation has two."""
    found, last = [], 0
    for row in model.rows:
        found.append(last + 1)
        last += 2 if row.sense == "=" else 1
    return found, last


def conclude(script: Script, model: Model, bound: int, proven: int) -> None:
    """Write the end of a proof: the objective is at least a bound, and at most the solution's."""
    value = "INF" if model.solution is None else str(model.objective.at(model.solution))
    script.line("output NONE;")
    script.line(f"conclusion BOUNDS {bound} : {proven} {value};")
    script.line("end pseudo-Boolean proof;")
