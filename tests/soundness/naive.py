"""A certificate's bound, candidate by candidate, as docs/proofs/placement.md words it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from random_certificates import Packing
from topoplace.certify.packing import LARGEST_SUM, CheckingOracle
from topoplace.result import CoverBranch, Leaf, LeafRef, Parts, SharedLeaves, StartBranch

Starts = Mapping[str, bool]
Covers = Mapping[str, frozenset[tuple[int, bool]]]
"""By request the rows that it covers, or does not."""


def naive_bound(packing: Packing, oracle: CheckingOracle, certificate: Any) -> int | None:
    """Return the bound of a certificate; the oracle is asked only who may replace whom."""
    if isinstance(certificate, Parts):
        alone = [packing.among([(n, n) for n in part.requests]) for part in certificate.parts]
        trees = [part.certificate for part in certificate.parts]
        bounds = [naive_bound(own, oracle, tree) for own, tree in zip(alone, trees, strict=True)]
        return None if None in bounds else sum(bounds)
    number = {request.id: q for q, request in enumerate(oracle.requests)}
    if not isinstance(certificate, SharedLeaves):
        return _Naive(packing, oracle, number, (), ()).bound(certificate, {}, {})
    for group in certificate.alike:
        widest = next(
            one
            for one in group
            if all(one == o or oracle.may_replace(number[one], number[o]) for o in group)
        )
        number = number | dict.fromkeys(group, number[widest])
    names = [request.id for request in oracle.requests]
    lowered = packing.among([(name, names[number[name]]) for name in packing.names])
    walk = _Naive(lowered, oracle, number, certificate.alike, certificate.leaves)
    return walk.bound(certificate.tree, {}, {})


@dataclass(frozen=True)
class _Naive:
    packing: Packing
    oracle: CheckingOracle
    number: Mapping[str, int]
    """By request the number of the one that it stands for: others of its group may be wider."""
    groups: Sequence[Sequence[str]]
    leaves: Sequence[Leaf]

    def value(self, name: str) -> int:
        return next(request.value for request in self.oracle.requests if request.id == name)

    def preferred(self, one: str, other: str) -> bool:
        """Return whether exchanging two requests leads from every placement to one as good."""
        numbers, names = (self.number[one], self.number[other]), self.packing.names
        gain = self.value(one) - self.value(other)
        if one == other or gain < 0 or not self.oracle.may_replace(*numbers):
            return False
        is_equal = gain == 0 and self.oracle.may_replace(*numbers[::-1])
        return names.index(one) < names.index(other) if is_equal else not self.packing.earlier

    def bound(self, node: Any, starts: Starts, covers: Covers) -> int | None:
        if isinstance(node, Leaf | LeafRef):
            return self.leaf(node, starts, covers)
        name, sides = node.request, []
        if isinstance(node, StartBranch):
            for child, into in ((node.out, False), (node.into, True)):
                pairs = [(o, name) if into else (name, o) for o in self.packing.names]
                rest = zip(self.packing.names, pairs, strict=True)
                also = {name, *(o for o, pair in rest if self.preferred(*pair))}
                if all(starts.get(o, into) is into for o in also):
                    sides.append(self.bound(child, {**starts, **dict.fromkeys(also, into)}, covers))
        else:
            assert isinstance(node, CoverBranch)
            own = covers.get(name, frozenset())
            like = [o for group in self.groups if name in group for o in group]
            free = [o for o in like if starts.get(o, True) and covers.get(o, frozenset()) == own]
            for child, inside in ((node.inside, True), (node.outside, False)):
                whose = {name} if inside else {name, *free}
                more = dict.fromkeys(whose, own | {(node.row, inside)})
                sides.append(self.bound(child, starts, {**covers, **more}))
        return max((side for side in sides if side is not None), default=None)

    def leaf(self, node: Leaf | LeafRef, starts: Starts, covers: Covers) -> int | None:
        ref = node if isinstance(node, LeafRef) else LeafRef(kind="ref", leaf=0)
        leaf = node if isinstance(node, Leaf) else self.leaves[ref.leaf]
        prices = {
            name: [ref.times * p for p in unpacked(text)] for name, text in leaf.prices.items()
        }
        factors = [*leaf.multipliers, leaf.scale * ref.over]
        capacities, earlier = self.packing.capacities, self.packing.earlier
        side = sum(p * c for f in prices for p, c in zip(prices[f], capacities[f], strict=True))
        side -= sum(m * v for m, v in zip(leaf.multipliers, earlier, strict=True))
        for name in self.packing.names:
            gains = [
                sum(f * v for f, v in zip(factors, column.values, strict=False))
                - sum(prices[f][k] * n for (f, k), n in column.rows.items() if f in prices)
                for column in self.packing.columns
                if column.request == name
                and all((row in column.covers) is on for row, on in covers.get(name, ()))
            ]
            if starts.get(name) and not gains:
                return None
            if starts.get(name, True):
                side += max(gains if starts.get(name) else [0, *gains])
        bound = side // factors[-1]
        if earlier or sum(map(self.value, self.packing.names)) > LARGEST_SUM:
            return bound
        ways = [
            (self.value(name),) if starts.get(name) else (0, self.value(name))
            for name in self.packing.names
            if starts.get(name, True)
        ]
        sums = [sum(some) for some in itertools.product(*ways)]
        return max((total for total in sums if total <= bound), default=None)


def unpacked(text: str) -> list[int]:
    """Return the prices that run lengths stand for."""
    runs = (word.partition("*") for word in text.split())
    return [int(price) for price, _, count in runs for _ in range(int(count or 1))]
