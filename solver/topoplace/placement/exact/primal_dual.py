"""The primal-dual loop of the first level, where linear programs are slow."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

from topoplace import clock
from topoplace.placement.exact.annealing import Annealer
from topoplace.placement.exact.bound_search import BoundSearch
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.context import SearchContext
from topoplace.placement.exact.dive import Diver
from topoplace.placement.exact.lns import NeighbourhoodSearch
from topoplace.placement.exact.relaxation import Subproblem
from topoplace.placement.exact.tree_nodes import new_pool
from topoplace.placement.torus.problem import Candidate

_LONGEST_BURST = 15.0  # seconds
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
_HEATS = (0.002, 0.004, 0.008)  # of the incumbent's objective


def primal_dual_loop(search: SearchContext, root: Node, deadline: float) -> None:
    """Lower the bound and raise the incumbent until they meet or time is up.

    First the bundle lowers the bound until no step promises anything, while a second thread
    anneals; then a dive looks for a placement. After that branches lower the bound, in turn with
    neighbourhoods of the incumbent, dives from the root, and dives from the leaf of the largest
    bound. While the gap is small and branches lower the bound, they get most of the time; once they
    ask for places first, more every time that lowers it, and less if no tree's bound falls. When
    nothing finds a better placement any more, or the first dive found none, and the gap is large,
    the second thread anneals again, in turn from the first placement and from the incumbent.
    """
    if search.closed(root) or clock.now() >= deadline:
        return
    limit = search.deadline - search.start
    burst = min(_LONGEST_BURST, 0.1 * limit)
    with _Chains(search) as chains:
        chains.turn(min(deadline, clock.now() + _CHAIN_SHARE * limit))
        new_pool(search.relaxation)
        root.bounded = search.bundle(root.sub).run(
            root.bounded,
            search.objective(0),
            deadline=min(deadline, clock.now() + _ROOT_SHARE * limit),
        )
        trees = BoundSearch(search, root)
        from_root, from_leaf = (Diver(search, root) for _ in range(2))
        neighbourhoods = NeighbourhoodSearch(search, root)
        chains.end()
        search.tell("dive", root.sub, root.bound)
        now, known = clock.now(), search.objective(0)
        from_root.first(
            min(deadline, now + _DIVE_SHARE * limit), min(deadline, now + _FIRST_SHARE * limit)
        )
        in_vain = 0 if search.objective(0) > known else _IN_VAIN
        turn, helps, fell, patience = 0, True, True, _NEAR_SHARE
        while not search.closed(root) and (now := clock.now()) < deadline:
            close = _gap(search, root) <= _NEAR
            near = helps and (close or trees.asks_places)
            if not near and in_vain >= _IN_VAIN:
                chains.turn(min(deadline, now + _CHAIN_SHARE * limit))
            share = _FAR_SHARE if helps else _LEAST_SHARE
            if near:
                share = _NEAR_SHARE
            if trees.asks_places:
                patience *= 0.5 if not helps else 2.0 if fell else 1.0
                share = patience = min(_MOST_PATIENCE, max(_LEAST_SHARE, patience))
            before = trees.bound
            search.tell("branches", root.sub, before)
            helps = trees.run(min(deadline, now + share * burst))
            if search.closed(root):
                break
            fell = trees.bound < before
            spent, close = clock.now() - now, _gap(search, root) <= _NEAR
            now, known = clock.now(), search.objective(0)
            aside = _CLOSE_BURST * burst if close else burst
            if close and helps and (trees.asks_places or turn % 2):
                aside = min(aside, (_ASIDE if fell else _LONG_ASIDE) * spent)
            until = min(deadline, now + aside)
            search.tell("placements", root.sub, root.bound)
            if close and turn % 2 == 0:
                neighbourhoods.run(until)
            elif turn % 4 == 1:
                from_leaf.run(until, trees.highest(), alone=not chains.busy)
            else:
                from_root.run(until, alone=not chains.busy)
            in_vain = 0 if search.objective(0) > known else in_vain + 1
            turn += 1
        chains.end()


def _gap(search: SearchContext, root: Node) -> float:
    bound = 0 if root.bound is None else root.bound
    return (bound - search.objective(0)) / max(1, search.objective(0))


class _Chains:
    """Annealing in a thread of its own, one run after the other; a run ends with the block."""

    def __init__(self, search: SearchContext) -> None:
        self._search = search
        self._annealer = Annealer(search.problem, search.deadline)
        self._pool, self._stop = ThreadPoolExecutor(1), Event()
        self._running: Future[list[Candidate]] | None = None
        self._num_runs = 0

    def __enter__(self) -> _Chains:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return self._running is not None and not self._running.done()

    def turn(self, until: float) -> None:
        """Start another run if none is under way."""
        if self.busy:
            return
        self._take()
        start = self._search.incumbent if self._num_runs % 2 else self._search.first_start
        heat = _HEATS[self._num_runs % len(_HEATS)] * self._search.objective(0)
        self._num_runs += 1
        seed = self._search.seed + self._num_runs
        self._running = self._pool.submit(self._annealer.run, start, until, heat, seed, self._stop)

    def end(self) -> None:
        """End the run that is under way, and take what it has."""
        self._stop.set()
        self._take()
        self._stop.clear()

    def _take(self) -> None:
        if self._running is not None:
            found = self._running.result()
            self._running = None
            self._search.master.add(found)
            self._search.offer(Subproblem(), found)
