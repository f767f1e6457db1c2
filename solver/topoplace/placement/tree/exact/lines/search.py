"""The least cost of thresholds of a grid that are not impossible."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.bounding.structure import GRIDS
from topoplace.placement.tree.exact.cutting.boxes import Boxes, Corners
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.exact.lines.program import LineProgram, Mix
from topoplace.placement.tree.exact.lines.proof import Branch, Empty, Prices, Proof, refutes
from topoplace.placement.tree.exact.lines.tables import tables_of

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_LARGEST_COST = 1 << 61
_MOST_STATES = 160
_MOST_COUNT = 64
"""What a test takes grows with the square of the states, the layouts with that of a count."""

_GUESSES, _GUESSES_TO_LIFT = 100, 6
"""Programs that a test may take where it decides, and where it may save others."""


def has_lines(job: Job) -> bool:
    """Tell whether a job is one that `LineSearch` is made for."""
    states = job.states
    if len(job.families) != 1 or job.families[0].pattern not in GRIDS or not job.exact:
        return False
    if len(states.count) > _MOST_STATES or states.count.max() > _MOST_COUNT:
        return False
    most = int(max(states.inside.max(), states.crossing.max()))
    return most * sum(step.price for step in job.steps) < _LARGEST_COST


@dataclass(frozen=True)
class Nogood:
    """Thresholds by number that are impossible, and why; or only by a search."""

    at: IntArray
    proof: Proof | None


@dataclass(frozen=True)
class Open:
    """Thresholds that are not known to be impossible, their cost, and leaves per state at them."""

    cost: int
    thresholds: IntArray
    leaves: FloatArray | None


@dataclass
class LineSearch:
    """Finds a lower bound of the cost of a job on a grid.

    Thresholds are numbers of `values`, one per dimension. What is impossible stays so with lower
    thresholds.

    Attributes
    ----------
    to_beat
        What an allocation costs, in units of 1 / (100 `job.scale`).
    nogoods
        Thresholds that are impossible.
    num_for_bound
        How many of the nogoods, the first ones, prove the bound; None if all are needed.
    """

    job: Job
    to_beat: int
    deadline: float
    nogoods: list[Nogood] = field(default_factory=list)
    num_for_bound: int | None = None

    def __post_init__(self) -> None:
        self.tables = tables_of(self.job)
        self.program = LineProgram(self.tables)
        self.values = Relaxation(self.job).values
        self.prices = np.array([step.price for step in self.job.steps], dtype=np.int64)
        num = len(self.prices)
        self._boxes = Boxes(self.values, self.prices)
        self._boxes.add(np.zeros(num, dtype=np.int64), np.full(num, len(self.values) - 1))
        self._impossible = Corners(num)
        self._possible = Corners(num)
        self._alike = _alike(self.tables.extents, self.prices)

    def open_thresholds(self) -> Iterator[Open]:
        """Yield thresholds that are not ruled out, cheapest first, while they cost less.

        The cost of the first bounds that of all allocations.
        """
        while True:
            found = self._boxes.cheapest(self._impossible, self.to_beat)
            if found is None:
                return
            cost, low, high = found
            mix = None
            if clock.now() < self.deadline:
                result = self.program.test(self.values[low], _GUESSES)
                if isinstance(result, Empty | Prices | Branch):
                    self._add(self._lifted(low, result, high))
                    continue
                further = self._further(low, high)
                if isinstance(further, Nogood):
                    self._add(further)
                    continue
                mix = further or result
            if self.num_for_bound is None:
                self.num_for_bound = len(self.nogoods)
            yield Open(cost, self.values[low], None if mix is None else mix.leaves)
            self._impossible.add(low)  # not because it is: the next one is wanted

    def _further(self, low: IntArray, high: IntArray) -> Nogood | Mix | None:
        """Return why thresholds are impossible that programs do not refute, or what has them."""
        result = self.program.test(self.values[low], _GUESSES, wholes=True)
        if isinstance(result, Empty | Prices | Branch):
            return self._lifted(low, result, high, wholes=True)
        return result

    def _add(self, nogood: Nogood) -> None:
        """Add a nogood, and what it says of dimensions that are alike."""
        for order in self._alike:
            at = nogood.at[order]
            if not self._impossible_above(at):
                self._impossible.add(at)
                proof = None if nogood.proof is None else _permuted(nogood.proof, order)
                self.nogoods.append(Nogood(at, proof))

    def _impossible_above(self, at: IntArray) -> bool:
        return bool((self._impossible.all >= at).all(axis=1).any())

    def _order(self) -> IntArray:
        """Return the dimensions, the dearest first."""
        return np.argsort(-self.prices, kind="stable")

    def _lifted(
        self, at: IntArray, proof: Proof, high: IntArray, *, wholes: bool = False
    ) -> Nogood:
        """Return a refutation of larger thresholds: first within a box, then wherever it holds."""
        for dim in self._order().tolist():
            at, proof = self._raised(at, proof, dim, int(high[dim]), anew=True, wholes=wholes)
        for dim in range(len(high)):
            at, proof = self._raised(at, proof, dim, len(self.values) - 1, anew=False)
        return Nogood(at, proof)

    def _raised(
        self,
        at: IntArray,
        proof: Proof,
        dim: int,
        top: int,
        *,
        anew: bool,
        wholes: bool = False,
    ) -> tuple[IntArray, Proof]:
        """Return a refutation with a threshold as high as can be; perhaps by another proof."""
        top = self._possible.ceiling(at, dim, top)
        number = top
        while at[dim] < top:
            trial = at.copy()
            trial[dim] = number
            found: Proof | None = proof
            if not refutes(self.tables, proof, self.values[trial]):
                found = self._proof(trial, wholes) if anew else None
            if found is None:
                top = number - 1
            else:
                at, proof = trial, found
            number = (int(at[dim]) + top + 1) // 2
        return at, proof

    def _proof(self, at: IntArray, wholes: bool) -> Proof | None:
        if clock.now() > self.deadline:
            return None
        found = self.program.test(self.values[at], _GUESSES_TO_LIFT, wholes=wholes)
        if isinstance(found, Mix):
            self._possible.add(np.searchsorted(self.values, found.least))
            return None
        return found


def _alike(extents: IntArray, prices: IntArray) -> list[IntArray]:
    """Return the orders of dimensions that leave lengths and prices as they are, itself first."""
    every = [np.array(order) for order in itertools.permutations(range(len(extents)))]
    return [
        order
        for order in every
        if (extents[order] == extents).all() and (prices[order] == prices).all()
    ]


def _permuted(proof: Proof, order: IntArray) -> Proof:
    if isinstance(proof, Branch):
        return Branch(proof.state, _permuted(proof.without, order), _permuted(proof.more, order))
    if isinstance(proof, Prices):
        return Prices(proof.of_cell[order], proof.of_segment[order], proof.of_whole[order])
    return proof
