"""The exact method: bound, integer phase and branching, level by level."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.memory import return_memory
from topoplace.packing import steering
from topoplace.packing.budget import Budget
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.generation import (
    Bounded,
    generate_columns,
    least,
    lightest,
    reduced_costs_at,
)
from topoplace.packing.dual.later_pool import LaterPool
from topoplace.packing.dual.master import Master
from topoplace.packing.dual.relaxation import DualPoint, DualValue, Relaxation
from topoplace.packing.dual.sparse import SparsePrices
from topoplace.packing.primal.integer import WORK_SECONDS, best_among
from topoplace.packing.primal.program import Cancel
from topoplace.packing.primal_dual import primal_dual_loop
from topoplace.packing.problem import PackingProblem, Residual, Subproblem
from topoplace.packing.state import Incumbent, Say, State, silent
from topoplace.packing.tree.best_first import PriceTree, ProgramTree
from topoplace.packing.tree.later import LaterTree, lifted
from topoplace.packing.tree.nodes import Root
from topoplace.result.certificate import Certificate, size_of

_LEAST_START, _START_SHARE = 0.3, 0.5  # seconds, and of the time limit: for the heuristics
_FIRST_STEPS = 20  # of the bundle, before it is known how large linear programs are
_HEAVY_NONZEROS = 80_000  # of linear programs
_MOST_COLUMNS = 1200  # that an integer program bears
_MOST_ENTRIES = 1 << 22  # rows of these columns together: seconds to write where they overlap
_WORK = 8.0  # CP-SAT's deterministic time for it
_COMPLETE_WORK = 1.0  # for the starts of a leaf of a later level
_FIRST_WORK = 2.0  # and for the first level: what it leaves open is for the primal-dual loop


@dataclass(frozen=True)
class LevelBound:
    """The proven bound of a level, in maximising sense."""

    value: int
    certificate: Certificate


@dataclass(frozen=True)
class Found:
    """The result of a search: the best placement, its values, and the bounds of the levels so far.

    Values and bounds are in maximising sense; a bound is None where nothing is proven.

    Attributes
    ----------
    is_answer
        Whether the placement reaches the thresholds.
    reached
        What the levels solved so far have to reach, or do reach: later bounds hold under that.
    """

    placement: list[Any]
    values: list[int]
    bounds: tuple[LevelBound | None, ...]
    is_answer: bool = True
    reached: tuple[int | None, ...] = ()


class Search:
    """One run of the exact method, from a placement, or from those of the heuristics.

    Parameters
    ----------
    later_work
        Without a time limit: nominal seconds of work on the later levels together at most.
    start
        A placement to begin with; None for that of the heuristics.
    floors
        Thresholds of levels in place of their optimum, in maximising sense; None for none.
    to_beat
        By level a known objective: the search looks only for placements that exceed it.
    num_levels
        How many levels to solve; by default all.
    report
        Takes the state whenever it changes.
    say
        Takes messages on what the search is doing.
    """

    def __init__(
        self,
        problem: PackingProblem,
        budget: Budget,
        *,
        seed: int = 0,
        later_work: float = math.inf,
        start: Sequence[Any] | None = None,
        floors: Mapping[int, int | None] = MappingProxyType({}),
        to_beat: Mapping[int, int] = MappingProxyType({}),
        num_levels: int | None = None,
        report: Callable[[Found], None] = lambda found: None,
        say: Say = silent,
    ) -> None:
        problem.deadline = budget.deadline
        self.problem, self.budget, self.seed = problem, budget, seed
        self._later_work, self._end = later_work, budget.end
        self._floors, self._num_levels = floors, num_levels or len(problem.senses)
        bounds: list[LevelBound | None] = []
        self._bounds = bounds
        known = {k: v - 1 for k, v in floors.items() if v is not None} | dict(to_beat)

        def tell(incumbent: Incumbent) -> None:
            report(_found(incumbent, bounds))

        # nothing in a search refers back to it: as soon as it ends, its memory is free again
        self.incumbent = Incumbent(problem, start or [], floors, known, tell)
        self._tell = tell
        if start is None:
            limit = budget.limit - clock.now()
            until = clock.now() + max(_LEAST_START, _START_SHARE * limit)
            for placement in problem.starts(until):
                self.incumbent.offer_start(placement)
                if self._num_levels == 1 and self.incumbent.meets(0):
                    break
        relaxation, columns = Relaxation(problem, budget), Columns(problem)
        self.state = State(problem, budget, relaxation, columns, self.incumbent, seed, say)
        self._master = Master(columns, budget)
        self._bundle: Bundle | None = None
        self._last_point = DualPoint(SparsePrices.of(problem.start_prices.astype(float)))
        self._room = steering.CERTIFICATES
        self._nonzeros = -1  # of the first level's program; not known yet

    def run(self) -> Found:
        """Solve the levels one after the other, as long as they reach their thresholds."""
        reached: list[int | None] = []
        for level in range(self._num_levels):
            if level == 1 and self.budget.counts_work:
                self._end = min(self._end, self.budget.now() + self._later_work)
            # as far as it is proven, and no further
            stopped = (level and clock.is_stopped()) or self.incumbent.meets(level)
            proven = None if stopped else self._proven(_level(self.problem, level, reached))
            return_memory()
            self._bounds.append(proven)
            if level in self._floors and not self.incumbent.meets(level):
                break
            value = self.incumbent.totals(self.incumbent.best)[level]
            reached.append(self._floors.get(level, value))
            self._tell(self.incumbent)
        return _found(self.incumbent, self._bounds, reached)

    def _proven(self, sub: Subproblem) -> LevelBound | None:
        """Solve a level, and return its proven bound."""
        root = self.solve_level(sub)
        if root.bound is None:
            return None
        certificate = root.certificate(self.state.relaxation)
        reached = self.incumbent.totals(self.incumbent.best)[sub.level]
        assert root.bound >= reached, "a bound holds"
        self._room -= size_of(certificate)
        return LevelBound(root.bound, certificate)

    def around(
        self, rest: Residual, seconds: float, start: Sequence[Any] | None = None
    ) -> list[Any]:
        """Search the problem around fixed jobs as one of its own; return a whole placement.

        Nothing that is shared changes: two such searches may run at once.
        """
        return_memory()  # what dives freed: the search has tables of its own
        inner = Search(
            rest.problem,
            self.budget.within(seconds),
            seed=self.seed,
            start=start and rest.here(start),
            to_beat={0: self.incumbent.objective(0) - rest.worth},
        )
        inner.solve_level(_level(rest.problem, 0, ()))
        return rest.together(inner.incumbent.best)

    def solve_level(self, sub: Subproblem) -> Root:
        """Bound a level and look for its best placement."""
        state, level = self.state, sub.level
        state.columns.add(self.problem.merged(self.incumbent.best))
        state.say("prices", level, None)
        watch = partial(state.say, "prices", level)
        if self._grows_later(sub):
            state.relaxation.begin_later(level)
        bundle = Bundle(state.relaxation, state.columns, sub, watch=watch)
        room, end = int(self._share(level) * self._room), self._end_of(sub)
        root = Root(sub, self._first_bound(sub, bundle, self._half(end)), room)
        if self.budget.is_over():
            return root
        if self._grows_later(sub):
            self._by_starts(root, end)
        elif level or self.problem.is_small:
            self._by_linear_programs(root, bundle, end)
        else:
            if not self._is_heavy():
                self._among_columns(root, end)
            primal_dual_loop(state, root, bundle, self.around, end)
        self._last_point = root.bounded.point
        return root

    def _grows_later(self, sub: Subproblem) -> bool:
        """Return whether a level is a later one whose tree grows by points, not by programs."""
        return bool(sub.level) and not (self.problem.is_small or self.problem.has_program)

    def _with_same_starts(self, root: Root, end: float) -> tuple[Subproblem, Bounded]:
        """Bound the placements that start the same requests: those have no knapsack in them."""
        state, every = self.state, frozenset(range(len(self.problem.names)))
        started = frozenset(c.request_idx for c in self.incumbent.best)
        sub = replace(root.sub, forced=started, excluded=every - started)
        point, lower = root.bounded.point, self.incumbent.objective(sub.level)
        bounded = Bounded(state.relaxation.evaluate(sub, point, 4), point)
        until = self._half(end)
        own = lifted(state.relaxation, state.columns, sub, bounded, self._last_point, until)
        step_size = root.step_size if own is bounded else 0.0
        bounded, bundle = own, Bundle(state.relaxation, state.columns, sub, step_size)
        return sub, bundle.run(bounded, lower, until=self._half(end))

    def _by_starts(self, root: Root, end: float) -> None:
        """Close a later level of a large problem by a tree of starts."""
        state, level, pool = self.state, root.sub.level, self.state.relaxation.pool
        if self.incumbent.closes(root) or not isinstance(pool, LaterPool):
            return
        same = self._with_same_starts(root, end)
        state.say("branches", level, root.bound)

        def complete(sub: Subproblem, bounded: Bounded, cancel: Cancel) -> list[list[Any]]:
            found: list[list[Any]] = []
            for placement in self._found_among(Root(sub, bounded, 0), end, _COMPLETE_WORK, cancel):
                found.append(placement)
                if self.incumbent.totals(placement)[level] >= bounded.value.bound:
                    break
            return found

        tree = LaterTree(
            state.relaxation, pool, state.columns, root, lambda: self.incumbent.objective(level),
            self._last_point, complete, partial(self.incumbent.offer, root.sub), same,
        )  # fmt: skip
        root.below = tree
        tree.run(end)

    def _by_linear_programs(self, root: Root, bundle: Bundle, end: float) -> None:
        """Close a level by column generation, an integer program, and branches.

        Linear programs bound later levels and small machines best. On the first level of other
        problems their prices are concentrated on few routers, and the trees of the primal-dual loop
        close in a second a gap that a tree of linear programs leaves open after a minute.
        """
        state, sub, level = self.state, root.sub, root.sub.level
        if self.problem.has_program:
            if self._by_programs(root, self._half(end)):
                return
            lower = self.incumbent.objective(level)
            root.bounded = bundle.run(root.bounded, lower, until=self._half(end))
        below = root.below
        state.say("columns", level, root.bound)
        if self._num_nonzeros() <= _HEAVY_NONZEROS:
            root.bounded = generate_columns(
                state.relaxation,
                self._master,
                sub,
                root.bounded,
                self.incumbent.objective(level),
                until=self._half(end),
            )
        self._among_columns(root, end)
        if not self.incumbent.closes(root) and root.bounded.converged:
            state.say("branches", level, root.bound)
            tree = PriceTree(
                state.relaxation,
                self._master,
                root,
                lambda: self.incumbent.objective(level),
                partial(self.incumbent.offer, sub),
            )
            root.below = tree
            tree.run(end)
            if below is not None and below.bound < tree.bound:
                root.below = below

    def _by_programs(self, root: Root, until: float) -> bool:
        """Lower the bound of a level by programs of the problem's own; return if that closes it."""
        state, sub = self.state, root.sub
        program = None if self.incumbent.closes(root) else self.problem.program(sub)
        if program is not None:
            state.say("programs", sub.level, root.bound)
            point = DualPoint(program.prices, program.multipliers)
            own = Bounded(state.relaxation.evaluate(sub, point), point)
            self._remember(own.value)
            root.bounded = min(own, root.bounded, key=lambda bounded: bounded.value.bound)
            if not self.incumbent.closes(root):
                tree = ProgramTree(
                    state.relaxation, root, lambda: self.incumbent.objective(sub.level)
                )
                root.below = tree
                tree.run(until)
        return self.incumbent.closes(root)

    def _is_heavy(self) -> bool:
        """Return whether linear programs are too slow to rely on."""
        return self._num_nonzeros() > _HEAVY_NONZEROS

    def _num_nonzeros(self) -> int:
        """Return how large linear programs are, by the first level's columns."""
        if self._nonzeros < 0:
            self._nonzeros = self._master.num_nonzeros(_HEAVY_NONZEROS)
        return self._nonzeros

    def _first_bound(self, sub: Subproblem, bundle: Bundle, until: float) -> Bounded:
        """Return a first dual point, the best that the oracle alone gives."""
        start = self._start_of_later(sub) if sub.level else self._start_of_first(sub)
        lower = self.incumbent.objective(sub.level)
        bounded = bundle.run(start, lower, until=until, max_steps=_FIRST_STEPS)
        heavy = not sub.level and self._is_heavy()
        if self.budget.is_over() or self.problem.has_program or heavy:
            return bounded  # the rest goes along with the search for placements
        return bundle.run(bounded, lower, until=until)

    def _start_of_first(self, sub: Subproblem) -> Bounded:
        known = self.problem.first_prices(sub)
        point = self._last_point if known is None else DualPoint(*known)
        value = self.state.relaxation.evaluate(sub, point, 4)
        self._remember(value)
        return Bounded(value, point)

    def _start_of_later(self, sub: Subproblem) -> Bounded:
        """Return the best of the problem's own prices, and of multiples of the last ones."""
        relaxation, last = self.state.relaxation, self._last_point
        nothing = DualPoint(np.zeros(self.problem.num_rows), (0.0,) * sub.level)
        best = Bounded(relaxation.without_pricing(sub), nothing)
        known = self.problem.first_prices(sub)
        points = [] if known is None else [DualPoint(*known)]
        own = last.multipliers + (1.0,) * (sub.level - len(last.multipliers))  # of levels since
        for factor in (0.3, 1.0, 3.0):
            multipliers = tuple(factor * m for m in own)
            points.append(DualPoint(last.row_prices * factor, multipliers))
        for point in points:
            if self.budget.is_over() or best.value.bound <= self.incumbent.objective(sub.level):
                break
            value = relaxation.evaluate(sub, point, 2)
            self._remember(value)
            if value.bound < best.value.bound:
                best = Bounded(value, point)
        return best

    def _remember(self, value: DualValue) -> None:
        """Keep the columns of an answer of the oracle."""
        every = itertools.chain.from_iterable(value.priced.columns)
        worth_it = (candidate for gain, candidate in every if gain >= 0)
        self.state.columns.add(self.problem.merged(worth_it))

    def _among_columns(self, root: Root, end: float) -> None:
        """Look for better placements among the known columns."""
        sub, level = root.sub, root.sub.level
        if self.incumbent.closes(root) or self.budget.is_over():
            return
        self.state.say("integer program", level, root.bound)
        work = _WORK if level or self.problem.is_small else _FIRST_WORK
        for found in self._found_among(root, end, work):
            self.incumbent.offer(sub, found)

    def _found_among(
        self, root: Root, end: float, most_work: float, cancel: Cancel | None = None
    ) -> Iterator[list[Any]]:
        """Yield placements among the known columns, each perhaps better than the incumbent."""
        state, sub, bounded = self.state, root.sub, root.bounded
        level, columns = sub.level, state.columns
        columns.add(self.problem.merged(self.incumbent.best))
        gap = bounded.value.bound - self.incumbent.objective(level)
        reduced_costs = reduced_costs_at(state.relaxation, sub, columns, bounded)
        kept = (reduced_costs <= gap + 1e-6) & least(reduced_costs, _MOST_COLUMNS)
        kept &= lightest(columns, reduced_costs, _MOST_ENTRIES)
        if bounded.lp is not None:  # of many that lose nothing, those that go together
            of_lp = zip(bounded.lp.columns, bounded.lp.amounts.tolist(), strict=True)
            kept[columns.positions(c for c, amount in of_lp if amount > 1e-6)] = True
        tried = [(sub, kept)]
        if (
            level and not sub.forced
        ):  # first with the same requests started: that takes out the knapsack
            # requests of value 0 there are not part of it
            every = frozenset(range(len(self.problem.names))) - self.problem.worthless
            started = every.intersection(c.request_idx for c in self.incumbent.best)
            narrow = replace(sub, forced=started, excluded=every - started)
            tried.insert(0, (narrow, kept))
        elif root.bound is not None:  # first those that a placement which meets the bound may have
            meeting = reduced_costs <= bounded.value.bound - root.bound + 1e-6
            tried.insert(0, (sub, kept & meeting))
        turn = steering.turn(self.budget)
        for narrowed, among in tried:
            if self.incumbent.closes(root) or (cancel is not None and cancel.called):
                return
            work = min(most_work, min(turn, max(0.0, end - self.budget.now())) / WORK_SECONDS)
            found = best_among(
                self._master,
                narrowed,
                self.incumbent.best,
                among,
                seconds=self.budget.seconds(turn, end),
                work=work,
                seed=self.seed,
                cancel=cancel,
            )
            if found is not None:
                yield found

    def _end_of(self, sub: Subproblem) -> float:
        """Return when a level ends that begins now."""
        budget, now, share = self.budget, self.budget.now(), self._share(sub.level)
        if sub.level == 0:
            return budget.start + share * budget.length
        return now + share * max(0.0, self._end - now)

    def _share(self, level: int) -> float:
        """Return the share of a beginning level in the remaining budget; the last has the rest."""
        is_last = level == self._num_levels - 1
        return steering.FIRST_LEVEL if not level else 1.0 if is_last else steering.LATER_LEVEL

    def _half(self, end: float) -> float:
        """Return when half of the time until an end is over."""
        now = self.budget.now()
        return now + 0.5 * max(0.0, end - now)


def _level(problem: PackingProblem, level: int, reached: Sequence[int | None]) -> Subproblem:
    """Return a level as a subproblem."""
    return Subproblem(level, tuple(reached), excluded=frozenset() if level else problem.worthless)


def _found(
    incumbent: Incumbent,
    bounds: Sequence[LevelBound | None],
    reached: Sequence[int | None] = (),
) -> Found:
    """Return the present result of the search."""
    best = incumbent.best
    is_answer, reached = incumbent.is_answer, tuple(reached)
    return Found(best, incumbent.totals(best), tuple(bounds), is_answer, reached)
