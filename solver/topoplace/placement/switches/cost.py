"""The cost of communication on a tree: equations (1) to (7) of Mishra 2020, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from topoplace.errors import InputError
from topoplace.machine.hierarchy import Hierarchy
from topoplace.placement.switches.patterns import pattern_steps
from topoplace.snapshot.schema import Pattern, PatternUse
from topoplace.types import IntArray

_LARGEST = 1 << 62


@lru_cache(maxsize=1 << 16)
def communication_ratio(comm: int, busy: int, nodes: int) -> Fraction:
    """Return the communication ratio of a leaf (eq. 1); the first term of an idle leaf is 0.

    Parameters
    ----------
    comm, busy, nodes
        Nodes of the leaf that run communication-intensive jobs, that run any job, and all.
    """
    return (Fraction(comm, busy) if busy else Fraction(0)) + Fraction(busy, nodes)


class CostModel:
    """Costs on one tree. Hops are counted in units of 1 / `scale`, so that all are integers.

    Attributes
    ----------
    machine
        The machine, whose leaves are leaf switches.
    scale
        A common denominator of all hops: of all L_nodes and 2 (Li_nodes + Lj_nodes).
    """

    def __init__(self, machine: Hierarchy) -> None:
        self.machine = machine
        sizes, kind = np.unique(machine.leaf_sizes, return_inverse=True)
        sums = sizes[:, None] + sizes
        self.scale = math.lcm(*sizes.tolist(), *(2 * sums).ravel().tolist())
        # The largest hops: 2 x level x (1 + 1 + 1 + 1/2), in units. Beyond 64 bits Python's
        # integers take over: slower, but as exact.
        fits = 7 * int(machine.common_level.max()) * self.scale < _LARGEST
        exact = np.dtype(np.int64 if fits else np.object_)
        self._own: IntArray = self.scale // sizes.astype(exact)[kind]
        self._shared: IntArray = self.scale // (2 * sums.astype(exact))
        self._kind = kind
        self._twice_level = 2 * machine.common_level

    def scaled_hops(self, a: IntArray, b: IntArray, comm: IntArray) -> IntArray:
        """Return `scale` x Hops between leaves `a` and `b` (eqs. 2, 3 and 5), of any shape.

        Parameters
        ----------
        a, b
            Leaves, of shapes that broadcast; they have a common switch.
        comm
            L_comm of every leaf, shape ``(num_leaves,)``.
        """
        own = comm * self._own
        crossing = own[b] + (comm[a] + comm[b]) * self._shared[self._kind[a], self._kind[b]]
        hops: IntArray = self._twice_level[a, b] * (
            self.scale + own[a] + np.where(a == b, 0, crossing)
        )
        return hops

    def pattern_cost(self, pattern: Pattern, leaf_of_rank: IntArray, comm: IntArray) -> Fraction:
        """Return the cost of one use of a pattern with messages of one byte (eq. 6)."""
        steps = pattern_steps(pattern, len(leaf_of_rank))
        if not steps:
            return Fraction(0)
        ends = leaf_of_rank[np.concatenate([step.pairs for step in steps])]
        first = np.cumsum([0, *(len(step.pairs) for step in steps[:-1])])
        worst = np.maximum.reduceat(self.scaled_hops(ends[:, 0], ends[:, 1], comm), first)
        total = sum(s.weight * int(w) for s, w in zip(steps, worst, strict=True))
        return Fraction(total, self.scale)

    def job_cost(
        self, patterns: Sequence[PatternUse], leaf_of_rank: IntArray, comm: IntArray
    ) -> Fraction:
        """Return the cost of a communication-intensive job (eq. 6, docs/proofs/tree.md).

        Parameters
        ----------
        patterns
            The patterns of the job, with shares in percent and message sizes in bytes.
        leaf_of_rank
            Leaf of every rank's node, shape ``(num_ranks,)``.
        comm
            L_comm of every leaf, this job's nodes included, shape ``(num_leaves,)``.

        Raises
        ------
        InputError
            If two of the job's leaves have no common switch.
        """
        self.require_common_switch(leaf_of_rank)
        return sum(
            (
                Fraction(use.share * use.message_bytes, 100)
                * self.pattern_cost(use.pattern, leaf_of_rank, comm)
                for use in patterns
            ),
            Fraction(0),
        )

    def require_common_switch(self, leaves: IntArray) -> None:
        """Raise an `InputError` unless any two of the leaves are below a common switch."""
        used = np.flatnonzero(np.bincount(leaves, minlength=self.machine.num_leaves))
        apart = np.argwhere(self._twice_level[np.ix_(used, used)] == 0)
        if len(apart):
            names = ", ".join(self.machine.leaf_names[used[k]] for k in apart[0])
            raise InputError("leaves below a common switch", field="nodes", value=names)


def runtime(seconds: int, share: int, cost: Fraction, default_cost: Fraction) -> Fraction:
    """Return the run time under another allocation (eq. 7), in seconds.

    Parameters
    ----------
    seconds
        Run time under Slurm's default allocation.
    share
        Percent of it spent in communication.
    cost, default_cost
        Costs of the other allocation and of the default one. Where the latter is 0, nothing is
        communicated, and the run time stays.
    """
    if not default_cost:
        return Fraction(seconds)
    return seconds * (Fraction(100 - share, 100) + Fraction(share, 100) * cost / default_cost)
