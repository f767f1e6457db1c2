"""The best places on a fat tree at some prices, by code of the checker's own.

Of small trees all places are listed. Of others, a place pays for its hosts and, on each leaf, for
as many of the cheapest free links as it needs, no matter whether leaves have them in common: no
place costs less (docs/proofs/fattree.md, "Large trees").
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice, product

import numpy as np

from topoplace.certify.packing import Covers, Prices
from topoplace.machine.fattree import FatTree
from topoplace.types import IntArray

SMALL, LISTED = 64, 20_000
"""Nodes of a tree of which all places are listed, if these are no more, over all sizes."""

Rows = tuple[int, ...]
Least = Callable[[int], int | None]
"""Returns the least cost of a place of so many nodes, None if there is none."""


@dataclass(frozen=True)
class Request:
    """A request of the queue."""

    id: str
    value: int
    nodes: int


@dataclass(frozen=True)
class FatTreeOracle:
    """What both oracles share."""

    tree: FatTree
    hosts: Sequence[int]
    links: frozenset[int]
    requests: tuple[Request, ...]

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """One job per free node and per free link."""
        free = np.zeros(self.tree.num_rows, dtype=np.int64)
        free[: len(self.hosts)] = self.hosts
        free[[*self.links]] = 1
        return {name: free[own] for name, own in self.tree.families.items()}

    @property
    def largest(self) -> tuple[int, int]:
        """Limits of the value and of the links of a candidate."""
        return max((r.value for r in self.requests), default=0), self.tree.num_rows

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether two requests have the same places: they are of as many nodes."""
        return self.requests[one].nodes == self.requests[other].nodes

    def among(self, chosen: Sequence[tuple[int, int]]) -> FatTreeOracle:
        """Return an oracle of some requests, each in the places of another of its size."""
        own = self.requests
        some = (replace(own[q], nodes=own[other].nodes) for q, other in chosen)
        return replace(self, requests=tuple(some))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return the most that requests gain."""
        known: dict[tuple[int, Covers], int | None] = {}
        least_under: dict[Covers, Least] = {}
        factors, found = [*prices.factors, 0], dict[int, int | None]()
        every = np.zeros(self.tree.num_rows, dtype=np.int64)
        for name, own in self.tree.families.items():
            every[own] = prices.rows.get(name, 0)
        for q, covers in wanted.items():
            request = self.requests[q]
            if covers not in least_under:
                least_under[covers] = self.priced(every, factors[1], covers)
            if (request.nodes, covers) not in known:
                known[request.nodes, covers] = least_under[covers](request.nodes)
            least = known[request.nodes, covers]
            found[q] = None if least is None else factors[0] * request.value - least
        return found

    @property
    @abstractmethod
    def coverable(self) -> int:
        """How many rows a branch may name."""

    @abstractmethod
    def priced(self, prices: IntArray, per_link: int, covers: Covers) -> Least:
        """Return what finds the least cost of a place, a link `per_link` more than its price."""


def oracle_of(
    tree: FatTree, hosts: Sequence[int], links: frozenset[int], queue: tuple[Request, ...]
) -> FatTreeOracle:
    """Return the oracle of an instance: by all places if they are few."""
    places: dict[int, list[Rows]] = {}
    left = LISTED if tree.num_nodes <= SMALL else -1
    for nodes in sorted({request.nodes for request in queue}) if left > 0 else ():
        places[nodes] = [*islice(_places(tree, hosts, links, nodes), left + 1)]
        left -= len(places[nodes])
        if left < 0:
            break
    if left < 0:
        return Relaxed(tree, hosts, links, queue)
    return Every(tree, hosts, links, queue, places)


# ---- All places ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Every(FatTreeOracle):
    """An oracle that goes through all places of every size."""

    places: Mapping[int, Sequence[Rows]]

    @property
    def coverable(self) -> int:
        """All rows are covered."""
        return self.tree.num_rows

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether a request has all places of another: it has as many nodes, or no place."""
        return super().may_replace(one, other) or not self.places[self.requests[other].nodes]

    @cached_property
    def _flat(self) -> dict[int, tuple[IntArray, IntArray]]:
        """By size the rows of all places, one after the other, and where each begins."""
        return {
            nodes: (
                np.array([row for place in own for row in place], dtype=np.int64),
                np.cumsum([0, *map(len, own)])[:-1],
            )
            for nodes, own in self.places.items()
            if own
        }

    def priced(self, prices: IntArray, per_link: int, covers: Covers) -> Least:
        """Return what finds the least cost of a place, a link `per_link` more than its price."""
        paid = prices + per_link * (np.arange(len(prices)) >= len(self.hosts))

        def least(nodes: int) -> int | None:
            if nodes not in self._flat:
                return None
            flat, starts = self._flat[nodes]
            fits = np.ones(len(starts), dtype=bool)
            for row, inside in covers.named:
                fits &= np.logical_or.reduceat(flat == row, starts) == inside
            costs = np.add.reduceat(paid[flat], starts)[fits]
            return int(costs.min()) if len(costs) else None

        return least


