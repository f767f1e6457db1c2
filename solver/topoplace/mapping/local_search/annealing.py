"""Simulated annealing of a mapping: from any start, never worse than it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from topoplace import clock
from topoplace.mapping.graph import IntArray
from topoplace.mapping.local_search._kernels import anneal, total_cost
from topoplace.mapping.local_search.arrays import (
    State,
    guest_arrays,
    machine_arrays,
    state_arrays,
)
from topoplace.mapping.problem import MappingProblem

HOT, COLD = 2.5, 0.3
"""Temperatures of an annealing, in units of `Annealing.typical_change`."""

WANDER = 0.02
"""Share of moves to any router at all."""

POLISH_SHARE = 0.3
"""Share of the work that keeps close to the start."""

COOLING_SHARE = 0.97
"""Share of an annealing before it goes downhill only."""

MOVES_PER_TASK, FEWEST_MOVES, MOST_MOVES = 10_000, 2_000_000, 60_000_000
"""Moves to try without a time limit."""

ROUND_PER_TASK, MOST_ROUNDS = 8_000, 20
"""Moves per task of one annealing: what is left beyond goes into more annealings."""

CHUNK = 1 << 13
"""Most moves between two looks at the clock."""


@dataclass(frozen=True)
class Improved:
    """What a search found.

    Attributes
    ----------
    routers
        Router of every task.
    hop_bytes
        Its hop-bytes.
    hit
        Whether the time limit ended the search.
    """

    routers: IntArray
    hop_bytes: int
    hit: bool


def improve(
    problem: MappingProblem,
    routers: IntArray,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    num_moves: int | None = None,
    watch: Callable[[IntArray], None] | None = None,
) -> Improved:
    """Search for a mapping of fewer hop-bytes than the one given.

    The first part of the work starts at the highest temperature that does not undo the start, so
    that a good start is polished; the rest anneals from hot to cold, whatever the start, more
    than once if there is time. The best mapping of all is returned.

    Parameters
    ----------
    problem
        The instance.
    routers
        Router of every task to start from, shape ``(num_tasks,)``, within the capacities.
    seed
        Of the random moves.
    time_limit
        Seconds; all of it is used unless nothing is left to gain. The outcome then depends on
        the speed of the computer.
    num_moves
        Moves to try if there is no time limit; by default a number that grows with the tasks.
    watch
        Called with the router of every task after every improvement.

    Raises
    ------
    InputError
        If the distances of the machine are not symmetric.
    """
    if num_moves is None:
        num_moves = min(max(FEWEST_MOVES, MOVES_PER_TASK * problem.num_tasks), MOST_MOVES)
    search = Annealing(problem, routers, seed, time_limit, num_moves)
    if watch is not None:
        search.watch = lambda: watch(search.best.astype(np.int64))
    unit = search.typical_change()
    if unit > 0:
        start = search.state.copy()
        mild = search.mildest(HOT * unit, COLD * unit, POLISH_SHARE / 3)
        search.cool(mild, COLD * unit, POLISH_SHARE)
        rest = search.tried / max(search.spent(), 1e-9) * (1 - POLISH_SHARE)
        rounds = max(1, min(MOST_ROUNDS, int(rest / (ROUND_PER_TASK * problem.num_tasks))))
        for done in range(1, rounds + 1):
            search.resume(start)
            until = POLISH_SHARE + (1 - POLISH_SHARE) * done / rounds
            search.cool(HOT * unit, COLD * unit, until)
    hit = time_limit is not None and search.spent() >= 1
    return Improved(search.best.astype(np.int64), search.least, hit)


class Annealing:
    """A mapping on its way, the best one seen, and how much of the work is done.

    Parameters
    ----------
    problem, routers, seed, time_limit, num_moves
        See `improve`.
    watch
        Called after every improvement of the best mapping.
    floor
        Hop-bytes that no mapping goes below: the search ends there.

    Attributes
    ----------
    best, least
        The best mapping seen, as router of every task, and its hop-bytes.
    """

    def __init__(
        self,
        problem: MappingProblem,
        routers: IntArray,
        seed: int,
        time_limit: float | None,
        num_moves: int,
        watch: Callable[[], None] | None = None,
        floor: int = 0,
    ) -> None:
        self.watch, self.floor = watch, floor
        self.began = clock.now()
        self.time_limit, self.num_moves, self.tried = time_limit, num_moves, 0
        self.chunk = CHUNK if time_limit else max(1, min(CHUNK, num_moves // 500))
        self.machine = machine_arrays(problem.machine, problem.capacity)
        self.guest = guest_arrays(problem.graph)
        # the generator's state must not be 0
        self.random = np.random.default_rng(seed).integers(1, 1 << 63, size=1, dtype=np.uint64)
        self.resume(state_arrays(problem, routers))
        self.least, self.best = self.cost, self.state.router.copy()

    def spent(self) -> float:
        """Return the share of the time, or of the moves, that is used up."""
        if self.time_limit is not None or clock.is_stopped():
            return (clock.now() - self.began) / max(self.time_limit or 0.0, 1e-9)
        return self.tried / max(self.num_moves, 1)

    def typical_change(self) -> float:
        """Return how much one step of a task changes hop-bytes, up to a factor."""
        squares = self.guest.weight.astype(float) ** 2
        tasks = np.repeat(np.arange(len(self.guest.first) - 1), np.diff(self.guest.first))
        rows = np.bincount(tasks, weights=squares)
        if not rows.any():
            return 0.0
        at = self.machine.left[:, None, :] + self.machine.right[self.machine.near]
        # where the routers next to a router are all at distance 0, a step is any distance
        step = self.machine.table[at].sum(axis=2).max(axis=1).mean() or self.machine.table.mean()
        return float(np.sqrt(rows[rows > 0]).mean() * step)

    def resume(self, state: State) -> None:
        """Go on from another mapping."""
        self.state = state.copy()
        self.cost = int(total_cost(self.machine, self.guest, self.state.router))

    def mildest(self, hot: float, cold: float, until: float) -> float:
        """Return the highest temperature at which some moves leave the mapping no worse."""
        start, cost = self.state, self.cost
        temperature, begun = hot, self.spent()
        # each temperature gets its part of the work
        part = (until - begun) / (1 + np.log(hot / cold) / np.log(1.5))
        while temperature > cold and self.least > self.floor and self.spent() < until:
            self.resume(start)
            begun = self.spent()
            while self.spent() < begun + part:
                self.run(temperature)
            if self.cost <= cost:
                break
            temperature /= 1.5
        self.resume(start)
        return max(temperature, cold)

    def cool(self, hot: float, cold: float, until: float) -> None:
        """Lower the temperature until a share of the work is done, and go downhill at the end."""
        begun = self.spent()
        while self.least > self.floor and (now := self.spent()) < until:
            progress = (now - begun) / (until - begun) / COOLING_SHARE
            self.run(hot * (cold / hot) ** progress if progress < 1 else 0.0)

    def run(self, temperature: float) -> None:
        """Try moves at one temperature and keep the mapping if it is the best so far."""
        change = anneal(
            self.machine, self.guest, self.state, self.random, temperature, self.chunk, WANDER
        )
        self.tried += self.chunk
        self.cost += int(change)
        if self.cost < self.least:
            self.least, self.best = self.cost, self.state.router.copy()
            if self.watch is not None:
                self.watch()
