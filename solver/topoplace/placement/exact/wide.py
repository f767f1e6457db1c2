"""The search on the first level where linear programs are slow and the bound is not met."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

from topoplace.placement.exact.anneal import Annealer
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.dive import Diver
from topoplace.placement.exact.relaxation import Subproblem
from topoplace.placement.exact.start_tree import new_pool
from topoplace.placement.exact.trees import Trees
from topoplace.placement.problem import Candidate

if TYPE_CHECKING:
    from topoplace.placement.exact.search import ExactSearch

_LONGEST_BURST = 15.0  # seconds
_CHAIN_SHARE = 0.3  # of the time limit, for one annealing run
_ROOT_SHARE = 0.1  # of the time limit, for the bound without branches
_NEAR = 0.03  # gap below which the bound is worked on more than the placement
_NEAR_SHARE, _FAR_SHARE = 0.8, 0.5  # in bursts, for branches, if they lowered the bound last time
_LEAST_SHARE = 0.15  # if they did not
_CLOSE_BURST = 0.3  # of the usual length, of what is done for the placement in between then
_PLACES_SHARE = 3.0  # once they ask for places, which lowers the bound in the end only
_HEATS = (0.002, 0.004, 0.008)  # of the incumbent's objective


def search_widely(search: ExactSearch, root: Node, deadline: float, work: float) -> None:
    """Lower the bound and raise the incumbent until they meet or time is up.

    One thread anneals, in turn from the first placement and from the incumbent. The other lowers
    the bound, by the bundle until no step promises anything and then by branches; in between it
    dives from the root, dives from the tree's leaf of the largest bound, and runs CP-SAT over the
    columns. While the gap is small and branches lower the bound, they get most of that time, and no
    annealing is begun; more so once they ask for places first.
    """
    if search.closed(root) or time.perf_counter() >= deadline:
        return
    annealer = Annealer(search.problem)
    limit = search.deadline - search.start
    burst = min(_LONGEST_BURST, 0.1 * limit)
    with ThreadPoolExecutor(1) as pool, _Stop() as stop:
        chains = _Chains(search, annealer, pool, stop)
        chains.turn(min(deadline, time.perf_counter() + _CHAIN_SHARE * limit))
        new_pool(search.relaxation)
        root.bounded = search.bundle(root.sub).run(
            root.bounded,
            search.objective(0),
            deadline=min(deadline, time.perf_counter() + _ROOT_SHARE * limit),
        )
        trees = Trees(search, root)
        from_root, from_leaf = (Diver(search, root, annealer) for _ in range(2))
        turn, helps = 0, True
        while not search.closed(root) and (now := time.perf_counter()) < deadline:
            close = _gap(search, root) <= _NEAR
            near = trees.asks_places or (helps and close)
            if not near:
                chains.turn(min(deadline, now + _CHAIN_SHARE * limit))
            share = _FAR_SHARE if helps else _LEAST_SHARE
            if near:
                share = _PLACES_SHARE if trees.asks_places else _NEAR_SHARE
            before = root.bound
            trees.run(min(deadline, now + share * burst))
            helps = root.bound != before
            if search.closed(root):
                break
            close = _gap(search, root) <= _NEAR
            length = _CLOSE_BURST * burst if close and helps else burst
            until = min(deadline, time.perf_counter() + length)
            if turn % 4 == 1:
                from_leaf.run(until, trees.highest())
            elif turn % 4 == 3:
                search.among_columns(root, until - time.perf_counter(), work, turn)
            else:
                from_root.run(until)
            turn += 1
        stop.set()
        chains.finish()


def _gap(search: ExactSearch, root: Node) -> float:
    bound = 0 if root.bound is None else root.bound
    return (bound - search.objective(0)) / max(1, search.objective(0))


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

    def start(self) -> list[Candidate]:
        """Return the placement to start the next run from."""
        return self._search.incumbent if self._num_runs % 2 else self._search.first_start

    def turn(self, until: float) -> None:
        """Start another run if none is under way."""
        if self._running is not None:
            if not self._running.done():
                return
            self.take(self._running.result())
        self._running = self._pool.submit(
            self._annealer.run, self.start(), until, self.heat(), self.seed(), self._stop
        )

    def finish(self) -> None:
        """Wait for the run that is under way, and take what it has."""
        if self._running is not None:
            self.take(self._running.result())
