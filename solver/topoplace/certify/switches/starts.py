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

from topoplace.certify.hierarchy.instance import Asked, Instance
from topoplace.certify.integers import require_room
from topoplace.certify.packing import Covers, Prices
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.costs import free_per_leaf
from topoplace.types import IntArray

MOST_STATES = 1 << 21
"""Pairs of nodes and value that are followed, over all requests: some seconds of work."""


def parts_of(instance: Instance) -> list[int]:
    """Return the free nodes below every root that has some."""
    free = np.array(free_per_leaf(instance), dtype=np.int64)
    rooms = [int(free[root].sum()) for root in instance.machine.roots]
    return [room for room in rooms if room]


@dataclass(frozen=True)
class StartOracle:
    """Requests that take their nodes of one part each, as `certify.packing.CheckingOracle`."""

    requests: tuple[Asked, ...]
    parts: tuple[int, ...]
    grain: int

    @property
    def coverable(self) -> int:
        """All rows."""
        return len(self.parts)

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """Free nodes of the parts, in units of which all requests want whole numbers."""
        room = [free // self.grain for free in self.parts]
        return {"parts": np.array(room, dtype=np.int64)}

    @property
    def largest(self) -> tuple[int]:
        """The largest value of a request."""
        return (max((asked.value for asked in self.requests), default=0),)

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether two requests want the same number of nodes, or the other fits nowhere."""
        wanted = self.requests[other].nodes
        fits = any(wanted <= free for free in self.parts)
        return not fits or self.requests[one].nodes == wanted

    def among(self, chosen: Sequence[tuple[int, int]]) -> StartOracle:
        """Return an oracle of some requests alone; those that replace each other are as large."""
        return replace(self, requests=tuple(self.requests[q] for q, _ in chosen))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return for some requests the most that one gains in a part, None where it fits none."""
        price = prices.rows.get("parts", np.zeros(len(self.parts), dtype=np.int64)).tolist()
        found = {}
        for q, covers in wanted.items():
            asked = self.requests[q]
            paid = [
                asked.nodes // self.grain * price[k]
                for k, free in enumerate(self.parts)
                if asked.nodes <= free and covers.inside <= {k} and k not in covers.outside
            ]
            found[q] = prices.factors[0] * asked.value - min(paid) if paid else None
        return found


def oracle_of(instance: Instance) -> StartOracle:
    """Return the oracle of an instance."""
    grain = math.gcd(*(asked.nodes for asked in instance.queue)) or 1
    return StartOracle(instance.queue, tuple(parts_of(instance)), grain)


def least_of_choices(instance: Instance, bounds: Mapping[str, Fraction], worth: int) -> Fraction:
    """Return the least sum of bounds over all choices of requests of that value at least.

    Requests without a bound cost nothing; a choice has no more nodes than are free.
    """
    scale = math.lcm(*(bound.denominator for bound in bounds.values()))
    room = sum(free_per_leaf(instance))
    rest = sum(asked.value for asked in instance.queue)
    # By nodes and value of those chosen so far, the least cost; value beyond `worth` is cut off.
    best = {(0, 0): 0}
    followed = 0
    for asked in instance.queue:
        rest -= asked.value
        cost = int(bounds.get(asked.id, Fraction(0)) * scale)
        found: dict[tuple[int, int], int] = {}
        for (nodes, value), total in best.items():
            more = (nodes + asked.nodes, min(worth, value + asked.value))
            for state, sum_of in (((nodes, value), total), (more, total + cost)):
                if state[0] <= room and state[1] + rest >= worth:
                    found[state] = min(sum_of, found.get(state, sum_of))
        best = found
        followed += len(best)
        require_room(followed, "choices of requests", MOST_STATES)
    if not best:
        raise RefusedError(f"no choice of requests that fits has value {worth}")
    return Fraction(min(best.values()), scale)
