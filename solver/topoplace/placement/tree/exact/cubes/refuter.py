"""Thresholds of a cube that are impossible, each with its proof, raised as far as that serves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.cubes.program import CubeProgram
from topoplace.placement.tree.exact.cubes.proof import Proof, refutes
from topoplace.placement.tree.exact.cutting.boxes import Corners
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.exact.lines.tables import box_tables

IntArray = NDArray[np.int64]

_MOST_STATES = 160
_MOST_PROGRAMS = 40
"""What a program takes grows with the states; how many a test may take."""


def has_cube(job: Job) -> bool:
    """Tell whether a job is one that `CubeRefuter` is made for: a full cube on few states."""
    alone = len(job.families) == 1 and bool(job.families[0].alike)
    return alone and job.exact and len(job.states.count) <= _MOST_STATES


@dataclass(frozen=True)
class Nogood:
    """Thresholds by number that are impossible, and why."""

    at: IntArray
    proof: Proof


class CubeRefuter:
    """Finds nogoods, and remembers at which thresholds it found none.

    What is impossible stays so with lower thresholds. Those of a nogood are numbers of
    `Relaxation.values`.

    Attributes
    ----------
    deadline
        When it begins to say of what it does not know that it may be possible.
    """

    def __init__(self, job: Job, deadline: float) -> None:
        self.deadline = deadline
        num_dims = job.families[0].num_dims
        # a cube is a grid of two layers each way
        self._tables, self._key = box_tables(job, [2] * num_dims), job.states.key
        self._program = CubeProgram(self._tables, self._key)
        self._values = Relaxation(job).values
        self._possible, self._impossible = Corners(num_dims), Corners(num_dims)
        self.nogoods: list[Nogood] = []

    def refutes(self, thresholds: IntArray) -> bool:
        """Tell whether thresholds, ascending, are impossible; what takes too long may not be."""
        at = np.searchsorted(self._values, thresholds)
        if (self._impossible.all >= at).all(axis=1).any():
            return True
        if self._possible.below(at) or clock.now() > self.deadline:
            return False
        proof = self._program.test(thresholds, _MOST_PROGRAMS, self.deadline)
        if proof is None:
            self._possible.add(at)
            return False
        at = self._raised(at, proof)
        self._impossible.add(at)
        self.nogoods.append(Nogood(at, proof))
        return True

    def _raised(self, at: IntArray, proof: Proof) -> IntArray:
        """Return the largest thresholds that a proof serves, the last distance first."""
        at = at.copy()
        top = len(self._values) - 1
        for dim in reversed(range(len(at))):
            number = top
            while at[dim] < top:
                trial = at.copy()
                trial[dim] = number
                if refutes(self._tables, self._key, proof, self._values[trial]):
                    at = trial
                else:
                    top = number - 1
                number = (int(at[dim]) + top + 1) // 2
            top = int(at[dim])
        return at
