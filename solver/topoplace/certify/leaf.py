"""The prices of a leaf, read and checked (docs/proofs.md, "A leaf: integer prices")."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.instance import Instance
from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.score import ShapeTables
from topoplace.result import Interference, Leaf
from topoplace.snapshot.schema import Communication

IntArray = NDArray[np.int64]

LARGEST = 1 << 58
"""Of what any candidate may be worth or pay.

All that `table`, `sweep`, `direct` and `column` add up are prices and values of sets of routers and
links, at most twice each (prefix sums go round a ring twice), so that sums stay below 2^60.
"""

_RUN = re.compile(r"(-?\d{1,30})(?:\*(\d{1,9}))?")


@dataclass(frozen=True)
class Prices:
    """A leaf as arrays.

    Attributes
    ----------
    scale
        The leaf's D.
    routers
        Price of every router, shape ``(num_routers,)``.
    strict
        What a strict job pays per link: the sum of all rows of the link, shape ``(num_links,)``;
        None if all are 0.
    tolerant
        What a tolerant request pays per link, by request; absent if nothing.
    total
        Sum of all prices of routers and link rows.
    factors
        What multiplies a candidate's values on the three levels: the multipliers, D, zeros.
    """

    scale: int
    routers: IntArray
    strict: IntArray | None
    tolerant: dict[str, IntArray]
    total: int
    factors: tuple[int, int, int]

    def links(self, request: str, sharing: Communication) -> IntArray | None:
        """Return what a request pays per link, None if nothing."""
        if sharing is Communication.STRICT:
            return self.strict
        return self.tolerant.get(request) if sharing is Communication.TOLERANT else None


def read_prices(instance: Instance, leaf: Leaf, level_idx: int) -> Prices:
    """Return a leaf's prices.

    Raises
    ------
    RefusedError
        If a price or multiplier is negative, a length is wrong, a link row is none of those
        that proofs.md allows, or the numbers are too large to be added in 64 bits.
    """
    if len(leaf.multipliers) != level_idx:
        raise RefusedError(f"{len(leaf.multipliers)} multipliers for {level_idx} earlier levels")
    if any(m < 0 for m in leaf.multipliers):
        raise RefusedError("a multiplier is negative")
    runs = _runs(leaf.router_prices, instance.torus.num_routers)
    total = sum(price * count for price, count in runs)
    rows = _rows(instance, leaf)
    total += sum(sum(prices) for _, _, prices in rows)
    all_factors = [*leaf.multipliers, leaf.scale, 0, 0][:3]
    factors = (all_factors[0], all_factors[1], all_factors[2])
    _require_room(instance, total, factors)
    strict: IntArray | None = None
    tolerant: dict[str, IntArray] = {}
    for request, links, prices in rows:
        row = np.zeros(instance.torus.num_links, dtype=np.int64)
        np.add.at(row, np.array(links, dtype=np.int64), np.array(prices, dtype=np.int64))
        if not row.any():
            continue
        strict = row if strict is None else strict + row
        if request is not None:
            tolerant[request] = tolerant.get(request, 0) + row
    routers = np.repeat(
        np.array([price for price, _ in runs], dtype=np.int64), [count for _, count in runs]
    )
    return Prices(leaf.scale, routers, strict, tolerant, total, factors)


def _runs(text: str, num_routers: int) -> list[tuple[int, int]]:
    runs = []
    for word in text.split():
        match = _RUN.fullmatch(word)
        if match is None:
            raise RefusedError(f"router prices are malformed at {word[:40]!r}")
        runs.append((int(match[1]), int(match[2] or 1)))
    if any(price < 0 for price, _ in runs):
        raise RefusedError("a router price is negative")
    if any(count == 0 for _, count in runs):
        raise RefusedError("a run of router prices is of no router")
    if sum(count for _, count in runs) != num_routers:
        raise RefusedError("router prices are not one per router")
    return runs


def _rows(instance: Instance, leaf: Leaf) -> list[tuple[str | None, list[int], list[int]]]:
    rows = []
    for entry in leaf.link_prices:
        if not _row_allowed(instance, entry.request):
            raise RefusedError(f"no link row of {entry.request or 'strict jobs'} under this rule")
        if len(entry.links) != len(entry.prices):
            raise RefusedError("as many link prices as links are wanted")
        if any(price < 0 for price in entry.prices):
            raise RefusedError("a link price is negative")
        real = instance.torus.link_mask.ravel()
        if any(not 0 <= link < len(real) or not real[link] for link in entry.links):
            raise RefusedError("a priced link does not exist")
        rows.append((entry.request, entry.links, entry.prices))
    return rows


def _row_allowed(instance: Instance, request: str | None) -> bool:
    if request is None:
        return instance.interference is not Interference.OFF
    if request not in instance.by_id:
        return False
    # Only under the tolerant rule does any request count as tolerant.
    wish = instance.wishes[instance.by_id[request]]
    return wish.sharing is Communication.TOLERANT


def _require_room(instance: Instance, total: int, factors: tuple[int, int, int]) -> None:
    largest = (
        max((wish.value for wish in instance.wishes), default=0),
        ShapeTables(instance).largest,
        2 * instance.torus.num_dims * instance.torus.num_routers,
    )
    # a factor is a number of its own even where nothing is worth anything
    reach = total + sum(f * max(1, v) for f, v in zip(factors, largest, strict=True))
    require_room(reach, "the prices and multipliers of a leaf", LARGEST)
