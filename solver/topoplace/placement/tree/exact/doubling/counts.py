"""Leaves by state in whole numbers: branches, each refuted by a program over plans.

Programs take parts of leaves. Where they have a solution, a branch on a state with a part of a leaf
says that no leaf is in it beyond those held, or that one more is. Leaves held in a state are a type
of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.bounding._kernels import NEVER
from topoplace.placement.tree.exact.doubling.kernels.refuting import Refutation
from topoplace.placement.tree.exact.doubling.plans import Plans
from topoplace.placement.tree.exact.doubling.proof import Proof, tree_of
from topoplace.placement.tree.exact.doubling.tables import Tables

IntArray = NDArray[np.int64]

_MOST_NODES = 400
_MOST_DEPTH = 150
"""Of a tree; readers of documents do not follow deeper ones."""

_ROOM = 1 << 10
_WHOLE = 1e-4


@dataclass(frozen=True)
class Assumed:
    """States of which a leaf is held each, and states that no other leaf is in."""

    held: tuple[int, ...] = ()
    without: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Decision:
    """Why thresholds are impossible; if they may not be, perhaps states of whole leaves to try."""

    proof: Proof | None = None
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
        """Return why thresholds are impossible, or whole leaves that may have them, or neither."""
        waiting = [Assumed()]
        parts: list[Refutation | int] = []
        while waiting:
            assumed = waiting.pop()
            late = len(parts) == _MOST_NODES or clock.now() > deadline
            if late or len(assumed.held) + len(assumed.without) > _MOST_DEPTH:
                return Decision()
            tables, source = self._under(assumed)
            found = Plans(tables, room=_ROOM).test(thresholds)
            if isinstance(found, Refutation):
                parts.append(found)
                continue
            if found is None:
                return Decision()
            leaves = np.bincount(source[found.state], found.weight, len(self.tables.ranks))
            # held leaves are whole
            fractions = np.abs(leaves - np.rint(leaves))
            state = int(fractions.argmax())
            if fractions[state] <= _WHOLE:
                held = np.repeat(np.arange(len(leaves)), np.rint(leaves).astype(np.int64))
                return Decision(leaves=tuple(held.tolist()))
            parts.append(state)
            waiting.append(Assumed((*assumed.held, state), assumed.without))
            waiting.append(Assumed(assumed.held, assumed.without | {state}))
        return Decision(tree_of(iter(parts)))

    def with_leaves(self, leaves: tuple[int, ...]) -> tuple[Tables, IntArray]:
        """Return tables of leaves in states and no others, and the states that theirs are."""
        return self._under(Assumed(leaves, frozenset(range(len(self.tables.ranks)))))

    def _under(self, assumed: Assumed) -> tuple[Tables, IntArray]:
        """Return the tables of what is assumed, and the states that theirs are."""
        tables = self.tables
        held, times = np.unique(np.array(assumed.held, dtype=np.int64), return_counts=True)
        taken = np.bincount(tables.leaf_type[held], times, len(tables.multiplicity))
        left = tables.multiplicity - taken.astype(np.int64)
        free = left[tables.leaf_type] > 0
        free[list(assumed.without)] = False
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
