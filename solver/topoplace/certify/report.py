"""What the checker found: one claim after the other, each with its reason."""

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


@dataclass(frozen=True)
class Report:
    """All claims of a result in the order they were checked."""

    claims: tuple[Claim, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)

    @property
    def verified(self) -> bool:
        """Whether every claim holds and none rests on a search alone."""
        return self.holds and not any(claim.by_search for claim in self.claims)

    @property
    def failures(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if not claim.holds)


class RefusedError(Exception):
    """A claim does not hold; the message is its detail. Never leaves the checker."""
