"""What ``sbatch --constraint`` asks for: features of nodes, joined, counted, or one of several."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

Nodes = frozenset[str]

_NAME = r"[\w.:+=/%-]+"
_TERM = rf"(?:{_NAME}|\({_NAME}(?:[&|]{_NAME})*\))"
_COUNTED = rf"{_TERM}\*[1-9][0-9]{{0,6}}"


class Form(StrEnum):
    """How a constraint joins its terms."""

    EACH = "each"
    """One term, for every node: ``a&(b|c)``."""
    SAME = "same"
    """All nodes have the same one of the terms: ``[a|b]``."""
    COUNTS = "counts"
    """A number of nodes for each term: ``a*2``, ``[a*2&b*4]``."""


_FORMS = {
    Form.EACH: rf"{_TERM}(?:[&|]{_TERM})*",
    Form.SAME: rf"\[{_TERM}(?:\|{_TERM}){{0,15}}\]",
    Form.COUNTS: rf"{_NAME}\*[1-9][0-9]{{0,6}}|\[{_COUNTED}(?:&{_COUNTED}){{0,3}}\]",
}


@dataclass(frozen=True)
class Term:
    """Features that a node has to have, and how many nodes do: 0 if no number is said."""

    text: str
    count: int = 0

    @property
    def names(self) -> list[str]:
        """The features that it names."""
        return re.findall(_NAME, self.text)

    def expression(self, named: Callable[[str], str]) -> str:
        """Return it as an expression over named sets, in parentheses if it has a ``|``.

        Slurm reads ``&`` and ``|`` left to right.
        """
        found, before = "", ""
        for operator, one in re.findall(rf"([&|]?)({_TERM})", self.text):
            inside = one.strip("()")
            own = named(one) if inside == one else Term(inside).expression(named)
            if before == "|" and operator == "&":
                found = f"({found})"
            found = f"{found} {operator} {own}" if operator else own
            before = operator
        return f"({found})" if before == "|" else found

    def nodes(self, having: Callable[[str], Nodes]) -> Nodes:
        """Return the nodes that have what it asks for."""
        found: Nodes = frozenset()
        for operator, one in re.findall(rf"([&|]?)({_TERM})", self.text):
            inside = one.strip("()")
            own = having(one) if inside == one else Term(inside).nodes(having)
            found = found & own if operator == "&" else found | own
        return found


@dataclass(frozen=True)
class Constraint:
    """The terms of a constraint, and how they are joined."""

    form: Form
    terms: tuple[Term, ...]


def constraint_of(text: str) -> Constraint | None:
    """Return a constraint; None if it has another form, as Slurm's parser may refuse, too."""
    form = next((form for form, own in _FORMS.items() if re.fullmatch(own, text)), None)
    if form is None:
        return None
    if form is Form.EACH:
        return Constraint(form, (Term(text),))
    terms = re.findall(rf"({_TERM})(?:\*([0-9]+))?", text.strip("[]"))
    return Constraint(form, tuple(Term(own, int(count or 0)) for own, count in terms))
