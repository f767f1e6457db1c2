"""Restrictions of a request's origins and extents, as `place` branches impose them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from topoplace.certify.instance import Instance


@dataclass(frozen=True)
class Bounds:
    """Lowest and highest origin and extent per dimension, both included."""

    origin_low: tuple[int, ...]
    origin_high: tuple[int, ...]
    extents_low: tuple[int, ...]
    extents_high: tuple[int, ...]

    def cut(self, what: Literal["origin", "extents"], dim: int, at: int, side: str) -> Bounds:
        """Return the bounds that also keep one coordinate `low` (<= at) or `high` (> at)."""
        name = f"{what}_{'high' if side == 'low' else 'low'}"
        row = list(getattr(self, name))
        row[dim] = min(row[dim], at) if side == "low" else max(row[dim], at + 1)
        if name == "origin_low":
            return replace(self, origin_low=tuple(row))
        if name == "origin_high":
            return replace(self, origin_high=tuple(row))
        if name == "extents_low":
            return replace(self, extents_low=tuple(row))
        return replace(self, extents_high=tuple(row))

    def exactly(self, extents: tuple[int, ...]) -> Bounds | None:
        """Return the same bounds with the extents fixed; None if they exclude them."""
        for low, e, high in zip(self.extents_low, extents, self.extents_high, strict=True):
            if not low <= e <= high:
                return None
        return replace(self, extents_low=extents, extents_high=extents)


def no_bounds(instance: Instance) -> Bounds:
    """Return the bounds that exclude nothing."""
    shape = instance.torus.shape
    return Bounds((0,) * len(shape), tuple(n - 1 for n in shape), (1,) * len(shape), shape)
