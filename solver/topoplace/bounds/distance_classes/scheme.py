"""Distance classes of a torus, and the association scheme of its places."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray

FloatArray = NDArray[np.float64]
Key = tuple[int, tuple[tuple[int, tuple[int, ...]], ...]]

FINE = 1 << 16
"""Scale of eigenvalues that are no integers; what it leaves of the bound is second order."""


@dataclass(frozen=True)
class Scheme:
    """The scheme of a torus with the same number of places on every router.

    Classes of places are: a place itself, the others of its router (if there are any), and the
    router classes but the first. Spaces are the eigenspaces, that of constant vectors first.

    Attributes
    ----------
    shape, per_router
        The torus, and the places of a router.
    classes
        Class of every coordinate difference (the router number of it), shape ``(num_routers,)``.
    hops
        Hop distance of every router class.
    eigenvalues
        Sums of characters: entry (d, j) is the real eigenvalue of space d summed over class j,
        the same as Q_dj (the scheme is its own dual).
    """

    shape: tuple[int, ...]
    per_router: int
    classes: IntArray
    hops: IntArray
    eigenvalues: FloatArray

    @property
    def num_places(self) -> int:
        """Places of all routers."""
        return len(self.classes) * self.per_router

    @cached_property
    def valencies(self) -> IntArray:
        """Routers in every router class, seen from one router."""
        return np.bincount(self.classes)

    @cached_property
    def place_valencies(self) -> FloatArray:
        """Places in every class of places, seen from one place."""
        c = self.per_router
        own = [1] if c == 1 else [1, c - 1]
        return np.array([*own, *(c * self.valencies[1:])], dtype=np.float64)

    @cached_property
    def place_hops(self) -> FloatArray:
        """Hops of every class of places."""
        own = [0] if self.per_router == 1 else [0, 0]
        return np.array([*own, *self.hops[1:]], dtype=np.float64)

    @cached_property
    def place_eigenvalues(self) -> FloatArray:
        """Q of the places: a row per class, a column per space."""
        if self.per_router == 1:
            return self.eigenvalues
        n = len(self.classes)
        doubled = np.concatenate((self.eigenvalues[:1], self.eigenvalues))
        inside = np.zeros(len(doubled))
        inside[:2] = self.num_places - n, -n
        return np.column_stack((doubled, inside))

    def filters(self) -> list[list[int]]:
        """Return integers that make every space but the first (see `DistanceClassesCertificate`).

        They are the eigenvalues if all of these are integers, and rounded ones else.
        """
        whole = np.abs(self.eigenvalues - np.round(self.eigenvalues)).max() < 1e-9
        rounded = np.round(self.eigenvalues * (1 if whole else FINE)).astype(np.int64)
        found = [[0, *column] for column in rounded.T[1:].tolist()]
        if self.per_router > 1:
            found.append([self.per_router, -1, *[0] * (len(self.hops) - 1)])
        return found


def scheme_of(shape: tuple[int, ...], per_router: int) -> Scheme:
    """Return the scheme of the coarsest classes this module knows.

    A ring of 4 is the product of two of 2, and equal factors may be exchanged: the more
    symmetry, the fewer classes, and the bound is the same.
    """
    torus = Torus(shape)
    keys = [_key(x, shape) for x in torus.coordinates.tolist()]
    known = sorted(set(keys), key=lambda key: (_hops(key), key))
    number = {key: k for k, key in enumerate(known)}
    classes = np.array([number[key] for key in keys], dtype=np.int64)
    first = np.array([keys.index(key) for key in known])
    sums = [
        np.fft.fftn((classes == j).reshape(shape).astype(np.float64)).real.ravel()[first]
        for j in range(len(known))
    ]
    hops = torus.distances_from(0)[first]
    return Scheme(shape, per_router, classes, hops, np.column_stack(sums))


def _key(difference: list[int], shape: tuple[int, ...]) -> Key:
    """Return what a coordinate difference has in common with its class."""
    bits = 0
    rings: dict[int, list[int]] = defaultdict(list)
    for x, n in zip(difference, shape, strict=True):
        folded = min(x, n - x)
        if n in (2, 4):
            bits += folded
        else:
            rings[n].append(folded)
    return bits, tuple((n, tuple(sorted(steps))) for n, steps in sorted(rings.items()))


def _hops(key: Key) -> int:
    return key[0] + sum(sum(steps) for _, steps in key[1])