def _places(
    tree: FatTree, hosts: Sequence[int], links: frozenset[int], nodes: int
) -> Iterator[Rows]:
    """Yield the rows of all places: leaves by their numbers, then switches, then spines."""
    up = [
        frozenset(i for i in range(tree.switches) if tree.link(leaf, i) in links)
        for leaf in range(len(tree.sizes))
    ]
    for leaf, free in enumerate(hosts):
        if free >= nodes:
            yield (leaf,) * nodes
    for each in range(1, nodes):
        count, rest = divmod(nodes, each)
        fitting = [leaf for leaf, free in enumerate(hosts) if free >= each]
        need = rest if count == 1 else each
        for own, common in _sharing(fitting, up, count, need, frozenset(range(tree.switches))):
            ends: list[int | None] = [x for x, free in enumerate(hosts) if free >= rest]
            for last in ends if rest else [None]:
                if last is not None and (last in own or len(common & up[last]) < rest):
                    continue
                for used in _links(own, last, common, up, need, rest):
                    yield from _with_spines(tree, links, each, rest, used)


def _sharing(
    leaves: Sequence[int],
    up: Sequence[frozenset[int]],
    count: int,
    need: int,
    common: frozenset[int],
) -> Iterator[tuple[tuple[int, ...], frozenset[int]]]:
    """Yield sets of leaves that share enough switches, with these."""
    if not count:
        yield (), common
        return
    for k, leaf in enumerate(leaves):
        both = common & up[leaf]
        if len(both) >= need:
            for more, all_of in _sharing(leaves[k + 1 :], up, count - 1, need, both):
                yield (leaf, *more), all_of


def _links(
    own: tuple[int, ...],
    last: int | None,
    common: frozenset[int],
    up: Sequence[frozenset[int]],
    need: int,
    rest: int,
) -> Iterator[dict[int, tuple[int, ...]]]:
    """Yield the switches to which every leaf has a link of the job."""
    for chosen in combinations(sorted(common), need):
        if last is None:
            yield dict.fromkeys(own, chosen)
            continue
        for fewer in combinations(sorted({*chosen} & up[last]), rest):
            yield dict.fromkeys(own, chosen) | {last: fewer}


def _with_spines(
    tree: FatTree,
    links: frozenset[int],
    each: int,
    rest: int,
    used: Mapping[int, tuple[int, ...]],
) -> Iterator[Rows]:
    """Yield the places on leaves with their links, and all choices of links to spines."""
    full = len(used) - (rest > 0)
    counts = [each] * full + [rest] * (rest > 0)
    below = [leaf for leaf, n in zip(used, counts, strict=True) for _ in range(n)]
    below += [tree.link(leaf, i) for leaf, switches in used.items() for i in switches]
    pods = sorted({tree.pod_of[leaf] for leaf in used})
    choices: list[list[Rows]] = []
    for i in {i for own in used.values() for i in own} if len(pods) > 1 else ():
        sizes = {
            pod: sum(tree.pod_of[x] == pod and i in own for x, own in used.items()) for pod in pods
        }
        choices.append([*_choices(tree, links, i, {p: n for p, n in sizes.items() if n})])
    for ups in product(*choices):
        yield (*below, *(row for some in ups for row in some))


