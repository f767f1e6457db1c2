"""What can start: the most value as a packing, and the least cost of a choice that is as good.

See docs/proofs/tree.md, "Certificates".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.packing import Covers, Prices
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.instance import Instance, Wish
from topoplace.types import IntArray

MOST_STATES = 1 << 21
"""Pairs of nodes and value that are followed, over all requests: some seconds of work."""


@dataclass(frozen=True)
class Part:
    """Leaves that switches connect, perhaps over others of them, and their free nodes.

    `together` are the most below one switch: no request has more.
    """

    free: int
    together: int


def parts_of(instance: Instance) -> list[Part]:
    """Return the leaves with free nodes, in sets that switches connect, by their first leaves."""
    free = np.array(instance.free_per_leaf, dtype=np.int64)
    used = np.flatnonzero(free)
    near = instance.tree.common_level[np.ix_(used, used)] > 0
    rooms = np.zeros(len(free), dtype=np.int64)  # by leaf the most below a switch above it
    for switch in instance.tree.switches:
        below = list(switch.leaves)
        rooms[below] = np.maximum(rooms[below], free[below].sum())
    rooms = rooms[used]
    found = []
    left = np.ones(len(used), dtype=bool)
    while left.any():
        inside = np.zeros(len(used), dtype=bool)
        grown = near[int(np.argmax(left))]
        while not np.array_equal(grown, inside):
            inside = grown
            grown = near[inside].any(axis=0) | inside
        found.append(Part(int(free[used][inside].sum()), int(rooms[inside].max())))
        left &= ~inside
    return found


@dataclass(frozen=True)
class StartOracle:
    """Requests that take their nodes of one part each, as `certify.packing.CheckingOracle`."""

    requests: tuple[Wish, ...]
    parts: tuple[Part, ...]
    grain: int

    @property
    def coverable(self) -> int:
        """All rows."""
        return len(self.parts)

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """Free nodes of the parts, in units of which all requests want whole numbers."""
        room = [part.free // self.grain for part in self.parts]
        return {"parts": np.array(room, dtype=np.int64)}

    @property
    def largest(self) -> tuple[int]:
        """The largest value of a request."""
        return (max((wish.value for wish in self.requests), default=0),)

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether two requests want the same number of nodes, or the other fits nowhere."""
        wanted = self.requests[other].nodes
        fits = any(wanted <= part.together for part in self.parts)
        return not fits or self.requests[one].nodes == wanted

    def among(self, chosen: Sequence[tuple[int, int]]) -> StartOracle:
        """Return an oracle of some requests alone; those that replace each other are as large."""
        return replace(self, requests=tuple(self.requests[q] for q, _ in chosen))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return for some requests the most that one gains in a part, None where it fits none."""
        price = prices.rows.get("parts", np.zeros(len(self.parts), dtype=np.int64)).tolist()
        found = {}
        for q, covers in wanted.items():
            wish = self.requests[q]
            paid = [
                wish.nodes // self.grain * price[k]
                for k, part in enumerate(self.parts)
                if wish.nodes <= part.together and covers.inside <= {k} and k not in covers.outside
            ]
            found[q] = prices.factors[0] * wish.value - min(paid) if paid else None
        return found


def oracle_of(instance: Instance) -> StartOracle:
    """Return the oracle of an instance."""
    wishes = tuple(instance.wishes.values())
    grain = math.gcd(*(wish.nodes for wish in wishes)) or 1
    return StartOracle(wishes, tuple(parts_of(instance)), grain)


def least_of_choices(instance: Instance, bounds: Mapping[str, Fraction], worth: int) -> Fraction:
    """Return the least sum of bounds over all choices of requests of that value at least.

    Requests without a bound cost nothing; a choice has no more nodes than are free.
    """
    scale = math.lcm(*(bound.denominator for bound in bounds.values()))
    wishes = instance.wishes.values()
    room, rest = len(instance.free), sum(wish.value for wish in wishes)
    # By nodes and value of those chosen so far, the least cost; value beyond `worth` is cut off.
    best = {(0, 0): 0}
    followed = 0
    for wish in wishes:
        rest -= wish.value
        cost = int(bounds.get(wish.id, Fraction(0)) * scale)
        found: dict[tuple[int, int], int] = {}
        for (nodes, value), total in best.items():
            more = (nodes + wish.nodes, min(worth, value + wish.value))
            for state, sum_of in (((nodes, value), total), (more, total + cost)):
                if state[0] <= room and state[1] + rest >= worth:
                    found[state] = min(sum_of, found.get(state, sum_of))
        best = found
        followed += len(best)
        require_room(followed, "choices of requests", MOST_STATES)
    if not best:
        raise RefusedError(f"no choice of requests that fits has value {worth}")
    return Fraction(min(best.values()), scale)
