"""Equal places as one: kinds of hosts and racks, each with its multiplicity.

A *place* is a host or a pool; on most machines a pool is the free part of a rack. 560 racks with 18
hosts are of at most 18 kinds. The part of a request in one place is a *piece*. A program decides
how large the pieces are, and how many of each size the places of a kind give. It has some thousand
numbers for machines of any size:

- as a linear program, with the rows of one place of every kind, it finds good prices (`prices_of`):
  prices that are the same on places that look the same are as good as any, as a dual optimum is one
  when it is averaged over them;
- as an integer program, with the contents of a place as a path, it finds placements (`patterns`).

Any prices prove a bound, by the oracle, and any placement is one; so if the program leaves out some
rules of requests, only time is lost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace import clock
from topoplace.packing.problem import Subproblem
from topoplace.placement.hierarchy.layout import Layout, rounded
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState
from topoplace.snapshot.value import STARTED_LEVELS
from topoplace.types import FloatArray, IntArray

_MOST_VARIABLES = 50_000

_MOST_STEPS = 3_000
"""Of a search for the ways to split a part; those of ten equal pieces take 200."""


@dataclass
class Place:
    """A kind of hosts or pools.

    Attributes
    ----------
    capacities
        Capacities of the rows of one of them.
    resources, rounded
        The rows: of plain ones the resource (None counts units), of rounded ones the resource, the
        amount in the domain, and `k`.
    rooms
        Units of every kind that one holds.
    alone
        Level of the highest domain that contains nothing else.
    leaves, rows
        The node and the rows of each of them.
    """

    capacities: tuple[int, ...]
    resources: tuple[int | None, ...]
    rounded: tuple[tuple[int | None, int, int], ...]
    rooms: tuple[int, ...]
    alone: int
    leaves: list[int] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)

    @property
    def is_pool(self) -> bool:
        """Whether its units are on hosts of their own."""
        return self.resources == (None,)

    def taken(self, kind: IntArray, units: int) -> list[int]:
        """Return the amounts that units of a kind take of every row."""
        plain = [units * (1 if r is None else int(kind[r])) for r in self.resources]
        whole = [units * (1 if r is None else int(kind[r])) for r, _, _ in self.rounded]
        pairs = zip(whole, self.rounded, strict=True)
        return plain + [rounded(n, capacity, most) for n, (_, capacity, most) in pairs]

    def step(self, part: PartState) -> int:
        """Return the size of a part's pieces in it, by the rules of domains that it fills."""
        return max((size for level, size in rules_of(part) if level >= self.alone), default=1)

    def pieces(self, part: PartState, kind: int) -> range:
        """Return how many units of a part may be in it, by these rules."""
        step = self.step(part)
        return range(step, min(part.units, self.rooms[kind]) + 1, step)


def rules_of(part: PartState) -> list[tuple[int, int]]:
    """Return the segments of a part: level and size. A required level is one of all units."""
    required = [] if part.required is None else [(part.required, part.units)]
    return [*part.segments, *required]


def splits_of(units: int, sizes: Sequence[int]) -> list[tuple[int, ...]] | None:
    """Return all ways to write a number as a sum of some, ascending; None if there are many."""
    found: list[tuple[int, ...]] = []
    todo: list[tuple[tuple[int, ...], int, int]] = [((), units, len(sizes))]
    for _ in range(_MOST_STEPS):
        if not todo:
            return found
        pieces, left, num = todo.pop()
        if not left:
            found.append(pieces)
        todo += [((*pieces, n), left - n, k + 1) for k, n in enumerate(sizes[:num]) if n <= left]
    return None


