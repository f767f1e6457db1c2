"""What prisms contain, and which are free: the tables that all compiled searches of prisms read.

A machine of shape (N_1, .., N_D) is seen as *lines*, the routers along its last dimension; a
*footprint* is the extents of a prism in all dimensions but the last. A prism then is a footprint on
a line, a place along the line and a depth. What it contains comes from prefix sums over two periods
of the machine, in which a prism across the end of a ring is in one piece: the sum over a footprint
is a signed sum over its corners, each of them a row along a line. A dimension of two or three
routers has so few prisms that the contents of each are stored instead, which saves half of the
corners, and memory.
"""

from __future__ import annotations

import itertools
import math
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, uses_whole_ring
from topoplace.types import BoolArray, IntArray

ReachArray = NDArray[np.int16 | np.int32]
CountSums = NDArray[np.int32]

MAX_TABLE = 1 << 31
"""Most pairs of footprint and router of a machine whose prisms are searched."""

_MAX_NATURAL = 1 << 23
"""Most pairs of footprint and line with the dimensions in the order of the machine."""

_SPARSE = 1 << 25  # bytes of a table that takes memory by pages
_MOST_LISTED = 3  # routers of a dimension whose prisms are so few that each has sums of its own

_MOST_KNOWN = 1 << 16  # prisms, some 500 bytes each

_AT_ONCE = 1 << 21  # routers of pairs of footprint and line between looks at the clock: 0.1 s or so


