"""Good prices to begin with: a linear program over kinds of hosts and of requests.

Of many hosts or racks that look the same, prices that are the same are as good as any: a dual
optimum is one when it is averaged over them. So the linear relaxation has one row for each kind and
row, and one variable for how often a kind of place gives so many units to a kind of request; 600
racks and 200 requests make a program of some thousand variables. Any prices prove a bound, by the
oracle; where this program leaves out what requests want, the bundle takes over from its prices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace.placement.hierarchy.layout import Layout, Rounded
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState
from topoplace.types import FloatArray, IntArray

_MOST_VARIABLES = 50_000


@dataclass
class _Place:
    """A kind of hosts or pools.

    Attributes
    ----------
    capacities
        Of the rows of one of them.
    resources, rounded
        What the rows are: the resource of plain ones (None counts units), then resource, what the
        domain has, and `k` of rounded ones.
    rooms
        Units of every kind that one holds.
    rows
        Of each of them, its rows.
    """

    capacities: tuple[int, ...]
    resources: tuple[int | None, ...]
    rounded: tuple[tuple[int | None, int, int], ...]
    rooms: tuple[int, ...]
    rows: list[list[int]] = field(default_factory=list)

    def taken(self, kind: IntArray, units: int) -> list[int]:
        """Return what units of a kind take of every row."""
        plain = [units * (1 if r is None else int(kind[r])) for r in self.resources]
        whole = [units * (1 if r is None else int(kind[r])) for r, _, _ in self.rounded]
        pairs = zip(whole, self.rounded, strict=True)
        return plain + [n * (most + 1) // (capacity + 1) for n, (_, capacity, most) in pairs]


def prices_of(
    layout: Layout, requests: Sequence[HierarchyRequest], left: IntArray
) -> FloatArray | None:
    """Return prices per row that bound the value of what starts, shape ``(num_rows,)``.

    None if the program is too large.
    """
    places = list(_places(layout, left))
    groups: dict[tuple[int, int], list[tuple[PartState, float]]] = defaultdict(list)
    for request in requests:
        total = sum(part.units for part in request.parts)
        for part in request.parts:
            size = _together(layout, part)
            share = request.value * part.units / total
            groups[layout.kind_of[part.takes], size].append((part, share))
    pieces = sum(
        min(max(p.units for p, _ in own), place.rooms[kind]) // size
        for (kind, size), own in groups.items()
        for place in places
    )
    if pieces > _MOST_VARIABLES:
        return None
    return _solved(layout, places, groups)


def _together(layout: Layout, part: PartState) -> int:
    """Return how many units of a part stay together in the domains above hosts."""
    lowest = layout.machine.num_levels - 2
    required = part.units if part.required is not None and part.required >= lowest else 1
    return max((size for level, size in part.segments if level >= lowest), default=required)


def _solved(
    layout: Layout,
    places: Sequence[_Place],
    groups: dict[tuple[int, int], list[tuple[PartState, float]]],
) -> FloatArray | None:
    first = np.concatenate([[0], np.cumsum([len(place.capacities) for place in places])])
    num_rows, program = int(first[-1]), _Program()
    for number, ((kind, size), own) in enumerate(groups.items()):
        for part, value in own:
            program.add({num_rows + number: -float(part.units)}, value, 1.0)
        most = max(part.units for part, _ in own)
        for begin, place in zip(first.tolist(), places, strict=False):
            for units in range(size, min(most, place.rooms[kind]) + 1, size):
                taken = enumerate(place.taken(layout.kinds[kind], units), start=begin)
                column = {row: float(amount) for row, amount in taken if amount}
                program.add(column | {num_rows + number: float(units)}, 0.0, np.inf)
    upper = [n * len(place.rows) for place in places for n in place.capacities]
    lower = [-np.inf] * num_rows + [0.0] * len(groups)
    duals = program.duals(np.array(lower), np.array([*upper, *(0.0 for _ in groups)]))
    if duals is None:
        return None
    prices = np.zeros(len(layout.capacities))
    for begin, place in zip(first.tolist(), places, strict=False):
        for own_rows in place.rows:
            prices[own_rows] = duals[begin : begin + len(own_rows)]
    return prices


class _Program:
    """A linear program that is maximised, by columns."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._entries: list[float] = []
        self._values: list[float] = []
        self._most: list[float] = []

    def add(self, column: dict[int, float], value: float, most: float) -> None:
        """Add a variable from 0 to `most` by its coefficients, and what it is worth."""
        self._rows += column
        self._columns += [len(self._values)] * len(column)
        self._entries += column.values()
        self._values.append(value)
        self._most.append(most)

    def duals(self, lower: FloatArray, upper: FloatArray) -> FloatArray | None:
        """Return the prices of the rows at the optimum, at least 0; None if there is none."""
        num = len(self._values)
        places = self._rows, self._columns
        matrix = sp.csr_matrix((self._entries, places), shape=(len(lower), num))
        helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
        helper.fill_model_from_sparse_data(
            np.zeros(num), np.array(self._most), -np.array(self._values), lower, upper, matrix
        )
        program = mbh.ModelSolverHelper("glop")
        program.solve(helper)
        if program.status() != mbh.SolveStatus.OPTIMAL:
            return None
        return np.asarray(np.maximum(0.0, -np.array(program.dual_values())))


def _places(layout: Layout, left: IntArray) -> Iterator[_Place]:
    """Yield the kinds of hosts and pools that something is left of, with all of their rows."""
    found: dict[object, _Place] = {}
    for leaf in layout.below[-1]:
        node, parent = layout.nodes[leaf], layout.chain[leaf][1:2]
        resources: tuple[int | None, ...] = (None,)
        base = [node.pool] if node.pool is not None else []
        rounded: list[Rounded] = layout.rounded[leaf]
        if node.pool is None:
            resources = tuple(layout.first_row)
            base = [first + node.hosts[0] for first in layout.first_row.values()]
        elif parent and len(layout.nodes[parent[0]].children) == 1:
            rounded = layout.rounded[parent[0]]
        cuts = [
            (own.resource, own.capacity, most, row)
            for own in rounded
            for most, row in own.rows.items()
        ]
        rows = [*base, *(row for *_, row in cuts)]
        capacities = tuple(left[rows].tolist())
        rooms = tuple(
            _room(layout, node.hosts[0], kind, node.pool, left, base)
            for kind in range(len(layout.kinds))
        )
        if any(rooms):
            own = tuple(cut[:3] for cut in cuts)
            place = _Place(capacities, resources, own, rooms)
            key = capacities, resources, own, rooms
            found.setdefault(key, place).rows.append(rows)
    yield from found.values()


def _room(
    layout: Layout, host: int, kind: int, pool: int | None, left: IntArray, base: Sequence[int]
) -> int:
    """Return how many units of a kind a host or pool has room for."""
    if not layout.rooms[host, kind]:
        return 0
    if pool is not None:
        return int(left[pool])
    takes = layout.kinds[kind][list(layout.first_row)]
    held = left[list(base)]
    return int((held[takes > 0] // takes[takes > 0]).min())
