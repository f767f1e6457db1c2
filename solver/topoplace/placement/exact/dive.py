"""Dives: fix the largest jobs one after the other where the bound loses least.

A dive begins at the root or at a leaf of the tree of starts.

Each step takes the largest request that the fractional solution starts, tries some of its
prisms, bounds what is left for each by a few steps of the bundle, whose points say together who may
start (`starts`), and goes on with the best. What it leaves stays open; the next dive begins at the
best of that, where most of what dives lost down to a depth is forgiven to the bounds there. Once
only small jobs are left, they are a placement problem of their own, around jobs that run already.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from topoplace import clock
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.context import Residual, SearchContext
from topoplace.placement.exact.cut_pool import KnapsackSearch
from topoplace.placement.exact.generation import Bounded, least_reduced_costs, reduced_costs_at
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import DualPoint, Relaxation, Subproblem
from topoplace.placement.exact.tree_nodes import Leaf
from topoplace.placement.torus.problem import Candidate

_TRIED = (10, 7, 4, 3)  # prisms of a request, by the number of jobs fixed; then the last
_FEWEST, _STEP_SHARE = 3, 0.05  # beyond, tries of the first job end after that share of the limit
_STEPS = 8  # of the bundle, for each
_SMALL = 0.025  # jobs below this share of the bound are left to a search of their own
_LONGEST_FINISH = 5.0  # seconds for that search
_FINISH_SHARE = 0.3  # at most, of the time limit
_KNOWN_COLUMNS = 1000  # about, from one step of a dive to the next
_FOR_DEPTH = 0.8  # of what dives lost down to a depth, forgiven to what is open there
_DEEPEST = 60  # decisions on who starts, one below the other
_SURE = 0.3  # a request is taken up if the fractional solution starts so much of it


@dataclass
class _Open:
    """Some jobs in their places, and what bounds the rest.

    Attributes
    ----------
    bounded, bound
        The best prices, and what all points tried bound together, or the prices if that is less.
    step_size
        Of the bundle (see `Bundle`).
    """

    sub: Subproblem
    bounded: Bounded
    bound: float
    amounts: list[tuple[float, Candidate]]
    step_size: float


@dataclass
class _Step:
    """A dive's step from a node, which may be interrupted.

    Attributes
    ----------
    relaxation
        Leaves out what the fixed jobs block.
    left, children
        Prisms still to be tried, and what came of the others as far as it is of use.
    spent
        Seconds for those tried.
    """

    node: _Open
    relaxation: Relaxation
    left: list[Candidate]
    children: list[_Open] = field(default_factory=list)
    num_tried: int = 0
    spent: float = 0.0


class Diver:
    """Dives below the root of the first level, again and again."""

    def __init__(self, search: SearchContext, root: Node) -> None:
        self._search, self._root = search, root
        assert search.relaxation.pool is not None, "the pool says who can start"
        self._pool = search.relaxation.pool
        self._starts = KnapsackSearch(self._pool.values)
        self._top = _Open(root.sub, root.bounded, root.bounded.value.bound, [], 0.0)
        self._left_by: _Open | None = None  # where the dives began that left what is open
        self._now: _Step | None = None
        self._alone, self._thread = True, ThreadPoolExecutor(1)
        self._second_master = Master(search.rows)
        self._rng = random.Random(search.seed)
        self._open: list[_Open] = []
        self._passed: defaultdict[int, list[float]] = defaultdict(list)  # bounds by depth, of dives

    def run(
        self, deadline: float, leaf: Leaf | None = None, *, once: bool = False, alone: bool = True
    ) -> None:
        """Dive until the deadline, or until the incumbent meets the bound.

        Parameters
        ----------
        leaf
            Where to begin when no dive is under way; None for the root.
        once
            Whether to return at the end of a dive.
        alone
            Whether nothing else runs: then two prisms are tried at once.
        """
        search, self._alone = self._search, alone
        amounts = search.master.amounts()
        if leaf is not None and leaf.bounded is not None:
            if leaf.bounded is not self._top.bounded:
                known = leaf.amounts or amounts
                self._top = _Open(leaf.sub, leaf.bounded, leaf.bound, known, leaf.step_size)
        elif self._top.bounded is not self._root.bounded or not self._top.amounts:
            step_size = search.bundle(self._root.sub).step_size
            bounded = self._root.bounded
            self._top = _Open(self._root.sub, bounded, bounded.value.bound, amounts, step_size)
        while clock.now() < deadline and not search.closed(self._root):
            if self._now is None:
                self._now = self._step(self._next())
            self._now = self._deeper(self._now, deadline)
            if once and self._now is None:
                break
        search.master.set_amounts(amounts)  # the bundle of the root goes on from them

    def first(self, dive_until: float, deadline: float) -> None:
        """Dive once; if that takes too long, settle what is left there."""
        self.run(dive_until, once=True)
        now = self._now
        if now is not None and now.node.sub.fixed and not self._search.closed(self._root):
            self._finish(now.node, deadline)

    def _next(self) -> _Open:
        """Return where to begin: at a leaf not dived from yet, else at what is left open."""
        if self._left_by is not self._top:
            self._open.clear()
            self._passed.clear()
            self._left_by = self._top
            return self._top
        lower = self._search.objective(0)
        self._open = [node for node in self._open if node.bound > lower]
        if not self._open:
            return self._top
        best = max(range(len(self._open)), key=lambda i: self._promise(self._open[i]))
        return self._open.pop(best)

    def _promise(self, node: _Open) -> float:
        """Return its bound, less a share of the average bound that dives had at its depth."""
        passed = self._passed[len(node.sub.fixed)]
        return node.bound - _FOR_DEPTH * sum(passed) / len(passed)

    def _step(self, node: _Open) -> _Step:
        """Return the step that fixes one more job, not begun yet."""
        search, tried = self._search, self._to_try(node)
        self._passed[len(node.sub.fixed)].append(node.bound)
        self._forget_columns(node)
        fixed = node.sub.fixed
        relaxation = search.relaxation.beside(fixed) if fixed and tried else search.relaxation
        return _Step(node, relaxation, tried)

    def _deeper(self, step: _Step, deadline: float) -> _Step | None:
        """Take a step, or a part of it; return how to go on, None at the end of the dive."""
        search, children = self._search, step.children
        if not step.left and not children:
            self._finish(step.node, deadline)
            return None
        while step.left:
            began = clock.now()
            if began >= deadline:
                return step
            if step.num_tried >= _FEWEST and step.spent > self._longest(step.node):
                break
            at_once = 2 if self._alone else 1
            tried, step.left = step.left[:at_once], step.left[at_once:]
            for child in self._both(step, tried):
                if child.bound > search.objective(0):
                    children.append(child)
            step.num_tried += len(tried)
            step.spent += clock.now() - began
        children.sort(key=lambda child: -child.bound)
        self._open.extend(children[1:])
        return self._step(children[0]) if children else None

    def _longest(self, node: _Open) -> float:
        """Return after how many seconds a step from a node tries no more prisms than needed."""
        limit = self._search.deadline - self._search.start
        return _STEP_SHARE * limit / (1 + len(node.sub.fixed))

    def _forget_columns(self, node: _Open) -> None:
        """Keep the columns that are worth most here, if there are so many that steps are slow."""
        relaxation = self._search.relaxation
        for master in (self._search.master, self._second_master):
            if len(master.columns) > 1.5 * _KNOWN_COLUMNS:
                reduced_costs = reduced_costs_at(relaxation, node.sub, master.columns, node.bounded)
                master.keep(least_reduced_costs(reduced_costs, _KNOWN_COLUMNS))
                master.add(candidate for _, candidate in node.amounts)

    def _to_try(self, node: _Open) -> list[Candidate]:
        """Return prisms of the largest request that is not small and likely to start."""
        requests = self._search.problem.requests
        least = _SMALL * self._root.bounded.value.bound
        started: dict[int, float] = {}
        for amount, candidate in node.amounts:
            q = candidate.request_idx
            if q not in node.sub.excluded and requests[q].value >= least:
                started[q] = started.get(q, 0.0) + amount
        likely = [q for q, total in started.items() if total >= _SURE]
        if not likely:
            return []
        largest = max(likely, key=lambda q: (requests[q].value, -q))
        mine = [(a, c) for a, c in node.amounts if c.request_idx == largest]
        # a random order, but the larger the amount the earlier
        mine.sort(key=lambda item: -(self._rng.random() ** (1.0 / item[0])))
        most = _TRIED[min(len(node.sub.fixed), len(_TRIED) - 1)]
        return [candidate for _, candidate in mine[:most]]

    def _both(self, step: _Step, tried: Sequence[Candidate]) -> list[_Open]:
        """Fix a job, in a second thread another one instead, and bound what is left."""
        others = [
            self._thread.submit(self._child, step, candidate, self._second_master)
            for candidate in tried[1:]
        ]
        first = self._child(step, tried[0], self._search.master)
        return [first, *(other.result() for other in others)]

    def _child(self, step: _Step, candidate: Candidate, master: Master) -> _Open:
        """Fix a job, and bound what is left."""
        search, node = self._search, step.node
        sub = replace(
            node.sub,
            forced=node.sub.forced - {candidate.request_idx},
            excluded=node.sub.excluded | {candidate.request_idx},
            fixed=(*node.sub.fixed, candidate),
        )
        relaxation = step.relaxation.beside([candidate])
        blocked = relaxation.rows_of(sub.fixed)
        prices = node.bounded.point.row_prices.copy()
        prices[blocked] = 0.0
        point = DualPoint(prices)
        master.set_amounts(node.amounts)
        pool = relaxation.pool = self._pool.beside(sub.fixed, sub.limits)
        start = Bounded(relaxation.evaluate(sub, point), point)
        bundle = Bundle(relaxation, master, sub, node.step_size)
        lower = search.objective(0)
        bounded = bundle.run(start, lower, deadline=search.deadline, max_steps=_STEPS)
        certified = bounded.value.certified
        bound = -1 if certified is None else certified
        if bound > lower:
            worth = sum(search.problem.requests[c.request_idx].value for c in sub.fixed)
            starts = self._starts.below(sub.forced, sub.excluded, pool, lower - worth, _DEEPEST)
            bound = min(bound, worth + starts.bound)
        return _Open(sub, bounded, bound, master.amounts(), bundle.step_size)

    def _finish(self, node: _Open, deadline: float) -> None:
        """Settle what is left by a search of its own, which is small by now."""
        search = self._search
        left = deadline - clock.now()
        seconds = min(_LONGEST_FINISH, left, _FINISH_SHARE * (search.deadline - search.start))
        if seconds > 0:
            sub = node.sub
            rest = Residual.of(search.problem, sub.fixed, sub.excluded)
            search.around(rest, seconds)