def _choices(
    tree: FatTree, links: frozenset[int], i: int, sizes: Mapping[int, int]
) -> Iterator[Rows]:
    """Yield the links to spines of plane i, where pods have so many leaves at its switches."""
    if len(sizes) < 2:
        yield ()
        return
    free = {pod: {j for j in range(tree.spines) if tree.up(pod, i, j) in links} for pod in sizes}
    most, least = max(sizes.values()), min(sizes.values())
    small = [pod for pod, size in sizes.items() if size < most]
    if len(small) > 1:
        return
    shared = set.intersection(*(free[pod] for pod in sizes if pod not in small or len(sizes) == 2))
    for own in combinations(sorted(shared), least if len(sizes) == 2 else most):
        rows = tuple(tree.up(pod, i, j) for pod in sizes if pod not in small for j in own)
        if not small:
            yield rows
            continue
        for fewer in combinations(sorted({*own} & free[small[0]]), sizes[small[0]]):
            yield (*rows, *(tree.up(small[0], i, j) for j in fewer))


# ---- Large trees --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relaxed(FatTreeOracle):
    """An oracle that forgets which links leaves have in common, and links to spines."""

    @property
    def coverable(self) -> int:
        """Branches name leaves only."""
        return len(self.hosts)

    def priced(self, prices: IntArray, per_link: int, covers: Covers) -> Least:
        """Return what finds a limit of the cost of a place, a link `per_link` more."""
        return _Pricing(self, prices.tolist(), per_link, covers).least


Sums = list[int]
"""The least costs of 0, 1, 2, .. leaves of a pod."""


