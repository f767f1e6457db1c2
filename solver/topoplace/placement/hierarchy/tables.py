"""The cheapest place of a request at prices: a dynamic program from the hosts up.

A *state* says how many units of every part are in a domain. Its table has the least cost of every
state: what the units pay, and the weights of the domains used and of the room that is left over.
If units stay together in a domain, its states count these groups of units instead
(docs/proofs/hierarchy.md, "The best candidate at prices").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.placement.hierarchy._kernels import (
    INFINITE,
    NO_LEVEL,
    Asked,
    Paid,
    fill,
    sizes,
    trace,
)
from topoplace.placement.hierarchy.layout import Layout
from topoplace.snapshot.hierarchy_state import PartState
from topoplace.types import BoolArray, IntArray

MOST_PARTS = 4

State = tuple[int, ...]
"""One number per part, zeros before them if there are fewer than four."""

Uses = tuple[tuple[int, int, int], ...]
"""The units of a candidate: part, number of the node (a host or a pool), units."""

Covers = Mapping[int, Sequence[tuple[tuple[int, ...], bool]]]
"""By node: some parts, and whether one of them uses it or none does."""


@dataclass(frozen=True)
class Costs:
    """The payments of candidates, all integers, at least 0.

    Attributes
    ----------
    of_row, left
        Price of every row, and the amount left of it.
    of_domain
        The cost of a used domain, by level.
    stranded
        The cost of a unit that a used host could still hold.
    """

    of_row: IntArray
    left: IntArray
    of_domain: Sequence[int]
    stranded: int


FAR = INFINITE >> 10
"""The cost in steps of what may not be."""


@dataclass(frozen=True)
class Steps:
    """What more units of a part in a node than a limit cost besides.

    Each array has an entry for each such cost, an integer of at least 0. For the costs of a
    request, `key` has whatever tells them from those of others.

    Attributes
    ----------
    below
        Whether it is units up to the limit that have the cost.
    """

    key: object
    nodes: IntArray
    parts: IntArray
    limits: IntArray
    costs: IntArray
    below: BoolArray

    def tables(self, num_nodes: int, offset: int, most: int) -> tuple[IntArray, IntArray]:
        """Return where the costs of nodes and parts are, and these by number of units."""
        at = np.full((num_nodes, MOST_PARTS), -1, dtype=np.int64)
        slots, own = np.unique(self.nodes * MOST_PARTS + self.parts + offset, return_inverse=True)
        found = np.zeros((len(slots), most + 2), dtype=np.int64)
        above = np.minimum(self.limits + 1, most + 1)
        np.add.at(found, (own, np.where(self.below, 0, above)), self.costs)
        np.subtract.at(found, (own, np.where(self.below, above, most + 1)), self.costs)
        at.ravel()[slots] = np.arange(len(slots)) * (most + 1)
        costs = found.cumsum(axis=1)[:, : most + 1]
        return at, np.where(costs >= FAR, INFINITE, costs).ravel()


_NONE = np.zeros(0, dtype=np.int64)
NO_STEPS = Steps((), _NONE, _NONE, _NONE, _NONE, _NONE > 0)


@dataclass(frozen=True)
class PartShape:
    """What the tables of a part depend on, apart from the number of its units.

    Attributes
    ----------
    kind
        The kind of its units (`Layout.kinds`).
    together
        By level from -1 on, how many units stay together.
    spread
        A level, and how many units a domain of it gets at most.
    least
        A level, and how many units a domain of it gets at least if it gets any.
    group
        Number of its group, and whether that is in one domain of a level: which, or None.
    limit
        A level, and how many of its domains are used at most.
    """

    kind: int
    together: tuple[int, ...]
    spread: tuple[int, int] | None
    least: tuple[int, int] | None
    group: tuple[int, int | None]
    limit: tuple[int, int] | None = None


@dataclass(frozen=True)
class Shape:
    """What the tables of a request depend on, apart from the number of its units.

    `exclusive` is the level whose domains it has alone, `apart` has the levels and names of those
    that it shares with no other request of the name.
    """

    parts: tuple[PartShape, ...]
    exclusive: int | None
    apart: tuple[tuple[int, str], ...] = ()


def part_shape(
    layout: Layout, part: PartState, least: int | None, *, beside_others: bool
) -> PartShape:
    """Return the shape of a part.

    A required level is a segment of all units. `least` is what every domain of the level of balance
    gets; if there are other parts, those of a group have one domain together.
    """
    segments = part.segments
    if part.required is not None:
        segments = (*segments, (part.required, part.units))
    levels = range(-1, layout.machine.num_levels)
    together = tuple(
        max((size for own, size in segments if own >= level), default=1) for level in levels
    )
    bounded = None if least is None or part.balance is None else (part.balance, least)
    group = (part.group, part.required if beside_others else None)
    kind = layout.kind_of[part.kind]
    return PartShape(kind, together, part.spread, bounded, group, part.at_most)


class Tables:
    """The tables of all nodes for a shape.

    Parameters
    ----------
    units
        How many of every part there are at most.
    """

    def __init__(
        self,
        layout: Layout,
        shape: Shape,
        units: Sequence[int],
        costs: Costs,
        covers: Covers,
        steps: Steps = NO_STEPS,
    ) -> None:
        self._tree, self._asked = layout.tree, _asked(layout, shape, units)
        self._parts, self._offset = shape.parts, MOST_PARTS - len(shape.parts)
        self._steps = steps.tables(len(layout.nodes), self._offset, max(units))
        paid = self._paid(layout, shape, costs, covers)
        self._dims, self._summed = sizes(self._tree, self._asked, paid.left)
        self._starts = _starts(self._dims)
        self._choice_starts = _starts(self._summed)
        self._tables = np.empty(self._starts[-1], dtype=np.int64)
        self._choices = np.zeros(self._choice_starts[-1], dtype=np.int32)
        fill(
            self._tree,
            self._asked,
            paid,
            self._dims,
            self._starts,
            self._tables,
            self._summed,
            self._choice_starts,
            self._choices,
        )

    def _paid(self, layout: Layout, shape: Shape, costs: Costs, covers: Covers) -> Paid:
        bits = [
            (node, sum(1 << (p + self._offset) for p in parts), int(inside))
            for node, own in covers.items()
            for parts, inside in own
        ]
        whole = np.zeros(len(layout.nodes), dtype=np.int64)
        if shape.exclusive is not None:
            whole = np.array(
                [
                    _whole(layout, shape, number, costs) if node.level == shape.exclusive else 0
                    for number, node in enumerate(layout.nodes)
                ]
            )
        for key in shape.apart:
            numbers, rows = layout.apart_at[key]
            barred = (costs.left[rows] < 1) | (whole[numbers] < 0)
            whole[numbers] = np.where(barred, -1, whole[numbers] + costs.of_row[rows])
        return Paid(
            costs.of_row,
            costs.left,
            np.array(costs.of_domain, dtype=np.int64),
            costs.stranded,
            np.array(bits, dtype=np.int64).reshape(-1, 3),
            whole,
            NO_LEVEL if shape.exclusive is None else shape.exclusive,
            *self._steps,
        )

    def least(self, units: Sequence[int]) -> int | None:
        """Return the least cost of `units` units of every part; None if they have no place."""
        state, dims = self._state(units), self._dims[-1]
        if (state >= dims).any():
            return None
        return self._best(state)[0]

    def _best(self, state: IntArray) -> tuple[int | None, IntArray]:
        """Return the least cost of a state, and the state: any number of domains is allowed."""
        table = self._tables[self._starts[-2] :].reshape(self._dims[-1])
        if self._asked.limit[0] != NO_LEVEL:
            state = state.copy()
            state[2] = table[state[0], state[1], :, state[3]].argmin()
        cost = int(table[tuple(state)])
        return (None if cost >= INFINITE else cost), state

    def uses(self, units: Sequence[int]) -> Uses:
        """Return where the units are at this cost."""
        found = trace(
            self._tree,
            self._asked,
            self._dims,
            self._summed,
            self._choice_starts,
            self._choices,
            self._best(self._state(units))[1],
        )
        found[:, 0] -= self._offset
        return tuple(sorted(map(tuple, found.tolist())))

    def _state(self, units: Sequence[int]) -> IntArray:
        """Return the state of the whole machine with `units` units of every part."""
        state = np.zeros(MOST_PARTS, dtype=np.int64)
        together = [part.together[0] for part in self._parts]
        state[self._offset :] = [n // size for n, size in zip(units, together, strict=True)]
        return state


def _starts(dims: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(dims.prod(axis=1))]).astype(np.int64)


def _whole(layout: Layout, shape: Shape, number: int, costs: Costs) -> int:
    """Return the cost of a domain as a whole; -1 if a part of it is taken."""
    rows, is_occupied = layout.alone(number, (part.kind for part in shape.parts))
    held = layout.capacities[rows]
    if (costs.left[rows] != held).any() or is_occupied:
        return -1
    return int(costs.of_row[rows] @ held)


def _asked(layout: Layout, shape: Shape, units: Sequence[int]) -> Asked:
    """Return a shape as arrays of four parts."""
    num, offset = MOST_PARTS, MOST_PARTS - len(shape.parts)
    takes = np.zeros((num, layout.kinds.shape[1]), dtype=np.int64)
    together = np.ones((num, layout.machine.num_levels + 1), dtype=np.int64)
    kinds, wanted = np.zeros(num, dtype=np.int64), np.zeros(num, dtype=np.int64)
    spread, least = np.full((2, num, 2), NO_LEVEL, dtype=np.int64)
    group, joint = np.full((2, num), NO_LEVEL, dtype=np.int64)
    limit = np.array(shape.parts[0].limit or (NO_LEVEL, 0), dtype=np.int64)
    wanted[offset:] = units
    for p, part in enumerate(shape.parts, start=offset):
        kinds[p], takes[p], together[p] = part.kind, layout.kinds[part.kind], part.together
        spread[p] = part.spread or NO_LEVEL
        least[p] = part.least or NO_LEVEL
        group[p] = part.group[0]
        joint[p] = NO_LEVEL if part.group[1] is None else part.group[1]
    return Asked(wanted, kinds, takes, together, spread, least, group, joint, limit)
