"""Limits on where a request may go: what a branch on places adds to a subproblem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topoplace.placement.problem import Candidate


@dataclass(frozen=True)
class PlaceLimit:
    """Bounds on one coordinate of a request's origin or extents, both inclusive."""

    request_idx: int
    what: Literal["origin", "extents"]
    dim: int
    low: int
    high: int

    def admits(self, candidate: Candidate) -> bool:
        """Tell whether a candidate obeys the limit."""
        if candidate.request_idx != self.request_idx:
            return True
        prism = candidate.prism
        coords = prism.origin if self.what == "origin" else prism.extents
        return self.low <= coords[self.dim] <= self.high
