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
    runs = {name: _runs(text, name) for name, text in leaf.prices.items()}
    total = sum(price * count for row in runs.values() for price, count in row)
    all_factors = [*leaf.multipliers, leaf.scale, 0, 0][:3]
    factors = (all_factors[0], all_factors[1], all_factors[2])
    _require_room(instance, total, factors)
    num_routers = instance.torus.num_routers
    routers = np.zeros(num_routers, dtype=np.int64)
    strict: IntArray | None = None
    tolerant: dict[str, IntArray] = {}
    for name, row_runs in runs.items():
        if name == "routers":
            routers = _row(row_runs, num_routers, name)
            continue
        request = _payer(instance, name)
        row = _row(row_runs, instance.torus.num_links, name)
        if (row[~instance.torus.link_mask.ravel()] > 0).any():
            raise RefusedError("a priced link does not exist")
        if not row.any():
            continue
        strict = row if strict is None else strict + row
        if request is not None:
            tolerant[request] = row
    return Prices(leaf.scale, routers, strict, tolerant, total, factors)


def _runs(text: str, family: str) -> list[tuple[int, int]]:
    runs = []
    for word in text.split():
        match = _RUN.fullmatch(word)
        if match is None:
            raise RefusedError(f"prices of {family} are malformed at {word[:40]!r}")
        runs.append((int(match[1]), int(match[2] or 1)))
    if any(price < 0 for price, _ in runs):
        raise RefusedError(f"a price of {family} is negative")
    if any(count == 0 for _, count in runs):
        raise RefusedError(f"a run of prices of {family} is of no row")
    return runs


def _row(runs: list[tuple[int, int]], num_rows: int, family: str) -> IntArray:
    counts = [count for _, count in runs]
    if sum(counts) != num_rows:
        raise RefusedError(f"prices of {family} are not one for each of {num_rows} rows")
    return np.repeat(np.array([price for price, _ in runs], dtype=np.int64), counts)


def _payer(instance: Instance, family: str) -> str | None:
    """Return the tolerant request whose link rows a family has; None for those of strict jobs."""
    if family == "links" and instance.interference is not Interference.OFF:
        return None
    request = family.removeprefix("links of ")
    # Only under the tolerant rule does any request count as tolerant.
    tolerant = [w.id for w in instance.wishes if w.sharing is Communication.TOLERANT]
    if request != family and request in tolerant:
        return request
    raise RefusedError(f"no rows called {family[:200]} under this rule")


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
