"""Dives and neighbourhoods: fix the largest jobs one after the other where the bound loses least.

A dive begins at the root or at a leaf of the tree of starts.

Each step takes the largest request that the fractional solution starts, tries some of its
candidates, bounds the rest for each by a few steps of the bundle, whose points together say which
requests may start, and goes on with the best. The other nodes stay open. The next dive begins at
the best of them, where bounds are corrected by most of the average loss of dives down to their
depth. Once only small jobs are left, they are a placement problem of their own, around jobs that
already run.

A large neighbourhood search around the incumbent frees some jobs near each other and searches the
rest. All other jobs stay, so this is a small problem of its own; most neighbourhoods are proven
within tenths of a second to hold nothing better.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from topoplace.packing import steering
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.cut_pool import SEARCH_WORK, CutPool, KnapsackSearch
from topoplace.packing.dual.generation import Bounded, keep_least
from topoplace.packing.dual.relaxation import Relaxation
from topoplace.packing.problem import Kinds, Residual, Subproblem, capacities_left, fits
from topoplace.packing.state import State
from topoplace.packing.tree.nodes import Node, Root
from topoplace.result.certificate import DEEPEST

_MOST, _FEWEST = 10, 3  # candidates of the first request; of each further one three less, to these
_MOST_OPEN = 100  # nodes that dives left, kept for later: on 24^3 each takes up to 0.5 MB
_FOR_DEPTH = 0.8  # of what dives lost down to a depth, forgiven to what is open there
_SURE = 0.3  # a request is taken up if the fractional solution starts so much of it


@dataclass
class _Open:
    """Some jobs in their places, and bounds for the rest.

    Attributes
    ----------
    bounded, bound
        The best prices, and the bound by all points tried together, or by the prices if that is
        less.
    step_size
        The step size of the bundle (see `Bundle`).
    """

    sub: Subproblem
    bounded: Bounded
    bound: float
    amounts: list[tuple[float, Any]]
    step_size: float


@dataclass
class _Step:
    """A dive's step from a node, which may be interrupted.

    Attributes
    ----------
    relaxation
        Leaves out candidates that the fixed jobs block.
    left, children
        Candidates still to be tried, and the useful results of the others.
    spent
        Seconds for those tried.
    """

    node: _Open
    relaxation: Relaxation
    left: list[Any]
    children: list[_Open] = field(default_factory=list)
    num_tried: int = 0
    spent: float = 0.0


class Diver:
    """Dives below the root of the first level, again and again.

    Parameters
    ----------
    around
        Searches the problem around some jobs for a number of seconds; returns a whole placement.
    """

    def __init__(
        self, state: State, root: Root, around: Callable[[Residual, float], list[Any]]
    ) -> None:
        self._state, self._root, self._around = state, root, around
        pool = state.relaxation.pool
        assert isinstance(pool, CutPool), "the pool says who can start"
        self._pool = pool
        self._starts = KnapsackSearch(self._pool.values)
        self._top = _Open(root.sub, root.bounded, root.bounded.value.bound, [], 0.0)
        self._left_by: _Open | None = None  # where the dives began that left open nodes
        self._now: _Step | None = None
        self._alone = True
        self._columns = (state.columns, Columns(state.problem))  # of each of two tries at once
        self._rng = random.Random(state.seed)
        self._open: list[_Open] = []
        self._passed: defaultdict[int, list[float]] = defaultdict(list)  # bounds by depth, of dives

    def run(
        self, until: float, leaf: Node | None = None, *, once: bool = False, alone: bool = True
    ) -> None:
        """Dive until a time of the budget, or until the incumbent meets the bound.

        Parameters
        ----------
        leaf
            Where to begin when no dive is under way; None for the root.
        once
            Whether to return at the end of a dive.
        alone
            Whether nothing else runs: then two candidates are tried at once.
        """
        state, self._alone = self._state, alone
        amounts = state.columns.amounts()
        if leaf is not None and leaf.bounded is not None:
            if leaf.bounded is not self._top.bounded:
                known = leaf.amounts or amounts
                self._top = _Open(leaf.sub, leaf.bounded, leaf.bound, known, leaf.step_size)
        elif self._top.bounded is not self._root.bounded or not self._top.amounts:
            root, bounded = self._root, self._root.bounded
            self._top = _Open(root.sub, bounded, bounded.value.bound, amounts, root.step_size)
        while state.budget.now() < until and not state.incumbent.closes(self._root):
            if self._now is None:
                self._now = self._step(self._next())
            self._now = self._deeper(self._now, until)
            if once and self._now is None:
                break
        state.columns.set_amounts(amounts)  # the bundle of the root goes on from them

    def first(self, until: float) -> None:
        """Dive once; if that takes too long, settle the rest there."""
        self.run(until, once=True)
        now = self._now
        if now is not None and now.node.sub.fixed and not self._state.incumbent.closes(self._root):
            self._finish(now.node, self._state.budget.end)

    def _next(self) -> _Open:
        """Return where to begin: at a leaf without a dive yet, else at an open node."""
        if self._left_by is not self._top:
            self._open.clear()
            self._passed.clear()
            self._left_by = self._top
            return self._top
        lower = self._state.incumbent.objective(0)
        promising = [node for node in self._open if node.bound > lower]
        promising.sort(key=self._promise, reverse=True)  # of equal ones the first stays before
        if not promising:
            return self._top
        self._open = promising[1:_MOST_OPEN]
        return promising[0]

    def _promise(self, node: _Open) -> float:
        """Return its bound, less a share of the average bound that dives had at its depth."""
        passed = self._passed[len(node.sub.fixed)]
        return node.bound - _FOR_DEPTH * sum(passed) / len(passed)

    def _step(self, node: _Open) -> _Step:
        """Return the step that fixes one more job, not begun yet."""
        relaxation, tried = self._state.relaxation, self._to_try(node)
        self._passed[len(node.sub.fixed)].append(node.bound)
        self._forget_columns(node)
        if node.sub.fixed and tried:
            relaxation = relaxation.beside(node.sub.fixed)
        return _Step(node, relaxation, tried)

    def _deeper(self, step: _Step, until: float) -> _Step | None:
        """Take a step, or a part of it; return how to go on, None at the end of the dive."""
        state, children = self._state, step.children
        if not step.left and not children:
            self._finish(step.node, until)
            return None
        while step.left:
            began = state.budget.now()
            if began >= until:
                return step
            if step.num_tried >= _FEWEST and step.spent > self._longest(step.node):
                break
            at_once = state.problem.most_at_once if self._alone else 1
            tried, step.left = step.left[:at_once], step.left[at_once:]
            for child in self._both(step, tried):
                if child.bound > state.incumbent.objective(0):
                    children.append(child)
            step.num_tried += len(tried)
            step.spent += state.budget.now() - began
        children.sort(key=lambda child: -child.bound)
        self._open.extend(children[1:])
        return self._step(children[0]) if children else None

    def _longest(self, node: _Open) -> float:
        """Return the seconds after which a step from a node tries only candidates it needs."""
        return 0.5 * steering.turn(self._state.budget) / (1 + len(node.sub.fixed))

    def _forget_columns(self, node: _Open) -> None:
        """Keep the columns of the highest value here, if their number makes steps slow."""
        for columns in self._columns:
            before = len(columns)
            keep_least(self._state.relaxation, node.sub, columns, node.bounded, steering.COLUMNS)
            if len(columns) < before:
                columns.add(candidate for _, candidate in node.amounts)

    def _to_try(self, node: _Open) -> list[Any]:
        """Return candidates of the largest request that is not small and likely to start."""
        problem, values = self._state.problem, self._state.problem.values
        kinds = Kinds(problem, node.sub)
        least = steering.SMALL * self._root.bounded.value.bound
        started: dict[int, float] = {}
        for amount, candidate in node.amounts:
            q = candidate.request_idx
            if kinds.most[q] > 0 and values[q] >= least:
                started[q] = started.get(q, 0.0) + amount
        likely = [q for q, total in started.items() if total >= _SURE]
        if not likely:
            return []
        largest = max(likely, key=lambda q: (values[q], -q))
        one = kinds.one_of(largest)
        fixable = (
            (amount, replace(candidate, request_idx=one))
            for amount, candidate in node.amounts
            if candidate.request_idx == largest
        )
        mine = [(a, c) for a, c in fixable if fits(problem, [*node.sub.fixed, c])]
        # a random order, in which larger amounts tend to come earlier
        mine.sort(key=lambda item: -(self._rng.random() ** (1.0 / item[0])))
        most = max(_FEWEST, _MOST - _FEWEST * len(node.sub.fixed))
        return [candidate for _, candidate in mine[:most]]

    def _both(self, step: _Step, tried: Sequence[Any]) -> list[_Open]:
        """Fix a job, in a second thread another one instead, and bound the rest."""
        return self._state.budget.at_once(
            lambda place: self._child(step, tried[place], self._columns[place]), range(len(tried))
        )

    def _child(self, step: _Step, candidate: Any, columns: Columns) -> _Open:
        """Fix a job, and bound the rest."""
        state, node = self._state, step.node
        sub = replace(
            node.sub,
            forced=node.sub.forced - {candidate.request_idx},
            excluded=node.sub.excluded | {candidate.request_idx},
            fixed=(*node.sub.fixed, candidate),
        )
        pool = self._pool.beside(sub.fixed, sub.covers)
        relaxation = step.relaxation.beside([candidate], pool)
        left = capacities_left(state.problem, sub.fixed)
        point = node.bounded.point.only(left > 0)
        columns.set_amounts(node.amounts)
        start = Bounded(relaxation.evaluate(sub, point), point)
        bundle = Bundle(relaxation, columns, sub, node.step_size)
        lower = state.incumbent.objective(0)
        bounded = bundle.run(start, lower, until=state.budget.end, max_steps=steering.STEPS)
        certified = bounded.value.certified
        bound = -1 if certified is None else certified
        if bound > lower:
            state.budget.spend(SEARCH_WORK)
            worth = sum(int(state.problem.values[c.request_idx]) for c in sub.fixed)
            starts = self._starts.below(sub.forced, sub.excluded, pool, lower - worth, DEEPEST)
            bound = min(bound, worth + starts.bound)
        return _Open(sub, bounded, bound, columns.amounts(), bundle.step_size)

    def _finish(self, node: _Open, until: float) -> None:
        """Settle the rest by a search of its own, which is small by now."""
        budget = self._state.budget
        seconds = min(steering.SMALL_SEARCH, until - budget.now())
        if seconds > 0:
            rest = self._state.problem.around(node.sub.fixed, node.sub.excluded)
            self._state.take(self._around(rest, seconds))


_FEWEST_FREED, _MOST_FREED = 2, 6  # large jobs that are freed by choice
_BESIDE = 1  # how far smaller jobs are from them that are freed as well
_REPEATS = 50  # draws of known neighbourhoods in a row until there seem to be no others


class NeighbourhoodSearch:
    """Searches neighbourhoods of the incumbent, each once.

    Parameters
    ----------
    around
        Searches the problem around some jobs for a number of seconds, beginning with the jobs
        freed; returns a whole placement.
    """

    def __init__(
        self,
        state: State,
        root: Root,
        around: Callable[[Residual, float, Sequence[Any]], list[Any]],
    ) -> None:
        self._state, self._root, self._around = state, root, around
        self._rng = random.Random(state.seed)
        self._center: list[Any] = []
        self._known: set[frozenset[Any]] = set()

    def run(self, until: float, *, alone: bool = True) -> None:
        """Search until a time, until the incumbent meets the bound, or until all is known.

        Parameters
        ----------
        alone
            Whether nothing else runs: then two neighbourhoods are searched at once.
        """
        state = self._state
        while not state.incumbent.closes(self._root):
            seconds = min(steering.SMALL_SEARCH, until - state.budget.now())
            if seconds <= 0:
                return
            drawn = list(self._new(state.problem.most_at_once if alone else 1))
            if not drawn:
                return
            for found in state.budget.at_once(partial(self._search, seconds), drawn):
                state.take(found)

    def _search(self, seconds: float, freed: frozenset[Any]) -> list[Any]:
        rest = self._state.problem.around([c for c in self._center if c not in freed], frozenset())
        return self._around(rest, seconds, sorted(freed))

    def _new(self, most: int) -> Iterator[frozenset[Any]]:
        """Yield some neighbourhoods of the incumbent not searched yet."""
        if self._center != self._state.incumbent.best:
            self._center = self._state.incumbent.best
            self._known.clear()
        for _ in range(_REPEATS):
            freed = self._draw()
            if freed not in self._known and len(freed) not in {0, len(self._center)}:
                self._known.add(freed)
                yield freed
                most -= 1
            if not most:
                return

    def _draw(self) -> frozenset[Any]:
        """Return some large jobs of the incumbent near each other, and small ones next to them."""
        problem, rng = self._state.problem, self._rng
        least = steering.SMALL * self._state.incumbent.objective(0)
        large = [c for c in self._center if problem.values[c.request_idx] >= least]
        if not large:
            return frozenset()
        away = problem.near(large, rng.choice(large))
        order = sorted(range(len(large)), key=lambda i: (away[i], rng.random()))
        chosen = [large[i] for i in order[: rng.randint(_FEWEST_FREED, _MOST_FREED)]]
        small = [c for c in self._center if c not in large]
        beside = [problem.near(small, near) for near in chosen]
        found = (c for k, c in enumerate(small) if any(row[k] <= _BESIDE for row in beside))
        return frozenset([*chosen, *found])
