"""The two trees that bound the first level where linear programs are slow."""

from __future__ import annotations

from collections.abc import Callable

from topoplace import clock
from topoplace.placement.exact.alike import groups_of_alike, with_fewest_nodes
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.ground import Ground, new_pool
from topoplace.placement.exact.listing import ListPricer
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.pricing import ScanPricer
from topoplace.placement.exact.relaxation import Pricer, Relaxation, Subproblem
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.exact.start_leaves import Leaf
from topoplace.placement.exact.start_tree import StartTree
from topoplace.placement.problem import PlacementProblem
from topoplace.result import SharedLeaves

_NEAR = 0.06  # gap above which places are not worth asking for before starts
_ALONE = 1.5  # seconds for the first tree, before the second is begun
_STARTS_SHARE = 0.1  # of the time, for the first tree, once the second is under way
_LARGE = 0.1  # of the bound: what alike requests are worth at least


class Trees:
    """A tree that asks for starts first, and soon one that asks for places first.

    The first lowers the bound at once, however little; the second later, but it can close a gap
    that the first cannot.

    Parameters
    ----------
    relaxation, master
        Of the problem; the relaxation's pool has the points that led to the root.
    root
        Prices to begin with.
    lower
        Returns what the bound is lowered to.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        master: Master,
        root: Bounded,
        lower: Callable[[], int],
    ) -> None:
        pool = relaxation.pool
        assert pool is not None, "the pool takes in the bundle's points before"
        self._relaxation, self._master, self._pool, self._root = relaxation, master, pool, root
        self.lower = lower
        self._starts = StartTree(Ground(relaxation, master, pool, lower), root.point)
        self._places: StartTree | None = None
        self._spent = 0.0  # seconds, for the first tree before the second is under way

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

    def bounds(self) -> tuple[int, ...]:
        """Return what each tree certifies."""
        trees = (self._starts, self._places)
        return tuple(tree.bound for tree in trees if tree is not None)

    def run(self, until: float, *, ask_places: bool = True) -> None:
        """Work on the first tree, and once that had its time mostly on the second.

        Parameters
        ----------
        ask_places
            Whether the second tree may be begun.
        """
        if self._places is None:
            now = clock.now()
            may_ask = ask_places and self._starts.bound <= (1 + _NEAR) * self.lower()
            end = min(until, now + max(0.0, _ALONE - self._spent)) if may_ask else until
            self._starts.run(end)
            self._spent += clock.now() - now
            ended = clock.now() < end  # for no more work lowers its bound
            if not may_ask or self.bound <= self.lower() or (self._spent < _ALONE and not ended):
                return
            self.ask_places()
        assert self._places is not None
        now = clock.now()
        self._starts.run(now + _STARTS_SHARE * (until - now))
        self._places.run(until)

    def ask_places(self) -> StartTree:
        """Begin with the second tree; return it."""
        self._places = self._start_with_places()
        return self._places

    def _better(self) -> StartTree:
        trees = [self._starts] if self._places is None else [self._places, self._starts]
        return min(trees, key=lambda tree: tree.bound)

    def _start_with_places(self) -> StartTree:
        whole = self._relaxation.problem
        requests, startable = whole.requests, self._pool.startable
        least = _LARGE * self._root.value.bound
        large = [q for q in sorted(startable) if requests[q].value >= least]
        groups = tuple(groups_of_alike(whole, large))
        relaxation = relaxation_like(self._relaxation, with_fewest_nodes(whole, groups))
        master = Master(relaxation.rows, self._master.deadline)
        master.set_amounts(self._master.amounts())
        pool = new_pool(relaxation)
        for point in self._starts.points():
            master.add(
                candidate
                for columns in relaxation.evaluate(Subproblem(), point, 4).priced.columns
                for _, candidate in columns
            )
        ground = Ground(relaxation, master, pool, self.lower, groups)
        return StartTree(ground, self._root.point, self._starts.unsettled())


def relaxation_like(whole: Relaxation, problem: PlacementProblem) -> Relaxation:
    """Return the relaxation of a problem whose queue has other numbers at the same places."""
    rows = PackingRows(problem)
    small = isinstance(whole.pricer, ListPricer)
    pricer: Pricer = ListPricer(problem, rows) if small else ScanPricer(problem, threads=1)
    return Relaxation(problem, rows, pricer)
