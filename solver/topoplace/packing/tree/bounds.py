"""The bounds of the first level: trees, and sums over parts.

Requests of different classes compete for little: only for links, and for routers that a prism
covers without using them. So the requests of each class are also bounded by themselves, and the sum
is a bound. If little is lost by that, two small trees replace a large one, which needs the branches
of one for every branch of the other (docs/proofs/placement.md, "Parts").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from topoplace.packing import steering
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.cut_pool import CutPool
from topoplace.packing.dual.generation import Bounded
from topoplace.packing.dual.relaxation import Relaxation
from topoplace.packing.problem import Subproblem
from topoplace.packing.state import State
from topoplace.packing.tree.branch_and_bound import BranchAndBound
from topoplace.packing.tree.nodes import Node, Root, certificate_of_better
from topoplace.result.certificate import Certificate, Leaf, Part, Parts, WholeTree, size_of


class Trees:
    """A tree that asks for starts first, and soon one that asks for places first.

    The first lowers the bound at once, even if only a little; the second later, but it can close a
    gap that the first cannot.

    Parameters
    ----------
    relaxation, columns
        Those of the problem; the relaxation's pool has the points that led to the root.
    root
        Prices to begin with.
    lower
        Returns the goal of the bound.
    room
        Size limit of either tree's certificate, in bytes.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        columns: Columns,
        root: Bounded,
        lower: Callable[[], int],
        room: int,
    ) -> None:
        pool = relaxation.pool
        assert isinstance(pool, CutPool), "the pool takes in the bundle's points before"
        self._relaxation, self._columns, self._pool, self._root = relaxation, columns, pool, root
        self.lower, self.room = lower, room
        self._starts = BranchAndBound(relaxation, pool, columns, root.point, lower, room=room)
        self._places: BranchAndBound | None = None
        self._spent = 0.0  # seconds, for the first tree before the second is under way

    @property
    def bound(self) -> int:
        """The bound that the better tree certifies."""
        return self._better().bound

    def certificate(self, room: int) -> WholeTree:
        """Return the better tree as a certificate of its bound."""
        found = certificate_of_better(self._better, room)
        assert not isinstance(found, Parts)
        return found

    def highest(self) -> Node | None:
        """Return the leaf of the largest bound of the first tree if it has prices of its own."""
        return self._starts.highest()

    @property
    def asks_places(self) -> bool:
        """Whether the second tree is under way."""
        return self._places is not None

    @property
    def size(self) -> int:
        """Bytes of the certificate, as written last."""
        return self._better().size

    def bounds(self) -> tuple[int, ...]:
        """Return the bound that each tree certifies."""
        trees = (self._starts, self._places)
        return tuple(tree.bound for tree in trees if tree is not None)

    def run(self, until: float, *, ask_places: bool = True) -> None:
        """Work on the first tree, and once it had its time, mostly on the second.

        Parameters
        ----------
        ask_places
            Whether the second tree may be begun.
        """
        budget = self._relaxation.budget
        self._starts.room = self.room
        if self._places is None:
            now = budget.now()
            may_ask = ask_places and self._starts.bound <= (1 + steering.NEAR) * self.lower()
            end = min(until, now + max(0.0, steering.SLICE - self._spent)) if may_ask else until
            self._starts.run(end)
            self._spent += budget.now() - now
            ended = budget.now() < end  # for no more work lowers its bound
            if (
                not may_ask
                or self.bound <= self.lower()
                or (self._spent < steering.SLICE and not ended)
            ):
                return
            self._places = self.ask_places()
        now = budget.now()
        self._places.room = self.room
        self._starts.run(now + steering.BEHIND * (until - now))
        self._places.run(until)

    def ask_places(self) -> BranchAndBound:
        """Return the second tree, in which alike requests are interchangeable."""
        whole, budget = self._relaxation.problem, self._relaxation.budget
        least = steering.LARGE * self._root.value.bound
        large = [q for q in sorted(self._pool.startable) if whole.values[q] >= least]
        groups = tuple(whole.alike(large))
        relaxation = Relaxation(whole.unified(groups), budget)
        columns = Columns(relaxation.problem)
        columns.set_amounts(self._columns.amounts())
        pool = relaxation.begin_pool()
        for point in self._starts.points():
            value = relaxation.evaluate(Subproblem(), point, 4)
            found = itertools.chain.from_iterable(value.priced.columns)
            columns.add(relaxation.problem.merged(candidate for _, candidate in found))
        unsettled = self._starts.unsettled()
        return BranchAndBound(
            relaxation,
            pool,
            columns,
            self._root.point,
            self.lower,
            groups,
            unsettled,
            room=self.room,
        )

    def _better(self) -> BranchAndBound:
        trees = [self._starts] if self._places is None else [self._places, self._starts]
        return min(trees, key=lambda tree: tree.bound)


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
        """Whether its bound is the value of its requests in the incumbent."""
        return self.trees.bound <= self.trees.lower()


