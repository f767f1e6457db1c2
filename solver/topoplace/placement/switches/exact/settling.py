"""Allocations of one request at thresholds: chains of a grid, rings, and counts that are settled.

Once thresholds and the ranks per leaf are given, the number of pairs above their thresholds is
what a search can follow. Ranks that thresholds hold together, because no crossing is as cheap, are
exchanged together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from topoplace import clock
from topoplace.placement.switches.exact._annealing import COOLING, exchanged, pack
from topoplace.placement.switches.exact.annealing import Parts, turned
from topoplace.placement.switches.exact.job import Dims, Job, components
from topoplace.types import BoolArray, IntArray

_MOST_LEVELS = 24
_MOST_BETWEEN = 12

_SHORTEST, _LONGEST = 1 << 13, 1 << 18
"""Moves per part of a first run, and of the longest."""

_LONGER = 2
_HOT, _WARM, _COLD = 0.8, 0.25, 0.12
"""Heat at the start of a run from anywhere and of one from near a fit, and at the end."""

_NEAR = 5
"""Forbidden pairs from which a fit is mostly found by warming up again."""

_AGAIN, _SHORTER = 8, 4
"""How often that is done, and how much shorter it is."""

_STRETCH = COOLING << 8
"""Exchanges between two looks at the clock."""


# ---- Parts of a box ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Board:
    """A job of one family, of which some dims stay inside leaves and the others may cross."""

    job: Job
    kept: Dims

    @cached_property
    def parts(self) -> Parts:
        """The ranks that stay together; all parts are of the same size."""
        family = self.job.families[0]
        return Parts(self.job, components(family.pattern, family.ranks, self.kept))

    @cached_property
    def unit(self) -> int:
        """Ranks of every part."""
        return int(self.parts.size[0])

    @cached_property
    def crossing(self) -> tuple[int, ...]:
        """Steps of the job that may cross leaves."""
        steps = self.job.families[0].steps
        return tuple(step for dim, step in enumerate(steps) if dim not in self.kept)

    @cached_property
    def domain(self) -> IntArray:
        """Leaves that can hold a part."""
        found: IntArray = self.job.domain[self.job.free[self.job.domain] >= self.unit]
        return found

    @cached_property
    def room(self) -> IntArray:
        """Parts that every leaf of the domain can hold."""
        found: IntArray = self.job.free[self.domain] // self.unit
        return found

    @cached_property
    def graph(self) -> tuple[IntArray, IntArray, IntArray]:
        """The pairs of every part: first of every part, partners, rows of steps."""
        pairs, first = self.parts.pairs
        number = np.diff(first)[list(self.crossing)]
        own = np.concatenate([pairs[first[step] : first[step + 1]] for step in self.crossing])
        part, row = own.T.ravel(), np.tile(np.repeat(np.arange(len(number)), number), 2)
        order = np.argsort(part, kind="stable")
        begin = np.cumsum([0, *np.bincount(part, minlength=len(self.parts.size))])
        return begin, own[:, ::-1].T.ravel()[order], row[order]


# ---- Grids in chains ---------------------------------------------------------------------------


def _boards(job: Job) -> Iterator[Board]:
    """Yield a grid in all ways that differ in which dims stay inside; at least one crosses."""
    extents = job.families[0].extents
    seen = set()
    for num_kept in range(len(extents)):
        for kept in itertools.combinations(range(len(extents)), num_kept):
            name = tuple(extents[dim] for dim in kept)
            if name not in seen:
                seen.add(name)
                yield Board(job, frozenset(kept))


def chained(job: Job, deadline: float) -> Iterator[IntArray]:
    """Yield assignments of ranks of a grid to leaves in chains, until the deadline.

    They differ in which dims stay inside (at least one crosses), in how full leaves may be, in the
    dim of the chains, and in how many leaves are between others.

    Where full leaves may be neighbours in all dims except one, only the lines of cells along that
    one matter: in every line there is a cell of an emptier leaf between two full ones. Chains of
    full leaves that end at the ends of lines need the fewest such cells.
    """
    for board in _boards(job):
        for share, row in itertools.product(_shares(board), range(len(board.crossing))):
            for num_between in range(min(_MOST_BETWEEN, len(board.domain) - 1) + 1):
                if clock.now() > deadline:
                    return
                leaves = _in_chains(board, share, row, num_between)
                if leaves is not None:
                    yield leaves


def _in_chains(board: Board, share: float, row: int, num_between: int) -> IntArray | None:
    """Return an assignment in which leaves are filled up to a share of their nodes."""
    comm, nodes = board.job.comm[board.domain], board.job.model.machine.leaf_sizes[board.domain]
    # the emptiest come last: they are put between the others
    order = np.lexsort((-nodes, comm / nodes))[::-1]
    full = np.floor(share * nodes + 1e-9).astype(np.int64) - comm
    caps = np.clip(full // board.unit, 0, board.room)
    cells = _along(board, row)
    high, between = np.split(order, [len(order) - num_between])
    found = _filled(caps, high[caps[high] > 0], between, cells.shape)
    if found is None or (np.bincount(found, minlength=len(order)) > caps).any():
        return None
    leaf = np.empty(cells.size, dtype=np.int64)
    leaf[cells.ravel()] = found
    return board.domain[leaf[board.parts.part_of_rank]]


def _shares(board: Board) -> list[float]:
    """Return the shares of their nodes up to which leaves may be filled, a few of all."""
    comm, nodes = board.job.comm[board.domain], board.job.model.machine.leaf_sizes[board.domain]
    counts = board.unit * np.arange(1, board.room.max(initial=0) + 1)
    held = (comm[:, None] + counts) / nodes[:, None]
    shares = np.unique(held[held <= 1.0])[::-1]
    few = np.linspace(0, len(shares) - 1, min(_MOST_LEVELS, len(shares))).round()
    found: list[float] = shares[few.astype(np.int64)].tolist()
    return found


def _along(board: Board, row: int) -> IntArray:
    """Return the parts in lines along the dim of a crossing step, shape ``(lines, length)``."""
    family = board.job.families[0]
    extents = family.extents
    shape = [extents[dim] for dim in range(family.num_dims) if dim not in board.kept]
    parts = np.arange(len(board.parts.size)).reshape(shape)
    return np.moveaxis(parts, row, -1).reshape(-1, shape[row])


def _filled(
    caps: IntArray, high: IntArray, between: IntArray, shape: tuple[int, ...]
) -> IntArray | None:
    """Return the leaf of every cell, line by line; None if cells between are for no leaf."""
    lines, length = shape
    fewest, ends = pack(caps[high], lines, length)
    if fewest > lines * length or (fewest and not len(between)):
        return None
    cells: list[int] = []
    for (first, start), (last, end) in itertools.pairwise(reversed(ends)):
        chain: list[int] = []
        for leaf in high[first:last].tolist():
            chain += [-1] * bool(chain) + [leaf] * int(caps[leaf])
        room = (end - start) * length
        cells += (chain + [-1] * room)[:room]
    found = np.array(cells)
    alone = np.flatnonzero(found < 0)
    if len(alone):
        found[alone] = between[np.arange(len(alone)) * len(between) // len(alone)]
    return found


# ---- Rings ------------------------------------------------------------------------------------


def around(job: Job, counts: IntArray) -> IntArray:
    """Return a ring on leaves with given ranks that separates leaves which pair badly.

    Runs of the leaves with the most contention come one after the other. Between two such runs is
    a single rank of a leaf that pairs with both: the worst such leaf. `counts` are the numbers of
    leaves per state.
    """
    states = job.states
    ranks = np.zeros(len(job.comm), dtype=np.int64)
    for t, leaves in enumerate(job.leaves):
        own = np.arange(states.first[t], states.first[t + 1])
        held = np.repeat(states.ranks[own], counts[own])
        ranks[leaves[: len(held)]] = held
    used = np.flatnonzero(ranks)
    share = (job.comm + ranks)[used] / job.model.machine.leaf_sizes[used]
    used = used[np.argsort(-share, kind="stable")]
    found = []
    # The more runs are kept apart, the worse the leaves that can be: try every number of them.
    for num_runs in range(len(used)):
        ring = _ring_of(ranks[used], num_runs)
        if ring is None:
            break
        found.append(used[ring])
    return min(found, key=job.cost)


def _ring_of(counts: IntArray, num_runs: int) -> list[int] | None:
    """Return leaves in ring order, the first `num_runs` in one run each; None if too many."""
    single = np.repeat(np.arange(num_runs, len(counts)), counts[num_runs:]).tolist()
    if num_runs > len(single):
        return None
    if num_runs == 0:
        return single
    # `single` is by contention: the last pair best, and the worst run needs them on both sides.
    rest, between = single[: len(single) - num_runs], single[len(single) - num_runs :][::-1]
    ring: list[int] = []
    for run in range(num_runs):
        ring += [run] * int(counts[run]) + between[run + 1 : run + 2]
    return [*ring, *reversed(rest), between[0]]


# ---- Counts at thresholds ----------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """Leaves by label, each as often as it has parts.

    `bad` is whether parts with two labels may not be neighbours, shape ``(rows, L, L)`` by row of
    the board.
    """

    board: Board
    leaves: list[IntArray]
    bad: BoolArray

    def settled(self, moves: int, seed: int, deadline: float) -> tuple[int, IntArray]:
        """Return the fewest forbidden pairs met in some moves per part, and the leaves there."""
        sizes = [len(own) for own in self.leaves]
        label = np.repeat(np.arange(len(sizes)), sizes)
        moves *= len(label)
        number, label = self._exchanged(label, moves, _HOT, seed, deadline)
        for again in range(_AGAIN if number <= _NEAR else 0):
            if number == 0 or clock.now() > deadline:
                break
            found, other = self._exchanged(label, moves // _SHORTER, _WARM, seed + again, deadline)
            if found <= number:
                number, label = found, other
        leaf = np.empty(len(label), dtype=np.int64)
        for own, leaves in enumerate(self.leaves):
            leaf[label == own] = leaves
        return int(number), leaf[self.board.parts.part_of_rank]

    def _exchanged(
        self, label: IntArray, moves: int, heat: float, seed: int, deadline: float
    ) -> tuple[int, IntArray]:
        """Return the fewest forbidden pairs of a run, and the labels at them."""
        cooler = (_COLD / heat) ** (COOLING / max(moves, COOLING))
        least, best = len(label) ** 2, label
        for begin in range(0, moves, _STRETCH):
            own = min(_STRETCH, moves - begin)
            number, there, label, heat = exchanged(
                label, self.bad, self.board.graph, own, heat, cooler, seed + begin
            )
            if number < least:
                least, best = number, there
            if least == 0 or clock.now() > deadline:
                break
        return least, best


def labels_of(job: Job, thresholds: IntArray, counts: IntArray) -> Labels | None:
    """Return the leaves of a grid at thresholds, given leaves per state.

    None if whole parts do not fit on them, or not all.
    """
    states, family = job.states, job.families[0]
    at = thresholds[list(family.steps)]
    kept = frozenset(np.flatnonzero(at < states.apart.min()).tolist())
    used = np.flatnonzero(counts)
    if len(kept) == family.num_dims or int(counts @ states.ranks) != job.ranks:
        return None
    board = Board(job, kept)
    if (states.ranks[used] % board.unit).any():
        return None
    limits = thresholds[list(board.crossing)]
    left = [iter(leaves.tolist()) for leaves in job.leaves]
    found: list[IntArray] = []
    state_of: list[int] = []
    for state in used.tolist():
        own = [next(left[states.leaf_type[state]]) for _ in range(counts[state])]
        parts = np.repeat(own, states.ranks[state] // board.unit)
        together = bool((states.key[state] <= limits).all())
        for leaves in [parts] if together else np.split(parts, len(own)):
            found.append(leaves)
            state_of.append(state)
    hops = states.apart[np.ix_(state_of, state_of)]
    np.fill_diagonal(hops, states.inside[state_of])
    return Labels(board, found, hops > limits[:, None, None])


@dataclass(eq=False)
class _Trial:
    """Labels at thresholds of a cost, moves per part of the next run, what the last one left."""

    labels: Labels
    cost: int
    moves: int = _SHORTEST
    number: int = 0


@dataclass
class CountedSearch:
    """Runs at thresholds with counts, those that come nearest more and longer.

    `best` are the leaves of the ranks at the least cost found; `trials` cost less.
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
        """Run until something fits, all has been tried or time is up; return whether it fits."""
        while self.trials and clock.now() < deadline:
            trial = min(self.trials, key=lambda trial: trial.moves * trial.number)
            self.seed += 1
            trial.number, leaves = trial.labels.settled(trial.moves, self.seed, deadline)
            trial.moves *= _LONGER
            if trial.number == 0 or trial.moves > _LONGEST:
                self.trials.remove(trial)
            # it may cost more than it should if leaves are farther apart than the nearest ones
            leaves = turned(self.job, leaves)
            cost = self.job.units(leaves)
            if trial.number == 0 and cost < self.job.units(self.best):
                self.best = leaves
                self.trials = [trial for trial in self.trials if trial.cost < cost]
                return True
        return False

    def run_on(self, wanted: int, deadline: float) -> None:
        """Run until a cost is reached, nothing is left to try or time is up."""
        while self.job.units(self.best) > wanted and self.run(deadline):
            pass
