"""Better allocations of grids: thresholds whose sum beats the best known, and what settles there.

What a grid costs is the sum of its steps' dearest pairs. Of leaves that hold many ranks each, few
may then be neighbours in one of the dims, with ranks of emptier leaves between them; annealing by
cost does not find that, because nearly all its moves leave every maximum as it is. Annealing by
the pairs above thresholds does, and it finds the counts as well. Where all dims but one are
between full leaves, a construction is better still (`chains`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.gridding.board import SETTLED, boards
from topoplace.placement.tree.exact.gridding.chains import chained
from topoplace.placement.tree.exact.gridding.divide import Division, divisions
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

LONGEST = 1 << 20
"""Moves per rank of the longest run: what does not settle in so many is given up."""

_SHORTEST = 250
_LONGER = 2


def better_grid(
    job: Job,
    leaves: IntArray,
    wanted: int,
    deadline: float,
    seed: int,
    longest: int = LONGEST,
) -> IntArray:
    """Return the best allocation found of a job whose only pattern is a grid.

    Parameters
    ----------
    leaves
        An allocation to beat, the leaf of every rank.
    wanted
        A bound of the cost in units of 1 / (100 `model.scale`), at which there is no better one.
    longest
        Moves per rank of the last run at every division of the cost.
    """
    search = GridSearch(job, leaves, seed, longest)
    search.construct(wanted, deadline)
    while search.trials and search.cost > wanted and clock.now() < deadline:
        search.step(deadline)
    return search.best


@dataclass
class _Trial:
    """A division of the cost, where its parts start, moves of its next run, weight of its last."""

    division: Division
    start: IntArray
    moves: int
    weight: float = 0.0


class GridSearch:
    """Runs at divisions of a cost below the best known, those that come nearest more and longer.

    Attributes
    ----------
    best, cost
        The leaf of every rank, and the cost in units of 1 / (100 `model.scale`).
    trials
        What is left to try.
    """

    def __init__(self, job: Job, leaves: IntArray, seed: int, longest: int = LONGEST) -> None:
        self._job = job
        self._seed = seed
        self._longest = longest * job.ranks
        self._relaxation = Relaxation(job)
        self._owner: dict[tuple[tuple[int, int], ...], _Trial | None] = {}
        self._moves_per_second = np.inf
        self.best, self.cost = leaves, job.cost(leaves)
        self.trials: list[_Trial] = []
        for board in boards(job):
            leaf = board.parts.spread()
            if leaf is None:
                continue
            start = np.searchsorted(board.domain, leaf)
            moves = _SHORTEST * len(start)
            self.trials += [_Trial(division, start, moves) for division in divisions(board)]

    def construct(self, wanted: int, deadline: float) -> None:
        """Try chains of leaves, until a cost is reached or time is up."""
        for board in boards(self._job):
            for found in chained(board):
                self._keep(found)
                if self.cost <= wanted or clock.now() > deadline:
                    return

    def step(self, deadline: float) -> None:
        """Run once at the division that promises most; drop those that allow nothing."""
        trial = min(self.trials, key=lambda trial: trial.moves * trial.weight)
        limit = trial.division.limit(self._budget())
        if limit is None or not self._may_be(trial, limit):
            self.trials.remove(trial)
            return
        self._seed += 1
        begin = clock.now()
        moves = int(min(trial.moves, 1 + self._moves_per_second * max(0.0, deadline - begin)))
        board = trial.division.board
        weight, leaf = board.settled(trial.start, limit, moves, self._seed)
        if weight < SETTLED and self._keep(board.leaves(leaf)):
            trial.weight = 0.0  # lower and lower while that goes well
            return
        self._moves_per_second = moves / (clock.now() - begin)
        trial.weight = max(weight, SETTLED)
        trial.moves *= _LONGER
        if trial.moves > self._longest:
            self.trials.remove(trial)

    def _keep(self, leaves: IntArray) -> bool:
        """Keep an allocation if it costs less than the best, and tell whether it does."""
        cost = self._job.cost(leaves)
        better = cost < self.cost
        if better:
            self.best, self.cost = leaves, cost
        return better

    def _may_be(self, trial: _Trial, limit: FloatArray) -> bool:
        """Tell whether the relaxation leaves some limits, and no other trial has the like."""
        thresholds = trial.division.board.thresholds(limit)
        # steps with as many pairs are alike
        number = [len(step.pairs) for step in self._job.steps]
        name = tuple(sorted(zip(number, thresholds.tolist(), strict=True)))
        if name not in self._owner:
            self._owner[name] = trial if self._relaxation.possible(thresholds.tolist()) else None
        return self._owner[name] is trial

    def _budget(self) -> float:
        """Return the highest sum of hops below the best known."""
        price = self._job.steps[0].price  # the steps of a grid weigh the same
        return (self.cost - 1) / (price * int(self._job.model.scale))
