"""Prisms: boxes of routers that may wrap around a ring, and their bisection bandwidth."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine.torus import Torus
from topoplace.types import IntArray


@dataclass(frozen=True, order=True)
class Prism:
    """A box of routers: `extents` routers from `origin` in the positive directions.

    On a ring the box may cross the last coordinate and go on at 0. A box that spans a ring has
    origin 0 there, so that every set of routers has one description.
    """

    origin: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def volume(self) -> int:
        """Number of routers inside, service and down ones included."""
        return math.prod(self.extents)

    @property
    def text(self) -> str:
        """Short form such as ``12x2x12@0,4,6``."""
        return f"{'x'.join(map(str, self.extents))}@{','.join(map(str, self.origin))}"

    def require_inside(self, torus: Torus, field: str = "prism") -> None:
        """Raise `InputError` unless the prism is a canonical box of this machine."""
        if len(self.origin) != torus.num_dims or len(self.extents) != torus.num_dims:
            raise InputError(
                f"{number_of(torus.num_dims, 'coordinate')} and extents",
                field=field,
                value=self.text,
            )
        for o, e, n, wraps in zip(self.origin, self.extents, torus.shape, torus.wrap, strict=True):
            if not 0 <= o < n:
                raise InputError(f"an origin inside {torus.text}", field=field, value=self.text)
            if not 1 <= e <= n:
                raise InputError(
                    f"extents from 1 to the machine's, {torus.text}", field=field, value=self.text
                )
            if not wraps and o + e > n:
                raise InputError("a prism that ends inside the mesh", field=field, value=self.text)
            if wraps and e == n and o != 0:
                raise InputError(
                    "origin 0 where the prism spans the ring", field=field, value=self.text
                )

    def routers(self, torus: Torus) -> IntArray:
        """Return the routers inside, in row-major order from the origin."""
        axes = [
            (np.arange(o, o + e, dtype=np.int64) % n) * s
            for o, e, n, s in zip(
                self.origin, self.extents, torus.shape, torus.strides, strict=True
            )
        ]
        total = axes[0]
        for axis in axes[1:]:
            total = (total[:, None] + axis).ravel()
        return total

    def max_hops(self, torus: Torus) -> int:
        """Return the largest hop distance between two routers of the prism."""
        return sum(
            min(e - 1, n // 2) if wraps else e - 1
            for e, n, wraps in zip(self.extents, torus.shape, torus.wrap, strict=True)
        )

    def num_wrapping_dims(self, torus: Torus) -> int:
        """Count the dimensions where traffic leaves the prism (see `uses_whole_ring`)."""
        return sum(
            e < torus.shape[d] and uses_whole_ring(torus, d, e) for d, e in enumerate(self.extents)
        )


def uses_whole_ring(torus: Torus, dim: int, extent: int) -> bool:
    """Return whether an extent makes a job use its whole ring rather than its own interval.

    Shortest routes stay within an interval of ``n`` routers on a ring of ``N`` if
    ``2 (n - 1) < N``; at equality the two ways round tie, and both count as used. A mesh
    dimension, and a single router, never use more than the interval.
    """
    return torus.wrap[dim] and extent > 1 and 2 * (extent - 1) >= torus.shape[dim]


def bisection_bandwidth(torus: Torus, extents: tuple[int, ...]) -> Fraction:
    """Return the bisection bandwidth of a prism, in the unit of `Torus.bandwidth`.

    The least over the dimensions of (product of the other extents) x (link bandwidth) x f, where
    on a ring of N an extent n has f = 2 if it spans the ring, f = 1 up to half of it, and
    f = 2(n-1)/(N-1) between; on a mesh f = 1 (Fiedler 2014, "Bisection Bandwidth: Slab w/N
    Geminis in Y").
    """
    widths = []
    for d, n in enumerate(extents):
        ring = torus.shape[d]
        factor = Fraction(1)
        if torus.wrap[d] and ring > 1:
            if n == ring:
                factor = Fraction(2)
            elif 2 * n > ring:
                factor = Fraction(2 * (n - 1), ring - 1)
        others = math.prod(e for k, e in enumerate(extents) if k != d)
        widths.append(others * torus.bandwidth[d] * factor)
    return min(widths)


def bisection_per_node(torus: Torus, extents: tuple[int, ...]) -> Fraction:
    """Return `bisection_bandwidth` divided by the number of all nodes of the prism."""
    return bisection_bandwidth(torus, extents) / (math.prod(extents) * torus.nodes_per_router)


def all_origins(torus: Torus, extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return every canonical origin of a prism with these extents, in row-major order."""
    axes = []
    for e, n, wraps in zip(extents, torus.shape, torus.wrap, strict=True):
        if e > n:
            return []
        axes.append(range(1) if e == n else range(n) if wraps else range(n - e + 1))
    return list(itertools.product(*axes))
