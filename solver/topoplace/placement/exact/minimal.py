"""The minimal prisms of a group of requests, listed once and priced again and again.

On the first level a prism is worth what its request is, whatever its shape: of the prisms that
reach a size, only those matter that have no smaller one inside that does. There are few of them,
and which they are does not depend on prices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact import _minimal
from topoplace.placement.exact.lines import LineView

if TYPE_CHECKING:
    from topoplace.placement.exact.groups import Group

IntArray = NDArray[np.int64]

MOST_ENTRIES = 1 << 25
"""Of a group; beyond, its prisms are scanned on every pass. An entry takes 4 bytes."""


@dataclass(frozen=True)
class Listing:
    """The minimal prisms with an origin on some lines, as `_minimal.list_minimal` returns them."""

    footprints: NDArray[np.int32]
    at: NDArray[np.int32]
    starts: IntArray
    entries: NDArray[np.uint32]

    def price(
        self,
        view: LineView,
        routers: IntArray,
        links: Sequence[IntArray] | None,
        values: IntArray,
        codes: IntArray,
    ) -> None:
        """Bring the largest values per slot and size, and the prisms they are of, up to date.

        Parameters
        ----------
        routers, links
            Prefix sums of prices (see `LineView.prefix_sums`), of links by dimension.
        values, codes
            Shape ``(num_slots, num_sizes)``; a value is a price taken negative.
        """
        leading = () if links is None else links[:-1]
        _minimal.price_minimal(
            self.footprints, self.at, self.starts, self.entries,
            view.bases, view.slots, view.box, view.link, view.signs,
            routers, stack(leading, view), routers if links is None else links[-1],
            links is not None, values, codes,
        )  # fmt: skip

    def unpriced(
        self, view: LineView, routers: IntArray, links: Sequence[IntArray] | None
    ) -> Listing:
        """Return the listing of those prisms that pay nothing; for parameters see `price`."""
        leading = () if links is None else links[:-1]
        return Listing(
            *_minimal.those_that_pay_nothing(
                self.footprints, self.at, self.starts, self.entries,
                view.bases, view.box, view.link, view.signs,
                routers, stack(leading, view), routers if links is None else links[-1],
                links is not None,
            )
        )  # fmt: skip


@dataclass
class MinimalPrisms:
    """The minimal prisms of a group, one listing per part of its lines; listed on first use."""

    _listings: list[Listing] | None = None
    _too_many: bool = False

    def listings(
        self,
        group: Group,
        parts: Sequence[IntArray],
        map_parts: Callable[[Callable[[IntArray], Listing], Sequence[IntArray]], list[Listing]],
    ) -> list[Listing] | None:
        """Return the listings of a group, one per part of its lines; None if there are too many."""
        if self._listings is None and not self._too_many:
            found = map_parts(lambda lines: _list(group, lines, len(parts)), parts)
            self._too_many = not all(len(listing.starts) for listing in found)
            self._listings = None if self._too_many else found
        return self._listings

    @classmethod
    def listed(cls, listings: list[Listing]) -> MinimalPrisms:
        """Return what is listed already."""
        return cls(listings)


def _list(group: Group, lines: IntArray, num_parts: int) -> Listing:
    view = group.view
    most = MOST_ENTRIES // num_parts
    if view.depth > _minimal.LONGEST or len(group.sizes) > _minimal.MOST_SIZES:
        most = -1
    return Listing(
        *_minimal.list_minimal(
            lines, group.reach, group.least, group.live, view.bases, view.box, view.signs,
            view.smaller, view.ahead, group.count_sat, group.sizes, view.torus.wrap[-1], most,
        )
    )  # fmt: skip


def stack(tables: Sequence[IntArray], view: LineView) -> IntArray:
    """Return prefix sums as one array, whose first axis has no entry if there are none."""
    if tables:
        return np.ascontiguousarray(np.stack(tables))
    return np.zeros((0, 1, view.depth), dtype=np.int64)
