"""The exact method: bound, integer phase and branching, level by level (DESIGN 4)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from topoplace.placement.exact.anneal import Annealer
from topoplace.placement.exact.branching import Node, Tree
from topoplace.placement.exact.generation import Bounded, generate_columns
from topoplace.placement.exact.integer import best_among_columns
from topoplace.placement.exact.listing import MAX_PRISMS, ListPricer, num_prisms
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.neighbourhood import drop_near, with_fixed_jobs
from topoplace.placement.exact.pricing import ScanPricer
from topoplace.placement.exact.relaxation import (
    DualPoint,
    DualValue,
    Pricer,
    Relaxation,
    Subproblem,
)
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.exact.volume import volume_descent
from topoplace.placement.heuristics.best_fit import best_fit
from topoplace.placement.heuristics.first_fit import first_fit
from topoplace.placement.outcome import LevelBound, Outcome
from topoplace.placement.problem import Candidate, Options, PlacementProblem

DEFAULT_TIME_LIMIT = 120.0
"""Seconds when the user sets none."""

_VOLUME_STEPS = 12
_MAX_NODES = 100_000
_HEAVY_VOLUME_STEPS = 250
_HEAVY_NONZEROS = 25_000
_QUICK_WORK = 300_000  # nonzeros of the programs on levels 2 and 3, without a time limit
_SMALL_WORK = 2_000_000  # the same for a neighbourhood
_NO_LIMIT = 1 << 62
_FIRST_WORK = 8.0  # CP-SAT's deterministic time for the first integer phase of a level


class ExactSearch:
    """One run of the exact method."""

    def __init__(self, problem: PlacementProblem, options: Options) -> None:
        self.problem = problem
        limit = DEFAULT_TIME_LIMIT if options.time_limit is None else options.time_limit
        self.start = time.perf_counter()
        self.deadline = self.start + limit
        self.seed = options.seed
        self._rng = random.Random(options.seed)
        self.thorough = options.time_limit is not None
        self.incumbent: list[Candidate] = _heuristic_start(problem)
        self._first_start = self.incumbent
        self.rows = PackingRows(problem)
        pricer: Pricer
        if num_prisms(problem) <= MAX_PRISMS:
            pricer = ListPricer(problem, self.rows)
            self.thorough = True
        else:
            pricer = ScanPricer(problem)
        self.relaxation = Relaxation(problem, self.rows, pricer)
        self.master = Master(self.rows, self.deadline)
        self.first_level_prices: DualPoint | None = None

    def run(self) -> Outcome:
        """Solve the levels one after the other."""
        bounds: list[LevelBound | None] = []
        reached: list[int] = []
        for level in range(3):
            sub = Subproblem(level, tuple(reached))
            root = self._solve_level(sub)
            bound = root.bound
            objective = self._objective(level)
            assert bound is None or bound >= objective, "a bound never falls below a placement"
            proven = None
            if bound is not None:
                proven = LevelBound(bound, root.certificate(self.relaxation))
            bounds.append(proven)
            reached.append(objective)
        proven_all = all(
            b is not None and b.bound == v for b, v in zip(bounds, reached, strict=True)
        )
        spent = (time.perf_counter() - self.start) / max(1e-9, self.deadline - self.start)
        hit = not proven_all and spent >= 0.9
        return Outcome(self.incumbent, bounds, time_limit_hit=hit)

    def _objective(self, level: int) -> int:
        return sum(self.problem.values(c)[level] for c in self.incumbent)

    def _offer(self, sub: Subproblem, started: Sequence[Candidate]) -> int:
        """Take a placement if it is the best of its level; return the level's best objective."""
        totals = np.array([self.problem.values(c) for c in started]).reshape(-1, 3).sum(axis=0)
        if all(totals[k] >= v for k, v in enumerate(sub.reached)) and totals[
            sub.level
        ] > self._objective(sub.level):
            rows = np.concatenate([self.rows.of(c) for c in started])
            assert len(np.unique(rows)) == len(rows), "no two jobs share a router or a link"
            self.incumbent = sorted(started)
        return self._objective(sub.level)

    def _solve_level(self, sub: Subproblem) -> Node:
        self.master.add(self.incumbent)
        bounded = self._first_bound(sub)
        if not self._is_heavy(sub):
            bounded = self._generate(sub, bounded, self._level_deadline(sub, 0.6))
        if sub.level == 0:
            self.first_level_prices = bounded.point
        root = Node(sub, bounded)
        self._integer_phase(root)
        deep = self.thorough or not sub.level
        if deep and not self._closed(root) and root.bounded.converged:
            tree = Tree(self.relaxation, self.master, root, lambda found: self._offer(sub, found))
            tree.run(self._objective(sub.level), self._level_deadline(sub, 0.95), _MAX_NODES)
        if sub.level == 0:
            self.first_level_prices = root.bounded.point
        return root

    def _is_heavy(self, sub: Subproblem) -> bool:
        """Tell whether linear programs over the columns known are too slow to lean on."""
        return sub.level == 0 and self.master.packing().matrix.nnz > _HEAVY_NONZEROS

    def _generate(
        self, sub: Subproblem, bounded: Bounded, deadline: float, max_work: int = _NO_LIMIT
    ) -> Bounded:
        if sub.level and not self.thorough:
            max_work = _QUICK_WORK
        return generate_columns(
            self.relaxation,
            self.master,
            sub,
            bounded,
            self._objective(sub.level),
            deadline=deadline,
            max_work=max_work,
        )

    def _first_bound(self, sub: Subproblem) -> Bounded:
        """Return a first dual point: volume descent on level 1, level 1's prices after it."""
        if sub.level == 0:
            return self._first_level_bound(sub)
        assert self.first_level_prices is not None
        zeros = (0.0,) * (sub.level - 1)
        nothing = DualPoint(np.zeros(self.rows.num_rows), (0.0, *zeros))
        best = Bounded(self.relaxation.at_no_prices(sub), nothing)
        for factor in (0.0, 0.3, 1.0, 3.0, 10.0):
            if time.perf_counter() >= self.deadline:
                break
            point = DualPoint(self.first_level_prices.row_prices * factor, (factor, *zeros))
            value = self.relaxation.evaluate(sub, point)
            self._remember(value, sub, 2)
            if value.bound < best.value.bound:
                best = Bounded(value, point)
        return best

    def _first_level_bound(self, sub: Subproblem) -> Bounded:
        bounded = self._descend(sub, self._usable_prices(), _VOLUME_STEPS)
        if self._is_heavy(sub) and not self._met(sub, bounded):
            bounded = self._descend(sub, bounded.point, _HEAVY_VOLUME_STEPS)
        return bounded

    def _usable_prices(self) -> DualPoint:
        """Return the prices that bound the nodes started by the usable nodes there are."""
        prices = np.zeros(self.rows.num_rows)
        usable = self.problem.state.usable_per_router.sum(axis=0)
        highest = max((r.priority for r in self.problem.requests), default=1)
        prices[: self.rows.num_routers] = usable * highest
        return DualPoint(prices)

    def _descend(self, sub: Subproblem, start: DualPoint, max_steps: int) -> Bounded:
        values: list[DualValue] = []
        run = volume_descent(
            self.relaxation,
            sub,
            start,
            self._objective(0),
            max_steps=max_steps,
            deadline=self.start + 0.25 * (self.deadline - self.start),
            seen=lambda value, _step: values.append(value),
        )
        for value in values[-25:]:
            self._remember(value, sub, 3, slack=0.005 * max(1.0, run.value.bound))
        return Bounded(run.value, run.point)

    def _remember(
        self, value: DualValue, sub: Subproblem, per_request: int, slack: float = 0.0
    ) -> None:
        least = -slack * self.relaxation.scale
        for idx, columns in enumerate(value.priced.columns):
            if idx not in sub.excluded:
                self.master.add(c for gain, c in columns[:per_request] if gain >= least)

    def _met(self, sub: Subproblem, bounded: Bounded) -> bool:
        bound = bounded.value.certified
        return bound is None or bound <= self._objective(sub.level)

    def _closed(self, root: Node) -> bool:
        return self._met(root.sub, root.bounded)

    def _integer_phase(self, root: Node) -> None:
        """Look for better placements, and lower the bound, until they meet or time is up."""
        sub = root.sub
        deadline = self._level_deadline(sub, 0.95)
        work = _FIRST_WORK if self.thorough or not sub.level else _FIRST_WORK / 2
        limit = self.deadline - self.start
        annealer: Annealer | None = None
        for attempt in range(1000):
            left = deadline - time.perf_counter()
            if self._closed(root) or (left <= 0 and (attempt or sub.level)):
                return
            seconds = 20.0 if root.bounded.converged else 0.05 * limit
            self._among_columns(root, min(seconds, max(0.05, left)), work, attempt)
            if self._closed(root) or sub.level or root.bounded.converged:
                return
            self._search_neighbourhoods(root, min(deadline, time.perf_counter() + 0.2 * limit))
            annealer = annealer or Annealer(self.problem, self.seed)
            self._anneal(root, annealer, deadline, min(20.0, 0.08 * limit))
            until = min(deadline, time.perf_counter() + 0.03 * limit)
            root.bounded = self._generate(sub, root.bounded, until)

    def _anneal(self, root: Node, annealer: Annealer, deadline: float, burst: float) -> None:
        """Anneal from the incumbent, then afresh: runs differ more than long ones gain."""
        for start, heat in (
            (self.incumbent, 0.001),
            (self._first_start, 0.001),
            (self._first_start, 0.008),
            (self._first_start, 0.002),
        ):
            until = min(deadline, time.perf_counter() + burst)
            found, seen = annealer.run(start, until, heat * self._objective(0))
            self.master.add(seen)
            self._offer(root.sub, found)

    def _search_neighbourhoods(self, root: Node, deadline: float) -> None:
        """Free a few jobs near each other and solve the problem that leaves, again and again."""
        num_dropped = 3
        while time.perf_counter() < deadline and not self._closed(root):
            kept = drop_near(self.problem, self.incumbent, num_dropped, self._rng)
            smaller, others = with_fixed_jobs(self.problem, kept)
            left = [others.index(c.request_idx) for c in self.incumbent if c not in kept]
            start = [
                Candidate(idx, c.prism)
                for idx, c in zip(left, (c for c in self.incumbent if c not in kept), strict=True)
            ]
            search = ExactSearch(
                smaller,
                Options(min(3.0, max(0.1, deadline - time.perf_counter())), seed=self.seed),
            )
            began = time.perf_counter()
            found = search.improve(start)
            placed = [Candidate(others[c.request_idx], c.prism) for c in found]
            self.master.add(placed)
            self._offer(root.sub, [*kept, *placed])
            quick = time.perf_counter() - began < 1.0
            num_dropped = max(2, min(len(self.incumbent), num_dropped + (1 if quick else -1)))

    def improve(self, start: list[Candidate]) -> list[Candidate]:
        """Return a first-level placement at least as good as `start`, found in one short run."""
        sub = Subproblem()
        self._offer(sub, start)
        self.master.add(start)
        self.master.add(self.incumbent)
        bounded = self._descend(sub, self._usable_prices(), _VOLUME_STEPS)
        bounded = self._generate(sub, bounded, self.deadline, max_work=_SMALL_WORK)
        root = Node(sub, bounded)
        if not self._closed(root):
            self._among_columns(root, 1.5, 2.0, 0)
        return self.incumbent

    def _among_columns(self, root: Node, seconds: float, work: float, attempt: int) -> None:
        sub, bounded = root.sub, root.bounded
        self.master.add(self.incumbent)
        lp = self.master.solve_lp(sub) if bounded.lp is not None else None
        gap = bounded.value.bound - self._objective(sub.level)
        kept = np.ones(len(self.master.columns), dtype=bool)
        if lp is not None:
            kept = lp.reduced >= -gap - 1e-6
        tried = [sub]
        if sub.level:  # first with the same requests started: that takes out the knapsack
            started = frozenset(c.request_idx for c in self.incumbent)
            every = frozenset(range(len(self.problem.requests)))
            tried.insert(0, replace(sub, forced=started, excluded=every - started))
            del tried[1 + self.thorough :]
        for narrowed in tried:
            if self._met(sub, bounded):
                return
            found = best_among_columns(
                self.master,
                narrowed,
                self.incumbent,
                kept,
                seconds=seconds,
                work=work,
                seed=self.seed + attempt,
            )
            if found is not None:
                self._offer(sub, found)

    def _level_deadline(self, sub: Subproblem, share: float) -> float:
        """Return when a phase of a level ends, given the share of the level's time it may use."""
        now = time.perf_counter()
        if sub.level == 0:
            return self.start + share * (self.deadline - self.start)
        return now + share * max(0.0, self.deadline - now) / (3 - sub.level)


def _heuristic_start(problem: PlacementProblem) -> list[Candidate]:
    """Return the best of the prism heuristics, in queue order and largest value first."""
    largest = sorted(range(len(problem.requests)), key=lambda i: -problem.requests[i].value)
    starts = [
        method(problem, order) for order in (None, largest) for method in (best_fit, first_fit)
    ]

    def totals(started: Iterable[Candidate]) -> tuple[int, ...]:
        values = np.array([problem.values(c) for c in started]).reshape(-1, 3)
        return tuple(values.sum(axis=0).tolist())

    return sorted(max(starts, key=totals))
