"""Grids: thresholds ruled out by how lines of a grid can be cut among leaves.

Every line of the grid is cut into segments of leaves, and every leaf's ranks are, along every
dimension, in at least as many segments as they meet lines. The columns of the program are lines,
generated as they pay, and numbers of segments per leaf (docs/proofs/tree.md, "Grids").
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from topoplace import clock
from topoplace.placement.switches.exact._grids import cheapest_lines, fitting, offered
from topoplace.placement.switches.exact.job import GRIDS, NEVER, NOTHING, Job, States
from topoplace.placement.switches.exact.leaf_states import Standing, solved, standing, whole
from topoplace.placement.switches.exact.thresholds import Empty, Guess, Leaf, Mix, Oracle
from topoplace.result.tree import LinePrices
from topoplace.types import BoolArray, FloatArray, IntArray

_MOST_COUNT = 64
"""Ranks on a leaf: layouts grow with their square."""

_MOST_ROUNDS = 200
_MOST_LINES = 250
_ZERO = 1e-7


# ---- Segments of a leaf ------------------------------------------------------------------------


class Tables(NamedTuple):
    """States of a job whose only pattern is a grid.

    Attributes
    ----------
    cells
        The number of cells of the grid.
    extents, lines
        Per dimension: cells of a line, number of lines.
    layout_state, layouts
        Numbers of segments, per dimension, that the ranks of a leaf may have at least: the state,
        shape ``(num_layouts,)``, and the segments, shape ``(num_dims, num_layouts)``.
    """

    states: States
    cells: int
    extents: IntArray
    lines: IntArray
    layout_state: IntArray
    layouts: IntArray


def is_grid(job: Job) -> bool:
    """Tell whether a job's only pattern is a grid."""
    return len(job.families) == 1 and job.families[0].pattern in GRIDS


def has_lines(job: Job) -> bool:
    """Tell whether a job is one that `LineOracle` is made for."""
    return is_grid(job) and job.is_countable and bool(job.states.ranks.max() <= _MOST_COUNT)


