"""The cheapest place of a request at prices: a dynamic program from the hosts up.

A *state* says how many units of every part are in a domain. Its table has the least cost of every
state: what the units pay, and the weights of the domains used and of the room that is left over.
Where units stay together in a domain, its states count what stays together instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.hierarchy._kernels import join
from topoplace.placement.hierarchy.layout import Layout, Node
from topoplace.snapshot.hierarchy_state import PartState
from topoplace.types import BoolArray, IntArray

INFINITE = 1 << 60
MOST_PARTS = 4

State = tuple[int, ...]
"""One number per part, zeros before them if there are fewer than four."""

Uses = tuple[tuple[int, int, int], ...]
"""What a candidate takes: part, number of the node (a host or a pool), units."""

NOBODY: State = (0,) * MOST_PARTS


@dataclass(frozen=True)
class Costs:
    """What candidates pay, all integers, at least 0.

    Attributes
    ----------
    of_row
        Price of every row.
    of_domain
        What a domain costs that is used, by level.
    stranded
        What a unit costs that a used host could still hold.
    """

    of_row: IntArray
    of_domain: Sequence[int]
    stranded: int


@dataclass(frozen=True)
class PartShape:
    """What the tables of a part depend on, whatever the number of its units.

    Attributes
    ----------
    kind
        What a unit takes (`Layout.kinds`).
    together
        By level from -1 on, how many units stay together.
    spread
        A level, and how many units a domain of it gets at most.
    least
        A level, and how many units a domain of it gets at least if it gets any.
    group
        Number of its group, and whether that is in one domain of a level: which, or None.
    """

    kind: int
    together: tuple[int, ...]
    spread: tuple[int, int] | None
    least: tuple[int, int] | None
    group: tuple[int, int | None]


@dataclass(frozen=True)
class Shape:
    """What the tables of a request depend on, whatever the number of its units.

    `exclusive` is the level whose domains it has alone.
    """

    parts: tuple[PartShape, ...]
    exclusive: int | None


def part_shape(
    layout: Layout, part: PartState, least: int | None, *, beside_others: bool
) -> PartShape:
    """Return the shape of a part.

    A required level is a segment of all units. `least` is what every domain of the level of balance
    gets; with parts beside it, those of a group have one domain together.
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
    return PartShape(layout.kind_of[part.takes], together, part.spread, bounded, group)


