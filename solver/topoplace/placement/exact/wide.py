"""The search on the first level where linear programs are slow and the bound is not met."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING

from topoplace.placement.exact.anneal import Annealer
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.neighbourhood import drop_near, with_fixed_jobs
from topoplace.placement.exact.program import LpSolution
from topoplace.placement.exact.relaxation import DualValue, Subproblem
from topoplace.placement.exact.volume import volume_descent
from topoplace.placement.problem import Candidate, Options

if TYPE_CHECKING:
    from topoplace.placement.exact.search import ExactSearch

_LONGEST_BURST = 15.0  # seconds
_CHAIN_SHARE = 0.3  # of the time limit, for one annealing run
_HEATS = (0.002, 0.004, 0.008)  # of the incumbent's objective
_POLISHING_STEPS = 200


def search_widely(search: ExactSearch, root: Node, deadline: float, work: float) -> None:
    """Lower the bound and raise the incumbent until they meet or time is up.

    One thread anneals, in turn from the first placement and from the incumbent. The other
    generates columns, polishes the prices, and solves what columns and started jobs leave; it
    anneals as well as long as its linear programs are too coarse to say anything of the bound.
    """
    search.master.active.start_lazily()
    now = time.perf_counter()
    if search.closed(root) or root.bounded.converged or now >= deadline:
        return
    annealer = Annealer(search.problem)
    limit = search.deadline - search.start
    burst = min(_LONGEST_BURST, 0.1 * limit)
    with ThreadPoolExecutor(1) as pool, _Stop() as stop:
        chains = _Chains(search, annealer, pool, stop)
        attempt = 0
        while not search.closed(root) and not root.bounded.converged:
            now = time.perf_counter()
            if now >= deadline:
                break
            chains.turn(min(deadline, now + _CHAIN_SHARE * limit))
            until = min(deadline, now + burst)
            generated, polished = now + 0.35 * (until - now), now + 0.75 * (until - now)
            root.bounded = search.generate(root.sub, root.bounded, generated, per_round=8)
            lp = root.bounded.lp
            if lp is None or lp.objective >= root.bounded.value.bound:
                chains.take(annealer.run(search.incumbent, until, chains.heat(), chains.seed()))
                continue
            root.bounded = _polish(search, root.sub, root.bounded, lp, polished)
            if attempt % 2:
                left = max(0.05, until - time.perf_counter())
                search.among_columns(root, left, work, attempt)
            else:
                _search_neighbourhoods(search, root, until)
            attempt += 1
        stop.set()
        chains.finish()


class _Stop(Event):
    """An event that is set when its block ends, however it does."""

    def __enter__(self) -> _Stop:
        return self

    def __exit__(self, *_: object) -> None:
        self.set()


class _Chains:
    """Annealing in a thread of its own, one run after the other."""

    def __init__(
        self, search: ExactSearch, annealer: Annealer, pool: ThreadPoolExecutor, stop: Event
    ) -> None:
        self._search, self._annealer, self._pool, self._stop = search, annealer, pool, stop
        self._running: Future[list[Candidate]] | None = None
        self._num_runs = 0

    def heat(self) -> float:
        """Return the temperature to start the next run at."""
        return _HEATS[self._num_runs % len(_HEATS)] * self._search.objective(0)

    def seed(self) -> int:
        """Return the seed of the next run."""
        self._num_runs += 1
        return self._search.seed + self._num_runs

    def take(self, found: list[Candidate]) -> None:
        """Use the placement that a run found."""
        self._search.master.add(found)
        self._search.offer(Subproblem(), found)

    def turn(self, until: float) -> None:
        """Start another run if none is under way."""
        if self._running is not None:
            if not self._running.done():
                return
            self.take(self._running.result())
        start = self._search.incumbent if self._num_runs % 2 else self._search.first_start
        self._running = self._pool.submit(
            self._annealer.run, start, until, self.heat(), self.seed(), self._stop
        )

    def finish(self) -> None:
        """Wait for the run that is under way, and take what it has."""
        if self._running is not None:
            self.take(self._running.result())


def _polish(
    search: ExactSearch, sub: Subproblem, bounded: Bounded, lp: LpSolution, deadline: float
) -> Bounded:
    """Lower the bound by volume steps that aim at what the linear program shows to be near."""
    values: list[DualValue] = []
    run = volume_descent(
        search.relaxation,
        sub,
        bounded.point,
        max(search.objective(0), lp.objective),
        max_steps=_POLISHING_STEPS,
        deadline=deadline,
        seen=lambda value, _step: values.append(value),
        usage=lp.usage,
    )
    for value in values[-10:]:
        search.remember(value, sub, 1)
    return replace(bounded, value=run.value, point=run.point)


def _search_neighbourhoods(search: ExactSearch, root: Node, deadline: float) -> None:
    """Free a few jobs near each other and solve the problem that leaves, again and again."""
    num_dropped = 3
    while time.perf_counter() < deadline and not search.closed(root):
        kept = drop_near(search.problem, search.incumbent, num_dropped, search.rng)
        smaller, others = with_fixed_jobs(search.problem, kept)
        start = [
            Candidate(others.index(c.request_idx), c.prism)
            for c in search.incumbent
            if c not in kept
        ]
        limit = min(3.0, max(0.1, deadline - time.perf_counter()))
        began = time.perf_counter()
        found = type(search)(smaller, Options(limit, seed=search.seed)).improve(start)
        placed = [Candidate(others[c.request_idx], c.prism) for c in found]
        search.master.add(placed)
        search.offer(root.sub, [*kept, *placed])
        quick = time.perf_counter() - began < 1.0
        num_dropped = max(2, min(len(search.incumbent), num_dropped + (1 if quick else -1)))
