"""What a check found of a document: one claim after the other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """One statement of a result, and whether it holds.

    Attributes
    ----------
    name
        What is claimed, such as ``links`` or ``shape.bound``.
    holds
        Whether the checker's own computation agrees.
    detail
        What was found; the first disagreement if the claim does not hold.
    by_search
        Whether it rests on a search of the solver, which the checker does not repeat: nothing
        speaks against the claim, but nothing here confirms it either.
    """

    name: str
    holds: bool
    detail: str
    by_search: bool = False

    def __str__(self) -> str:
        mark = "FAILS" if not self.holds else "trust" if self.by_search else "holds"
        return f"{mark}  {self.name}: {self.detail}"


@dataclass(frozen=True)
class Report:
    """All claims of a result in the order they were checked.

    Attributes
    ----------
    sha256
        The sum of the instance that the claims are about (`topoplace.snapshot.normal.sha256_of`).
        None if nobody asked for it, or if the instance has no normal form.
    """

    claims: tuple[Claim, ...]
    sha256: str | None = None

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)

    @property
    def verified(self) -> bool:
        """Whether every claim holds and none rests on a search alone."""
        return self.holds and not any(claim.by_search for claim in self.claims)

    @property
    def lines(self) -> list[str]:
        """A line for every claim, and one for what follows of them."""
        verdict = "NOT verified"
        if self.verified:
            verdict = "every claim holds"
        elif self.holds:
            verdict += ": no claim fails, but a bound rests on a search not repeated here"
        return [*(str(claim) for claim in self.claims), verdict]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    @property
    def failures(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if not claim.holds)
