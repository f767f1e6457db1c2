"""What can start: the most priority-weighted nodes, and the least cost.

See docs/proofs/tree.md, "Certificates".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.instance import Instance, Wish
from topoplace.errors import number_of
from topoplace.result.tree import DomainsCertificate

MOST_ENTRIES = 1 << 31
"""Free nodes times requests of one knapsack, some seconds of work."""

MOST_SUMS = 1 << 24
"""Values of all requests that sums are sought of, in the largest unit that divides all values."""

MOST_STATES = 1 << 21
"""Pairs of nodes and value that are followed, over all requests: some seconds of work."""


@dataclass(frozen=True)
class Domain:
    """Leaves that switches connect, perhaps over others of them, and their free nodes.

    `together` are the most below one switch: no request has more.
    """

    free: int
    together: int


def counted(instance: Instance) -> Fraction:
    """Return the value of the most valuable requests that the free nodes hold."""
    together = max((domain.together for domain in domains_of(instance)), default=0)
    wishes = [
        (wish.nodes, wish.value) for wish in instance.wishes.values() if wish.nodes <= together
    ]
    return Fraction(most_worth(len(instance.free), wishes))


def priced(instance: Instance, certificate: DomainsCertificate) -> Fraction:
    """Return what prices prove of the priority-weighted nodes, rounded down to sums of values."""
    wishes = list(instance.wishes.values())
    if len(certificate.prices) != len(wishes):
        raise RefusedError(
            f"{number_of(len(certificate.prices), 'price')} for {number_of(len(wishes), 'request')}"
        )
    scale, node_price = certificate.scale, certificate.node_price
    domains = domains_of(instance)
    total = sum(node_price * domain.free for domain in domains)
    able: list[Wish] = []
    items = []
    for wish, price in zip(wishes, certificate.prices, strict=True):
        left = scale * wish.value - node_price * wish.nodes
        if any(wish.nodes <= domain.together for domain in domains):
            total += price
            items.append((wish.nodes, left - price))
            able.append(wish)
    for domain in domains:
        total += most_worth(domain.free, [one for one in items if one[0] <= domain.together])
    return Fraction(largest_sum([wish.value for wish in able], total // scale))


def domains_of(instance: Instance) -> list[Domain]:
    """Return the leaves with free nodes, in sets that switches connect."""
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
        found.append(Domain(int(free[used][inside].sum()), int(rooms[inside].max())))
        left &= ~inside
    return found


def most_worth(room: int, items: Iterable[tuple[int, int]]) -> int:
    """Return the largest total value of items (size, value) that fit into a capacity."""
    able = [(size, worth) for size, worth in items if worth > 0 and size <= room]
    total = sum(worth for _, worth in able)
    if sum(size for size, _ in able) <= room:
        return total
    require_room((room + 1) * len(able), "free nodes times requests", MOST_ENTRIES)
    require_room(total, "what the requests are worth")
    best = np.zeros(room + 1, dtype=np.int64)
    for size, worth in able:
        with_it = best[: room + 1 - size] + np.int64(worth)
        np.maximum(best[size:], with_it, out=best[size:])
    return int(best[room])


def largest_sum(values: Sequence[int], most: int) -> int:
    """Return the largest sum of some of the values up to a limit, or a number no less than it.

    Where the values are too large together, it is the largest multiple of what divides them all.
    """
    unit = math.gcd(*values)
    if unit == 0:
        return 0
    top = min(most, sum(values)) // unit
    if sum(values) // unit > MOST_SUMS:
        return top * unit
    sums = 1
    for value in values:
        sums |= sums << (value // unit)
    return ((sums & ((1 << (top + 1)) - 1)).bit_length() - 1) * unit


def least_of_choices(instance: Instance, bounds: Mapping[str, Fraction], worth: int) -> Fraction:
    """Return the least sum of bounds over all choices of requests with enough value.

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
        raise RefusedError(f"no choice of requests that fits is worth {worth}")
    return Fraction(min(best.values()), scale)