def places_of(layout: Layout, left: IntArray) -> list[Place]:
    """Return the kinds of hosts and pools that are not used up, each with its places."""
    found: dict[object, Place] = {}
    for leaf in layout.below[-1]:
        node = layout.nodes[leaf]
        filled = [k for k in layout.chain[leaf] if layout.below[k] == (leaf,)]
        resources: tuple[int | None, ...] = (None,)
        base = [node.pool] if node.pool is not None else []
        if node.pool is None:
            resources = tuple(layout.first_row)
            base = [first + node.hosts[0] for first in layout.first_row.values()]
        cuts = [
            (own.resource, own.capacity, most, row)
            for number in filled
            for own in layout.rounded[number]
            for most, row in own.rows.items()
        ]
        rows = [*base, *(row for *_, row in cuts)]
        capacities = tuple(left[rows].tolist())
        rooms = tuple(
            _room(layout, node.hosts[0], kind, node.pool, left, base)
            for kind in range(len(layout.kinds))
        )
        if any(rooms):
            alone = min(layout.nodes[k].level for k in filled)
            own = tuple(cut[:3] for cut in cuts)
            place = found.setdefault(
                (capacities, resources, own, rooms, alone),
                Place(capacities, resources, own, rooms, alone),
            )
            place.leaves.append(leaf)
            place.rows.append(rows)
    return [*found.values()]


