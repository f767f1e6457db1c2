"""Bound search: what lowers the first level's bound where linear programs are slow.

Jobs of different node classes compete for links alone, and for routers that a prism covers without
using them. So the requests of each class are bounded by themselves as well, and the sum is a bound.
Where little is lost by that, two small trees do what takes a large one a branch in one for every
branch in the other (docs/proofs.md, "Parts").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from topoplace import clock
from topoplace.placement.exact.branch_and_bound import BranchAndBound
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.context import SearchContext
from topoplace.placement.exact.dominance import groups_of_alike, resized, with_fewest_nodes
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import DualPoint, Pricer, Relaxation, Subproblem
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.exact.tree_nodes import Leaf, TreeContext, new_pool
from topoplace.placement.torus.oracle.listing import ListPricer
from topoplace.placement.torus.oracle.pricing import ScanPricer
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Part, Parts, SharedLeaves
from topoplace.result.certificate import Certificate

_PLACES_NEAR = 0.06  # gap above which places are not worth asking for before starts
_STARTS_ALONE = 1.5  # seconds for the first tree, before the second is begun
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
        self._starts = BranchAndBound(TreeContext(relaxation, master, pool, lower), root.point)
        self._places: BranchAndBound | None = None
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
            may_ask = ask_places and self._starts.bound <= (1 + _PLACES_NEAR) * self.lower()
            end = min(until, now + max(0.0, _STARTS_ALONE - self._spent)) if may_ask else until
            self._starts.run(end)
            self._spent += clock.now() - now
            ended = clock.now() < end  # for no more work lowers its bound
            if (
                not may_ask
                or self.bound <= self.lower()
                or (self._spent < _STARTS_ALONE and not ended)
            ):
                return
            self.ask_places()
        assert self._places is not None
        now = clock.now()
        self._starts.run(now + _STARTS_SHARE * (until - now))
        self._places.run(until)

    def ask_places(self) -> BranchAndBound:
        """Begin with the second tree; return it."""
        self._places = self._start_with_places()
        return self._places

    def _better(self) -> BranchAndBound:
        trees = [self._starts] if self._places is None else [self._places, self._starts]
        return min(trees, key=lambda tree: tree.bound)

    def _start_with_places(self) -> BranchAndBound:
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
        context = TreeContext(relaxation, master, pool, self.lower, groups)
        return BranchAndBound(context, self._root.point, self._starts.unsettled())


def relaxation_like(whole: Relaxation, problem: PlacementProblem) -> Relaxation:
    """Return the relaxation of a problem whose queue has other numbers at the same places."""
    rows = PackingRows(problem)
    small = isinstance(whole.pricer, ListPricer)
    deadline = whole.pricer.deadline
    pricer: Pricer
    if small:
        pricer = ListPricer(problem, rows, deadline)
    else:
        pricer = ScanPricer(problem, threads=1, deadline=deadline)
    return Relaxation(problem, rows, pricer)


_ROOT_SHARE = 0.02  # of the time limit, for the bound of a part without branches
_SLICE = 2.0  # seconds for a part, until it is seen how it does


@dataclass
class _Part:
    """A part of the queue.

    Attributes
    ----------
    spent
        Seconds of work.
    still
        Runs in a row that did not lower its bound.
    """

    requests: list[int]
    trees: Trees
    spent: float = 0.0
    still: int = 0

    @property
    def closed(self) -> bool:
        """Whether its bound is what the incumbent has of it."""
        return self.trees.bound <= self.trees.lower()

    def run(self, until: float) -> bool:
        """Work on its trees; return whether time was up, and not the work that lowers its bound."""
        now, before = clock.now(), self.trees.bound
        self.trees.run(until)
        end = clock.now()
        self.spent += end - now
        self.still = 0 if self.trees.bound < before else self.still + 1
        return end >= until


class ClassDecomposition:
    """Trees of each part of the queue, worked on in turn.

    Two at once, a thread each, as long as neither asks for places, which takes two threads.
    """

    def __init__(self, search: SearchContext, root: Bounded) -> None:
        self._search = search
        self._threads = ThreadPoolExecutor(2)
        classes: dict[int, list[int]] = {}
        for q, request in enumerate(search.problem.requests):
            classes.setdefault(request.class_idx, []).append(q)
        parts = self._threads.map(lambda requests: self._begin(requests, root), classes.values())
        self._parts = list(parts)

    @property
    def bound(self) -> int:
        """What the parts' trees certify together."""
        return sum(part.trees.bound for part in self._parts)

    def certificate(self) -> Parts:
        """Return the certificate of the bound."""
        requests = self._search.problem.requests
        return Parts(
            parts=[
                Part(
                    requests=[requests[q].id for q in part.requests],
                    certificate=part.trees.certificate(),
                )
                for part in self._parts
            ]
        )

    def bounds(self) -> tuple[int, ...]:
        """Return what the trees of each part certify."""
        return tuple(part.trees.bound for part in self._parts)

    @property
    def asks_places(self) -> bool:
        """Whether no part is left that asks for starts alone."""
        return all(part.closed or part.trees.asks_places for part in self._parts)

    def run(self, until: float) -> None:
        """Work on the parts in turn, least on those whose bound stands still."""
        left = list(self._parts)
        while left := [part for part in left if not part.closed]:
            now = clock.now()
            if now >= until or self.bound <= self._search.objective(0):
                return
            left.sort(key=lambda part: part.spent * (1 + part.still))
            chosen = left[:2]
            if any(part.trees.asks_places for part in chosen):
                chosen = left[:1]
            end = min(until, now + _SLICE)
            time_is_up = list(self._threads.map(_Part.run, chosen, itertools.repeat(end)))
            ended = [part for part, is_up in zip(chosen, time_is_up, strict=True) if not is_up]
            left = [part for part in left if part not in ended]

    def _begin(self, requests: list[int], root: Bounded) -> _Part:
        search, mine = self._search, frozenset(requests)

        def lower() -> int:
            started = (c.request_idx for c in search.incumbent)
            return sum(search.problem.requests[q].value for q in started if q in mine)

        relaxation = relaxation_like(search.relaxation, _with_only(search.problem, mine))
        master = Master(relaxation.rows, search.deadline)
        master.add(c.candidate for c in search.master.columns if c.candidate.request_idx in mine)
        master.set_amounts((a, c) for a, c in search.master.amounts() if c.request_idx in mine)
        new_pool(relaxation)
        prices = root.point.row_prices.copy()
        for k, family in enumerate(relaxation.rows.families):
            if family is not None and family not in mine:
                prices[relaxation.rows.links_of(k)] = 0.0
        sub, point = Subproblem(), DualPoint(prices)
        bounded = Bundle(relaxation, master, sub).run(
            Bounded(relaxation.evaluate(sub, point, 4), point),
            lower(),
            deadline=clock.now() + _ROOT_SHARE * (search.deadline - search.start),
        )
        return _Part(requests, Trees(relaxation, master, bounded, lower))