class Tables:
    """The tables of all nodes for a shape, as far as they are asked for.

    Parameters
    ----------
    units
        How many of every part there are at most.
    left
        What is left of every row, shape ``(num_rows,)``.
    covers
        By node whether it has to be used or must not be, by which parts.
    """

    def __init__(
        self,
        layout: Layout,
        shape: Shape,
        units: Sequence[int],
        costs: Costs,
        left: IntArray,
        covers: Mapping[int, Sequence[tuple[tuple[int, ...], bool]]],
    ) -> None:
        self._layout, self._shape, self._costs, self._left = layout, shape, costs, left
        self._parts, self._units, self._covers = shape.parts, tuple(units), covers
        self._takes = layout.kinds[[part.kind for part in self._parts]]
        self._known: dict[int, IntArray] = {}
        self._folds: dict[int, list[tuple[tuple[int, ...], NDArray[np.int32]]]] = {}
        self._leaves: dict[object, IntArray] = {}

    def full(self, level: int, units: Sequence[int]) -> State:
        """Return the state of a level in which there are so many units of every part."""
        own = [n // part.together[level + 1] for n, part in zip(units, self._parts, strict=True)]
        return tuple([0] * (MOST_PARTS - len(own)) + own)

    def of(self, number: int) -> IntArray:
        """Return the table of a node: the least cost by state, `INFINITE` and more for none."""
        if number not in self._known:
            node = self._layout.nodes[number]
            table = self._leaf(number, node) if node.hosts else self._joined(number, node)
            self._known[number] = table
        return self._known[number]

    # ---- hosts and pools

    def _leaf(self, number: int, node: Node) -> IntArray:
        """Return the table of a host or a pool; those that look the same share one."""
        layout, costs, covers = self._layout, self._costs, tuple(self._covers.get(number, ()))
        host = node.hosts[0]
        if node.pool is not None:
            own = int(self._left[node.pool]), int(costs.of_row[node.pool])
            key: object = (own, layout.rooms[host, self._kinds].tobytes(), covers)
        else:
            rows = [first + host for first in layout.first_row.values()]
            rounded = [row for r in layout.rounded[number] for row in r.rows.values()]
            prices = costs.of_row[rows].tobytes(), costs.of_row[rounded].tobytes()
            rooms = layout.rooms[host, self._kinds].tobytes()
            key = (self._left[rows].tobytes(), layout.free[host].tobytes(), rooms, prices, covers)
            key = (key, self._is_free_for_all(number, node))
        if key not in self._leaves:
            table = self._of_pool(node) if node.pool is not None else self._of_host(number, node)
            self._leaves[key] = self._finished(number, node, table)
        return self._leaves[key]

    @cached_property
    def _kinds(self) -> list[int]:
        return [part.kind for part in self._parts]

    @property
    def _pays_in_domain(self) -> int:
        """Return the level from which on domains are paid for as a whole."""
        level = self._shape.exclusive
        return self._layout.machine.num_levels if level is None else level

    def _indices(self, most: Sequence[int]) -> IntArray:
        """Return the units of every part by state, shape ``(num_parts, ...)``."""
        padded = [0] * (MOST_PARTS - len(most)) + list(most)
        return np.indices([n + 1 for n in padded])[MOST_PARTS - len(most) :]

    def _of_pool(self, node: Node) -> IntArray:
        assert node.pool is not None
        count, price = int(self._left[node.pool]), int(self._costs.of_row[node.pool])
        if self._shape.exclusive is not None:
            price = 0
        fits = self._layout.rooms[node.hosts[0], self._kinds] > 0
        own = zip(self._units, fits.tolist(), strict=True)
        units = self._indices([min(n, count if ok else 0) for n, ok in own])
        together = units.sum(axis=0)
        table = (price + self._costs.of_domain[node.level]) * together
        table[together > count] = INFINITE
        return np.asarray(table)

    def _of_host(self, number: int, node: Node) -> IntArray:
        layout, costs, host = self._layout, self._costs, node.hosts[0]
        left = np.array([self._left[first + host] for first in layout.first_row.values()])
        prices = np.array([costs.of_row[first + host] for first in layout.first_row.values()])
        takes = self._takes[:, list(layout.first_row)]
        most = [
            min(n, int((left[own > 0] // own[own > 0]).min()))
            for n, own in zip(self._units, takes, strict=True)
        ]
        units = self._indices(most)
        taken = np.tensordot(takes.T, units, axes=1)
        table = np.zeros(units.shape[1:], dtype=np.int64)
        if self._shape.exclusive is None:
            table += np.tensordot(prices, taken, axes=1)
        for own, k in zip(units, self._kinds, strict=True):
            table += costs.stranded * np.where(own > 0, layout.rooms[host, k] - own, 0)
        table[(taken > left.reshape(-1, *[1] * MOST_PARTS)).any(axis=0)] = INFINITE
        return table

    # ---- what holds of any node

    def _finished(self, number: int, node: Node, table: IntArray) -> IntArray:
        """Return the table of a node of what its units pay, with what it costs as a domain.

        States count units as they stay together below; then as they do in the domain itself.
        """
        steps = [part.together[node.level + 1] for part in self._parts]
        if not node.hosts:
            below = [part.together[node.level + 2] for part in self._parts]
            steps = [own // n for own, n in zip(steps, below, strict=True)]
        padded = [1] * (MOST_PARTS - len(steps)) + steps
        table = table[tuple(slice(None, None, step) for step in padded)].copy()
        shape = np.array(table.shape[MOST_PARTS - len(steps) :]) - 1
        units = self._indices(shape.tolist())
        units *= np.array([part.together[node.level + 1] for part in self._parts]).reshape(
            -1, *[1] * MOST_PARTS
        )
        if node.pool is None:
            table += self._costs.of_domain[node.level] * self._present(units)
            table += self._of_rounded(number, node, units)
        table[~self._allowed(node.level, units)] = INFINITE
        self._limit(number, node, units, table)
        return np.ascontiguousarray(table)

    def _present(self, units: IntArray) -> IntArray:
        """Return how many groups of parts have units, by state."""
        groups = np.array([part.group[0] for part in self._parts])
        found = np.zeros(units.shape[1:], dtype=np.int64)
        for group in np.unique(groups):
            found += (units[groups == group] > 0).any(axis=0)
        return found

    def _of_rounded(self, number: int, node: Node, units: IntArray) -> IntArray | int:
        """Return what states pay for the rounded rows of a node."""
        if node.level >= self._pays_in_domain:
            return 0
        found: IntArray | int = 0
        prices = self._costs.of_row
        for own in self._layout.rounded[number]:
            paid = {most: int(prices[row]) for most, row in own.rows.items() if prices[row]}
            if paid:
                weights = self._takes[:, own.resource] if own.resource is not None else 1
                taken = (units * np.reshape(weights, (-1, *[1] * MOST_PARTS))).sum(axis=0)
                for most, price in paid.items():
                    found = found + price * (taken * (most + 1) // (own.capacity + 1))
        return found

    def _allowed(self, level: int, units: IntArray) -> BoolArray:
        """Mark the states that spreading, balance and groups in one domain allow."""
        allowed = np.ones(units.shape[1:], dtype=bool)
        for part, own, total in zip(self._parts, units, self._units, strict=True):
            if part.spread is not None and part.spread[0] == level:
                allowed &= own <= part.spread[1]
            if part.least is not None and part.least[0] == level:
                allowed &= (own == 0) | (own >= part.least[1])
            if part.group[1] == level:
                for other, beside, whole in zip(self._parts, units, self._units, strict=True):
                    if other.group == part.group:
                        allowed &= (own == total) == (beside == whole)
        return allowed

    def _limit(self, number: int, node: Node, units: IntArray, table: IntArray) -> None:
        """Let exclusive domains pay for all that is in them, and obey branches."""
        used = units.any(axis=0)
        if node.level == self._shape.exclusive:
            table[used] += self._whole(number)
            if not self._is_free_for_all(number, node):
                table[used] = INFINITE
        for parts, inside in self._covers.get(number, ()):
            table[units[list(parts)].any(axis=0) != inside] = INFINITE

    def _whole(self, number: int) -> int:
        rows = self._layout.rows_under(number)
        return int(self._costs.of_row[rows] @ self._layout.capacities[rows])

    def _is_free_for_all(self, number: int, node: Node) -> bool:
        """Tell whether nobody has any of a domain that a request wants for itself."""
        if node.level != self._shape.exclusive:
            return True
        rows = self._layout.rows_under(number)
        untouched = bool((self._left[rows] == self._layout.capacities[rows]).all())
        return untouched and not self._layout.is_occupied(node)

    # ---- domains

    def _joined(self, number: int, node: Node) -> IntArray:
        """Return the table of a domain, from those of what is in it."""
        most = [n + 1 for n in self.full(node.level + 1, self._units)]
        table = np.zeros((1,) * MOST_PARTS, dtype=np.int64)
        folds = self._folds[number] = []
        for child in node.children:
            second = self.of(child)
            shape = [
                min(a + b - 1, n) for a, b, n in zip(table.shape, second.shape, most, strict=True)
            ]
            cost = np.full(shape, INFINITE, dtype=np.int64)
            choice = np.zeros(shape, dtype=np.int32)
            join(table, second, cost, choice, INFINITE)
            folds.append((second.shape, choice))
            table = cost
        if node.level < 0:
            steps = [p.together[0] // p.together[1] for p in self._parts]
            padded = [1] * (MOST_PARTS - len(steps)) + steps
            return table[tuple(slice(None, None, step) for step in padded)]
        return self._finished(number, node, table)

    # ---- candidates

    def uses(self, number: int, state: State) -> Uses:
        """Return where the units of a state of a node are in its cheapest place."""
        return tuple(sorted(self._found(number, state)))

    def _found(self, number: int, state: State) -> Iterator[tuple[int, int, int]]:
        if state == NOBODY:
            return
        node, offset = self._layout.nodes[number], MOST_PARTS - len(self._parts)
        own = [part.together[node.level + 1] for part in self._parts]
        if node.hosts:
            for p, size in enumerate(own):
                if state[offset + p]:
                    yield p, number, state[offset + p] * size
            return
        below = [part.together[node.level + 2] for part in self._parts]
        ratios = [n // size for n, size in zip(own, below, strict=True)]
        padded = [1] * offset + ratios
        left = tuple(n * ratio for n, ratio in zip(state, padded, strict=True))
        for child, (shape, choice) in zip(
            reversed(node.children), reversed(self._folds[number]), strict=True
        ):
            share = tuple(int(n) for n in np.unravel_index(int(choice[left]), shape))
            yield from self._found(child, share)
            left = tuple(a - b for a, b in zip(left, share, strict=True))
            if left == NOBODY:
                break
