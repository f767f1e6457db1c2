"""Leaves by state in whole numbers: branches, each refuted by a program over plans.

Programs take parts of leaves. Where they have a solution, a branch on a state with a part of a leaf
says that no leaf is in it beyond those held, or that one more is. Leaves held in a state are a type
of their own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding._kernels import NEVER
from topoplace.placement.tree.exact.doubling.kernels.refuting import Refutation
from topoplace.placement.tree.exact.doubling.plans import Plans
from topoplace.placement.tree.exact.doubling.tables import Tables

IntArray = NDArray[np.int64]

_MOST_NODES = 400
_ROOM = 1 << 10
_WHOLE = 1e-4


@dataclass(frozen=True)
class Branch:
    """States of which a leaf is held each, and states that no other leaf is in."""

    held: tuple[int, ...] = ()
    without: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Decision:
    """Whether thresholds are impossible; if not, perhaps the states of whole leaves to try."""

    refuted: bool
    leaves: tuple[int, ...] | None = None


class Counts:
    """Decides whether whole leaves in states can have thresholds.

    Parameters
    ----------
    tables
        Of the job.
    apart
        Hops between two leaves in any states, shape ``(num_states, num_states)``.
    """

    def __init__(self, tables: Tables, apart: IntArray) -> None:
        self.tables, self.apart = tables, apart

    def decide(self, thresholds: IntArray, deadline: float) -> Decision:
        """Return whether thresholds are impossible, and if not, whole leaves that may have them."""
        waiting = [Branch()]
        nodes = 0
        while waiting:
            nodes += 1
            if nodes > _MOST_NODES or time.perf_counter() > deadline:
                return Decision(refuted=False)
            branch = waiting.pop()
            tables, source = self._under(branch)
            found = Plans(tables, room=_ROOM).test(thresholds)
            if isinstance(found, Refutation):
                continue
            if found is None:
                return Decision(refuted=False)
            leaves = np.bincount(source[found.state], found.weight, len(self.tables.ranks))
            # held leaves are whole
            parts = np.abs(leaves - np.rint(leaves))
            state = int(parts.argmax())
            if parts[state] <= _WHOLE:
                held = np.repeat(np.arange(len(leaves)), np.rint(leaves).astype(np.int64))
                return Decision(refuted=False, leaves=tuple(held.tolist()))
            waiting.append(Branch((*branch.held, state), branch.without))
            waiting.append(Branch(branch.held, branch.without | {state}))
        return Decision(refuted=True)

    def with_leaves(self, leaves: tuple[int, ...]) -> tuple[Tables, IntArray]:
        """Return tables of leaves in states and no others, and the states that theirs are."""
        return self._under(Branch(leaves, frozenset(range(len(self.tables.ranks)))))

    def _under(self, branch: Branch) -> tuple[Tables, IntArray]:
        """Return the tables of a branch, and the states that theirs are."""
        tables = self.tables
        held, times = np.unique(np.array(branch.held, dtype=np.int64), return_counts=True)
        taken = np.bincount(tables.leaf_type[held], times, len(tables.multiplicity))
        left = tables.multiplicity - taken.astype(np.int64)
        free = left[tables.leaf_type] > 0
        free[list(branch.without)] = False
        others = np.flatnonzero(free)
        there = np.unique(tables.leaf_type[others])
        num = len(there)
        source = np.concatenate([others, held])
        leaf_type = np.concatenate(
            [np.searchsorted(there, tables.leaf_type[others]), num + np.arange(len(held))]
        )
        multiplicity = np.concatenate([left[there], times])
        lone = (multiplicity == 1)[leaf_type]
        pair = self.apart[np.ix_(source, source)]
        pair[(leaf_type[:, None] == leaf_type) & lone[:, None]] = NEVER
        return Tables(
            first=np.searchsorted(leaf_type, np.arange(len(multiplicity) + 1)).astype(np.int64),
            ranks=tables.ranks[source],
            leaf_type=leaf_type.astype(np.int64),
            inside=tables.inside[source],
            key=tables.key[source],
            pair=pair,
            multiplicity=multiplicity,
            held=np.arange(len(multiplicity)) >= num,
            active=tables.active,
            idle=tables.idle,
        ), source
