"""Groups of requests that are priced together, and the prisms that each may take.

On the first level the value of a prism is that of its request, no matter what its shape is. So of
the prisms that reach a size, only those matter that contain no smaller one that does. There are few
of them, and they do not depend on prices: they are listed once and priced again and again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.packing.problem import Cover
from topoplace.placement.torus.footprints import (
    Footprints,
    Reach,
    ReachArray,
    footprints_of,
    quickest_footprints,
    sparse_zeros,
)
from topoplace.placement.torus.heuristics.prism_search import least_of, near_depths
from topoplace.placement.torus.oracle import _kernels, _minimal, _valued
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.state import NearState
from topoplace.types import BoolArray, IntArray

MOST_ENTRIES, MOST_VALUED = 1 << 25, 1 << 23
"""Most entries of a group, 4 bytes each, and 12 on later levels. Prisms of a larger one are scanned
on every pass."""

PriceSums = tuple[IntArray, IntArray, IntArray]
"""Prefix sums of a group's prices of routers and of links, none if no link is priced; and the
leading dimensions that have a priced link. The sums of the last dimension follow."""

_LINE_WORK, _ENTRY_WORK = 1e-7, 1e-9  # nominal seconds, by line of origins, and by prism
_GROUP_BYTES = 1 << 10  # about what a group takes without its arrays

_GroupKey = tuple[
    int, str | None, bool, bool, tuple[Hashable, Geometry] | None, NearState | None, int | None
]


@dataclass(frozen=True)
class Listing:
    """The minimal prisms with an origin on some lines, as `_minimal.list_minimal` returns them."""

    footprints: NDArray[np.int32]
    at: NDArray[np.int32]
    starts: IntArray
    entries: NDArray[np.uint32]

    @property
    def num_bytes(self) -> int:
        """What it takes."""
        return sum(a.nbytes for a in (self.footprints, self.at, self.starts, self.entries))

    @property
    def work(self) -> float:
        """What `price` takes in nominal seconds."""
        return _LINE_WORK * len(self.starts) + _ENTRY_WORK * len(self.entries)

    def price(
        self,
        view: Footprints,
        sums: PriceSums,
        weights: tuple[int, int],
        values: IntArray,
        codes: IntArray,
    ) -> None:
        """Update the largest values per slot and size, and their prisms.

        Parameters
        ----------
        weights
            Of the shape of a prism, and of its links to free routers; minimal ones have neither.
        values, codes
            Shape ``(num_slots, num_sizes)``; a value is a price taken negative.
        """
        routers, links, leading = sums
        _minimal.price_minimal(
            self.footprints, self.at, self.starts, self.entries,
            view.bases, view.slots, view.box, view.link[leading], view.signs,
            routers, links[:-1], links[-1] if len(links) else routers, len(links) > 0,
            values, codes,
        )  # fmt: skip

    def within(self, free: Reach) -> Listing:
        """Return the listing of those prisms that are free."""
        parts = self.footprints, self.at, self.starts, self.entries
        return Listing(*_minimal.those_within(*parts, free.row, free.depths))


@dataclass(frozen=True)
class ValuedListing(Listing):
    """The prisms with an origin on some lines, as `_valued.list_valued` returns them."""

    shapes: NDArray[np.int32]
    beside: NDArray[np.int32]

    def price(
        self,
        view: Footprints,
        sums: PriceSums,
        weights: tuple[int, int],
        values: IntArray,
        codes: IntArray,
    ) -> None:
        """Update the largest values per slot and size, and their prisms."""
        routers, links, leading = sums
        _valued.price_valued(
            self.footprints, self.at, self.starts, self.entries, self.shapes, self.beside, *weights,
            view.bases, view.slots, view.box, view.link[leading], view.signs,
            routers, links[:-1], links[-1] if len(links) else routers, len(links) > 0,
            values, codes,
        )  # fmt: skip


@dataclass
class Prisms:
    """Prisms of a group, some listings per part of its lines; listed on first use."""

    listed: list[list[Listing]] | None = None
    too_many: bool = False

    def listings(
        self,
        make: Callable[[IntArray], list[Listing] | None],
        parts: Sequence[IntArray],
        map_parts: Callable[
            [Callable[[IntArray], list[Listing] | None], Sequence[IntArray]],
            list[list[Listing] | None],
        ],
    ) -> list[list[Listing]] | None:
        """Return the listings that `make` makes by parts of lines; None if there are too many.

        Raises
        ------
        OutOfTimeError
            At the deadline.
        """
        if self.listed is None and not self.too_many:
            found = map_parts(make, parts)
            there = [part for part in found if part is not None]
            self.too_many = len(there) < len(found)
            self.listed = None if self.too_many else there
        return self.listed


def list_minimal(
    group: Group, num_parts: int, deadline: float, lines: IntArray
) -> list[Listing] | None:
    """List the minimal prisms with an origin on some lines; None if they are too many."""
    view = group.view
    left = MOST_ENTRIES // num_parts
    if view.depth > _minimal.LONGEST or len(group.sizes) > _minimal.MOST_SIZES:
        return None
    found = []
    for footprints in view.chunks(len(lines), group.footprints):
        clock.check(deadline)
        listing = Listing(
            *_minimal.list_minimal(
                footprints, lines, group.row, group.depths, group.least,
                group.live, view.bases, view.box, view.signs, view.smaller, view.ahead,
                group.count_sat, group.sizes, view.turned.wrap[-1], left,
            )
        )  # fmt: skip
        if not len(listing.starts):
            return None
        left -= len(listing.entries)
        found.append(listing)
    return found


def list_valued(
    group: Group,
    problem: PlacementProblem,
    num_parts: int,
    deadline: float,
    lines: IntArray,
) -> list[Listing] | None:
    """List the prisms with an origin on some lines and their values; None if they are too many."""
    view, left = group.view, MOST_VALUED // num_parts
    most = int(np.abs(group.shape_part).max(initial=0))
    most += problem.idle_weight * len(group.bucket_of_count)
    if view.depth > _minimal.LONGEST or len(group.sizes) > _minimal.MOST_SIZES or most >> 31:
        return None
    free, found = view.slice_sums(problem.free_routers.astype(np.int64)), list[Listing]()
    for footprints in view.chunks(len(lines), group.footprints):
        clock.check(deadline)
        listing = ValuedListing(
            *_valued.list_valued(
                footprints, lines, group.row, group.depths, group.least, group.live,
                view.bases, view.line_coords, view.pad_strides, view.extents,
                np.array(view.turned.shape), np.array(view.turned.wrap),
                view.box, view.face, view.signs, group.count_sat, free, group.shape_part,
                problem.idle_weight, group.bucket_of_count, left,
            )
        )  # fmt: skip
        if not len(listing.starts):
            return None
        left -= len(listing.entries)
        found.append(listing)
    return found


@dataclass
class Group:
    """Requests that share their candidates except for the number of nodes they need.

    Those that may share links (`tolerant`) pay for link rows of their own. `row` and `depths` are
    those of a `Reach`; `least`, where it has rows, are the smallest depths admitted. `taken` are
    routers and links that no listed prism uses.
    """

    requests: list[int]
    class_idx: int
    tolerant: bool
    uses_links: bool
    view: Footprints
    row: NDArray[np.int32]
    depths: ReachArray
    least: ReachArray
    live: NDArray[np.int8]
    count_sat: IntArray
    sizes: IntArray
    bucket_of_count: NDArray[np.int16]
    shape_part: IntArray
    minimal: Prisms = field(default_factory=Prisms)
    valued: Prisms = field(default_factory=Prisms)
    taken: tuple[BoolArray, BoolArray] | None = None

    @property
    def footprints(self) -> IntArray:
        """Those with a free prism."""
        return np.flatnonzero(self.live.any(axis=1))

    def without(self, requests: frozenset[int]) -> Group:
        """Return the group with some requests left out."""
        return replace(self, requests=[i for i in self.requests if i not in requests])

    def within(
        self, requests: list[int], covers: Sequence[Cover], nodes: int, deadline: float
    ) -> Group:
        """Return the group of some of its requests, of `nodes` nodes, under branches on covers.

        Raises
        ------
        OutOfTimeError
            At the deadline.
        """
        view = self.view
        inside = np.array([cover.inside for cover in covers])
        rows = 1 + np.count_nonzero(self.live), view.depth
        depths = np.zeros(rows, dtype=self.depths.dtype)
        has_least = inside.any() or len(self.least)
        least = np.zeros_like(depths if has_least else self.least)
        row = sparse_zeros(self.row.shape, self.row.dtype)
        live = sparse_zeros(self.live.shape, self.live.dtype)
        coords = [view.coords(view.torus.coords(cover.row)) for cover in covers]
        num = 1
        for footprints in view.chunks(len(view.bases), self.footprints):
            clock.check(deadline)
            num = _kernels.narrow(
                footprints, self.row, self.depths, self.least, self.live, view.extents,
                view.line_coords, np.array(view.turned.shape), np.array(coords), inside,
                row, depths, least, live, num,
            )  # fmt: skip
        return replace(
            self,
            requests=requests,
            row=row,
            depths=depths[:num].copy(),
            least=least[:num].copy(),
            live=live,
            sizes=np.array([nodes]),
            bucket_of_count=(np.arange(len(self.bucket_of_count)) >= nodes).astype(np.int16) - 1,
            minimal=Prisms(),
            valued=Prisms(too_many=True),  # few passes are over them
            taken=None,
        )

    @property
    def has_tables(self) -> bool:
        """Whether its tables have not been freed (`let_tables_go`)."""
        return len(self.row) > 0

    def let_tables_go(self) -> None:
        """Free the tables, for a group whose minimal prisms are listed."""
        self.row, self.live = self.row[:0].copy(), self.live[:0].copy()
        self.depths, self.least = self.depths[:0].copy(), self.least[:0].copy()

    def with_tables_of(self, group: Group) -> Group:
        """Return the group with the tables of the one it was narrowed from, to free its own.

        That is for a group whose minimal prisms are listed, and of use on the first level only.
        """
        return replace(self, row=group.row, depths=group.depths, least=group.least, live=group.live)

    @property
    def own_bytes(self) -> int:
        """What a group that was narrowed takes: its listings, or else its tables."""
        listed = self.minimal.listed
        if listed is None:
            tables = self.row, self.depths, self.least, self.live
            return _GROUP_BYTES + sum(table.nbytes for table in tables)
        return _GROUP_BYTES + sum(listing.num_bytes for part in listed for listing in part)


def groups_of(problem: PlacementProblem, deadline: float) -> Iterator[Group]:
    """Make the groups of all requests of a problem.

    Raises
    ------
    OutOfTimeError
        At the deadline.
    """
    keys: dict[_GroupKey, list[int]] = {}
    for idx, request in enumerate(problem.requests):
        tolerant = problem.is_tolerant(request.communication)
        alternatives = itertools.product(request.ways, request.geometries or (None,))
        for way, geometry in alternatives:
            key: _GroupKey = (
                way.class_idx,
                request.region,
                problem.uses_links(request.communication),
                tolerant,
                None if geometry is None else (problem.kinds[idx], geometry),
                request.near,
                problem.priced_as(idx),
            )
            keys.setdefault(key, []).append(idx)
    known: dict[object, tuple[Reach, NDArray[np.int8]]] = {}
    for (class_idx, region, uses_links, tolerant, alternative, near, _), members in keys.items():
        clock.check(deadline)
        request = problem.requests[members[0]]
        whole = (footprints_of if request.has_depths else quickest_footprints)(problem.torus)
        reach_key = (region, request.communication, whole.axes)
        if reach_key not in known:
            found = problem.reach(request, whole)
            known[reach_key] = found, _live_lines(found)
        view, (reach, live) = whole, known[reach_key]
        row, depths = reach.row, reach.depths[: reach.num_rows]
        least = depths[:0]
        if alternative is not None:
            geometry = alternative[1]
            head = geometry.extents[:-1]
            view, only = Footprints(problem.torus, head=head), [whole.index(head)]
            whole_routers = problem.whole_routers(class_idx)
            row = np.arange(1, len(view.bases) + 1, dtype=np.int32)[None]
            bounds = least_of(problem.torus, request, geometry, whole_routers)
            depths, least = _geometry_depths(view, reach.of(only[0]), geometry, bounds)
            live = live[only]
        elif near is not None:
            row, depths, least = _near_depths(view, reach, near_depths(problem.torus, near))
        usable = problem.state.usable_per_router[class_idx]
        sizes = np.unique([problem.requests[i].nodes for i in members])
        counts = np.arange(int(usable.sum()) + 1)
        yield Group(
            requests=members,
            class_idx=class_idx,
            tolerant=tolerant,
            uses_links=uses_links,
            view=view,
            row=row,
            depths=depths,
            least=least,
            live=live.copy()
            if len(keys) > 1
            else live,  # a pass marks what is too small for these requests
            count_sat=view.slice_sums(usable),
            sizes=sizes,
            bucket_of_count=(np.searchsorted(sizes, counts, side="right") - 1).astype(np.int16),
            shape_part=_extent_values(problem.extent_values(members[0]), view),
        )


def _live_lines(found: Reach) -> NDArray[np.int8]:
    """Return which pairs of footprint and line have a free prism."""
    live = sparse_zeros(found.row.shape, np.int8)
    for footprint in np.flatnonzero(found.deepest).tolist():
        live[footprint] = found.row[footprint] > 0
    return live


def _geometry_depths(
    view: Footprints, depths: ReachArray, geometry: Geometry, bounds: IntArray | None
) -> tuple[ReachArray, ReachArray]:
    """Narrow the depths by origin to those a geometry admits, with a bound below by origin.

    Returns the largest and the smallest by line and place, a line of zeros before them.
    """
    deepest = np.minimum(depths, geometry.depths[-1])
    least = np.full_like(deepest, geometry.depths[0])
    if bounds is not None:
        least = np.maximum(least, bounds).astype(depths.dtype)
    nothing = np.zeros(view.depth, dtype=depths.dtype)
    largest, smallest = (np.concatenate([nothing, table]) for table in (deepest, least))
    return largest.reshape(-1, view.depth), smallest.reshape(-1, view.depth)


def _near_depths(
    view: Footprints, reach: Reach, bounds: IntArray
) -> tuple[NDArray[np.int32], ReachArray, ReachArray]:
    """Return rows, and the largest and smallest depths by row, with a bound below by origin.

    No two pairs of footprint and line share a row, as the smallest depths may differ.
    """
    there = np.nonzero(reach.row)
    row = np.zeros_like(reach.row)
    row[there] = np.arange(1, len(there[0]) + 1)
    nothing = np.zeros((1, view.depth), dtype=reach.depths.dtype)
    own = bounds.reshape(*reach.row.shape, view.depth)[there]
    tables = reach.depths[reach.row[there]], own.astype(nothing.dtype)
    largest, smallest = (np.concatenate([nothing, table]) for table in tables)
    return row, largest, smallest


def _extent_values(values: IntArray, view: Footprints) -> IntArray:
    """Return the contribution of every footprint and depth to the second level."""
    at = tuple(view.extents.T - 1)
    turned = view.per_router(values)
    return np.ascontiguousarray(turned[at].reshape(len(view.extents), view.depth))
