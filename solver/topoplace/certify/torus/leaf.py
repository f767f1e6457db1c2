"""The prices of a leaf, and the best candidates at them ("A leaf: integer prices")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, IntArray, Wish
from topoplace.certify.torus.shapes import best_of_shapes
from topoplace.certify.torus.solution import ShapeTables
from topoplace.certify.torus.sweep import NONE, Gains, Group, Sweep
from topoplace.result import Interference, Leaf
from topoplace.snapshot.schema import Communication

LARGEST = 1 << 58
"""Of what any candidate may be worth or pay.

All that `sweep` and `shapes` add up are prices and values of sets of routers and
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


@dataclass(frozen=True)
class Covers:
    """Routers inside, and routers outside; none if a prism may be anywhere."""

    inside: frozenset[int] = frozenset()
    outside: frozenset[int] = frozenset()

    def split(self, router: int, *, inside: bool) -> Covers:
        """Return one side of a branch on a router."""
        if inside:
            return replace(self, inside=self.inside | {router})
        return replace(self, outside=self.outside | {router})


ANYWHERE = Covers()


def best_candidates(
    instance: Instance, prices: Prices, wanted: Mapping[int, Covers]
) -> dict[int, int | None]:
    """Return best(q) per request (by queue position), None where it has no candidate.

    Sweeps go over all prisms, one sweep for each set of routers to be covered; requests with a
    geometry have few shapes, which are gone through one by one.
    """
    gains = Gains(prices.routers, prices.factors[1], prices.factors[2])
    found: dict[int, int] = {}
    together: dict[frozenset[int], dict[tuple[object, ...], list[int]]] = {}
    for idx, covers in wanted.items():
        wish = instance.wishes[idx]
        if wish.geometries:
            group = _group(instance, [wish], prices, covers.outside)
            found[idx] = best_of_shapes(instance, wish, group, gains, covers.inside)
        else:
            own_row = wish.id if wish.id in prices.tolerant else None
            kind = (covers.outside, *wish.kind, own_row)
            together.setdefault(covers.inside, {}).setdefault(kind, []).append(idx)
    for inside, kinds in together.items():
        groups = [
            _group(instance, [instance.wishes[i] for i in own], prices, wanted[own[0]].outside)
            for own in kinds.values()
        ]
        reaches = Sweep(instance, groups, gains, inside).run()
        for own, group, reach in zip(kinds.values(), groups, reaches, strict=True):
            places = np.searchsorted(group.needs, [instance.wishes[i].nodes for i in own])
            found |= dict(zip(own, reach[places].tolist(), strict=True))
    idle = instance.snapshot.weights.idle
    to_value, to_shape, _ = prices.factors
    best: dict[int, int | None] = {}
    for idx, gain in found.items():
        wish = instance.wishes[idx]  # what all its candidates share comes last
        share = to_value * wish.value + to_shape * idle * wish.nodes
        best[idx] = None if gain == NONE else gain + share
    return best


def _group(
    instance: Instance, wishes: list[Wish], prices: Prices, outside: frozenset[int]
) -> Group:
    first = wishes[0]
    closed = instance.closed(first.sharing)
    blocked = ~instance.allowed(first)
    blocked[sorted(outside)] = True
    return Group(
        instance.usable_counts[first.class_idx],
        blocked,
        closed if closed.any() else None,
        prices.links(first.id, first.sharing),
        np.unique(np.array([wish.nodes for wish in wishes], dtype=np.int64)),
    )
