"""Where a request may be, with the links that it owns there (docs/proofs/fattree.md, "Places").

A job is on leaves with n of its nodes each, and perhaps one with fewer (the *remainder leaf*). Its
leaves share n switches of their pods, its pods share spines, in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from topoplace.machine.fattree import FatTree
from topoplace.types import IntArray


class TooManyStepsError(Exception):
    """A search for places ends before it has seen all of them."""


@dataclass(frozen=True)
class Shape:
    """How many nodes a job has where.

    Attributes
    ----------
    full
        Nodes on each of its leaves but one.
    rest
        Nodes on the remainder leaf, 0 if there is none.
    pods
        By pod its leaves with `full` nodes, and whether it has the remainder leaf.
    """

    full: int
    rest: int
    pods: tuple[tuple[int, bool], ...]

    @property
    def num_leaves(self) -> int:
        """Number of leaves."""
        return sum(leaves + rest for leaves, rest in self.pods)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.rest + self.full * sum(leaves for leaves, _ in self.pods)

    @property
    def common(self) -> int:
        """Switches that its leaves share."""
        if self.num_leaves == 1:
            return 0
        return self.rest if self.num_leaves == 2 and self.rest else self.full

    @property
    def num_spines(self) -> int:
        """Spines that its pods share at least, in the plane of a switch of full leaves."""
        sizes = sorted(leaves for leaves, _ in self.pods if leaves)
        return 0 if len(sizes) < 2 else sizes[0] if len(sizes) == 2 else sizes[-1]

    @property
    def least_ups(self) -> int:
        """Links to spines that a place of it has at least."""
        total = 0
        for num, more in ((self.rest, True), (self.common - self.rest, False)):
            sizes = sorted(own + (has and more) for own, has in self.pods)
            sizes = [size for size in sizes if size]
            total += num * (sum(sizes) if len(sizes) > 2 else 2 * sizes[0] * (len(sizes) == 2))
        return total


class Shapes:
    """Shapes as arrays.

    Attributes
    ----------
    every
        The shapes.
    groups
        By nodes and switches of full leaves, the numbers of their shapes.
    numbers
        By shape the full leaves of each of the pods that are alike, how many such pods there are,
        and the full leaves of the other pod and the nodes of its remainder leaf.
    ups
        The links to spines that a place has at least.
    """

    def __init__(self, some: Iterable[Shape]) -> None:
        self.every = tuple(some)
        groups: dict[tuple[int, int], list[int]] = {}
        numbers = np.zeros((len(self.every), 4), dtype=np.int64)
        for k, shape in enumerate(self.every):
            groups.setdefault((shape.full, shape.common), []).append(k)
            pods = sorted(shape.pods, key=lambda pod: pod[1])
            numbers[k] = pods[0][0], len(pods) - 1, pods[-1][0], shape.rest
        self.groups = {key: np.array(own) for key, own in groups.items()}
        self.numbers = numbers
        self.ups = np.array([shape.least_ups for shape in self.every], dtype=np.int64)


def shapes(tree: FatTree, nodes: int) -> Iterator[Shape]:
    """Yield all shapes of a request: on the fewest pods first, on the fewest leaves first."""
    most = max(tree.sizes)
    splits = [(n, *divmod(nodes, n)) for n in range(min(nodes, most), 0, -1)]
    for n, full, rest in splits:
        yield Shape(n, rest, ((full, rest > 0),))
    if not tree.spines or len(tree.pods) == 1:
        return
    for n, full, rest in splits:
        for pods in _over_pods(full, rest > 0):
            if len(pods) <= len(tree.pods):
                yield Shape(n, rest, pods)


def _over_pods(full: int, rest: bool) -> Iterator[tuple[tuple[int, bool], ...]]:
    """Yield how leaves can be divided among several pods, the largest parts first."""
    if rest:  # two pods, of which the larger or an equal one has the remainder leaf
        for more in range(full - 1, (full - 1) // 2, -1):
            yield (more, True), (full - more, False)
    for leaves in range(full, 0, -1):
        num, left = divmod(full, leaves)
        if num + (left > 0 or rest) > 1:
            yield ((leaves, False),) * num + (((left, rest),) if left or rest else ())


class Room:
    """What is free of a tree, as masks of bits, and the search for places in it.

    Parameters
    ----------
    left
        What is free of every row.
    steps
        After so many steps a search gives up; None for never.
    cost
        By leaf what a node on it costs: cheap ones are tried first, then full ones.
    """

    def __init__(
        self, tree: FatTree, left: IntArray, steps: int | None = None, cost: IntArray | None = None
    ) -> None:
        self.tree, self.steps = tree, steps
        host, links, ups = (left[own] for own in tree.families.values())
        self.hosts: list[int] = host.tolist()
        self.links = _masks(links.reshape(len(tree.sizes), -1))
        spines = ups.reshape(len(tree.pods), tree.switches, -1)
        self.ups = [_masks(own) for own in spines]
        price = np.zeros(len(host), dtype=np.int64) if cost is None else cost
        order = np.lexsort((np.arange(len(host)), host, price))
        self._order: list[list[int]] = [[] for _ in tree.pods]
        for leaf in order[host[order] > 0].tolist():
            self._order[tree.pod_of[leaf]].append(leaf)
        busy = np.array([price[own].sum() if own else 0 for own in self._order])
        room = [sum(self.hosts[leaf] for leaf in own) for own in self._order]
        self._pods: list[int] = np.lexsort((np.arange(len(room)), room, busy)).tolist()

    def places(self, shape: Shape) -> Iterator[tuple[int, ...]]:
        """Yield the rows of all places of a shape, each repeated by the amount."""
        if shape.num_leaves == 1:
            for pod in self._pods:
                for leaf in self._order[pod]:
                    if self.hosts[leaf] >= shape.full:
                        yield (leaf,) * shape.full
            return
        everything = (1 << self.tree.switches) - 1
        for chosen, rest, mask in self._pods_of(shape, 0, [], None, everything):
            yield from self._joined(shape, chosen, rest, mask)

    def _step(self) -> None:
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                raise TooManyStepsError

    def _pods_of(
        self,
        shape: Shape,
        k: int,
        chosen: list[tuple[int, tuple[int, ...]]],
        rest: int | None,
        mask: int,
    ) -> Iterator[tuple[list[tuple[int, tuple[int, ...]]], int | None, int]]:
        """Yield pods with their full leaves, the remainder leaf, and the switches in common."""
        if k == len(shape.pods):
            yield chosen, rest, mask
            return
        same = k > 0 and shape.pods[k - 1] == shape.pods[k]
        start = self._pods.index(chosen[-1][0]) + 1 if same else 0
        for pod in self._pods[start:]:
            if any(pod == other for other, _ in chosen):
                continue
            self._step()
            within = self._planes(shape, [*(p for p, _ in chosen), pod], mask)
            if within.bit_count() < shape.common:
                continue
            leaves, with_rest = shape.pods[k]
            for own, still in self._leaves(shape, self._order[pod], leaves, (), within):
                more = [*chosen, (pod, own)]
                if not with_rest:
                    yield from self._pods_of(shape, k + 1, more, rest, still)
                    continue
                for leaf in self._order[pod]:
                    common = still & self.links[leaf]
                    enough = self.hosts[leaf] >= shape.rest <= common.bit_count()
                    if enough and leaf not in own:
                        if shape.common == shape.rest:  # the two leaves share no more
                            yield from self._pods_of(shape, k + 1, more, leaf, common)
                        else:
                            yield from self._pods_of(shape, k + 1, more, leaf, still)

    def _planes(self, shape: Shape, pods: Sequence[int], mask: int) -> int:
        """Return the switches of a mask at which pods have enough spines in common."""
        if len(shape.pods) == 1:
            return mask
        full = [p for p, (leaves, _) in zip(pods, shape.pods, strict=False) if leaves]
        need = shape.num_spines
        equal = [p for p, own in zip(pods, shape.pods, strict=False) if own == shape.pods[0]]
        among = full if len(shape.pods) == 2 else equal
        found = 0
        for i in range(self.tree.switches):
            if mask >> i & 1:
                spines = (1 << self.tree.spines) - 1
                for pod in among:
                    spines &= self.ups[pod][i]
                if spines.bit_count() >= need:
                    found |= 1 << i
        return found

    def _leaves(
        self, shape: Shape, order: Sequence[int], left: int, own: tuple[int, ...], mask: int
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield choices of full leaves, and the switches that all of them have links to."""
        if not left:
            yield own, mask
            return
        for k, leaf in enumerate(order):
            if len(order) - k < left:
                return
            common = mask & self.links[leaf]
            if self.hosts[leaf] >= shape.full and common.bit_count() >= shape.common:
                self._step()
                yield from self._leaves(shape, order[k + 1 :], left - 1, (*own, leaf), common)

    def _joined(
        self,
        shape: Shape,
        chosen: Sequence[tuple[int, tuple[int, ...]]],
        rest: int | None,
        mask: int,
    ) -> Iterator[tuple[int, ...]]:
        """Yield the places on some leaves: all choices of their links."""
        tree, pods = self.tree, [pod for pod, _ in chosen]
        leaves = [leaf for _, own in chosen for leaf in own]
        sizes = [shape.full] * len(leaves)
        if rest is not None:
            leaves, sizes = [*leaves, rest], [*sizes, shape.rest]
        hosts = [leaf for leaf, n in zip(leaves, sizes, strict=True) for _ in range(n)]
        masks = (self.links[leaf] & mask for leaf in leaves)
        for own in shares([*zip(sizes, masks, strict=True)]):
            self._step()
            links = [
                tree.link(leaf, i)
                for leaf, bits in zip(leaves, own, strict=True)
                for i in _bits(bits)
            ]
            of_rest = own[-1] if rest is not None else 0
            for ups in self._spines(shape, pods, own[0], of_rest):
                yield (*sorted(hosts), *sorted([*links, *ups]))

    def _spines(
        self, shape: Shape, pods: Sequence[int], switches: int, of_rest: int
    ) -> Iterator[list[int]]:
        """Yield all choices of links to spines, where leaves use some switches."""
        if len(pods) == 1 or not switches:
            yield []
            return
        i = (switches & -switches).bit_length() - 1
        sizes = [n + (has and of_rest >> i & 1) for n, has in shape.pods]
        own = [(n, self.ups[pod][i], pod) for n, pod in zip(sizes, pods, strict=True) if n]
        for bits in shares([(n, mask) for n, mask, _ in own]):
            ups = [
                self.tree.up(pod, i, j)
                for (_, _, pod), spines in zip(own, bits, strict=True)
                for j in _bits(spines)
            ]
            for more in self._spines(shape, pods, switches & (switches - 1), of_rest):
                yield ups + more


def shares(parts: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield the choices of what parts of a job share, of each as a mask: leaves switches, or pods.

    All parts of the largest size take the same so many; a smaller one takes its size of these. Of
    two different ones, the larger takes no more than the smaller. A single part takes nothing.
    """
    if len(parts) < 2:
        yield [0] * len(parts)
        return
    size = max(n for n, _ in parts)
    small = [k for k, (n, _) in enumerate(parts) if n < size]
    common = (1 << 128) - 1
    for n, mask in parts:
        common &= mask if n == size else -1
    if len(small) > 1:
        return
    if small and len(parts) == 2:
        for own in subsets(common & parts[small[0]][1], parts[small[0]][0]):
            yield [own, own]
        return
    for own in subsets(common, size):
        if not small:
            yield [own] * len(parts)
            continue
        for less in subsets(own & parts[small[0]][1], parts[small[0]][0]):
            yield [less if k == small[0] else own for k in range(len(parts))]


def subsets(mask: int, size: int) -> Iterator[int]:
    """Yield the subsets of so many bits of a mask, lowest bits first."""
    for bits in combinations(_bits(mask), size):
        yield sum(1 << i for i in bits)


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def _masks(rows: IntArray) -> list[int]:
    packed = np.packbits(rows > 0, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]