def _with_only(problem: PlacementProblem, among: frozenset[int]) -> PlacementProblem:
    """Return the problem in which no other request has a prism."""
    too_many = problem.torus.num_nodes + 1
    queue = tuple(
        request if q in among else resized(request, too_many)
        for q, request in enumerate(problem.requests)
    )
    return PlacementProblem(replace(problem.state, queue=queue), problem.interference)


_WHOLE_ALONE = 1.5  # seconds for the whole queue, before it is bounded in parts
_PARTS_SHARE = 0.9  # of the time, for parts, as long as their bound falls or is the lower one
_BEHIND_SHARE = 0.5  # else


class BoundSearch:
    """Trees of the whole queue, and if it asks for several classes, of each by itself.

    The root's bound is the lower of the two.
    """

    def __init__(self, search: SearchContext, root: Node) -> None:
        self._search, self._root = search, root.bounded
        self._whole = Trees(
            search.relaxation, search.master, root.bounded, lambda: search.objective(0)
        )
        self._parts: ClassDecomposition | None = None
        self._several = len({request.class_idx for request in search.problem.requests}) > 1
        self._spent = 0.0  # seconds, for the whole queue before parts are begun
        self._falls = True  # what the parts certify, when they were worked on last
        root.below = self

    @property
    def bound(self) -> int:
        """What is certified."""
        return self._better().bound

    def certificate(self) -> Certificate:
        """Return the certificate of the bound."""
        return self._better().certificate()

    def highest(self) -> Leaf | None:
        """Return the leaf of the largest bound of all starts if it has prices of its own."""
        return self._whole.highest()

    @property
    def asks_places(self) -> bool:
        """Whether trees that ask for places are under way."""
        return self._parts is not None or self._whole.asks_places

    def run(self, until: float) -> bool:
        """Work on the trees; return whether bounds still fell in the second half of the time.

        What counts are the trees of those that are ahead, the whole queue's or the parts'. Those
        of parts that are begun in that time are given more.
        """
        now, begun = clock.now(), self._parts is not None
        self._run(now + 0.5 * (until - now))
        better = self._better()
        before = better.bounds()
        self._run(until)
        fell = self._better() is not better or better.bounds() != before
        return fell or begun != (self._parts is not None)

    def _run(self, until: float) -> None:
        if self._several and self._parts is None:
            now = clock.now()
            alone = min(until, now + max(0.0, _WHOLE_ALONE - self._spent))
            self._whole.run(alone, ask_places=False)
            self._spent += clock.now() - now
            ended = clock.now() < alone
            if self._closed() or (self._spent < _WHOLE_ALONE and not ended):
                return
            self._parts = ClassDecomposition(self._search, self._root)
        if self._parts is not None:
            now, before = clock.now(), self._parts.bound
            ahead = before < self._whole.bound
            share = _PARTS_SHARE if self._falls or ahead else _BEHIND_SHARE
            self._parts.run(now + share * (until - now))
            self._falls = self._parts.bound < before
        if not self._closed():
            done = self._parts is None or (self._parts.asks_places and not self._falls)
            self._whole.run(until, ask_places=done)

    def _closed(self) -> bool:
        return self.bound <= self._search.objective(0)

    def _better(self) -> Trees | ClassDecomposition:
        if self._parts is not None and self._parts.bound < self._whole.bound:
            return self._parts
        return self._whole
