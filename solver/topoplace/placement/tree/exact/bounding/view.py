"""What thresholds leave of a job: states of leaves, and inequalities between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding._kernels import NEVER, nearest, spare_ranks
from topoplace.placement.tree.exact.bounding.structure import Dims, Family
from topoplace.placement.tree.exact.bounding.whole import Crowd, Inequality
from topoplace.placement.tree.exact.job import Job
from topoplace.snapshot.schema import Pattern

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MOST_CUTS = 4
"""Of one kind and of the same steps, where time matters."""


class View:
    """The states that some thresholds leave, and the inequalities between them.

    Attributes
    ----------
    alive
        Which states are left.
    keeps, absent
        Per step, whether a state keeps it inside (crossing is too dear), and whether it takes no
        part in it; shape ``(num_steps, num_states)``.
    """

    def __init__(
        self, job: Job, thresholds: IntArray, cuts: int = MOST_CUTS, *, plain: bool = False
    ) -> None:
        self.cuts = cuts
        self.job = job
        self.states = job.states
        self.thresholds = thresholds
        self.alive = np.ones(len(self.states.count), dtype=bool)
        shape = (len(thresholds), len(self.alive))
        self.keeps = np.zeros(shape, dtype=bool)
        self.absent = np.zeros(shape, dtype=bool)
        least = int(job.states.crossing.min())
        roles: dict[int, tuple[tuple[int, int], ...]] = {}
        for family in job.families:
            alone = dict.fromkeys(family.steps, ((1, 1),))
            roles |= alone if plain else _roles(family, thresholds, least)
        sizes = sorted({size for pairs in roles.values() for pair in pairs for size in pair})
        while True:
            before = int(self.alive.sum())
            self._make_room()
            near = {size: self._nearest(self.alive & (self.states.count >= size)) for size in sizes}
            for step, pairs in roles.items():
                self._meet(step, pairs, near)
            for family in job.families:
                self._drop(family)
            if int(self.alive.sum()) in (before, 0):
                break

    def _make_room(self) -> None:
        """Drop the states that leave too little room for all ranks, whatever the others hold."""
        states = self.states
        self.room, self.spare = spare_ranks(
            states.first, states.multiplicity, states.count, self.alive, self.job.ranks
        )
        self.alive &= self.room >= 0

    def _meet(self, step: int, pairs: Sequence[tuple[int, int]], near: dict[int, IntArray]) -> None:
        """Find which states keep a step inside or are absent from it, given what partners cost."""
        count = self.states.count
        cheapest = np.full(len(count), NEVER, dtype=np.int64)
        for own, other in pairs:
            np.minimum(cheapest, np.where(count >= own, near[other], NEVER), out=cheapest)
        takes_part = count >= min(own for own, _ in pairs)
        self.keeps[step] = cheapest > self.thresholds[step]
        too_dear = self.states.inside[self.states.kind] > self.thresholds[step]
        self.absent[step] = ~takes_part | (self.keeps[step] & too_dear)

    def _nearest(self, among: BoolArray) -> IntArray:
        """Return the least hops from every state to a state of another leaf among some.

        Hops grow with the partner's count, so the lowest state of every type decides.
        """
        states = self.states
        found: IntArray = nearest(
            states.first, states.multiplicity, states.kind, states.type, states.crossing,
            among, self.room, self.spare,
        )  # fmt: skip
        return found

    def _signatures(
        self, family: Family, dims: Sequence[int], among: BoolArray
    ) -> Iterator[tuple[BoolArray, Dims, Dims]]:
        """Yield the states that keep the same of some dims and are absent from the same."""
        steps = [family.steps[dim] for dim in dims]
        weight = 1 << np.arange(len(dims), dtype=np.int64)
        both = (weight << len(dims)) @ self.absent[steps] + weight @ self.keeps[steps]
        for bits in np.unique(both[among]).tolist():
            kept = frozenset(dim for n, dim in enumerate(dims) if bits >> n & 1)
            gone = frozenset(dim for n, dim in enumerate(dims) if bits >> n + len(dims) & 1)
            yield among & (both == bits), kept, gone

    def _drop(self, family: Family) -> None:
        """Drop the states that no set of ranks can have under the thresholds."""
        for at, kept, gone in self._signatures(family, range(family.num_dims), self.alive.copy()):
            self.alive &= ~at | family.reachable(kept, gone)[self.states.count]

    def rows(self) -> list[Inequality]:
        """Return inequalities ``sum over leaves of row[state] >= least``."""
        return [*self.hostings(), *self.pairings()]

    def _lowest(self, family: Family) -> list[list[int]]:
        """Return the dims up to every threshold of a family."""
        own = self.thresholds[list(family.steps)]
        order = np.argsort(own, kind="stable").tolist()
        last = len(order)
        ends = [n for n in range(1, last + 1) if n == last or own[order[n - 1]] < own[order[n]]]
        return [order[:end] for end in ends]

    def pairings(self) -> Iterator[Inequality]:
        """Yield what states that pair badly need of the others."""
        for family in self.job.families:
            for dims in self._lowest(family):
                yield from self._pairings(family, dims)
            if family.pattern is Pattern.BINOMIAL:
                for dim in range(family.num_dims):
                    yield from self._pairings(family, [dim])

    def hostings(self) -> Iterator[Inequality]:
        """Yield that leaves which keep dims inside host whole components of them."""
        for family in self.job.families:
            if family.alike:
                continue  # all components of a full cube are of one size
            signatures = list(self._signatures(family, range(family.num_dims), self.alive))
            sets = [frozenset(dims) for dims in self._lowest(family)]
            if family.pattern is Pattern.BINOMIAL:
                sets += [frozenset(range(end)) for end in range(1, family.num_dims)]
            for dims in set(sets):
                groups = [(at, kept, gone) for at, kept, gone in signatures if dims <= kept]
                for least, wanted in family.large_components(dims):
                    hosts = np.where(self.alive, self.states.count, 0)
                    for at, kept, gone in groups:
                        hosted = family.hosted(kept, gone, dims, least)[self.states.count]
                        hosts = np.where(at, hosted, hosts)
                    yield hosts, wanted

    def _pairings(self, family: Family, dims: list[int]) -> Iterator[Inequality]:
        """Yield, for states that pair badly in some dims, that the others must pair with them."""
        count = self.states.count
        steps = [family.steps[dim] for dim in dims]
        for bad, apart in self._bad_pairs(steps):
            closed = frozenset(
                dim for dim, step in zip(dims, steps, strict=True) if self.keeps[step][bad].all()
            )
            free = frozenset(dims) - closed
            if not free:
                continue
            near = self.alive & (apart <= int(self.thresholds[steps].max()))
            yield from self._rows(family, free, closed, bad, apart)
            least = family.least_boundary(free, closed)
            if least is not None:
                # however they lie, the bad ones have so many neighbours at least
                row = np.where(bad, -least[count], 0)
                most = int(family.degrees(free).max())
                yield np.where(near, most * count, row), 0
            claims = family.claims(free, closed)
            if claims is not None:
                row = np.where(bad, -claims[count], 0)
                yield np.where(near, len(free) ** 2 * count, row), 0

    def _bad_pairs(self, steps: Sequence[int]) -> Iterator[tuple[BoolArray, IntArray]]:
        """Yield states no two of which pair in some steps, and the least hops of all to them.

        Whatever crosses from them goes to states with so few hops.
        """
        states = self.states
        top = int(self.thresholds[steps].max())
        keys = np.unique(states.key[self.alive & (states.key > top)])
        for key in keys[:: max(1, len(keys) // self.cuts)].tolist():
            high = self.alive & (states.key >= key) & (states.count < self.job.ranks)
            bad = high & (self._nearest(high) > top)
            if bad.any():
                yield bad, self._nearest(bad)

    def _rows(
        self, family: Family, free: Dims, closed: Dims, bad: BoolArray, apart: IntArray
    ) -> Iterator[Inequality]:
        count, ranks = self.states.count, self.job.ranks
        degree = family.degrees(free)
        within = 2 * family.pairs_within(free, closed)[count]
        top = int(degree.max())
        for most in range(1, min(top, 3) + 1) if family.pattern is Pattern.BINOMIAL else (top,):
            surplus = int(np.maximum(degree - most, 0).sum())
            row = np.where(bad, within - most * count, 0)
            for at, met in self._meeting(family, sorted(free), apart):
                left = int(family.degrees(met).max())
                row = np.where(at, min(most, left) * count, row)
            yield row, int(degree.sum()) - 2 * surplus - most * ranks

    def _meeting(
        self, family: Family, dims: Sequence[int], apart: IntArray
    ) -> Iterator[tuple[BoolArray, Dims]]:
        """Yield the states that may meet, in the same dims each, those at some hops from them."""
        steps = [family.steps[dim] for dim in dims]
        meets = self.alive & ~self.keeps[steps] & (apart <= self.thresholds[steps][:, None])
        sets = (1 << np.arange(len(dims), dtype=np.int64)) @ meets
        for bits in np.unique(sets[sets > 0]).tolist():
            yield sets == bits, frozenset(dim for n, dim in enumerate(dims) if bits >> n & 1)

    def crowds(self) -> Iterator[Crowd]:
        """Yield, on a ring, what stands between: two good ranks where any others come between."""
        for family in self.job.families:
            if family.pattern is Pattern.RING and self.job.ranks > 2:
                step = family.steps[0]
                for bad, apart in self._bad_pairs([step]):
                    near = self.alive & (apart <= self.thresholds[step])
                    other = self.alive & ~bad & ~near & (self.states.count < self.job.ranks)
                    yield bad, near, other


def _roles(
    family: Family, thresholds: IntArray, least: int
) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return, per step, how many ranks go with one of a pair and with the other.

    No step below the least crossing crosses, so their components lie on one leaf each.
    """
    never = frozenset(d for d in range(family.num_dims) if thresholds[family.steps[d]] < least)
    return dict(zip(family.steps, family.roles(never), strict=True))