def grid_tables(job: Job) -> Tables:
    """Return the tables of a grid."""
    extents = job.families[0].extents
    ranks = job.states.ranks.tolist()
    layouts = [(s, parts) for s, x in enumerate(ranks) for parts in met(x, extents)]
    return Tables(
        job.states,
        job.ranks,
        np.array(extents, dtype=np.int64),
        np.array([job.ranks // extent for extent in extents], dtype=np.int64),
        np.array([s for s, _ in layouts], dtype=np.int64),
        np.array([parts for _, parts in layouts], dtype=np.int64).T.copy(),
    )


@lru_cache(maxsize=4096)
def met(ranks: int, extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return how many lines of every dimension some cells of a grid meet, where none is fewer.

    The product of the lines of two dimensions is at least the cells, that of three at least
    their square (Loomis and Whitney).
    """
    least = [-(-ranks // extent) for extent in extents]
    most = [min(ranks, math.prod(extents) // extent) for extent in extents]
    if len(extents) == 1:
        return [(least[0],)]
    wanted = ranks if len(extents) == 2 else ranks * ranks
    found = []
    ranges = [range(a, b + 1) for a, b in zip(least[:-1], most[:-1], strict=True)]
    for head in itertools.product(*ranges):
        last = max(least[-1], -(-wanted // math.prod(head)))
        if last <= most[-1]:
            found.append((*head, last))
    return [one for one in found if not any(_under(other, one) for other in found)]


def _under(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


# ---- Prices ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prices(Leaf):
    """Prices at which lines cost more than the value of leaves, ``(num_dims, num_states)``.

    Those of segments are nowhere above 0.
    """

    of_cell: IntArray
    of_segment: IntArray

    def document(self, number: dict[int, int]) -> LinePrices:
        """Return them as a certificate states them."""
        return LinePrices(cells=self.of_cell.tolist(), segments=self.of_segment.tolist())


def weigh(
    tables: Tables, view: Standing, guess: Guess, prices: Prices
) -> tuple[IntArray, list[IntArray], bool]:
    """Return the cheapest lines by dimension and last state, their segments, and if they refute."""
    states = tables.states
    codes = [np.empty((len(states.ranks), n), dtype=np.int64) for n in tables.extents.tolist()]
    lines = np.empty((len(codes), len(states.ranks)), dtype=np.int64)
    for dim, own in enumerate(codes):
        of_each = prices.of_cell[dim], prices.of_segment[dim]
        lines[dim] = cheapest_lines(own.shape[1], view, dim, states.ranks, *of_each, own)
    least = lines.min(axis=1)
    if (least == NEVER).any():
        return lines, codes, True
    worth = offered(states, tables.cells, guess, _worths(tables, view, prices))
    return lines, codes, worth < int(tables.lines @ least)


def _worths(tables: Tables, view: Standing, prices: Prices) -> IntArray:
    """Return, per state, the largest value of a leaf's cells and segments together.

    Segments have values of 0 or less, so the fewest are best.
    """
    fits = _fitting_layouts(tables, view)
    state, layouts = tables.layout_state[fits], tables.layouts[:, fits]
    found = prices.of_cell[:, state] * tables.states.ranks[state]
    found += prices.of_segment[:, state] * layouts
    worth = np.full(len(view.alive), NOTHING, dtype=np.int64)
    np.maximum.at(worth, state, found.sum(axis=0))
    return worth


def _fitting_layouts(tables: Tables, view: Standing) -> BoolArray:
    """Mark the layouts that the thresholds leave."""
    state = tables.layout_state
    whole = tables.layouts * tables.extents[:, None] == tables.states.ranks[state]
    fits: BoolArray = view.alive[state] & (whole | ~view.keeps[:, state]).all(axis=0)
    return fits


# ---- Programs ----------------------------------------------------------------------------------


class KnownLines:
    """The lines of one dimension met so far, as codes of segments, and when they were used."""

    def __init__(self, extent: int) -> None:
        self.codes = np.zeros((0, extent), dtype=np.int64)
        self.used = np.zeros(0, dtype=np.int64)
        self._number: dict[bytes, int] = {}

    def latest(self, fits: BoolArray, since: int) -> IntArray:
        """Return lines among some: those used since, and others used last up to a number."""
        found = np.flatnonzero(fits)
        most = max(_MOST_LINES, int((self.used[found] >= since).sum()))
        if len(found) > most:
            found = found[np.argsort(-self.used[found], kind="stable")[:most]]
        return found

    def add(self, codes: IntArray, now: int, there: IntArray) -> bool:
        """Add lines; return whether any was not among those there."""
        new: list[IntArray] = []
        again: set[int] = set()
        for own in codes:
            number = self._number.setdefault(own.tobytes(), len(self.used) + len(new))
            if number >= len(self.used) + len(new):
                new.append(own)
            elif number < len(self.used):
                again.add(number)
        self.used[list(again)] = now
        if new:
            self.codes = np.concatenate([self.codes, np.stack(new)])
            self.used = np.concatenate([self.used, np.full(len(new), now)])
        return bool(new) or not again <= set(there.tolist())


class LineOracle(Oracle):
    """Programs over the lines met so far."""

    decide_programs = 100
    lift_programs = 6

    def __init__(self, job: Job) -> None:
        self.job, self.ranks = job, job.states.ranks
        self.tables = grid_tables(job)
        self._lines = [KnownLines(extent) for extent in self.tables.extents.tolist()]
        self._num_programs = self._since = 0

    def holds(self, leaf: Leaf, thresholds: IntArray, guess: Guess) -> bool:
        """Tell whether prices rule out thresholds."""
        view = standing(self.job, thresholds, guess)
        if view is None:
            return True
        return isinstance(leaf, Prices) and weigh(self.tables, view, guess, leaf)[2]

    def solve(self, thresholds: IntArray, guess: Guess, deadline: float) -> Leaf | Mix | None:
        """Return why thresholds per dimension are impossible, or a solution; None if neither."""
        view = standing(self.job, thresholds, guess)
        if view is None:
            return Empty()
        self._since = self._num_programs
        for _ in range(_MOST_ROUNDS):
            found = self._round(view, guess)
            if not isinstance(found, bool):
                return found
            if not found or clock.now() > deadline:
                break
        return None

    def _round(self, view: Standing, guess: Guess) -> Prices | Mix | bool:
        """Solve over the lines known; return whether there are new ones if that settles nothing."""
        tables = self.tables
        num_dims, num = len(tables.extents), len(self.ranks)
        known = [
            lines.latest(fitting(tables, view, dim, lines.codes), self._since)
            for dim, lines in enumerate(self._lines)
        ]
        layouts = np.flatnonzero(_fitting_layouts(tables, view))
        alive = np.flatnonzero(view.alive)
        row_of = np.full((num_dims, num), -1, dtype=np.int64)
        per_state = np.arange(num_dims * len(alive)).reshape(num_dims, -1)
        row_of[:, alive] = num_dims + 2 * per_state
        program = self._program(known, layouts, row_of, guess)
        self._num_programs += 1
        if program is None:
            return False
        amounts = np.array(program.variable_values())
        ends = np.cumsum([len(own) for own in known])
        least = np.zeros(num_dims, dtype=np.int64)
        for dim, (own, part) in enumerate(zip(known, np.split(amounts, ends), strict=False)):
            there = own[part > _ZERO]
            self._lines[dim].used[there] = self._num_programs
            least[dim] = self._dearest(dim, there)
        if program.objective_value() < _ZERO:
            weights = amounts[ends[-1] : ends[-1] + len(layouts)]
            states = tables.layout_state[layouts]
            leaves: FloatArray = np.bincount(states, weights=weights, minlength=num).astype(float)
            return Mix(leaves, least)
        of_row = -whole(np.array(program.dual_values()))
        of_cell = np.zeros((num_dims, num), dtype=np.int64)
        of_segment = np.zeros((num_dims, num), dtype=np.int64)
        of_cell[:, alive] = of_row[row_of[:, alive]]
        of_segment[:, alive] = np.minimum(0, of_row[row_of[:, alive] + 1])
        prices = Prices(of_cell, of_segment)
        cheapest, codes, refuted = weigh(tables, view, guess, prices)
        if refuted:
            return prices
        added = False
        for dim, lines in enumerate(self._lines):
            better = cheapest[dim] < -of_row[dim] - 2
            added |= lines.add(codes[dim][better], self._num_programs, known[dim])
        return added

    def _dearest(self, dim: int, lines: IntArray) -> int:
        """Return the largest hops between neighbours of some lines."""
        tables, codes = self.tables, self._lines[dim].codes[lines]
        state, several = codes // tables.extents[dim], codes % tables.extents[dim] > 0
        beside = codes[:, 1:] >= 0
        between = tables.states.pair[state[:, 1:][beside], state[:, :-1][beside]]
        inside = tables.states.inside[state[(codes >= 0) & several]]
        return max(int(between.max(initial=0)), int(inside.max(initial=0)))

    def _program(
        self, known: list[IntArray], layouts: IntArray, row_of: IntArray, guess: Guess
    ) -> Any:
        """Return the solved program: the fewest lines and assumed leaves that are missing.

        Rows: lines per dimension; cells and segments per dimension and state; leaves per type;
        leaves assumed. Columns: lines, layouts, what is missing.
        """
        tables = self.tables
        num_dims = len(tables.extents)
        states = tables.layout_state[layouts]
        sure = np.flatnonzero((guess.forced > 0) | guess.done)
        of_type = int(row_of.max()) + 2
        of_sure = of_type + len(tables.states.multiplicity)
        num_rows = of_sure + len(sure)
        parts: list[tuple[IntArray, IntArray, Any]] = []
        column = 0
        for dim, (extent, own) in enumerate(zip(tables.extents.tolist(), known, strict=True)):
            line, at = np.nonzero(self._lines[dim].codes[own] >= 0)
            code = self._lines[dim].codes[own][line, at]
            row, cells = row_of[dim, code // extent], code % extent + 1
            parts.append((row, column + line, cells))
            parts.append((row + 1, column + line, np.ones(len(line))))
            mine = np.arange(column, column + len(own))
            parts.append((np.full(len(own), dim), mine, np.ones(len(own))))
            column += len(own)
        mine = np.arange(column, column + len(layouts))
        parts.append((of_type + tables.states.leaf_type[states], mine, np.ones(len(mine))))
        for number, state in enumerate(sure.tolist()):
            there = mine[states == state]
            parts.append((np.full(len(there), of_sure + number), there, np.ones(len(there))))
        for dim in range(num_dims):
            parts.append((row_of[dim, states], mine, -self.ranks[states]))
            parts.append((row_of[dim, states] + 1, mine, -tables.layouts[dim, layouts]))
        column += len(layouts)
        missing = np.concatenate([np.arange(num_dims), np.arange(of_sure, num_rows)])
        num_columns = column + len(missing)
        parts.append((missing, np.arange(column, num_columns), np.ones(len(missing))))
        rows, columns, data = (np.concatenate(own) for own in zip(*parts, strict=True))
        lower, upper = np.zeros(num_rows), np.zeros(num_rows)
        lower[:num_dims] = upper[:num_dims] = tables.lines
        upper[num_dims + 1 : of_type : 2] = np.inf
        lower[of_type:of_sure] = -np.inf
        upper[of_type:of_sure] = tables.states.multiplicity
        lower[of_sure:] = guess.forced[sure]
        upper[of_sure:] = np.where(guess.done[sure], guess.forced[sure], np.inf)
        objective = np.zeros(num_columns)
        objective[column:] = 1.0
        matrix = sp.csr_matrix((data.astype(float), (rows, columns)), shape=(num_rows, num_columns))
        return solved(matrix, objective, lower, upper)
