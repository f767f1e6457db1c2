"""What a method hands back, whatever the problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from topoplace.result import Explanation, Proof

Number = int | Fraction


@dataclass(frozen=True)
class Bound:
    """A bound of a level, in the sense in which the level is reported.

    Attributes
    ----------
    value
        What no solution surpasses.
    certificate
        Evidence that the checker verifies; without it a search found the bound.
    """

    value: Number
    certificate: Any | None = None

    @property
    def proof(self) -> Proof:
        """What supports the bound."""
        return Proof.SEARCH if self.certificate is None else Proof.CERTIFICATE


def stronger(first: Bound | None, second: Bound | None, sense: str = "min") -> Bound | None:
    """Return the bound that says more on a level of that sense; of equal ones one with evidence."""
    known = [bound for bound in (first, second) if bound is not None]
    sign = 1 if sense == "min" else -1
    return max(known, key=lambda b: (sign * b.value, b.certificate is not None), default=None)


@dataclass(frozen=True)
class Outcome:
    """What a method found, in the problem's own form, and what it can prove.

    Attributes
    ----------
    solution
        Of a placement the candidates and scattered requests that start; of an allocation the node
        of every rank, by the number of the request; of a mapping a `Mapped`. None if the method
        found no answer at all.
    bounds
        Level by level; fewer than there are levels, or None, where nothing is proven.
    time_limit_hit
        Whether the time limit ended the method.
    versions
        Of programs and libraries that took part.
    explanations
        Why requests do not start.
    """

    solution: Any | None
    bounds: Sequence[Bound | None] = ()
    time_limit_hit: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    explanations: Sequence[Explanation] = ()
