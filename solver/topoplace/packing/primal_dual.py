"""The primal-dual loop of the first level, where linear programs are slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event
from typing import Any

from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.primal.dive import Diver
from topoplace.packing.primal.lns import NeighbourhoodSearch
from topoplace.packing.problem import Residual, Subproblem
from topoplace.packing.state import State
from topoplace.packing.tree.bounds import BoundSearch
from topoplace.packing.tree.nodes import Root

_LONGEST_BURST, _BURST_SHARE = 15.0, 0.1  # seconds, and of the time limit
_CHAIN_SHARE = 0.3  # of the time limit, for one annealing run
_ROOT_SHARE = 0.1  # of the time limit, for the bound without branches
_DIVE_SHARE, _FIRST_SHARE = 0.2, 0.3  # of the time limit at most, for the first dive and its end
_NEAR = 0.03  # gap below which the bound is worked on more than the placement
_NEAR_SHARE, _FAR_SHARE = 0.8, 0.5  # in bursts, for branches, if they lowered the bound last time
_LEAST_SHARE = 0.15  # if they did not
_CLOSE_BURST = 0.5  # of the usual length, of what looks for placements in between then
_ASIDE, _LONG_ASIDE = 0.25, 1.0  # of the time of branches at most, if they lowered the bound; else
_MOST_PATIENCE = 3.0  # in bursts, for branches, once they ask for places
_IN_VAIN = 4  # turns without a better placement, before annealing is begun
_LOOK = 0.001  # seconds, of a thread that waits for another to do as much work
_HEATS = (0.002, 0.004, 0.008)  # of the incumbent's objective

Around = Callable[[Residual, float, Sequence[Any] | None], object]
"""Searches what is left around some jobs, for so many seconds, perhaps from a placement on."""


def primal_dual_loop(state: State, root: Root, bundle: Bundle, around: Around, end: float) -> None:
    """Lower the bound and raise the incumbent until they meet or time is up.

    First the bundle lowers the bound until no step promises anything, while a second thread
    anneals; then a dive looks for a placement. After that branches lower the bound, in turn with
    neighbourhoods of the incumbent, dives from the root, and dives from the leaf of the largest
    bound. While the gap is small and branches lower the bound, they get most of the time; once they
    ask for places first, more every time that lowers it, and less if no tree's bound falls. When
    nothing finds a better placement any more, or the first dive found none, and the gap is large,
    the second thread anneals again, in turn from the first placement and from the incumbent.
    """
    budget, incumbent = state.budget, state.incumbent
    if incumbent.closes(root) or budget.now() >= end:
        return
    limit = budget.length
    burst = min(_LONGEST_BURST, _BURST_SHARE * limit)
    with _Chains(state) as chains:
        chains.turn(min(end, budget.now() + _CHAIN_SHARE * limit))
        state.relaxation.begin_pool()
        until = min(end, budget.now() + _ROOT_SHARE * limit)
        root.bounded = bundle.run(root.bounded, incumbent.objective(0), until=until)
        root.step_size = bundle.step_size
        trees = BoundSearch(state, root)
        from_root, from_leaf = (
            Diver(state, root, lambda rest, seconds: around(rest, seconds, None)) for _ in range(2)
        )
        neighbourhoods = NeighbourhoodSearch(state, root, around)
        chains.end()
        state.say("dive", 0, root.bound)
        now, known = budget.now(), incumbent.objective(0)
        from_root.first(min(end, now + _DIVE_SHARE * limit), min(end, now + _FIRST_SHARE * limit))
        in_vain = 0 if incumbent.objective(0) > known else _IN_VAIN
        turn, pace = 0, _Pace()
        while not incumbent.closes(root) and (now := budget.now()) < end:
            close = _gap(state, root) <= _NEAR
            near = pace.helps and (close or trees.asks_places)
            if not near and in_vain >= _IN_VAIN:
                chains.turn(min(end, now + _CHAIN_SHARE * limit))
            before = trees.bound
            state.say("branches", 0, before)
            pace.helps = trees.run(min(end, now + burst * pace.share(trees.asks_places, near)))
            if incumbent.closes(root):
                break
            pace.fell = trees.bound < before
            spent, close = budget.now() - now, _gap(state, root) <= _NEAR
            now, known = budget.now(), incumbent.objective(0)
            aside = _CLOSE_BURST * burst if close else burst
            if close and pace.helps and (trees.asks_places or turn % 2):
                aside = min(aside, (_ASIDE if pace.fell else _LONG_ASIDE) * spent)
            until = min(end, now + aside)
            state.say("placements", 0, root.bound)
            if close and turn % 2 == 0:
                neighbourhoods.run(until)
            elif turn % 4 == 1:
                from_leaf.run(until, trees.highest(), alone=not chains.busy)
            else:
                from_root.run(until, alone=not chains.busy)
            in_vain = 0 if incumbent.objective(0) > known else in_vain + 1
            turn += 1
        chains.end()


def _gap(state: State, root: Root) -> float:
    bound, reached = root.bound or 0, state.incumbent.objective(0)
    return (bound - reached) / max(1, reached)


@dataclass
class _Pace:
    """How much of a burst branches get.

    Attributes
    ----------
    helps, fell
        Whether they still lowered bounds when they were run last, and the root's as well.
    """

    helps: bool = True
    fell: bool = True
    _patience: float = _NEAR_SHARE

    def share(self, asks_places: bool, near: bool) -> float:
        """Return the share of the next burst."""
        if asks_places:
            self._patience *= 0.5 if not self.helps else 2.0 if self.fell else 1.0
            self._patience = min(_MOST_PATIENCE, max(_LEAST_SHARE, self._patience))
            return self._patience
        if near:
            return _NEAR_SHARE
        return _FAR_SHARE if self.helps else _LEAST_SHARE


class _Chains:
    """A heuristic in a thread of its own, one run after the other; a run ends with the block."""

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
        if self._state.budget.counts_work:  # its end is when it is planned, whoever is faster
            return self._state.budget.now() < self._until
        return not self._running.done()

    def turn(self, until: float) -> None:
        """Start another run if none is under way."""
        if self.busy or self._heuristic is None:
            return
        self._take()
        state, heuristic = self._state, self._heuristic
        start = state.incumbent.best if self._num_runs % 2 else state.incumbent.first
        heat = _HEATS[self._num_runs % len(_HEATS)] * state.incumbent.objective(0)
        self._num_runs += 1
        self._until = until
        seed = state.seed + self._num_runs
        self._running = state.budget.aside(
            lambda: heuristic.run(start, state.budget, until, heat, seed, self._is_over)
        )

    def _is_over(self) -> bool:
        """Tell whether to end the run; where work counts, that is when both have done as much."""
        budget = self._state.budget
        while budget.counts_work and budget.now() >= budget.front:
            if self._stop.wait(_LOOK):
                return True
        return self._stop.is_set() and not budget.counts_work

    def end(self) -> None:
        """End the run that is under way, and take what it has."""
        self._stop.set()
        self._take()
        self._stop.clear()

    def _take(self) -> None:
        if self._running is not None:
            found, _ = self._running.result()
            self._running = None
            self._state.columns.add(found)
            self._state.incumbent.offer(Subproblem(), found)
