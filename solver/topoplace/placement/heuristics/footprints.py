"""A machine seen as lines and footprints: the tables the compiled searches read (`_kernels`)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, uses_whole_ring
from topoplace.placement.periodic_sums import periodic_sums

IntArray = NDArray[np.int64]
ReachArray = NDArray[np.int8 | np.int16 | np.int32]

MAX_TABLE = 1 << 29
"""Largest reach table (footprints x routers) a search builds."""


@dataclass(frozen=True)
class Footprints:
    """Every footprint of a machine, in lexicographic order, with its prefix-sum corners."""

    torus: Torus

    def __post_init__(self) -> None:
        num_footprints = self.torus.num_routers // self.torus.shape[-1]
        if num_footprints * self.torus.num_routers > MAX_TABLE:
            raise InputError(
                f"a machine with at most {MAX_TABLE} pairs of footprint and router "
                "for a search of prisms",
                field="machine.shape",
                value=self.torus.shape,
            )

    @property
    def depth(self) -> int:
        """Size of the last dimension."""
        return self.torus.shape[-1]

    @property
    def head(self) -> tuple[int, ...]:
        """Sizes of the leading dimensions."""
        return self.torus.shape[:-1]

    @property
    def reach_type(self) -> type[np.int8] | type[np.int16] | type[np.int32]:
        """Type of a reach table: the narrowest that holds twice a depth."""
        if self.depth < 1 << 6:
            return np.int8
        return np.int16 if self.depth < 1 << 14 else np.int32

    @cached_property
    def extents(self) -> IntArray:
        """Extents of every footprint, shape ``(num_footprints, num_dims - 1)``."""
        return self._grid(1)

    @cached_property
    def area(self) -> IntArray:
        """Lines of every footprint."""
        return np.asarray(self.extents.prod(axis=1), dtype=np.int64)

    def index(self, head: tuple[int, ...]) -> int:
        """Return the number of a footprint."""
        number = 0
        for e, n in zip(head, self.head, strict=True):
            number = number * n + e - 1
        return number

    def _grid(self, start: int) -> IntArray:
        head = len(self.head)
        if not head:
            return np.zeros((1, 0), dtype=np.int64)
        grid = np.indices(self.head).reshape(head, -1).T.astype(np.int64)
        return np.ascontiguousarray(grid + start)

    @cached_property
    def _pad_strides(self) -> IntArray:
        padded = [2 * n + 1 for n in self.head]
        return np.array(
            [int(np.prod(padded[d + 1 :], dtype=np.int64)) for d in range(len(padded))],
            dtype=np.int64,
        )

    @cached_property
    def bases(self) -> IntArray:
        """Prefix-sum corner of every line."""
        return np.asarray((self._grid(0) * self._pad_strides).sum(axis=1), dtype=np.int64)

    @cached_property
    def _corners(self) -> IntArray:
        head = len(self.head)
        corners = np.array(list(itertools.product((0, 1), repeat=head)), dtype=np.int64)
        return corners.reshape(2**head, head)

    @cached_property
    def signs(self) -> IntArray:
        """Sign of every corner of a footprint."""
        odd = (len(self.head) - self._corners.sum(axis=1)) % 2
        return np.asarray(1 - 2 * odd, dtype=np.int64)

    @cached_property
    def box(self) -> IntArray:
        """Corner offsets of every footprint, shape ``(num_footprints, 2 ** (num_dims - 1))``."""
        spans = self.extents[:, None, :] * self._corners
        return np.ascontiguousarray((spans * self._pad_strides).sum(axis=2).astype(np.int64))

    @cached_property
    def _plan(self) -> tuple[IntArray, IntArray, NDArray[np.int8]]:
        """For `_kernels.fold`: per footprint the dimensions to fold, footprints, extra links."""
        num = len(self.extents)
        dims = np.full((num, 2), -1, dtype=np.int64)
        smaller = np.zeros((num, 2), dtype=np.int64)
        extra = np.zeros(num, dtype=np.int8)
        for f, extents in enumerate(self.extents.tolist()):
            grown = [d for d, e in enumerate(extents) if e > 1]
            if not grown:
                continue
            whole = {d: uses_whole_ring(self.torus, d, extents[d]) for d in grown}
            # Two smaller prisms miss links of their own dimension only at these steps.
            plain = [
                d
                for d in grown
                if extents[d] > 2 and whole[d] == uses_whole_ring(self.torus, d, extents[d] - 1)
            ]
            chosen = plain[:1] or grown[:2]
            if not plain and len(grown) == 1:
                extra[f] = 2 if whole[grown[0]] else 1
            for k, d in enumerate(chosen):
                dims[f, k] = d
                less = (*extents[:d], extents[d] - 1, *extents[d + 1 :])
                smaller[f, k] = self.index(less)
        return dims, smaller, extra

    @property
    def fold_dims(self) -> IntArray:
        """Dimensions to fold per footprint, -1 for none."""
        return self._plan[0]

    @property
    def fold_smaller(self) -> IntArray:
        """Footprints to fold per footprint."""
        return self._plan[1]

    @property
    def fold_extra(self) -> NDArray[np.int8]:
        """Extra links per footprint (see `_kernels.fold`)."""
        return self._plan[2]

    def sums(self, per_router: IntArray) -> IntArray:
        """Return periodic prefix sums over all dimensions, shape ``(corners, 2 * depth + 1)``."""
        table = periodic_sums(per_router.reshape(self.torus.shape), self.torus.num_dims)
        return table.reshape(-1, 2 * self.depth + 1)

    def prism(self, code: int) -> Prism:
        """Return the prism that a kernel wrote as a code."""
        code, z = divmod(code, self.depth)
        code, line = divmod(code, len(self.bases))
        footprint, last = divmod(code, self.depth)
        origin = self.torus.coords(line * self.depth + z)
        return Prism(origin, (*self.extents[footprint].tolist(), last + 1))


@lru_cache(maxsize=4)
def footprints_of(torus: Torus) -> Footprints:
    """Return the footprints of a machine, shared between searches."""
    return Footprints(torus)
