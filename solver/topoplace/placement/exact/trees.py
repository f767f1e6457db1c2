"""The two trees that bound the first level where linear programs are slow."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from topoplace.placement.exact.alike import groups_of_alike, with_fewest_nodes
from topoplace.placement.exact.listing import ListPricer
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.pricing import ScanPricer
from topoplace.placement.exact.relaxation import Pricer, Relaxation, Subproblem
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.exact.start_leaves import Leaf
from topoplace.placement.exact.start_tree import Ground, StartTree, new_pool
from topoplace.result import SharedLeaves

if TYPE_CHECKING:
    from topoplace.placement.exact.branching import Node
    from topoplace.placement.exact.search import ExactSearch

_NEAR = 0.02  # gap above which places are not worth asking for before starts
_PATIENCE = 2.0  # seconds of work that the first tree may go without lowering the bound
_STARTS_SHARE = 0.1  # of the time, for the first tree, once the second is under way
_LARGE = 0.1  # of the bound: what alike requests are worth at least


class Trees:
    """A tree that asks for starts first, and one that asks for places first once that stands still.

    The first lowers the bound at once, however little; the second does so only in the end, but
    can close a gap that the first cannot. The root's bound is the lower of the two.
    """

    def __init__(self, search: ExactSearch, root: Node) -> None:
        relaxation = search.relaxation
        pool = relaxation.pool
        assert pool is not None, "the pool takes in the bundle's points before"
        self._search, self._root = search, root.bounded
        ground = Ground(relaxation, search.master, pool, self._lower)
        self._starts = StartTree(ground, root.bounded.point)
        self._places: StartTree | None = None
        self._still = 0.0  # seconds of work on the first tree since its bound fell
        root.below = self

    @property
    def bound(self) -> int:
        """What the better tree certifies."""
        return self._better().bound

    def certificate(self) -> SharedLeaves:
        """Return the better tree as a certificate of its bound."""
        return self._better().certificate()

    def highest(self) -> Leaf | None:
        """Return the leaf of the largest bound of the first tree if it has prices of its own."""
        return self._starts.highest()

    @property
    def asks_places(self) -> bool:
        """Whether the second tree is under way."""
        return self._places is not None

    def run(self, until: float) -> bool:
        """Work on the first tree; mostly on the second once the first stood still near the end.

        Returns whether the bound, or that of a second tree under way by then, still fell in the
        second half of the time.
        """
        now = time.perf_counter()
        self._run(now + 0.5 * (until - now))
        second = self._places
        before = self.bound, second and second.bound
        self._run(until)
        return (self.bound, second and second.bound) != before

    def _run(self, until: float) -> None:
        while self._places is None and (now := time.perf_counter()) < until:
            before, end = self._starts.bound, min(until, now + _PATIENCE)
            self._starts.run(end)
            spent = time.perf_counter() - now
            self._still = 0.0 if self._starts.bound < before else self._still + spent
            ended = now + spent < end  # for no more work lowers its bound
            near = self._starts.bound <= (1 + _NEAR) * self._lower()
            if self._starts.bound <= self._lower() or (ended and not near):
                return
            if near and (ended or self._still >= _PATIENCE):
                self.ask_places()
        if self._places is not None:
            now = time.perf_counter()
            self._starts.run(now + _STARTS_SHARE * (until - now))
            self._places.run(until)

    def ask_places(self) -> StartTree:
        """Begin with the second tree; return it."""
        self._places = self._start_with_places()
        return self._places

    def _lower(self) -> int:
        return self._search.objective(0)

    def _better(self) -> StartTree:
        trees = [self._starts] if self._places is None else [self._places, self._starts]
        return min(trees, key=lambda tree: tree.bound)

    def _start_with_places(self) -> StartTree:
        search = self._search
        requests = search.problem.requests
        least = _LARGE * self._root.value.bound
        large = [q for q in range(len(requests)) if requests[q].value >= least]
        groups = tuple(groups_of_alike(search.problem, large))
        problem = with_fewest_nodes(search.problem, groups)
        rows = PackingRows(problem)
        small = isinstance(search.relaxation.pricer, ListPricer)
        pricer: Pricer = ListPricer(problem, rows) if small else ScanPricer(problem, threads=1)
        relaxation = Relaxation(problem, rows, pricer)
        master = Master(rows, search.deadline)
        master.set_amounts(search.master.amounts())
        pool = new_pool(relaxation)
        for point in self._starts.points():
            master.add(
                candidate
                for columns in relaxation.evaluate(Subproblem(), point, 4).priced.columns
                for _, candidate in columns
            )
        ground = Ground(relaxation, master, pool, self._lower, groups)
        return StartTree(ground, self._root.point, self._starts.unsettled())
