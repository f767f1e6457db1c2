"""Where a request may be, with the links that it owns there (docs/proofs/fattree.md, "Places").

A job is on leaves with n of its nodes each, and perhaps one with fewer (the *remainder leaf*). Its
leaves share n switches of their pods, its pods share spines, in the same way.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, reduce
from itertools import combinations, islice, product
from typing import NamedTuple

import numpy as np

from topoplace.machine.fattree import FatTree
from topoplace.types import IntArray


class Shape(NamedTuple):
    """How many nodes a job has where: on some pods that are alike, and on a last one.

    Attributes
    ----------
    full, rest
        Nodes on each of its leaves but one, and on the remainder leaf, which is in the last pod; 0
        if there is none.
    alike, leaves
        Pods before the last one, and the full leaves of each.
    last
        Full leaves of the last pod.
    """

    full: int
    rest: int
    alike: int
    leaves: int
    last: int

    @property
    def common(self) -> int:
        """Switches that its leaves share."""
        return self.rest if self.alike * self.leaves + self.last == 1 else self.full

    @property
    def pods(self) -> list[tuple[int, bool]]:
        """By pod its full leaves, and whether it has the remainder leaf; the largest first."""
        each = [(self.leaves, False)] * self.alike
        return sorted([*each, (self.last, self.rest > 0)], reverse=True)


def needs(tree: FatTree, nodes: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield how many links of leaves, and links to spines, places have at least.

    Full leaves have at most `most` nodes. As many leaves as possible are in one pod.
    """
    widest = max(map(len, tree.leaves))

    def ups(leaves: int) -> int:
        return min(leaves, 2 * max(0, leaves - widest))

    for full in range(min(nodes, most), 0, -1):
        count, rest = divmod(nodes, full)
        common = full if count > 1 else rest
        if count + (rest > 0) <= len(tree.sizes):
            yield count * common + rest, rest * ups(count + 1) + (common - rest) * ups(count)