class ClassDecomposition:
    """Trees of each class of the queue, worked on in turn.

    Two at once, a thread each, as long as neither asks for places, which takes two threads.
    """

    def __init__(self, state: State, root: Bounded, room: int) -> None:
        self._state, self._room = state, room
        classes: dict[object, list[int]] = {}
        for q, own in enumerate(state.problem.classes):
            classes.setdefault(own, []).append(q)
        every = list(classes.values())
        self._parts: list[_Part] = []
        for k in range(0, len(every), 2):
            pair = every[k : k + 2]
            self._parts += state.budget.at_once(lambda mine: self._begin(mine, root), pair)

    @property
    def bound(self) -> int:
        """The sum of the bounds that the parts' trees certify."""
        return sum(part.trees.bound for part in self._parts)

    def certificate(self, room: int) -> Parts:
        """Return the certificate of the bound."""
        names = self._state.problem.names
        parts: list[Part] = []
        left = room - self._size()
        for part in self._parts:
            requests = [names[q] for q in part.requests]
            left += part.trees.size - size_of(Part(requests=requests, certificate=Leaf(scale=1)))
            found = part.trees.certificate(left)
            left -= size_of(found)
            parts.append(Part(requests=requests, certificate=found))
        return Parts(parts=parts)

    def _size(self) -> int:
        """Return how many bytes the parts' certificates had when they were written last."""
        return sum(part.trees.size for part in self._parts)

    def bounds(self) -> tuple[int, ...]:
        """Return the bounds that the trees of each part certify."""
        return tuple(part.trees.bound for part in self._parts)

    @property
    def asks_places(self) -> bool:
        """Whether all parts ask for places, too."""
        return all(part.closed or part.trees.asks_places for part in self._parts)

    def run(self, until: float) -> None:
        """Work on the parts in turn, least on those whose bound does not fall."""
        budget = self._state.budget
        left = list(self._parts)
        while left := [part for part in left if not part.closed]:
            if budget.now() >= until or self.bound <= self._state.incumbent.objective(0):
                return
            left.sort(key=lambda part: part.spent * (1 + part.still))
            chosen = left[:2]
            if any(part.trees.asks_places for part in chosen):
                chosen = left[:1]
            end = min(until, budget.now() + steering.SLICE)
            more = max(0, self._room - self._size()) // len(chosen)
            time_is_up = budget.at_once(partial(self._work_on, end, more), chosen)
            ended = [part for part, is_up in zip(chosen, time_is_up, strict=True) if not is_up]
            left = [part for part in left if part not in ended]

    def _work_on(self, until: float, more: int, part: _Part) -> bool:
        """Work on a part; return whether time was up, and not the work that lowers its bound.

        Its certificate may grow by a given number of characters.
        """
        budget = self._state.budget
        now, before = budget.now(), part.trees.bound
        part.trees.room = part.trees.size + more
        part.trees.run(until)
        end = budget.now()
        part.spent += end - now
        part.still = 0 if part.trees.bound < before else part.still + 1
        return end >= until

    def _begin(self, requests: list[int], root: Bounded) -> _Part:
        state, mine = self._state, frozenset(requests)

        def lower() -> int:
            started = (c.request_idx for c in state.incumbent.best)
            return sum(int(state.problem.values[q]) for q in started if q in mine)

        problem = state.problem.only(mine)
        relaxation = Relaxation(problem, state.budget)
        columns = Columns(problem)
        known = state.columns
        columns.add(c for c in known.all if c.request_idx in mine)
        columns.set_amounts((a, c) for a, c in known.amounts() if c.request_idx in mine)
        relaxation.begin_pool()
        point = root.point.only(problem.families_of(mine))
        start = Bounded(relaxation.evaluate(Subproblem(), point, 4), point)
        until = state.budget.now() + steering.SLICE
        bounded = Bundle(relaxation, columns, Subproblem()).run(start, lower(), until=until)
        return _Part(requests, Trees(relaxation, columns, bounded, lower, self._room))


