"""The primal-dual loop of the first level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event
from typing import Any

from topoplace.memory import return_memory
from topoplace.packing import steering
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.primal.dive import Diver, NeighbourhoodSearch
from topoplace.packing.problem import Residual
from topoplace.packing.state import State
from topoplace.packing.tree.bounds import BoundSearch
from topoplace.packing.tree.nodes import Root

_IN_VAIN = 2  # turns without a better placement, before annealing is begun
_SLOWEST = 0.5  # of the pace at which bounds would meet the placement when time is up
_LOOK = 0.001  # seconds, of a thread that waits for another to do as much work
_HEAT = 0.002  # of the incumbent's objective

Around = Callable[[Residual, float, Sequence[Any] | None], list[Any]]
"""Searches the problem around some jobs, for a number of seconds, perhaps from a placement on.

Returns the whole placement.
"""


def primal_dual_loop(state: State, root: Root, bundle: Bundle, around: Around, end: float) -> None:
    """Lower the bound and raise the incumbent until they meet or time is up.

    First the bundle lowers the bound until no step promises anything, while a second thread
    anneals; then dives look for a placement, at a large gap for as long again. After that
    branches lower the bound, in turn with neighbourhoods of the incumbent, dives from the root, and
    dives from the leaf of the largest bound. While the gap is small and branches are on their way
    to close it, they get most of the time, more every time; else no more than placements, and less
    if no tree's bound falls. When nothing finds a better placement any more, or the first dives
    found none, and branches are not on their way, the second thread anneals again, from the
    incumbent.
    """
    budget, incumbent = state.budget, state.incumbent
    if incumbent.closes(root) or budget.now() >= end:
        return
    usual, long = steering.turn(budget), steering.LONG * budget.length
    with _Chains(state) as chains:
        chains.turn(min(end, budget.now() + long))
        state.relaxation.begin_pool()
        until = min(end, budget.now() + usual)
        root.bounded = bundle.run(root.bounded, incumbent.objective(0), until=until)
        root.step_size = bundle.step_size
        trees = BoundSearch(state, root)
        from_root, from_leaf = (
            Diver(state, root, lambda rest, seconds: around(rest, seconds, None)) for _ in range(2)
        )
        neighbourhoods = NeighbourhoodSearch(state, root, around)
        chains.end()
        state.say("dive", 0, root.bound)
        known = incumbent.objective(0)
        _first_dives(state, root, from_root, min(end, budget.now() + long))
        in_vain = 0 if incumbent.objective(0) > known else _IN_VAIN
        turn, pace = 0, _Pace()
        while not incumbent.closes(root) and (now := budget.now()) < end:
            near = trees.asks_places or _gap(state, root) <= steering.NEAR
            if in_vain >= _IN_VAIN and not (near and pace.closes):
                chains.turn(min(end, now + long))
            before = trees.bound
            state.say("branches", 0, before)
            pace.helps = trees.run(min(end, now + usual * pace.turns(near)))
            if incumbent.closes(root):
                break
            spent, close = budget.now() - now, _gap(state, root) <= steering.NEAR
            needed = (before - incumbent.objective(0)) * spent / (end - now)
            pace.closes = before - trees.bound >= _SLOWEST * needed
            known, aside = incumbent.objective(0), usual
            if close and pace.helps:
                aside = min(usual, (steering.ASIDE if pace.closes else 1.0) * spent)
            until = min(end, budget.now() + aside)
            state.say("placements", 0, root.bound)
            if turn % 2 == 0:
                neighbourhoods.run(until, alone=not chains.busy)
            elif turn % 4 == 1:
                from_leaf.run(until, trees.highest(), alone=not chains.busy)
            else:
                from_root.run(until, alone=not chains.busy)
            in_vain = 0 if incumbent.objective(0) > known else in_vain + 1
            turn += 1
            return_memory()
        chains.end()


def _first_dives(state: State, root: Root, diver: Diver, until: float) -> None:
    """Dive once, and at a large gap go on for as long as everything took so far.

    So branches that would close it at once do not wait for long.
    """
    budget = state.budget
    diver.first(until)
    until = min(until, 2 * budget.now() - budget.start)
    while budget.now() < until and _gap(state, root) > steering.NEAR:
        if state.incumbent.closes(root):
            break
        diver.run(until, once=True)


def _gap(state: State, root: Root) -> float:
    bound, reached = root.bound or 0, state.incumbent.objective(0)
    return (bound - reached) / max(1, reached)


@dataclass
class _Pace:
    """The number of turns of branches.

    Attributes
    ----------
    helps, closes
        Whether they still lowered bounds in their last run, and that of the root fast enough to
        close the gap.
    """

    helps: bool = True
    closes: bool = False
    _patience: float = 1.0

    def turns(self, near: bool) -> float:
        """Return how many turns they get next, at most half a one while the gap is large."""
        self._patience *= 0.5 if not self.helps else 2.0 if self.closes else 1.0
        least, most = steering.PATIENCE
        self._patience = min(most if near else 0.5, max(least, self._patience))
        return self._patience


class _Chains:
    """A heuristic in a thread of its own, run after run; a run ends with the block."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._heuristic = state.problem.heuristic(state.budget)
        self._stop = Event()
        self._running: Future[tuple[list[Any], float]] | None = None
        self._until = 0.0
        self._num_runs = 0

    def __enter__(self) -> _Chains:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._running is not None:
            self._running.result()

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        if self._running is None:
            return False
        if self._state.budget.counts_work:  # it ends when planned, no matter which thread is faster
            return self._state.budget.now() < self._until
        return not self._running.done()

    def turn(self, until: float) -> None:
        """Start another run if none is under way."""
        if self.busy or self._heuristic is None:
            return
        self._take()
        state, heuristic = self._state, self._heuristic
        start, heat = state.incumbent.best, _HEAT * state.incumbent.objective(0)
        self._num_runs += 1
        self._until = until
        seed = state.seed + self._num_runs
        self._running = state.budget.aside(
            lambda: heuristic.run(start, state.budget, until, heat, seed, self._is_over)
        )

    def _is_over(self) -> bool:
        """Return whether to end the run; if work counts, when both threads have done the same."""
        budget = self._state.budget
        while budget.counts_work and budget.now() >= budget.front:
            # a waiting thread does not see at once how far the other has come
            if self._stop.wait(_LOOK) and budget.now() >= budget.front:
                return True
        return self._stop.is_set() and not budget.counts_work

    def end(self) -> None:
        """End the run that is under way, and take its result."""
        self._stop.set()
        self._take()
        self._stop.clear()

    def _take(self) -> None:
        if self._running is not None:
            found, _ = self._running.result()
            self._running = None
            self._state.take(found)
