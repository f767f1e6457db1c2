"""Leaves by state in whole numbers: branches, each refuted by a program over plans.

Programs take parts of leaves. Where they have a solution, a branch on a state with a part of a leaf
says that no leaf is in it beyond those held, or that one more is, which then is a type of its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding._kernels import NEVER
from topoplace.placement.tree.exact.doubling.kernels.refuting import Mix, Refutation
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

    def refute(self, thresholds: IntArray, deadline: float) -> bool:
        """Tell whether thresholds are impossible; False if that is open."""
        waiting = [Branch()]
        nodes = 0
        while waiting:
            nodes += 1
            if nodes > _MOST_NODES or time.perf_counter() > deadline:
                return False
            branch = waiting.pop()
            tables, source = self._under(branch)
            found = Plans(tables, room=_ROOM).test(thresholds)
            if isinstance(found, Refutation):
                continue
            state = None if found is None else self._split(found, source, len(branch.held))
            if state is None:
                return False
            waiting.append(Branch((*branch.held, state), branch.without))
            waiting.append(Branch(branch.held, branch.without | {state}))
        return True

    def _under(self, branch: Branch) -> tuple[Tables, IntArray]:
        """Return the tables of a branch, and the states that theirs are."""
        tables, held = self.tables, list(branch.held)
        left = tables.multiplicity - np.bincount(
            tables.leaf_type[held], minlength=len(tables.multiplicity)
        )
        free = left[tables.leaf_type] > 0
        free[list(branch.without)] = False
        others = np.flatnonzero(free)
        there = np.unique(tables.leaf_type[others])
        num = len(there)
        source = np.concatenate([others, np.array(held, dtype=np.int64)])
        leaf_type = np.concatenate(
            [np.searchsorted(there, tables.leaf_type[others]), num + np.arange(len(held))]
        )
        multiplicity = np.concatenate([left[there], np.ones(len(held), dtype=np.int64)])
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

    @staticmethod
    def _split(mix: Mix, source: IntArray, num_held: int) -> int | None:
        """Return the state with the most of half a leaf beyond those held, if any has a part."""
        ours = mix.state < len(source) - num_held
        leaves = np.bincount(source[mix.state[ours]], mix.weight[ours])
        parts = np.abs(leaves - np.rint(leaves))
        state = int(parts.argmax()) if len(parts) else 0
        return state if len(parts) and parts[state] > _WHOLE else None