_PORTION = 0.25  # seconds of trees at once, until it is seen whether one closes the gap


class BoundSearch:
    """Trees of the whole queue, and if it has several classes, of each class alone.

    The root's bound is the lower of the two.
    """

    def __init__(self, state: State, root: Root) -> None:
        self._state, self._root, self._room = state, root.bounded, root.room
        relaxation, columns, incumbent = state.relaxation, state.columns, state.incumbent
        self._whole = Trees(
            relaxation, columns, root.bounded, lambda: incumbent.objective(0), root.room
        )
        self._parts: ClassDecomposition | None = None
        self._several = len(set(state.problem.classes)) > 1
        self._spent = 0.0  # seconds, for the whole queue, until it comes after the parts
        self._falls = True  # what the parts certify, when they were worked on last
        root.below = self

    @property
    def bound(self) -> int:
        """The certified bound."""
        return self._better().bound

    def certificate(self, room: int) -> Certificate:
        """Return the certificate of the bound."""
        return certificate_of_better(self._better, room)

    def highest(self) -> Node | None:
        """Return the leaf of the largest bound of all starts if it has prices of its own."""
        return self._whole.highest()

    @property
    def asks_places(self) -> bool:
        """Whether trees that ask for places are under way."""
        return self._parts is not None or self._whole.asks_places

    def run(self, until: float) -> bool:
        """Work on the trees; return whether bounds still fell in the second half of the time.

        The trees that count are those with the better bound, the whole queue's or the parts'. Trees
        of parts that began in that time get more.
        """
        now, begun = self._state.budget.now(), self._parts is not None
        self._run(now + 0.5 * (until - now))
        better = self._better()
        before = better.bounds()
        self._run(until)
        fell = self._better() is not better or better.bounds() != before
        return fell or begun != (self._parts is not None)

    def _run(self, until: float) -> None:
        budget = self._state.budget
        if self._several and self._spent < steering.SLICE and not self._begin(until):
            return
        if self._parts is not None:
            now, before = budget.now(), self._parts.bound
            ahead = before < self._whole.bound
            share = 1 - steering.BEHIND if self._falls or ahead else 0.5
            self._parts.run(now + share * (until - now))
            self._falls = self._parts.bound < before
        if not self._closed():
            done = self._parts is None or (self._parts.asks_places and not self._falls)
            self._whole.run(until, ask_places=done)

    def _begin(self, until: float) -> bool:
        """Give the trees of the whole queue their first time, soon beside those of the parts.

        In portions, until all is closed or one does no more. Returns whether all had that time.
        """
        budget = self._state.budget
        several = self._state.problem.most_at_once > 1  # else the machine is large
        while self._spent < steering.SLICE and not self._closed() and budget.now() < until:
            now = budget.now()
            end = min(until, now + (_PORTION if several else steering.SLICE - self._spent))
            works = [partial(self._whole.run, end, ask_places=False)]
            if self._parts is not None:
                works.append(partial(self._parts.run, end))
            budget.at_once(lambda work: work(), works)
            self._spent = steering.SLICE if budget.now() < end else self._spent + end - now
            if several and self._parts is None and not self._closed():
                self._parts = ClassDecomposition(self._state, self._root, self._room)
        if self._closed() or self._spent < steering.SLICE:
            return False
        if self._parts is None:
            self._parts = ClassDecomposition(self._state, self._root, self._room)
        return True

    def _closed(self) -> bool:
        return self.bound <= self._state.incumbent.objective(0)

    def _better(self) -> Trees | ClassDecomposition:
        if self._parts is not None and self._parts.bound < self._whole.bound:
            return self._parts
        return self._whole
