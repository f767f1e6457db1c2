"""The exact method: bound, integer phase and branching, level by level (DESIGN 4)."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from topoplace.placement.exact.branching import Node, Tree
from topoplace.placement.exact.generation import Bounded, generate_columns
from topoplace.placement.exact.integer import best_among_columns, least_losses, losses_at
from topoplace.placement.exact.listing import MAX_PRISMS, ListPricer, num_prisms
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.pricing import ScanPricer
from topoplace.placement.exact.relaxation import (
    DualPoint,
    DualValue,
    Pricer,
    Relaxation,
    Subproblem,
)
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.exact.start import heuristic_start
from topoplace.placement.exact.volume import usable_prices, volume_descent
from topoplace.placement.exact.wide import search_widely
from topoplace.placement.outcome import LevelBound, Outcome
from topoplace.placement.problem import Candidate, Options, PlacementProblem

DEFAULT_TIME_LIMIT = 120.0
"""Seconds when the user sets none."""

_VOLUME_STEPS = 12
_MAX_NODES = 100_000
_HEAVY_VOLUME_STEPS = 80
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
        self.rng = random.Random(options.seed)
        self.thorough = options.time_limit is not None
        self.incumbent: list[Candidate] = heuristic_start(problem)
        self.first_start = self.incumbent
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
        self._heavy: bool | None = None

    def run(self) -> Outcome:
        """Solve the levels one after the other."""
        bounds: list[LevelBound | None] = []
        reached: list[int] = []
        for level in range(3):
            sub = Subproblem(level, tuple(reached))
            root = self._solve_level(sub)
            bound = root.bound
            objective = self.objective(level)
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

    def objective(self, level: int) -> int:
        """Return the incumbent's value on a level."""
        return sum(self.problem.values(c)[level] for c in self.incumbent)

    def offer(self, sub: Subproblem, started: Sequence[Candidate]) -> int:
        """Take a placement if it is the best of its level; return the level's best objective."""
        totals = np.array([self.problem.values(c) for c in started]).reshape(-1, 3).sum(axis=0)
        if all(totals[k] >= v for k, v in enumerate(sub.reached)) and totals[
            sub.level
        ] > self.objective(sub.level):
            rows = np.concatenate([self.rows.of(c) for c in started])
            assert len(np.unique(rows)) == len(rows), "no two jobs share a router or a link"
            self.incumbent = sorted(started)
        return self.objective(sub.level)

    def _solve_level(self, sub: Subproblem) -> Node:
        self.master.add(self.incumbent)
        bounded = self._first_bound(sub)
        if not self._is_heavy(sub):
            bounded = self.generate(sub, bounded, self._level_deadline(sub, 0.6))
        if sub.level == 0:
            self.first_level_prices = bounded.point
        root = Node(sub, bounded)
        self._integer_phase(root)
        deep = self.thorough or not sub.level
        if deep and not self.closed(root) and root.bounded.converged:
            tree = Tree(self.relaxation, self.master, root, lambda found: self.offer(sub, found))
            tree.run(self.objective(sub.level), self._level_deadline(sub, 0.95), _MAX_NODES)
        if sub.level == 0:
            self.first_level_prices = root.bounded.point
        return root

    def _is_heavy(self, sub: Subproblem) -> bool:
        """Tell whether whole linear programs are too slow to lean on, by the first columns."""
        if self._heavy is None:
            self._heavy = self.master.packing().matrix.nnz > _HEAVY_NONZEROS
        return sub.level == 0 and self._heavy

    def generate(
        self,
        sub: Subproblem,
        bounded: Bounded,
        deadline: float,
        max_work: int = _NO_LIMIT,
        per_round: int = 2,
    ) -> Bounded:
        """Generate columns for a level (see `generate_columns`)."""
        if sub.level and not self.thorough:
            max_work = _QUICK_WORK
        return generate_columns(
            self.relaxation,
            self.master,
            sub,
            bounded,
            self.objective(sub.level),
            deadline=deadline,
            max_work=max_work,
            per_round=per_round,
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
            self.remember(value, sub, 2)
            if value.bound < best.value.bound:
                best = Bounded(value, point)
        return best

    def _first_level_bound(self, sub: Subproblem) -> Bounded:
        bounded = self._descend(sub, usable_prices(self.rows), _VOLUME_STEPS)
        if self._is_heavy(sub) and not self._met(sub, bounded):
            bounded = self._descend(sub, bounded.point, _HEAVY_VOLUME_STEPS)
        return bounded

    def _descend(self, sub: Subproblem, start: DualPoint, max_steps: int) -> Bounded:
        values: list[DualValue] = []
        run = volume_descent(
            self.relaxation,
            sub,
            start,
            self.objective(0),
            max_steps=max_steps,
            deadline=self.start + 0.25 * (self.deadline - self.start),
            seen=lambda value, _step: values.append(value),
        )
        for value in values[-25:]:
            self.remember(value, sub, 3, slack=0.005 * max(1.0, run.value.bound))
        return Bounded(run.value, run.point)

    def remember(
        self, value: DualValue, sub: Subproblem, per_request: int, slack: float = 0.0
    ) -> None:
        """Keep the best columns of a pricing pass, down to a loss of `slack`."""
        least = -slack * self.relaxation.scale
        for idx, columns in enumerate(value.priced.columns):
            if idx not in sub.excluded:
                self.master.add(c for gain, c in columns[:per_request] if gain >= least)

    def _met(self, sub: Subproblem, bounded: Bounded) -> bool:
        bound = bounded.value.certified
        return bound is None or bound <= self.objective(sub.level)

    def closed(self, root: Node) -> bool:
        """Tell whether the incumbent meets the bound."""
        return self._met(root.sub, root.bounded)

    def _integer_phase(self, root: Node) -> None:
        """Look for better placements, and lower the bound, until they meet or time is up."""
        sub = root.sub
        deadline = self._level_deadline(sub, 0.95)
        work = _FIRST_WORK if self.thorough else _FIRST_WORK / (1, 2, 8)[sub.level]
        if not self._is_heavy(sub):
            left = deadline - time.perf_counter()
            if not self.closed(root) and (left > 0 or not sub.level):
                seconds = 20.0 if root.bounded.converged else 0.05 * (self.deadline - self.start)
                self.among_columns(root, min(seconds, max(0.05, left)), work, 0)
            if self.closed(root) or sub.level or root.bounded.converged:
                return
        search_widely(self, root, deadline, work)

    def improve(self, start: list[Candidate]) -> list[Candidate]:
        """Return a first-level placement at least as good as `start`, found in one short run."""
        sub = Subproblem()
        self.offer(sub, start)
        self.master.add(start)
        self.master.add(self.incumbent)
        bounded = self._descend(sub, usable_prices(self.rows), _VOLUME_STEPS)
        bounded = self.generate(sub, bounded, self.deadline, max_work=_SMALL_WORK)
        root = Node(sub, bounded)
        if not self.closed(root):
            self.among_columns(root, 1.5, 2.0, 0)
        return self.incumbent

    def among_columns(self, root: Node, seconds: float, work: float, attempt: int) -> None:
        """Look for a better placement among the columns known."""
        sub, bounded = root.sub, root.bounded
        self.master.add(self.incumbent)
        gap = bounded.value.bound - self.objective(sub.level)
        if sub.level or not self._heavy:
            lp = self.master.solve_lp(sub) if bounded.lp is not None else None
            losses = np.zeros(len(self.master.columns)) if lp is None else -lp.reduced
        else:
            losses = losses_at(self.relaxation, self.master.columns, bounded)
        kept = losses <= gap + 1e-6
        if self._heavy:
            kept &= least_losses(losses)
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
                self.offer(sub, found)

    def _level_deadline(self, sub: Subproblem, share: float) -> float:
        """Return when a phase of a level ends, given the share of the level's time it may use."""
        now = time.perf_counter()
        if sub.level == 0:
            return self.start + share * (self.deadline - self.start)
        return now + share * max(0.0, self.deadline - now) / (3 - sub.level)