def sparse_zeros(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Return zeros that take memory where they are written to, page by small page if large."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    if size < _SPARSE:
        return np.zeros(shape, dtype=kind)
    room = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        room.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(room, dtype=kind).reshape(shape)


@dataclass(frozen=True)
class Reach:
    """The depth of free prisms, by footprint, line of the turned machine, and place along the line.

    Every smaller depth is free too: a shallower prism holds fewer routers and uses fewer links.
    On a busy machine most pairs of footprint and line have no free prism, and on an empty one
    nearly all are alike, so the depths along a line are rows that pairs share.

    Attributes
    ----------
    row
        By footprint and line the row of `depths`; 0 where no prism is free.
    depths
        Largest depth by row and place along the line, of 16 bits unless twice a depth takes 32;
        row 0 is that of no prism. Only `num_rows` rows are in use and take memory.
    tops
        Largest depth by row.
    deepest
        Largest depth per footprint, 0 for a dead one.
    """

    row: NDArray[np.int32]
    depths: ReachArray
    tops: ReachArray
    deepest: IntArray
    num_rows: int

    def of(self, footprint: int) -> ReachArray:
        """Return the largest depths of a footprint by origin, shape ``(num_routers,)``."""
        found: ReachArray = self.depths[self.row[footprint]].ravel()
        return found


@dataclass(frozen=True)
class Footprints:
    """The footprints of a machine, in lexicographic order, with their prefix-sum corners.

    Parameters
    ----------
    axes
        The order in which the dimensions are taken, by default that of the machine. Tables are
        smallest and searches fastest if the longest one comes last.
    head
        The only footprint to look at; by default all are.
    """

    torus: Torus
    axes: tuple[int, ...] = ()
    head: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.axes:
            object.__setattr__(self, "axes", tuple(range(self.torus.num_dims)))

    @property
    def whole(self) -> Footprints:
        """All footprints of the machine."""
        return self if self.head is None else footprints_of(self.torus)

    @cached_property
    def turned(self) -> Torus:
        """The machine with its dimensions in the order of `axes`."""
        torus = self.torus
        wrap = tuple(torus.wrap[d] for d in self.axes)
        sizes = self.coords(torus.shape), wrap, self.coords(torus.bandwidth)
        return Torus(*sizes, torus.nodes_per_router)

    @property
    def depth(self) -> int:
        """Size of the last dimension."""
        return self.turned.shape[-1]

    def per_router(self, values: NDArray[Any]) -> NDArray[Any]:
        """Turn a table with a number per router as the machine is turned."""
        return np.ascontiguousarray(values.reshape(self.torus.shape).transpose(self.axes))

    def per_link(self, values: NDArray[Any]) -> NDArray[Any]:
        """Turn a table with a number per link as the machine is turned."""
        layers = values.reshape(self.torus.num_dims, *self.torus.shape)
        return np.stack([self.per_router(layers[d]).ravel() for d in self.axes])

    def coords(self, coords: tuple[int, ...]) -> tuple[int, ...]:
        """Return coordinates on the machine as those on the turned machine."""
        return tuple(coords[d] for d in self.axes)

    def back(self, coords: Sequence[int]) -> tuple[int, ...]:
        """Return coordinates on the turned machine as those on the machine."""
        return tuple(coords[k] for k in self._turned_back)

    @cached_property
    def _turned_back(self) -> list[int]:
        """Which axis of the turned machine each one of the machine is."""
        return [self.axes.index(d) for d in range(len(self.axes))]

    @cached_property
    def extents(self) -> IntArray:
        """Extents of every footprint, shape ``(num_footprints, num_dims - 1)``."""
        if self.head is not None:
            return np.array([self.head], dtype=np.int64)
        return self.line_coords + 1

    @cached_property
    def area(self) -> IntArray:
        """Lines of every footprint."""
        return np.asarray(self.extents.prod(axis=1), dtype=np.int64)

    def index(self, head: tuple[int, ...]) -> int:
        """Return the number of a footprint among all."""
        return sum((e - 1) * s for e, s in zip(head, self._line_strides, strict=True))

    def chunks(self, num_lines: int, among: IntArray | None = None) -> Iterator[IntArray]:
        """Yield footprints in groups, between which the clock is read."""
        every = np.arange(len(self.extents)) if among is None else among
        size = max(1, _AT_ONCE // (max(1, num_lines) * self.depth))
        return (every[k : k + size].copy() for k in range(0, len(every), size))

    @cached_property
    def line_coords(self) -> IntArray:
        """Leading coordinates of every line, shape ``(num_lines, num_dims - 1)``."""
        head = self.turned.shape[:-1]
        return np.array(list(np.ndindex(*head)), dtype=np.int64).reshape(math.prod(head), len(head))

    @cached_property
    def slots(self) -> IntArray:
        """First coordinate of every line: candidates are kept one per slot for variety."""
        slots: IntArray = self.line_coords[:, :1].sum(axis=1)
        return slots

    @property
    def num_slots(self) -> int:
        """Number of slots."""
        return int(self.slots[-1]) + 1

    @cached_property
    def listed(self) -> BoolArray:
        """Which leading dimensions have a sum for every prism; at least one has prefix sums."""
        sizes = np.array(self.turned.shape[:-1], dtype=np.int64)
        short: BoolArray = sizes <= _MOST_LISTED
        return short & ~short.all()

    @cached_property
    def _padded(self) -> list[int]:
        """Corners along each leading dimension."""
        return [
            n * (n - 1) + 1 if listed else 2 * n + 1
            for n, listed in zip(self.turned.shape[:-1], self.listed.tolist(), strict=True)
        ]

    @property
    def num_corners(self) -> int:
        """Rows of prefix sums over all dimensions but the last."""
        return math.prod(self._padded)

    @cached_property
    def pad_strides(self) -> IntArray:
        """Corner-number step of one router in each leading dimension."""
        padded = self._padded
        return np.array([math.prod(padded[d + 1 :]) for d in range(len(padded))], dtype=np.int64)

    @cached_property
    def bases(self) -> IntArray:
        """Prefix-sum corner of every line."""
        return self.line_coords @ self.pad_strides

    @cached_property
    def signs(self) -> IntArray:
        """Sign of every corner of a footprint."""
        return _corners(self.turned.num_dims - 1 - int(self.listed.sum()))[1]

    def _offsets(self, lengths: IntArray) -> IntArray:
        """Return the corner offsets of boxes; a box without length has the same corner everywhere.

        The sums of the prisms of a listed dimension stand by length, then origin.
        """
        listed, steps = self.listed, lengths * self.pad_strides
        corners, _ = _corners(int((~listed).sum()))
        passed = (lengths - 1) * np.array(self.turned.shape[:-1], dtype=np.int64) * self.pad_strides
        offsets: IntArray = steps[:, ~listed] @ corners.T + passed[:, listed].sum(axis=1)[:, None]
        offsets[(lengths[:, listed] == 0).any(axis=1)] = 0
        return offsets

    @cached_property
    def box(self) -> IntArray:
        """Corner offsets of every footprint, shape ``(num_footprints, num_corners)``."""
        return self._offsets(self.extents)

    @cached_property
    def link(self) -> IntArray:
        """Corner offsets of the d-links used by prisms of every footprint, per leading d."""
        return self._per_dim(np.where(self._passing, self.turned.shape[:-1], self.extents - 1))

    @cached_property
    def face(self) -> IntArray:
        """Corner offsets of a one-router-thick face normal to each leading d."""
        return self._per_dim(np.ones_like(self.extents))

    def _per_dim(self, lengths: IntArray) -> IntArray:
        """Return corner offsets of footprints that have another length in each dimension."""
        tables = np.zeros((self.turned.num_dims - 1, *self.box.shape), dtype=np.int64)
        for d in range(len(tables)):
            this = np.arange(self.turned.num_dims - 1) == d
            tables[d] = self._offsets(np.where(this, lengths, self.extents))
        return tables

    @cached_property
    def _passing(self) -> BoolArray:
        """Whether a footprint uses whole rings of each leading dimension."""
        passing = np.zeros(self.extents.shape, dtype=bool)
        for d, n in enumerate(self.turned.shape[:-1]):
            by_extent = np.array([uses_whole_ring(self.turned, d, e) for e in range(n + 1)])
            passing[:, d] = by_extent[self.extents[:, d]]
        return passing

    @cached_property
    def smaller(self) -> IntArray:
        """Footprints with one extent less by one, or -1, shape ``(num_footprints, num_dims-1)``."""
        found = np.full_like(self.extents, -1)
        if self.head is None:
            numbers = np.arange(len(self.extents))
            for d, stride in enumerate(self._line_strides):
                found[:, d] = np.where(self.extents[:, d] > 1, numbers - stride, -1)
        return found

    @cached_property
    def ahead(self) -> IntArray:
        """Next line in every leading dimension, or -1, shape ``(num_lines, num_dims - 1)``."""
        numbers = np.arange(len(self.bases))
        following = np.empty_like(self.line_coords)
        for d, stride in enumerate(self._line_strides):
            n, wraps = self.turned.shape[d], self.turned.wrap[d]
            last = self.line_coords[:, d] == n - 1
            after = numbers - (n - 1) * stride if wraps else -1
            following[:, d] = np.where(last, after, numbers + stride)
        return following

    @property
    def _line_strides(self) -> list[int]:
        return [stride // self.depth for stride in self.turned.strides[:-1]]

    @cached_property
    def _plan(self) -> tuple[IntArray, IntArray, NDArray[np.int8]]:
        """For `_kernels.fold`: per footprint the dimensions to fold, footprints, extra links."""
        head = np.arange(self.extents.shape[1])
        grown, whole = self.extents > 1, self._passing
        # Two smaller prisms miss links of their own dimension only at other steps than these.
        plain = (self.extents > 2) & (whole == whole[self.smaller, head])
        any_plain = plain.any(axis=1)
        chosen = np.where(any_plain[:, None], plain.cumsum(axis=1) == 1, grown.cumsum(axis=1) <= 2)
        chosen &= np.where(any_plain[:, None], plain, grown)
        f, d = np.nonzero(chosen)
        k = chosen.cumsum(axis=1)[f, d] - 1
        dims = np.full((len(chosen), 2), -1, dtype=np.int64)
        smaller = np.zeros_like(dims)
        dims[f, k], smaller[f, k] = d, self.smaller[f, d]
        alone = np.flatnonzero(~any_plain & (grown.sum(axis=1) == 1))
        extra = np.zeros(len(chosen), dtype=np.int8)
        extra[alone] = 1 + whole[alone, dims[alone, 0]]
        return dims, smaller, extra

    def slice_sums(self, values: IntArray) -> IntArray:
        """Return periodic prefix sums over all dimensions but the last, ``(corners, depth)``."""
        table = self._periodic_sums(values.astype(np.int64), self.turned.num_dims - 1)
        return table.reshape(-1, self.depth)

    def sums(self, counts: IntArray) -> CountSums:
        """Return periodic prefix sums over all dimensions, ``(corners, 2 * depth + 1)``.

        Those are of counts of nodes or routers, which take 32 bits.
        """
        table = self._periodic_sums(counts.astype(np.int32), self.turned.num_dims)
        return table.reshape(-1, 2 * self.depth + 1)

    def _periodic_sums(self, values: NDArray[Any], num_summed: int) -> NDArray[Any]:
        """Return sums of a number per router along the first dimensions.

        One of size n has size ``2 * n + 1`` in the result: entry k is the sum of the k before it.
        A listed one has the sums over one router, then over two, and so on, by origin; that over
        all is there once.
        """
        from topoplace.placement.torus import _kernels  # noqa: PLC0415 - numba is heavy

        table = self.per_router(values)
        listed, sizes = [*self.listed.tolist(), False], list(self.turned.shape)
        for d in sorted(range(num_summed), key=lambda d: not listed[d]):  # these grow less
            n = sizes[d]
            layers = table.reshape(-1, n, math.prod(sizes[d + 1 :]))
            if listed[d]:
                windows = [layers]
                for length in range(1, n):
                    windows.append(windows[-1] + np.roll(layers, -length, axis=1))
                windows[-1] = windows[-1][:, :1]
                table = np.concatenate(windows, axis=1)
            else:
                table = _kernels.sums_along(layers)
            sizes[d] = table.shape[1]
        return table

    def inside(self, sums: CountSums, origins: IntArray, extents: IntArray) -> IntArray:
        """Return what `sums` are of, summed over boxes, shape ``(num_boxes,)``.

        Parameters
        ----------
        origins, extents
            Of boxes on the machine, ``(num_boxes, num_dims)``; an extent of 0 makes one empty.
        """
        origins, extents = origins[:, self.axes], extents[:, self.axes]
        first = (origins[:, :-1] @ self.pad_strides)[:, None] + self._offsets(extents[:, :-1])
        begin = origins[:, -1:]
        along = sums[first, begin + extents[:, -1:]] - sums[first, begin]
        total: IntArray = along @ self.signs
        return total

    def everywhere(self, sums: CountSums, extents: tuple[int, ...]) -> CountSums:
        """Return what `sums` are of, summed over a prism at every origin of the turned machine."""
        table = sums.reshape(*self._padded, 2 * self.depth + 1)
        listed, shape = [*self.listed.tolist(), False], self.turned.shape
        for d in sorted(range(len(shape)), key=lambda d: not listed[d]):  # these shrink most
            before, n, e = (slice(None),) * d, shape[d], extents[d]
            if listed[d]:  # the only one over all stands for every origin
                table = table[(*before, slice((e - 1) * n, e * n))]
            else:
                table = table[(*before, slice(e, e + n))] - table[(*before, slice(n))]
        found: CountSums = np.broadcast_to(table, shape).ravel() if any(listed) else table.ravel()
        return found

    def reach(self, blocked: BoolArray, closed: BoolArray, over: Reach | None = None) -> Reach:
        """Return the depth of prisms that hold no blocked router and use no closed link.

        Parameters
        ----------
        blocked, closed
            Per router, and per link number.
        over
            A reach whose memory is written over.

        Raises
        ------
        InputError
            If the machine is too large.
        """
        from topoplace.placement.torus import _kernels  # noqa: PLC0415 - numba is heavy

        torus, lines = self.turned, (len(self.bases), self.depth)
        if over is None:
            over = self._no_reach()
        links, wraps = self.per_link(closed), torus.wrap[-1]
        head = torus.num_dims - 1
        alone = np.zeros(lines, dtype=over.depths.dtype)
        _kernels.runs(
            self.per_router(blocked).reshape(lines), links[-1].reshape(lines), wraps, alone
        )
        along, around = np.zeros((2, max(head, 1), *lines), dtype=over.depths.dtype)
        nothing = np.zeros(lines, dtype=bool)
        for d in range(head):
            _kernels.runs(links[d].reshape(lines), nothing, wraps, along[d])
            rings = along[d].reshape(-1, torus.shape[d], torus.strides[d])
            least = np.broadcast_to(rings.min(axis=1, keepdims=True), rings.shape)
            around[d] = least.reshape(lines)
        by_dim = np.ascontiguousarray(self.line_coords.T), np.ascontiguousarray(self.ahead.T)
        num_rows = _kernels.fold(
            np.array(torus.shape), np.array(torus.wrap), self.extents, *by_dim, *self._plan,
            alone, along, around, over.row, over.depths, over.tops, over.deepest,
        )  # fmt: skip
        return replace(over, num_rows=num_rows)

    def _no_reach(self) -> Reach:
        shape = len(self.extents), len(self.bases)
        if math.prod(shape) * self.depth > MAX_TABLE:
            raise InputError(
                f"a machine with at most {MAX_TABLE} pairs of footprint and router "
                "for a search of prisms",
                field="machine.shape",
                value=self.torus.shape,
            )
        dims, _, extra = self._plan
        most_of = 1 + 2 * (dims[:, 1] >= 0) + 2 * (extra > 0)  # passes over all lines in `fold`
        num_rows = 2 + int(most_of.sum()) * shape[1]
        kind = np.int16 if 2 * self.depth <= np.iinfo(np.int16).max else np.int32
        return Reach(
            row=sparse_zeros(shape, np.int32),
            depths=sparse_zeros((num_rows, self.depth), kind),
            tops=sparse_zeros((num_rows,), kind),
            deepest=np.zeros(shape[0], dtype=np.int64),
            num_rows=1,
        )

    def prism(self, code: int) -> Prism:
        """Return the prism of the machine that a kernel wrote as a code."""
        found = self._known.get(code)
        if found is None:
            rest, z = divmod(code, self.depth)
            rest, line = divmod(rest, len(self.bases))
            footprint, last = divmod(rest, self.depth)
            origin = (*self.line_coords[line].tolist(), z)
            extents = (*self.extents[footprint].tolist(), last + 1)
            found = Prism(self.back(origin), self.back(extents))
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[code] = found
        return found

    @cached_property
    def _known(self) -> dict[int, Prism]:
        """Prisms by code: searches find the same ones again and again."""
        return {}


@cache
def _corners(num_dims: int) -> tuple[IntArray, IntArray]:
    """Return the corners of a box, 1 where it ends, and their signs in sums over it."""
    corners = np.array(list(itertools.product((0, 1), repeat=num_dims)), dtype=np.int64)
    corners = corners.reshape(2**num_dims, num_dims)
    return corners, 1 - 2 * ((num_dims - corners.sum(axis=1)) % 2)


@lru_cache(maxsize=4)
def footprints_of(torus: Torus) -> Footprints:
    """Return the footprints of a machine, shared between searches."""
    return Footprints(torus)


@lru_cache(maxsize=4)
def quickest_footprints(torus: Torus) -> Footprints:
    """Return the footprints of a machine seen with its longest dimension last."""
    longest = max(range(torus.num_dims), key=lambda d: (torus.shape[d], d))
    others = [d for d in range(torus.num_dims) if d != longest]
    return Footprints(torus, (*others, longest))


def search_footprints(torus: Torus) -> Footprints:
    """Return the footprints for searches that keep one prism per request.

    Ties go by the order of the machine's dimensions; only if the tables would be too large for
    that, the longest dimension comes last.
    """
    natural = (torus.num_routers // torus.shape[-1]) ** 2 <= _MAX_NATURAL
    return (footprints_of if natural else quickest_footprints)(torus)
