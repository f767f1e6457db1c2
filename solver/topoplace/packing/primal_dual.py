"""The primal-dual loop of the first level, where linear programs are slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
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
_NEAR = 0.03  # gap below which neighbourhoods of the incumbent are searched
_SHORTEST, _LONGEST = 0.125, 3.0  # turns of either side, in bursts
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
    bound. The next turn of either side is twice as long as its last if that moved its figure, else
    half as long. When nothing finds a better placement any more, or the first dive found none, the
    second thread anneals again, in turn from the first placement and from the incumbent.
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
        turn, for_bound, for_placement = 0, 0.5, 1.0
        while not incumbent.closes(root) and (now := budget.now()) < end:
            if in_vain >= _IN_VAIN and _gap(state, root) > _NEAR:
                chains.turn(min(end, now + _CHAIN_SHARE * limit))
            state.say("branches", 0, trees.bound)
            fell = trees.run(min(end, now + for_bound * burst))
            for_bound = _next_turn(for_bound, fell)
            if incumbent.closes(root):
                break
            state.say("placements", 0, root.bound)
            known, until = incumbent.objective(0), min(end, budget.now() + for_placement * burst)
            if turn % 2 == 0 and _gap(state, root) <= _NEAR:
                neighbourhoods.run(until)
            elif turn % 4 == 1:
                from_leaf.run(until, trees.highest(), alone=not chains.busy)
            else:
                from_root.run(until, alone=not chains.busy)
            rose = incumbent.objective(0) > known
            for_placement = _next_turn(for_placement, rose)
            in_vain = 0 if rose else in_vain + 1
            turn += 1
        chains.end()


def _gap(state: State, root: Root) -> float:
    bound, reached = root.bound or 0, state.incumbent.objective(0)
    return (bound - reached) / max(1, reached)


def _next_turn(length: float, moved: bool) -> float:
    """Return how long a side's next turn is, by whether the last moved its figure."""
    return min(_LONGEST, length * 2.0) if moved else max(_SHORTEST, length * 0.5)


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
