"""A machine seen as lines and footprints: the tables the compiled loops read."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, uses_whole_ring
from topoplace.placement.periodic_sums import periodic_sums

IntArray = NDArray[np.int64]

MAX_TABLE = 1 << 29
"""Largest reach table (footprints x routers) the exact method builds."""


@dataclass(frozen=True)
class LineView:
    """Lines, footprints and prefix-sum corners of a torus (see `_kernels`).

    Attributes
    ----------
    extents
        Extents of every footprint, shape ``(num_footprints, num_dims - 1)``.
    box, link, face
        Corner offsets of a footprint's sum; of the sum of the d-links its prisms use (`link[d]`),
        and of one of its faces normal to d (`face[d]`). Last axis: corners, with `signs`.
    """

    torus: Torus
    footprints: tuple[tuple[int, ...], ...]

    @classmethod
    def all_footprints(cls, torus: Torus) -> LineView:
        """Return the view with every footprint of the machine."""
        head = torus.shape[:-1]
        return cls(torus, tuple(itertools.product(*(range(1, n + 1) for n in head))))

    def __post_init__(self) -> None:
        if len(self.footprints) * self.torus.num_routers > MAX_TABLE:
            raise InputError(
                f"a machine with at most {MAX_TABLE} pairs of footprint and router "
                "for the exact method",
                field="machine.shape",
                value=self.torus.shape,
            )

    @property
    def depth(self) -> int:
        """Size of the last dimension."""
        return self.torus.shape[-1]

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """Prefix-sum corners per leading dimension: two periods and the zero corner."""
        return tuple(2 * n + 1 for n in self.torus.shape[:-1])

    @cached_property
    def pad_strides(self) -> IntArray:
        """Corner-number step of one router in each leading dimension."""
        shape = self.padded_shape
        return np.array(
            [int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(len(shape))],
            dtype=np.int64,
        )

    @cached_property
    def line_coords(self) -> IntArray:
        """Leading coordinates of every line, shape ``(num_lines, num_dims - 1)``."""
        head = self.torus.shape[:-1]
        if not head:
            return np.zeros((1, 0), dtype=np.int64)
        return np.ascontiguousarray(np.indices(head).reshape(len(head), -1).T.astype(np.int64))

    @cached_property
    def bases(self) -> IntArray:
        """Corner number of every line."""
        bases: IntArray = (self.line_coords * self.pad_strides).sum(axis=1)
        return bases

    @cached_property
    def slots(self) -> IntArray:
        """First coordinate of every line: candidates are kept one per slot for variety."""
        if self.torus.num_dims == 1:
            return np.zeros(1, dtype=np.int64)
        return np.ascontiguousarray(self.line_coords[:, 0])

    @cached_property
    def extents(self) -> IntArray:
        """Footprints as an array."""
        return np.array(self.footprints, dtype=np.int64).reshape(
            len(self.footprints), self.torus.num_dims - 1
        )

    @cached_property
    def _corners(self) -> IntArray:
        head = self.torus.num_dims - 1
        corners = np.array(list(itertools.product((0, 1), repeat=head)), dtype=np.int64)
        return corners.reshape(1 << head, head)

    @cached_property
    def signs(self) -> IntArray:
        """Sign of every corner of a footprint."""
        head = self.torus.num_dims - 1
        return np.where((head - self._corners.sum(axis=1)) % 2 == 0, 1, -1).astype(np.int64)

    def _offsets(self, lengths: IntArray) -> IntArray:
        return np.ascontiguousarray(
            ((lengths[:, None, :] * self._corners) * self.pad_strides).sum(axis=2).astype(np.int64)
        )

    @cached_property
    def box(self) -> IntArray:
        """Corner offsets of every footprint."""
        return self._offsets(self.extents)

    @cached_property
    def link(self) -> IntArray:
        """Corner offsets of the d-links used by prisms of every footprint, per leading d."""
        tables = []
        for d in range(self.torus.num_dims - 1):
            lengths = self.extents.copy()
            whole = np.array([uses_whole_ring(self.torus, d, int(e)) for e in lengths[:, d]])
            lengths[:, d] = np.where(whole, self.torus.shape[d], lengths[:, d] - 1)
            tables.append(self._offsets(lengths))
        return self._stack(tables)

    @cached_property
    def face(self) -> IntArray:
        """Corner offsets of a one-router-thick face normal to each leading d."""
        tables = []
        for d in range(self.torus.num_dims - 1):
            lengths = self.extents.copy()
            lengths[:, d] = 1
            tables.append(self._offsets(lengths))
        return self._stack(tables)

    def _stack(self, tables: list[IntArray]) -> IntArray:
        if tables:
            return np.ascontiguousarray(np.stack(tables))
        return np.zeros((0, len(self.footprints), len(self.signs)), dtype=np.int64)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which lines may be the origin of which footprints (canonical, inside a mesh)."""
        ok = np.ones((len(self.footprints), len(self.bases)), dtype=bool)
        for d in range(self.torus.num_dims - 1):
            n = self.torus.shape[d]
            origin = self.line_coords[None, :, d]
            extent = self.extents[:, None, d]
            if self.torus.wrap[d]:
                ok &= (extent < n) | (origin == 0)
            else:
                ok &= origin + extent <= n
        return ok

    @cached_property
    def smaller(self) -> IntArray:
        """Footprints with one extent less by one, or -1, shape ``(num_footprints, num_dims-1)``."""
        index = {f: i for i, f in enumerate(self.footprints)}
        rows = [
            [index.get((*f[:d], f[d] - 1, *f[d + 1 :]), -1) for d in range(len(f))]
            for f in self.footprints
        ]
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.torus.num_dims - 1)

    @cached_property
    def ahead(self) -> IntArray:
        """Next line in every leading dimension, or -1, shape ``(num_lines, num_dims - 1)``."""
        head = self.torus.shape[:-1]
        numbers = np.arange(len(self.bases)).reshape(head)
        following = np.empty((len(self.bases), len(head)), dtype=np.int64)
        for d, n in enumerate(head):
            following[:, d] = np.roll(numbers, -1, axis=d).reshape(-1)
            if not self.torus.wrap[d]:
                following[self.line_coords[:, d] == n - 1, d] = -1
        return following

    def prefix_sums(self, per_router: IntArray) -> IntArray:
        """Return periodic prefix sums over the leading dimensions, shape ``(corners, depth)``."""
        table = periodic_sums(per_router.reshape(self.torus.shape), self.torus.num_dims - 1)
        return table.reshape(-1, self.depth)

    def prism(self, code: int) -> Prism:
        """Return the prism a kernel wrote as a code."""
        code, last = divmod(code, self.depth)
        code, z0 = divmod(code, self.depth)
        footprint, line = divmod(code, len(self.bases))
        origin = (*self.line_coords[line].tolist(), z0)
        return Prism(tuple(origin), (*self.footprints[footprint], last + 1))