@lru_cache(1024)
def shapes(tree: FatTree, nodes: int) -> tuple[Shape, ...]:
    """Return all shapes of a request: on the fewest pods first, on the fewest leaves first."""
    most = max(map(len, tree.leaves))
    splits = [(n, *divmod(nodes, n)) for n in range(min(nodes, max(tree.sizes)), 0, -1)]
    every = [Shape(n, rest, 0, 0, full) for n, full, rest in splits]
    for n, full, rest in splits if tree.spines else ():
        # with a remainder leaf, the last of two pods may be the larger one
        every += [Shape(n, rest, 1, own, full - own) for own in range(1, full // 2 + 1) if rest]
        for leaves in range(min(full, most), 0, -1):
            alike, last = divmod(full, leaves)
            own = (alike, leaves, last) if last or rest else (alike - 1, leaves, leaves)
            every += [Shape(n, rest, *own)] if own[0] > 0 else []
    widest = {shape: max(full + rest for full, rest in shape.pods) for shape in every}
    return tuple(s for s in every if len(s.pods) <= len(tree.pods) and widest[s] <= most)


STEPS = 3000
"""After so many steps the search of a place of one shape ends: it may be there nevertheless."""


class TooManyStepsError(Exception):
    """A search for places ends before it has seen all of them."""


Leaves = tuple[tuple[int, int], ...]
"""Leaves of a job, each with the nodes that it has there."""

Chosen = tuple[tuple[int, Leaves], ...]
"""Pods of a job, each with the leaves that it has there."""


class Room:
    """What is free of a tree, as masks of bits, and the search for places in it.

    Parameters
    ----------
    left
        What is free of every row. The fullest leaves are tried first, and the fullest pods.
    tight
        Whether places leave no nodes of their leaves free.
    """

    def __init__(self, tree: FatTree, left: IntArray, tight: bool = False) -> None:
        links, ups = (left[tree.families[name]] for name in ("links", "ups"))
        self._fits = operator.eq if tight else operator.ge
        self._tree, self._hosts = tree, left[tree.families["hosts"]].tolist()
        self._links = _masks(links, tree.switches)
        self._ups = _masks(ups, tree.spines)
        self._leaves = [sorted(own, key=lambda leaf: self._hosts[leaf]) for own in tree.leaves]
        free = [sum(self._hosts[own.start : own.stop]) for own in tree.leaves]
        self._pods = np.argsort(free, kind="stable").tolist()
        self._steps = math.inf
        self._fitting = cache(self._fitting_leaves)

    def first(self, every: Iterable[Shape]) -> tuple[int, ...] | None:
        """Return the first place of the first shape that has one; None if none is found."""
        for shape in every:
            fitting = self._fitting(shape.full, shape.common)
            if all(num >= full for num, (full, _) in zip(fitting, shape.pods, strict=False)):
                self._steps = STEPS
                with suppress(TooManyStepsError):
                    for found in self.places(shape):
                        return found
        return None

    def _fitting_leaves(self, nodes: int, links: int) -> list[int]:
        """Return how many leaves of a pod have so much free, those of most pods first."""
        fits = [
            self._fits(has, nodes) and up.bit_count() >= links
            for has, up in zip(self._hosts, self._links, strict=True)
        ]
        return sorted((sum(fits[own.start : own.stop]) for own in self._tree.leaves), reverse=True)

    def places(self, shape: Shape) -> Iterator[tuple[int, ...]]:
        """Yield the rows of all places of a shape, each repeated by the amount."""
        for chosen, mask in self._over_pods(shape, shape.pods, (), (1 << self._tree.switches) - 1):
            leaves = [one for _, own in chosen for one in own]
            hosts = sorted(leaf for leaf, nodes in leaves for _ in range(nodes))
            for some in shares([(nodes, self._links[leaf] & mask) for leaf, nodes in leaves]):
                self._step()
                own = {leaf: switches for (leaf, _), switches in zip(leaves, some, strict=True)}
                links = [self._tree.link(leaf, i) for leaf, those in own.items() for i in those]
                for ups in self._with_spines(chosen, own):
                    yield (*hosts, *sorted(links), *sorted(ups))

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise TooManyStepsError

    def _over_pods(
        self, shape: Shape, pods: Sequence[tuple[int, bool]], chosen: Chosen, mask: int
    ) -> Iterator[tuple[Chosen, int]]:
        """Yield pods with their leaves, and the switches that these have in common."""
        k, there, common = len(chosen), [pod for pod, _ in chosen], shape.common
        if k == len(pods):
            yield chosen, mask
            return
        same = k > 0 and pods[k - 1] == pods[k]
        for pod in self._pods[self._pods.index(there[-1]) + 1 if same else 0 :]:
            if pod in there:
                continue
            self._step()
            within = self._planes([*there, pod], pods, mask)
            order, (leaves, rest) = self._leaves[pod], pods[k]
            for own, still in self._choices(order, leaves, shape.full, common, within):
                others = [leaf for leaf in order if (leaf, shape.full) not in own]
                need = min(shape.rest, common)
                for last, both in self._choices(others, int(rest), shape.rest, need, still):
                    # two leaves share no more than the smaller one needs
                    after = both if common == shape.rest else still
                    yield from self._over_pods(shape, pods, (*chosen, (pod, own + last)), after)

    def _planes(self, some: Sequence[int], pods: Sequence[tuple[int, bool]], mask: int) -> int:
        """Return the switches of a mask at which pods have the spines in common that they need."""
        two = len(pods) == 2
        need = pods[two][0] if len(pods) > 1 else 0
        equal = [pod for pod, own in zip(some, pods, strict=False) if two or own == pods[0]]
        for i in _bits(mask) if need else ():
            shared = reduce(
                operator.and_, (self._ups[pod * self._tree.switches + i] for pod in equal)
            )
            mask -= (shared.bit_count() < need) << i
        return mask

    def _choices(
        self, order: Sequence[int], num: int, nodes: int, links: int, mask: int
    ) -> Iterator[tuple[Leaves, int]]:
        """Yield so many leaves with free nodes and links, and the switches that all have."""
        if not num:
            yield (), mask
            return
        fit = [
            leaf
            for leaf in order
            if self._fits(self._hosts[leaf], nodes)
            and (mask & self._links[leaf]).bit_count() >= links
        ]
        for k in range(len(fit) - num + 1):
            self._step()
            common = mask & self._links[fit[k]]
            for more, still in self._choices(fit[k + 1 :], num - 1, nodes, links, common):
                yield ((fit[k], nodes), *more), still

    def _with_spines(
        self, chosen: Chosen, switches: Mapping[int, Sequence[int]]
    ) -> Iterator[list[int]]:
        """Yield choices of links to spines, where leaves use some switches."""
        tree, choices = self._tree, list[list[list[int]]]()
        most = None if self._steps == math.inf else 1  # where one place is wanted
        for i in sorted({i for own in switches.values() for i in own} if len(chosen) > 1 else ()):
            sizes = {pod: sum(i in switches[leaf] for leaf, _ in own) for pod, own in chosen}
            pods = [pod for pod, num in sizes.items() if num]
            own = [(sizes[pod], self._ups[pod * tree.switches + i]) for pod in pods]
            every = islice(shares(own), most)
            rows = (
                [tree.up(p, i, j) for p, js in zip(pods, s, strict=True) for j in js] for s in every
            )
            choices.append([*rows])
        for ups in product(*choices):
            yield [row for own in ups for row in own]


def shares(parts: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, ...]]]:
    """Yield the choices of what parts of a job share: leaves switches, or pods spines.

    A part has a size, and a mask of what it may have. All parts of the largest size take the same
    so many; a smaller one takes its size of these. Of two different ones, the larger takes no more
    than the smaller. A single part takes nothing.
    """
    sizes, two = [size for size, _ in parts], len(parts) == 2
    small = [k for k, size in enumerate(sizes) if size < max(sizes)]
    if len(parts) < 2 or len(small) > 1:
        if len(parts) == 1:
            yield [()]
        return
    common = reduce(
        operator.and_, (mask for k, (_, mask) in enumerate(parts) if two or k not in small)
    )
    for own in combinations(_bits(common), min(sizes) if two else max(sizes)):
        if not small:
            yield [own] * len(parts)
            continue
        [k] = small
        for less in combinations([i for i in own if parts[k][1] >> i & 1], sizes[k]):
            yield [own] * k + [less] + [own] * (len(parts) - k - 1)


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def _masks(rows: IntArray, width: int) -> list[int]:
    packed = np.packbits(rows.reshape(-1, max(1, width)) > 0, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]
