"""A certificate's bound, candidate by candidate, as docs/proofs/placement.md words it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from brute_force import Choice, Tiny
from tiny_packing import link_number, with_only
from topoplace.result import CoverBranch, Leaf, LeafRef, Parts, SharedLeaves, StartBranch
from topoplace.result.certificate import WholeTree

Cuts = frozenset[tuple[int, bool]]
"""Routers by number, and whether a request covers them."""


class Naive:
    """Bounds of certificates straight from the page, candidate by candidate."""

    def __init__(self, tiny: Tiny, level_idx: int, earlier: Sequence[int]) -> None:
        self.tiny = tiny
        self.level_idx = level_idx
        self.earlier = earlier
        self.shared: list[Leaf] = []
        self.alike: list[list[str]] = []
        self.needs = {r.id: r.nodes for r in tiny.snapshot.queue}
        self.choices = {r.id: tiny.choices(r) for r in tiny.snapshot.queue}
        self.numbers = {
            (d, router): link_number(tiny, (d, router))
            for d in range(len(tiny.shape))
            for router in tiny.all_routers
        }

    def bound(
        self,
        node: WholeTree | LeafRef,
        choices: dict[str, list[Choice]],
        fixed: dict[str, bool],
        cuts: dict[str, Cuts] | None = None,
    ) -> int | None:
        if isinstance(node, SharedLeaves):
            self.shared, self.alike = node.leaves, node.alike
            lowered = {name: self.lowered(name, group) for group in node.alike for name in group}
            return self.bound(node.tree, choices | lowered, fixed)
        if isinstance(node, LeafRef):
            return self.leaf(multiple(self.shared[node.leaf], node), choices, fixed)
        if isinstance(node, Leaf):
            return self.leaf(node, choices, fixed)
        name = node.request
        cuts = cuts or {}
        sides = []
        if isinstance(node, StartBranch):
            for child, starts in ((node.out, False), (node.into, True)):
                also = self.following(name, starts)
                if all(fixed.get(other, starts) == starts for other in also):
                    empty = {} if starts else {other: [] for other in also}
                    now = fixed | dict.fromkeys(also, starts)
                    sides.append(self.bound(child, choices | empty, now, cuts))
        else:
            assert isinstance(node, CoverBranch)
            router = sorted(self.tiny.all_routers)[node.row]
            like = [other for group in self.alike if name in group for other in group]
            free = [q for q in like if fixed.get(q) and cuts.get(q) == cuts.get(name)]
            for child, inside in ((node.inside, True), (node.outside, False)):
                go = {name} if inside else {name, *free}
                kept = {q: [c for c in choices[q] if (router in c.routers) is inside] for q in go}
                cut = cuts.get(name, frozenset()) | {(node.row, inside)}
                now_cut = cuts | dict.fromkeys(go, cut)
                sides.append(self.bound(child, choices | kept, fixed, now_cut))
        return max((side for side in sides if side is not None), default=None)

    def lowered(self, name: str, group: Sequence[str]) -> list[Choice]:
        """Return the candidates of a request that needs only the fewest nodes of a group."""
        of = {r.id: r for r in self.tiny.snapshot.queue}
        self.needs[name] = min(of[other].nodes for other in group)
        value = of[name].priority * of[name].nodes
        smaller = of[name].model_copy(update={"nodes": self.needs[name]})
        return [replace(c, values=(value, *c.values[1:])) for c in self.tiny.choices(smaller)]

    def following(self, name: str, starts: bool) -> list[str]:
        """Return a request and those that on the first level start if it does, or do not."""
        names = [r.id for r in self.tiny.snapshot.queue]
        if self.level_idx:
            return [name]
        pairs = [(other, name) if starts else (name, other) for other in names]
        preferred = [
            other for other, pair in zip(names, pairs, strict=True) if self.preferred(*pair)
        ]
        return [name, *preferred]

    def preferred(self, better_name: str, worse_name: str) -> bool:
        """Tell whether exchanging two requests leads from every placement to one as good."""
        queue = list(self.tiny.snapshot.queue)
        b, a = ([r.id for r in queue].index(name) for name in (better_name, worse_name))
        better, worse = queue[b], queue[a]
        kinds = {self.tiny.kind(r.communication.value) for r in (worse, better)}
        classes = {r.node_class or self.tiny.default_class for r in (worse, better)}
        if len(kinds) > 1 or len(classes) > 1 or worse.region != better.region:
            return False
        gain = better.priority * better.nodes - worse.priority * worse.nodes
        if worse.shapes or better.shapes or self.needs[better_name] > self.needs[worse_name]:
            return False
        fewer = self.needs[better_name] < self.needs[worse_name]
        return gain > 0 or (gain == 0 and (fewer or b < a))

    def leaf(
        self, leaf: Leaf, choices: dict[str, list[Choice]], fixed: dict[str, bool]
    ) -> int | None:
        rows = {name: unpacked(text) for name, text in leaf.prices.items()}
        side = sum(map(sum, rows.values()))
        routers = rows.pop("routers", [0] * len(self.tiny.all_routers))
        side -= sum(m * v for m, v in zip(leaf.multipliers, self.earlier, strict=True))
        of_router = dict(zip(self.tiny.all_routers, routers, strict=True))
        factors = [*leaf.multipliers, leaf.scale]
        for request in self.tiny.snapshot.queue:
            kind = self.tiny.kind(request.communication.value)
            paid: dict[int, int] = {}
            for name, row in rows.items():
                if kind == "strict" or (kind == "tolerant" and name == f"links of {request.id}"):
                    for link, price in enumerate(row):
                        paid[link] = paid.get(link, 0) + price
            gains = [
                sum(f * v for f, v in zip(factors, choice.values, strict=False))
                - sum(of_router[router] for router in choice.routers)
                - sum(paid.get(self.numbers[link], 0) for link in choice.links)
                for choice in choices[request.id]
            ]
            if fixed.get(request.id):
                if not gains:
                    return None
                side += max(gains)
            elif gains:
                side += max(0, *gains)
        bound = side // leaf.scale
        return bound if self.level_idx else self.rounded(bound, fixed)

    def rounded(self, bound: int, fixed: dict[str, bool]) -> int | None:
        values = [
            (r.priority * r.nodes,) if fixed.get(r.id) else (0, r.priority * r.nodes)
            for r in self.tiny.snapshot.queue
            if fixed.get(r.id, True)
        ]
        sums = [sum(some) for some in itertools.product(*values)]
        return max((total for total in sums if total <= bound), default=None)


def sum_of_parts(tiny: Tiny, certificate: Parts) -> int | None:
    """Return the bound of a certificate in parts."""
    naives = [Naive(with_only(tiny, part.requests), 0, []) for part in certificate.parts]
    pairs = zip(naives, certificate.parts, strict=True)
    bounds = [naive.bound(part.certificate, naive.choices, {}) for naive, part in pairs]
    return None if None in bounds else sum(bounds)


def unpacked(text: str) -> list[int]:
    """Return the prices that run lengths stand for."""
    runs = (word.partition("*") for word in text.split())
    return [int(price) for price, _, count in runs for _ in range(int(count or 1))]


def multiple(leaf: Leaf, reference: LeafRef) -> Leaf:
    """Return a leaf with all prices `times / over`-fold."""
    prices = {
        name: " ".join(str(price * reference.times) for price in unpacked(text))
        for name, text in leaf.prices.items()
    }
    return leaf.model_copy(update={"scale": leaf.scale * reference.over, "prices": prices})
