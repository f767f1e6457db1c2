"""What thresholds and assumed leaves leave of a binomial request's states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import IntArray, added_at
from topoplace.certify.tree_machine._kernels import NONE, best_plans
from topoplace.certify.tree_machine.line_states import Assumed
from topoplace.certify.tree_machine.relaxed import Relaxed

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class DoublingView:
    """The states left; those of assumed leaves come on top, each with a type of its own.

    Attributes
    ----------
    types, ranks, key
        Per state left: type of leaf, ranks, number of the hops to another leaf in the same state.
    able, crosses
        Whether ranks may have children on their own leaf, and on others; shape
        ``(num_steps, num_left)``.
    beside
        Whether leaves in two states may pair, shape ``(num_steps, num_left, num_left)``.
    leaves, full
        Per type, leaves, and whether none of them can be without ranks.
    """

    types: IntArray
    ranks: IntArray
    key: IntArray
    able: BoolArray
    crosses: BoolArray
    beside: BoolArray
    leaves: IntArray
    full: BoolArray


class DoublingStates:
    """The states of a binomial request; hops are by number in `Relaxed.values`.

    Parameters
    ----------
    active, idle
        Active ranks before every step and at the end, and those of a step without a child.
    """

    def __init__(self, relaxed: Relaxed, active: IntArray, idle: IntArray) -> None:
        states = relaxed.states
        number = {value: n for n, value in enumerate(relaxed.values)}
        kinds = [relaxed.kind(state) for state in states]
        self._active, self._idle = active, idle
        self._types = np.array([t for t, _ in states], dtype=np.int64)
        self._ranks = np.array([count for _, count in states], dtype=np.int64)
        leaves = {t: relaxed.leaves((t, 0)) for t, _ in states}
        self._leaves = np.array([leaves[t] for t in sorted(leaves)], dtype=np.int64)
        self._inside = np.array([number[relaxed.inside[kind]] for kind in kinds])
        between = relaxed.between
        self._between = np.array([[number[between[a, b]] for b in kinds] for a in kinds])

    @property
    def work(self) -> int:
        """About how many additions a view and what its plans are worth take."""
        return len(self._idle) * (len(self._ranks) ** 2 + int((self._ranks**2).sum()))

    def view(self, most: Sequence[int], assumed: Assumed) -> DoublingView | None:
        """Return what thresholds leave, None if that cannot hold all ranks as assumed."""
        sure = np.array(assumed.leaves, dtype=np.int64)
        free = self._leaves - added_at(len(self._leaves), self._types, sure, "assumed leaves")
        if (free < 0).any():
            return None
        can_be = free[self._types] > 0
        can_be[list(assumed.complete)] = False
        others, held = np.flatnonzero(can_be), np.flatnonzero(sure)
        source = np.concatenate([others, held])
        types = np.concatenate([self._types[others], len(free) + np.arange(len(held))])
        leaves = np.concatenate([free, sure[held]])
        top = np.array(most, dtype=np.int64)[:, None]
        able = self._inside[source] <= top
        apart = (types[:, None] != types) | (leaves[types] > 1)
        near = apart & (self._between[np.ix_(source, source)] <= top[:, None])
        alive = np.ones(len(source), dtype=np.bool_)
        while True:
            largest = np.zeros(len(leaves), dtype=np.int64)
            np.maximum.at(largest, types[alive], self._ranks[source[alive]])
            spare = int(leaves @ largest) - int(self._active[-1])
            if spare < 0 or not largest[len(free) :].all():
                return None
            short = largest[types] - self._ranks[source]
            together = short[:, None] + short <= spare
            beside = near & together & alive
            crosses = beside.any(axis=2) | (self._idle > 0)[:, None]
            left = alive & (short <= spare) & self._has_plan(source, crosses, able)
            if (left == alive).all():
                break
            alive = left
        own = source[alive]
        keys = self._between[own, own]
        beside = beside[:, alive][:, :, alive]
        full = np.concatenate([largest[: len(free)] > spare, np.ones(len(held), dtype=np.bool_)])
        return DoublingView(
            types[alive],
            self._ranks[own],
            keys,
            able[:, alive],
            crosses[:, alive],
            beside,
            leaves,
            full,
        )

    def _has_plan(self, source: IntArray, crosses: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which states have a way through active ranks to all ranks."""
        nothing = np.zeros((len(source), len(self._active)), dtype=np.int64)
        found = best_plans(
            self._ranks[source], self._active, crosses, able, nothing, nothing, nothing
        )
        there: BoolArray = found > NONE
        return there