class _Pricing:
    """What leaves of pods cost at some prices, where covers say which leaves are in a place.

    A leaf that a place must have costs `_must` less, which is more than any place costs.
    """

    def __init__(
        self, oracle: Relaxed, prices: Sequence[int], per_link: int, covers: Covers
    ) -> None:
        tree, self._per_link = oracle.tree, per_link
        self._hosts, self._prices = oracle.hosts, prices
        self._tree, self._covers = tree, covers
        self._links = [
            sorted(
                prices[row] + per_link
                for row in (tree.link(leaf, i) for i in range(tree.switches))
                if row in oracle.links
            )
            for leaf in range(len(tree.sizes))
        ]
        capacities = np.concatenate([*oracle.rows.values()]).tolist()
        held = sum(p * c for p, c in zip(prices, capacities, strict=True))
        self._must = 1 + held + per_link * tree.num_rows
        self._full: dict[tuple[int, int], list[tuple[list[tuple[int, int]], Sums]]] = {}
        self._odd: dict[tuple[int, int, int], list[list[int | None]]] = {}

    def least(self, nodes: int) -> int | None:
        """Return the least cost of a place of so many nodes; None if there is none."""
        leaves = range(len(self._hosts))
        costs = [self._leaf(leaf, nodes, 0) for leaf in leaves]
        for each in range(1, min(nodes - 1, max(self._tree.sizes)) + 1):
            count, rest = divmod(nodes, each)
            costs += self._spread(each, count, rest)
        least = min((cost for cost in costs if cost is not None), default=None)
        if least is None:
            return None
        least += self._must * len(self._covers.inside)
        return least if least < self._must else None

    def _leaf(self, leaf: int, hosts: int, links: int) -> int | None:
        """Return what hosts of a leaf cost with its cheapest links; None if it has too few."""
        if self._hosts[leaf] < hosts or len(self._links[leaf]) < links:
            return None
        if leaf in self._covers.outside:
            return None
        discount = self._must if leaf in self._covers.inside else 0
        return hosts * self._prices[leaf] + sum(self._links[leaf][:links]) - discount

    def _full_of(self, each: int, need: int) -> list[tuple[list[tuple[int, int]], Sums]]:
        """Return by pod the costs of its leaves, ascending, and their sums."""
        if (each, need) not in self._full:
            found = []
            for leaves in self._tree.leaves:
                own = sorted(
                    (cost, leaf)
                    for leaf in leaves
                    for cost in [self._leaf(leaf, each, need)]
                    if cost is not None
                )
                sums = [0]
                for cost, _ in own:
                    sums.append(sums[-1] + cost)
                found.append((own, sums))
            self._full[each, need] = found
        return self._full[each, need]

    def _odd_of(self, each: int, need: int, rest: int) -> list[list[int | None]]:
        """Return by pod the least cost of 0, 1, .. full leaves and one with the rest."""
        if not rest:
            return [[*sums] for _, sums in self._full_of(each, need)]
        key = each, need, rest
        if key not in self._odd:
            self._odd[key] = []
            pods = zip(self._tree.leaves, self._full_of(each, need), strict=True)
            for leaves, (own, sums) in pods:
                place = {leaf: k for k, (_, leaf) in enumerate(own)}
                least: list[int | None] = [None] * len(sums)
                for leaf in leaves:
                    cost = self._leaf(leaf, rest, rest)
                    if cost is None:
                        continue
                    for count in range(len(sums)):
                        others = sums[count]
                        if place.get(leaf, count) < count:
                            if count + 1 == len(sums):
                                continue
                            others = sums[count + 1] - own[place[leaf]][0]
                        before = least[count]
                        if before is None or others + cost < before:
                            least[count] = others + cost
                self._odd[key].append(least)
        return self._odd[key]

    def _spread(self, each: int, count: int, rest: int) -> Iterator[int | None]:
        """Yield the least costs of places with so many hosts on full leaves, by division."""
        need = rest if count == 1 else each
        last = self._odd_of(each, need, rest)
        for own in last:
            if count < len(own):
                yield own[count]
        if not self._tree.spines:
            return
        for pods, leaves, odd, has_rest in _divisions(count, rest):
            if pods + (odd is not None) > len(self._tree.pods):
                continue
            ups = _ups(pods, leaves, odd, need, rest if has_rest else 0)
            yield from self._over_pods(
                each, need, pods, leaves, odd, ups, last if has_rest else None
            )

    def _over_pods(
        self,
        each: int,
        need: int,
        pods: int,
        leaves: int,
        odd: int | None,
        ups: int,
        last: list[list[int | None]] | None,
    ) -> Iterator[int]:
        """Yield costs of some pods with as many leaves each, and one with another number."""
        sums = [own for _, own in self._full_of(each, need)]
        equal = sorted((own[leaves], p) for p, own in enumerate(sums) if leaves < len(own))
        extra = ups * self._per_link
        if odd is None:
            if len(equal) >= pods:
                yield sum(cost for cost, _ in equal[:pods]) + extra
            return
        base = sum(cost for cost, _ in equal[:pods])
        among = {p: cost for cost, p in equal[:pods]}
        others: Sequence[Sequence[int | None]] = sums if last is None else last
        for p, some in enumerate(others):
            cost = some[odd] if odd < len(some) else None
            if cost is None:
                continue
            if p not in among:
                if len(equal) >= pods:
                    yield base + cost + extra
            elif len(equal) > pods:
                yield base - among[p] + equal[pods][0] + cost + extra


def _divisions(count: int, rest: int) -> Iterator[tuple[int, int, int | None, bool]]:
    """Yield how full leaves can be divided among pods: equal pods, their leaves, and another pod.

    Of that it says how many full leaves it has, and whether the leaf with the rest.
    """
    for leaves in range(1, count + 1):
        pods, odd = divmod(count, leaves)
        if odd or rest:
            yield pods, leaves, odd, rest > 0
        elif pods > 1:
            yield pods, leaves, None, False
    for fewer in range(1, count // 2 + 1) if rest else ():
        yield 1, fewer, count - fewer, True


def _ups(pods: int, leaves: int, odd: int | None, need: int, rest: int) -> int:
    """Return how many links to spines a place has at least."""

    def plane(more: int) -> int:
        last = 0 if odd is None else odd + more
        sizes = [leaves] * pods + [last] * (last > 0)
        return 0 if len(sizes) < 2 else 2 * min(sizes) if len(sizes) == 2 else sum(sizes)

    return rest * plane(1) + (need - rest) * plane(0)
