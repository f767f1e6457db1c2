"""Which requests start: the most value, then the least sum of bounds, by the engine of packings.

The free leaves below a root are a *part* of the machine, and a row of the packing: a request takes
its nodes of one part (docs/proofs/tree.md, "Certificates").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from topoplace.machine.hierarchy import Hierarchy
from topoplace.result.certificate import Certificate, Leaf
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.types import IntArray

_LEAST_SECONDS = 0.2
_LARGEST = 1 << 40

_MOST_CHOICES = 1 << 18
"""Pairs of nodes and value that the checker follows, over all requests."""


@dataclass(frozen=True)
class Part:
    """The leaves with free nodes below one root, and how many are free."""

    leaves: IntArray
    free: int


def parts_of(machine: Hierarchy, free: IntArray) -> list[Part]:
    """Return the parts of a machine, of its free nodes per leaf."""
    below = [root[free[root] > 0] for root in machine.roots]
    return [Part(leaves, int(free[leaves].sum())) for leaves in below if len(leaves)]


@dataclass(frozen=True)
class Choice:
    """Requests that start, each with the number of its part, and what no choice surpasses.

    `value` is theirs, `bound` is of the value, `total` of the costs among choices of that value.
    """

    started: dict[int, int]
    value: int
    bound: int
    certificate: Certificate | None
    total: Fraction = Fraction(0)


def chosen(
    requests: Sequence[HierarchyRequest],
    parts: Sequence[Part],
    seconds: float,
    costs: Sequence[Fraction] = (),
    seed: int = 0,
) -> Choice:
    """Return the requests of the most value that fit together, at the least sum of costs."""
    able = {
        q: [k for k, part in enumerate(parts) if request.nodes <= part.free]
        for q, request in enumerate(requests)
    }
    fits = {q: own for q, own in able.items() if own}
    wanted = sum(requests[q].nodes for q in fits)
    if not fits or (len(parts) <= 1 and wanted <= sum(part.free for part in parts)):
        value = sum(requests[q].value for q in fits)
        total = sum((costs[q] for q in fits if costs), Fraction(0))
        return Choice(dict.fromkeys(fits, 0), value, value, Leaf(scale=1), total)
    return _packed(requests, parts, fits, seconds, costs, seed)


def _packed(
    requests: Sequence[HierarchyRequest],
    parts: Sequence[Part],
    fits: dict[int, list[int]],
    seconds: float,
    costs: Sequence[Fraction],
    seed: int,
) -> Choice:
    from topoplace.packing.budget import Budget  # noqa: PLC0415 - most queues fit as they are
    from topoplace.packing.listed import Listed, ListedPacking  # noqa: PLC0415
    from topoplace.packing.search import Search  # noqa: PLC0415

    grain = math.gcd(*(request.nodes for request in requests))
    total = math.ceil(sum(costs))
    # rounded down, the sums stay bounds
    scale = min(math.lcm(*(c.denominator for c in costs)), _LARGEST // max(1, total)) or 1
    prices: list[tuple[int, ...]] = [(-math.floor(cost * scale),) for cost in costs]
    prices = prices or [()] * len(requests)
    packing = ListedPacking(
        [request.id for request in requests],
        [request.value for request in requests],
        {"parts": [part.free // grain for part in parts]},
        [
            Listed(q, (k,) * (requests[q].nodes // grain), (requests[q].value, *prices[q]))
            for q, own in fits.items()
            for k in own
        ],
        (1, -1) if costs else (1,),
    )
    found = Search(packing, Budget(max(seconds, _LEAST_SECONDS)), seed=seed).run()
    first, *others = found.bounds
    value = found.values[0]
    bound = sum(requests[q].value for q in fits) if first is None else first.value
    least = [Fraction(-one.value, scale) for one in others if one is not None]
    return Choice(
        {one.request_idx: one.rows[0] for one in found.placement},
        value,
        bound,
        None if first is None else first.certificate,
        max(least, default=Fraction(0)),
    )


def cheapest_choice(
    requests: Sequence[HierarchyRequest], costs: Sequence[Fraction], room: int, worth: int
) -> Fraction | None:
    """Return the least cost of a choice of requests of that value at least that fits.

    It is None if the choices are too many to be followed.
    """
    scale = math.lcm(*(cost.denominator for cost in costs))
    rest = sum(request.value for request in requests)
    reached, total = {(0, 0): 0}, 0
    for request, cost in zip(requests, costs, strict=True):
        rest -= request.value
        own = int(cost * scale)
        found: dict[tuple[int, int], int] = {}
        for (nodes, value), paid in reached.items():
            if value + rest >= worth:
                found[nodes, value] = min(paid, found.get((nodes, value), paid))
            more = (nodes + request.nodes, min(worth, value + request.value))
            if more[0] <= room and more[1] + rest >= worth:
                found[more] = min(paid + own, found.get(more, paid + own))
        reached = found
        total += len(reached)
        if total > _MOST_CHOICES or not reached:
            return None
    return Fraction(min(reached.values()), scale)