def _room(
    layout: Layout, host: int, kind: int, pool: int | None, left: IntArray, base: Sequence[int]
) -> int:
    """Return how many units of a kind a host or pool can hold."""
    if not layout.rooms[host, kind]:
        return 0
    if pool is not None:
        return int(left[pool])
    takes = layout.kinds[kind][list(layout.first_row)]
    held = left[list(base)]
    return int((held[takes > 0] // takes[takes > 0]).min())


# ---- Prices --------------------------------------------------------------------------------------


def prices_of(
    layout: Layout,
    requests: Sequence[HierarchyRequest],
    places: Sequence[Place],
    levels: Sequence[str],
    sub: Subproblem,
    deadline: float,
) -> tuple[FloatArray, tuple[float, ...]] | None:
    """Return prices of rows that bound a subproblem, and factors of the levels before its own.

    None if the program is too large, does not cover the level, or is not solved by the deadline.

    Parameters
    ----------
    levels
        The names of the levels up to its own.
    sub
        Branches on rows are left out.
    """
    lowest = layout.machine.levels[-2:]
    if levels[-1] not in (*STARTED_LEVELS, *lowest):
        return None
    asked: dict[tuple[tuple[PartState, ...], float, float], list[int]]
    asked = defaultdict(lambda: [0, 0])
    for q, request in enumerate(requests):
        total = sum(part.units for part in request.parts)
        for ways in zip(*request.ways, strict=True):
            share = ways[0].units / total
            number = asked[ways, request.value * share, request.without_gpus * share]
            number[0] += q in sub.forced
            number[1] += q not in sub.excluded
    reached = [value for value in sub.reached if value is not None]
    if len(reached) < len(sub.reached):
        return None
    program = _Program(layout, places, levels, reached)
    for (ways, *values), (least, most) in asked.items():
        program.ask(ways, dict(zip(STARTED_LEVELS, values, strict=True)), least, most)
        if program.num_variables > _MOST_VARIABLES or clock.now() >= deadline:
            return None
    return program.solved(deadline)


class _Program:
    """The linear program: first the rows of the places, then of the levels reached, then the rest.

    Everything is maximised, and rows with a lower limit are negated.
    """

    def __init__(
        self, layout: Layout, places: Sequence[Place], levels: Sequence[str], reached: Sequence[int]
    ) -> None:
        self._layout, self._places, self._levels = layout, places, levels
        self._first = np.cumsum([0, *(len(place.capacities) for place in places)]).tolist()
        self._upper = [float(n * len(p.rows)) for p in places for n in p.capacities]
        self._reached = len(self._upper)
        self._upper += [-float(value) for value in reached]
        self._columns: list[dict[int, float]] = []
        self._values: list[float] = []
        self._most: list[float] = []
        self._least: list[float] = []
        self._given: dict[tuple[int, int], int] = {}
        self._known: set[tuple[int, int, int]] = set()

    @property
    def num_variables(self) -> int:
        """Number of columns."""
        return len(self._columns)

    def ask(
        self, ways: Sequence[PartState], values: dict[str, float], least: int, most: int
    ) -> None:
        """Add equal requests: how many start, in one of several ways."""
        several = None if len(ways) == 1 else self._row(float(most))
        for part in ways:
            self._ask(part, values, (0 if len(ways) > 1 else least, most), several)

    def _ask(
        self,
        part: PartState,
        values: dict[str, float],
        limits: tuple[int, int],
        several: int | None,
    ) -> None:
        """Add how many equal requests start, and how they are split into pieces."""
        kind = self._layout.kind_of[part.kind]
        pieces = sorted({n for place in self._places for n in place.pieces(part, kind)})
        if not pieces:
            return
        splits = splits_of(part.units, pieces)
        column: dict[int, float] = {} if several is None else {several: 1.0}
        if splits is None:  # as many units as start, in no fewer pieces than these fill
            units, fewest = self._row(0.0), self._row(0.0)
            column |= {units: float(part.units), fewest: float(-(-part.units // pieces[-1]))}
            columns = [{units: -float(n), fewest: -1.0} for n in pieces]
            splits = [(n,) for n in pieces]
        else:
            split = self._row(0.0)
            column[split] = 1.0
            columns = [{split: -1.0} for _ in splits]
        self._add(column, values, limits[1], limits[0])
        for own, taken in zip(columns, splits, strict=True):  # some place gives each piece
            given = {self._gives(part, kind, n): float(k) for n, k in Counter(taken).items()}
            self._add(own | given, {}, np.inf)

    def _gives(self, part: PartState, kind: int, n: int) -> int:
        """Return the row of pieces of a kind and size; places that can hold one contribute."""
        if (kind, n) not in self._given:
            self._given[kind, n] = self._row(0.0)
        row = self._given[kind, n]
        for number, place in enumerate(self._places):
            if n in place.pieces(part, kind) and (number, kind, n) not in self._known:
                self._known.add((number, kind, n))
                taken = enumerate(place.taken(self._layout.kinds[kind], n), self._first[number])
                column = {k: float(amount) for k, amount in taken if amount}
                self._add(column | {row: -1.0}, self._cost(place, n), np.inf)
        return row

    def _cost(self, place: Place, n: int) -> dict[str, float]:
        """Return the value of units in a place on the levels of hosts and of racks."""
        names = self._layout.machine.levels
        if not place.is_pool:
            return {names[-1]: -1.0}
        return {names[-2]: -1.0, names[-1]: -float(n)} if len(names) > 1 else {names[-1]: -float(n)}

    def _row(self, upper: float) -> int:
        self._upper.append(upper)
        return len(self._upper) - 1

    def _add(
        self, column: dict[int, float], values: dict[str, float], most: float, least: float = 0.0
    ) -> None:
        """Add a variable by its coefficients, its value by level, and its range."""
        for level, name in enumerate(self._levels[:-1]):
            if name in values:
                column[self._reached + level] = -values[name]
        self._columns.append(column)
        self._values.append(values.get(self._levels[-1], 0.0))
        self._most.append(most)
        self._least.append(least)

    def solved(self, deadline: float) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Return the prices of all rows and the factors at the optimum; None if there is none."""
        duals = self._duals(deadline)
        if duals is None:
            return None
        prices = np.zeros(len(self._layout.capacities))
        for begin, place in zip(self._first, self._places, strict=False):
            for own_rows in place.rows:
                prices[own_rows] = duals[begin : begin + len(own_rows)]
        num_levels = len(self._levels) - 1
        return prices, tuple(duals[self._reached : self._reached + num_levels].tolist())

    def _duals(self, deadline: float) -> FloatArray | None:
        num, upper = len(self._columns), np.array(self._upper)
        counts = [len(column) for column in self._columns]
        places = (
            [row for column in self._columns for row in column],
            np.repeat(np.arange(num), counts),
        )
        entries = [entry for column in self._columns for entry in column.values()]
        matrix = sp.csr_matrix((entries, places), shape=(len(upper), num))
        lower = np.full(len(upper), -np.inf)
        helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
        helper.fill_model_from_sparse_data(
            np.array(self._least), np.array(self._most), -np.array(self._values),
            lower, upper, matrix,
        )  # fmt: skip
        program = mbh.ModelSolverHelper("glop")
        program.set_time_limit_in_seconds(min(3600.0, max(0.1, deadline - clock.now())))
        program.solve(helper)
        if program.status() != mbh.SolveStatus.OPTIMAL:
            return None
        return np.asarray(np.maximum(0.0, -np.array(program.dual_values())))
