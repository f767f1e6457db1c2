"""A grid in parts: the components of the dims that stay inside leaves, and who they talk to."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding.structure import GRIDS, Dims, components
from topoplace.placement.tree.exact.building.construct import Parts
from topoplace.placement.tree.exact.fitting.fit import pairs_by_rank
from topoplace.placement.tree.exact.gridding.kernels.settle import settle
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

SETTLED = 0.5
"""Less weight than any pair above its limit has."""

_HOT, _COLD = 4.0, 0.4


def is_grid(job: Job) -> bool:
    """Tell whether a job's only pattern is a grid."""
    return len(job.families) == 1 and job.families[0].pattern in GRIDS


@dataclass(frozen=True)
class Board:
    """A job that is a grid, of which some dims stay inside leaves and the others may cross."""

    job: Job
    kept: Dims

    @cached_property
    def parts(self) -> Parts:
        """The ranks that stay together; all parts are of the same size."""
        family = self.job.families[0]
        return Parts(self.job, components(family.pattern, family.ranks, self.kept))

    @cached_property
    def unit(self) -> int:
        """Ranks of every part."""
        return int(self.parts.size[0])

    @cached_property
    def crossing(self) -> tuple[int, ...]:
        """Steps of the job that may cross leaves."""
        steps = self.job.families[0].steps
        return tuple(step for dim, step in enumerate(steps) if dim not in self.kept)

    @cached_property
    def inside(self) -> tuple[int, ...]:
        """Steps of the job that stay inside leaves."""
        return tuple(self.job.families[0].steps[dim] for dim in sorted(self.kept))

    @cached_property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """What a step costs, in hops and ascending: one that crosses, one that stays inside."""
        job, states, domain = self.job, self.job.states, self.domain
        kinds = np.unique(states.kind[states.count % self.unit == 0])
        levels = job.model.tree.common_level[np.ix_(domain, domain)]
        higher = np.unique(levels[~np.eye(len(levels), dtype=bool)])
        crossing = np.unique(states.crossing[np.ix_(kinds, kinds)])
        crossing = np.unique(np.outer(higher / higher.min(), crossing)) if len(higher) else crossing
        return crossing / job.scale, np.unique(states.inside[kinds]) / job.scale

    @cached_property
    def domain(self) -> IntArray:
        """Leaves with room for a part."""
        found: IntArray = self.job.domain[self.job.free[self.job.domain] >= self.unit]
        return found

    @cached_property
    def room(self) -> IntArray:
        """Parts that every leaf of the domain has room for."""
        found: IntArray = self.job.free[self.domain] // self.unit
        return found

    def settled(
        self, start: IntArray, limit: FloatArray, moves: int, seed: int, *, shifts: bool = True
    ) -> tuple[float, IntArray]:
        """Return the weight of pairs above their limits, and the leaf of every part at it.

        Parameters
        ----------
        start
            Leaf of every part, a number of the domain.
        limit
            In hops, of every crossing step and of what stays inside.
        shifts
            Whether the number of ranks per leaf may change.
        """
        taken = np.bincount(start, minlength=len(self.room))
        busy = (self.job.comm[self.domain] + self.unit * taken).astype(np.float64)
        room = self.room - taken
        weight, leaf = settle(
            start, self.graph, self.unit, room, busy, self._leaves,
            limit, moves, _HOT, _COLD, shifts, seed,
        )  # fmt: skip
        return float(weight), leaf

    def leaves(self, leaf_of_part: IntArray) -> IntArray:
        """Return the leaf of every rank."""
        found: IntArray = self.domain[leaf_of_part[self.parts.part_of_rank]]
        return found

    def thresholds(self, limit: FloatArray) -> IntArray:
        """Return per step of the job the limit of its row, in units of 1 / `job.scale`."""
        row = np.full(len(self.job.steps), len(limit) - 1)
        row[list(self.crossing)] = np.arange(len(self.crossing))
        found: IntArray = np.rint(limit[row] * self.job.scale).astype(np.int64)
        return found

    @cached_property
    def graph(self) -> tuple[IntArray, IntArray, IntArray]:
        """The pairs of every part, as `settle` and `exchanged` take them."""
        pairs, first = self.parts.pairs
        own = [pairs[first[step] : first[step + 1]] for step in self.crossing]
        return pairs_by_rank(own, len(self.parts.size))

    @cached_property
    def _leaves(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        tree, domain = self.job.model.tree, self.domain
        nodes = tree.nodes_per_leaf[domain].astype(np.float64)
        levels = 2.0 * tree.common_level[np.ix_(domain, domain)].astype(np.float64)
        return levels, 1.0 / nodes, 0.5 / (nodes[:, None] + nodes)


def boards(job: Job) -> Iterator[Board]:
    """Yield a grid in all ways that differ in which dims stay inside; at least one crosses."""
    extents = [len(job.steps[step].pairs) for step in job.families[0].steps]
    dims = range(len(extents))
    seen = set()
    for num_kept in range(len(extents)):
        for kept in itertools.combinations(dims, num_kept):
            # dims of the same extent have as many pairs
            name = tuple(extents[dim] for dim in kept)
            if name not in seen:
                seen.add(name)
                yield Board(job, frozenset(kept))
