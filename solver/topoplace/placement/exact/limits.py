"""Limits on where a request may go: what a branch on places adds to a subproblem."""

from __future__ import annotations

from dataclasses import dataclass

from topoplace.placement.problem import Candidate


@dataclass(frozen=True)
class PlaceLimit:
    """Whether a request's prism covers a router.

    Attributes
    ----------
    coords, shape
        Coordinates of the router, and the shape of its machine.
    """

    request_idx: int
    coords: tuple[int, ...]
    shape: tuple[int, ...]
    inside: bool

    def admits(self, candidate: Candidate) -> bool:
        """Tell whether a candidate obeys the limit."""
        if candidate.request_idx != self.request_idx:
            return True
        prism = candidate.prism
        covers = all(
            (c - o) % n < e
            for c, n, o, e in zip(self.coords, self.shape, prism.origin, prism.extents, strict=True)
        )
        return covers is self.inside
