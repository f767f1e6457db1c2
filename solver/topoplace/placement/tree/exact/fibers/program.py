"""Thresholds of a cube refuted by a program over fibers and leaves (docs/proofs-tree.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace.placement.tree.exact.fibers.families import Family, cube_tables, families_of
from topoplace.placement.tree.exact.fibers.patterns import patterns
from topoplace.placement.tree.exact.fibers.whole import fits
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.exact.lines.kernels.program import NOTHING, offered
from topoplace.placement.tree.exact.lines.tables import (
    Guess,
    Standing,
    branches,
    no_guess,
    standing,
)

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

UNIT = 1 << 16
_LARGEST = 1 << 12
_ZERO = 1e-7
_MOST_ROUNDS = 60
_MOST_GUESSES = 150
_NEW = 6  # fibers that a round adds per family
_MOST_STATES = 80
_GLOP = "use_preprocessing: false use_scaling: false"


def has_fibers(job: Job) -> bool:
    """Tell whether a job is one that `FiberProgram` is made for: a full cube on few states."""
    alone = len(job.families) == 1 and bool(job.families[0].alike)
    return alone and job.exact and len(job.states.count) <= _MOST_STATES


@dataclass(frozen=True)
class _Fiber:
    """Ranks and components of bad states in a fiber, by state, and ranks apart; all in units."""

    cells: tuple[tuple[int, int], ...]
    pieces: tuple[tuple[int, int], ...]
    apart: int


class FiberProgram:
    """Programs over the fibers of a cube."""

    def __init__(self, job: Job) -> None:
        self.tables = cube_tables(job)
        self._key = job.states.key
        self._guesses_left = 0

    def refutes(self, thresholds: IntArray) -> bool:
        """Tell whether thresholds, ascending, are impossible."""
        self._guesses_left = _MOST_GUESSES
        return self._refuted(thresholds, no_guess(self.tables))

    def _refuted(self, thresholds: IntArray, guess: Guess) -> bool:
        tables = self.tables
        view = standing(tables, thresholds, guess)
        if view is None:
            return True
        self._guesses_left -= 1
        unit, families = families_of(tables, self._key, thresholds, view)
        if not families or self._guesses_left < 0:
            return False
        leaves = _Node(self, view, guess, unit, families).solved()
        if leaves is None:
            return True
        whole = np.rint(leaves)
        part = np.abs(leaves - whole)
        open_ = view.alive & ~guess.done
        if part.max() > 10 * _ZERO:
            state = int(np.argmax(part * (1 + tables.ranks.max() - tables.ranks)))
        else:
            if self._whole(whole.astype(np.int64), unit, families):
                return False
            if not open_.any():
                return True
            # towards these numbers, which are impossible
            wanted = open_ & (whole > guess.forced)
            able = np.flatnonzero(wanted if wanted.any() else open_)
            state = int(able[np.argmin(tables.ranks[able])])
        arms = branches(guess, state)
        return self._refuted(thresholds, arms[1]) and self._refuted(thresholds, arms[0])

    def _whole(self, leaves: IntArray, unit: int, families: list[Family]) -> bool:
        """Tell whether the fibers of all families can hold whole numbers of leaves."""
        units = self.tables.ranks // unit
        for family in families:
            bad = np.flatnonzero((leaves > 0) & family.bad)
            held = tuple(sorted(zip(units[bad].tolist(), leaves[bad].tolist(), strict=True)))
            other = int((units * leaves)[family.other].sum())
            if not fits(family.dims, family.fibers, held, other):
                return False
        return True


class _Node:
    """The program of one guess.

    Rows per family: its fibers; ranks apart; ranks and pieces of every bad state. Then all ranks,
    leaves per type, and leaves assumed. All ranks are in units.
    """

    def __init__(
        self, owner: FiberProgram, view: Standing, guess: Guess, unit: int, families: list[Family]
    ) -> None:
        tables = self.tables = owner.tables
        self.guess, self.families = guess, families
        self.states = np.flatnonzero(view.alive)
        self.units = tables.ranks // unit
        self.ranks = tables.cells // unit
        self.sure = np.flatnonzero((guess.forced > 0) | guess.done)
        self.first: list[int] = []
        self.bad: list[IntArray] = []
        at = 0
        for family in families:
            self.first.append(at)
            self.bad.append(np.flatnonzero(family.bad))
            at += 2 + 2 * len(self.bad[-1])
        self.of_ranks, self.of_type = at, at + 1
        self.of_sure = self.of_type + len(tables.multiplicity)
        self.num_rows = self.of_sure + len(self.sure)
        self.known: list[dict[_Fiber, None]] = [{} for _ in families]
        self.fixed = self._leaf_columns()

    def _leaf_columns(self) -> tuple[list[int], list[int], list[float]]:
        rows: list[int] = []
        columns: list[int] = []
        data: list[float] = []

        def put(row: int, column: int, value: float) -> None:
            rows.append(row)
            columns.append(column)
            data.append(value)

        for column, s in enumerate(self.states.tolist()):
            units = int(self.units[s])
            for family, first, bad in zip(self.families, self.first, self.bad, strict=True):
                if family.bad[s]:
                    row = first + 2 + 2 * int(np.searchsorted(bad, s))
                    put(row, column, -units)
                    put(row + 1, column, -float(_pieces(units, family.dims)))
                elif family.other[s]:
                    put(first + 1, column, -units)
            put(self.of_ranks, column, units)
            put(self.of_type + int(self.tables.leaf_type[s]), column, 1)
            for number in np.flatnonzero(self.sure == s).tolist():
                put(self.of_sure + number, column, 1)
        return rows, columns, data

    def solved(self) -> FloatArray | None:
        """Return leaves per state that the program leaves, None if it is refuted."""
        every = np.ones(len(self.tables.ranks))
        for _ in range(_MOST_ROUNDS):
            program = self._program()
            if program.status() != mbh.SolveStatus.OPTIMAL:
                return every * 0.5
            amounts = np.array(program.variable_values())
            if program.objective_value() < _ZERO:
                leaves = np.zeros(len(every))
                leaves[self.states] = amounts[: len(self.states)]
                return leaves
            duals = np.array(program.dual_values())
            duals *= min(1.0, _LARGEST / np.abs(duals).max())
            found = self._priced(-np.rint(duals * UNIT).astype(np.int64))
            if found is None:
                return None
            if not found:
                break
        return every * 0.5

    def _priced(self, price: IntArray) -> bool | None:
        """Add fibers that are too cheap; return whether there were any, None if all is too dear."""
        wanted, new = 0, False
        worth = np.full(len(self.tables.ranks), NOTHING, dtype=np.int64)
        worth[self.states] = 0
        for number, family in enumerate(self.families):
            first, bad = self.first[number], self.bad[number]
            of_cell = price[first + 2 : first + 2 + 2 * len(bad) : 2]
            of_piece = np.minimum(0, price[first + 3 : first + 3 + 2 * len(bad) : 2])
            of_apart = min(0, int(price[first + 1]))
            units = self.units[bad]
            worth[bad] += of_cell * units + of_piece * _pieces(units, family.dims)
            worth[family.other] += of_apart * self.units[family.other]
            cheapest: dict[int, tuple[int, int]] = {}
            for size in range(1, (1 << family.dims) + 1):
                able = np.flatnonzero(units >= size)
                if len(able):
                    cost = of_cell[able] * size + of_piece[able]
                    best = int(cost.argmin())
                    cheapest[size] = int(cost[best]), int(bad[able[best]])
            options = []
            for components, apart in patterns(family.dims):
                if all(size in cheapest for size in components):
                    sum_ = of_apart * apart + sum(cheapest[size][0] for size in components)
                    options.append((sum_, components, apart))
            options.sort()
            wanted += family.fibers * options[0][0]
            for sum_, components, apart in options[:_NEW]:
                if sum_ < -price[first] - 2:
                    cells: dict[int, int] = {}
                    pieces: dict[int, int] = {}
                    for size in components:
                        s = cheapest[size][1]
                        cells[s] = cells.get(s, 0) + size
                        pieces[s] = pieces.get(s, 0) + 1
                    held = tuple(sorted(cells.items())), tuple(sorted(pieces.items()))
                    fiber = _Fiber(*held, apart)
                    new |= fiber not in self.known[number]
                    self.known[number][fiber] = None
        if offered(self.tables, self.guess, worth) < wanted:
            return None
        return new

    def _program(self) -> Any:
        """Return the solved program: the fewest fibers and assumed leaves that are missing."""
        rows, columns, data = (list(part) for part in self.fixed)
        column = len(self.states)
        for number, known in enumerate(self.known):
            first, bad = self.first[number], self.bad[number]
            for fiber in known:
                rows += [first, first + 1]
                columns += [column, column]
                data += [1.0, fiber.apart]
                for kind, part in enumerate((fiber.cells, fiber.pieces)):
                    for s, amount in part:
                        rows.append(first + 2 + 2 * int(np.searchsorted(bad, s)) + kind)
                        columns.append(column)
                        data.append(amount)
                column += 1
        missing = [*self.first, self.of_ranks, *range(self.of_sure, self.num_rows), self.of_ranks]
        num_columns = column + len(missing)
        rows += missing
        columns += range(column, num_columns)
        data += [1.0] * (len(missing) - 1) + [-1.0]  # too few ranks, and too many
        lower, upper = np.zeros(self.num_rows), np.zeros(self.num_rows)
        for family, first, bad in zip(self.families, self.first, self.bad, strict=True):
            lower[first] = upper[first] = family.fibers
            upper[first + 1] = np.inf
            upper[first + 3 : first + 3 + 2 * len(bad) : 2] = np.inf
        lower[self.of_ranks] = upper[self.of_ranks] = self.ranks
        lower[self.of_type : self.of_sure] = -np.inf
        upper[self.of_type : self.of_sure] = self.tables.multiplicity
        sure = self.sure
        lower[self.of_sure :] = self.guess.forced[sure]
        upper[self.of_sure :] = np.where(self.guess.done[sure], self.guess.forced[sure], np.inf)
        objective = np.zeros(num_columns)
        objective[column:] = 1.0
        matrix = sp.csr_matrix((data, (rows, columns)), shape=(self.num_rows, num_columns))
        helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
        helper.fill_model_from_sparse_data(
            np.zeros(num_columns), np.full(num_columns, np.inf), objective, lower, upper, matrix
        )
        program = mbh.ModelSolverHelper("glop")
        program.set_solver_specific_parameters(_GLOP)
        program.solve(helper)
        return program


def _pieces(units: Any, dims: int) -> Any:
    """Return the fewest fibers that so many units are in."""
    return -(-units // (1 << dims))
