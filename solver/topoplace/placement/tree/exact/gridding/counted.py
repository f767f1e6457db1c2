"""Grids on leaves at thresholds, with the ranks per leaf given as leaves per state.

Leaves in a state whose leaves may be neighbours of each other are interchangeable: their ranks
share a label, which leaves far fewer exchanges to try than a label per leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.gridding.board import Board
from topoplace.placement.tree.exact.gridding.kernels.exchange import exchanged
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_SHORTEST, _LONGEST = 1 << 13, 1 << 18
"""Moves per part of a first run, and of the longest."""

_LONGER = 2
_HOT, _WARM, _COLD = 0.8, 0.25, 0.12
"""Heat at the start of a run from anywhere and of one from near a fit, and at the end."""

_NEAR = 5
"""Forbidden pairs from which a fit is mostly found by warming up again."""

_AGAIN, _SHORTER = 8, 4
"""How often that is done, and how much shorter it is."""


@dataclass(frozen=True)
class Labels:
    """Leaves with so many parts each, by label.

    Attributes
    ----------
    leaves
        Per label, its leaves, each as often as it has parts.
    bad
        Whether parts with two labels may not be beside each other, shape ``(rows, L, L)`` by row
        of the board.
    """

    board: Board
    leaves: list[IntArray]
    bad: BoolArray

    def settled(self, moves: int, seed: int) -> tuple[int, IntArray]:
        """Return the fewest forbidden pairs met, and the leaf of every rank at them.

        Parameters
        ----------
        moves
            Of a first run, per part.
        """
        sizes = [len(own) for own in self.leaves]
        label = np.repeat(np.arange(len(sizes)), sizes)
        moves *= len(label)
        number, label = exchanged(label, self.bad, self.board.graph, moves, _HOT, _COLD, seed)
        for again in range(_AGAIN if number <= _NEAR else 0):
            if number == 0:
                break
            found, other = exchanged(
                label, self.bad, self.board.graph, moves // _SHORTER, _WARM, _COLD, seed + again
            )
            if found <= number:
                number, label = found, other
        leaf = np.empty(len(label), dtype=np.int64)
        for own, leaves in enumerate(self.leaves):
            leaf[label == own] = leaves
        return int(number), leaf[self.board.parts.part_of_rank]


def labels_of(job: Job, thresholds: IntArray, counts: IntArray) -> Labels | None:
    """Return the leaves of a grid at thresholds; None if whole parts do not fit on them.

    Parameters
    ----------
    thresholds
        Per step of the job, in units of 1 / `job.scale`.
    counts
        Leaves per state, in all as many ranks as the job has.
    """
    states, family = job.states, job.families[0]
    at = thresholds[list(family.steps)]
    kept = frozenset(np.flatnonzero(at < states.crossing.min()).tolist())
    used = np.flatnonzero(counts)
    if len(kept) == family.num_dims or int(counts @ states.count) != job.ranks:
        return None
    board = Board(job, kept)
    if (states.count[used] % board.unit).any():
        return None
    limits = thresholds[list(board.crossing)]
    left = [iter(leaves.tolist()) for leaves in states.leaves]
    found: list[IntArray] = []
    state_of: list[int] = []
    for state in used.tolist():
        own = [next(left[states.type[state]]) for _ in range(counts[state])]
        parts = np.repeat(own, states.count[state] // board.unit)
        together = bool((states.key[state] <= limits).all())
        for leaves in [parts] if together else np.split(parts, len(own)):
            found.append(leaves)
            state_of.append(state)
    kinds = states.kind[state_of]
    hops = states.crossing[np.ix_(kinds, kinds)]
    np.fill_diagonal(hops, states.inside[kinds])
    return Labels(board, found, hops > limits[:, None, None])


@dataclass
class _Trial:
    """Labels at thresholds of a cost, moves per part of the next run, what the last one left."""

    labels: Labels
    cost: int
    moves: int = _SHORTEST
    number: int = 0


@dataclass
class CountedSearch:
    """Runs at thresholds with counts, those that come nearest more and longer.

    Attributes
    ----------
    best
        The leaf of every rank at the least cost found.
    trials
        What is left to try: all that cost less.
    """

    job: Job
    best: IntArray
    seed: int
    trials: list[_Trial] = field(default_factory=list)
    _known: set[tuple[tuple[tuple[int, int], ...], bytes]] = field(default_factory=set)

    def add(self, thresholds: IntArray, cost: int, counts: IntArray) -> None:
        """Add thresholds, what they cost, and leaves per state to try there."""
        # steps with as many pairs are alike
        number = [len(step.pairs) for step in self.job.steps]
        name = tuple(sorted(zip(number, thresholds.tolist(), strict=True))), counts.tobytes()
        if name not in self._known:
            self._known.add(name)
            labels = labels_of(self.job, thresholds, counts)
            if labels is not None:
                self.trials.append(_Trial(labels, cost))

    def run(self, deadline: float) -> bool:
        """Run until something fits, all has been tried or time is up; tell whether it fits."""
        while self.trials and clock.now() < deadline:
            trial = min(self.trials, key=lambda trial: trial.moves * trial.number)
            self.seed += 1
            trial.number, leaves = trial.labels.settled(trial.moves, self.seed)
            trial.moves *= _LONGER
            if trial.number == 0 or trial.moves > _LONGEST:
                self.trials.remove(trial)
            # it may cost more than it should if leaves are farther apart than the nearest ones
            cost = self.job.cost(leaves)
            if trial.number == 0 and cost < self.job.cost(self.best):
                self.best = leaves
                self.trials = [trial for trial in self.trials if trial.cost < cost]
                return True
        return False

    def run_on(self, wanted: int, deadline: float) -> None:
        """Run until a cost is reached, nothing is left to try or time is up."""
        while self.job.cost(self.best) > wanted and self.run(deadline):
            pass
