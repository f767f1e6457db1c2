"""The exact method: bound, integer phase and branching, level by level."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from topoplace import clock
from topoplace.placement.exact.branching import Node, Tree
from topoplace.placement.exact.context import SIGNS, Residual, SearchContext
from topoplace.placement.exact.generation import (
    Bounded,
    best_among_columns,
    generate_columns,
    least_reduced_costs,
    reduced_costs_at,
)
from topoplace.placement.exact.primal_dual import primal_dual_loop
from topoplace.placement.exact.relaxation import (
    DualPoint,
    DualValue,
    Subproblem,
    usable_prices,
)
from topoplace.placement.torus.oracle.pricing import ScanPricer
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.solving import Bound, Options, Outcome

_MAX_NODES = 100_000
_FIRST_STEPS = 20  # of the bundle, before it is known how large linear programs are
_LATER_WORK = 8_000_000  # prisms looked at for the bounds of levels 2 and 3, without a time limit
_LATER_PROGRAMS = 40_000  # nonzeros of the linear programs of the first and such a level
_LATER_COLUMNS = 600  # the columns of their integer programs
_HEAVY_NONZEROS = 80_000
_MOST_COLUMNS = 1200  # that an integer program bears
_NO_LIMIT = 1 << 62
_FIRST_WORK = 8.0  # CP-SAT's deterministic time for the first integer phase of a level


class ExactSearch(SearchContext):
    """One run of the exact method, from a placement or else from the heuristics'."""

    def __init__(
        self,
        problem: PlacementProblem,
        options: Options,
        start: Sequence[Candidate] | None = None,
        to_beat: int = 0,
    ) -> None:
        super().__init__(problem, options, start, to_beat)
        self._last_point = usable_prices(self.rows)
        self._nonzeros = -1  # of the first level's program; not known yet

    def run(self) -> Outcome:
        """Solve the levels one after the other."""
        bounds = self._bounds
        reached: list[int] = []
        self._report()
        for level in range(3):
            if level and clock.is_stopped():  # as far as it is proven, and no further
                bounds.append(None)
                reached.append(self.objective(level))
                continue
            sub = Subproblem(level, tuple(reached))
            root = self._solve_level(sub)
            bound = root.bound
            objective = self.objective(level)
            assert bound is None or bound >= objective, "a bound never falls below a placement"
            proven = None
            if bound is not None:
                proven = Bound(SIGNS[level] * bound, root.proof(self.relaxation))
            bounds.append(proven)
            reached.append(objective)
            self._report()
        proven_all = all(
            b is not None and abs(b.value) == abs(v) for b, v in zip(bounds, reached, strict=True)
        )
        spent = (clock.now() - self.start) / max(1e-9, self.deadline - self.start)
        hit = not proven_all and spent >= 0.9
        return Outcome(self.incumbent, bounds, time_limit_hit=hit)

    def around(
        self, rest: Residual, seconds: float, start: Sequence[Candidate] | None = None
    ) -> list[Candidate]:
        """Search what is left around fixed jobs as a problem of its own."""
        to_beat = self.objective(0) - rest.fixed_value
        options = Options(seconds, seed=self.seed)
        inner = ExactSearch(rest.problem, options, start and rest.here(start), to_beat)
        inner._solve_level(Subproblem())
        found = rest.together(inner.incumbent)
        self.master.add(found)
        self.offer(Subproblem(), found)
        return found

    def _solve_level(self, sub: Subproblem) -> Node:
        self.master.add(self.incumbent)
        self.tell("prices", sub)
        bounded = self._first_bound(sub)
        if self.is_over():
            return Node(sub, bounded)
        deep = self.thorough or not sub.level
        heavy = self._is_heavy()
        work = _NO_LIMIT if deep else _LATER_PROGRAMS - self._nonzeros
        self.tell("columns", sub, bounded.value.certified)
        if not heavy and work >= self._nonzeros:  # programs grow from level to level
            bounded = generate_columns(
                self.relaxation,
                self.master,
                sub,
                bounded,
                self.objective(sub.level),
                deadline=self._level_deadline(sub, 0.6),
                max_work=work,
            )
        root = Node(sub, bounded)
        self._integer_phase(root)
        if deep and not self.closed(root) and root.bounded.converged:
            self.tell("branches", sub, root.bound)
            tree = Tree(self.relaxation, self.master, root, lambda found: self.offer(sub, found))
            tree.run(self.objective(sub.level), self._level_deadline(sub, 0.95), _MAX_NODES)
        self._last_point = root.bounded.point
        return root

    def _is_heavy(self) -> bool:
        """Tell whether linear programs are too slow to lean on, by the first level's columns."""
        if self._nonzeros < 0:
            self._nonzeros = int(self.master.packing().matrix.nnz)
        return self._nonzeros > _HEAVY_NONZEROS

    def _first_bound(self, sub: Subproblem) -> Bounded:
        """Return a first dual point, as good as pricing passes alone make it."""
        start = self._start_of_later(sub) if sub.level else self._start_of_first(sub)
        lower = self.objective(sub.level)
        steps = self._later_steps() if sub.level and not self.thorough else _NO_LIMIT
        bundle, deadline = self.bundle(sub), self._level_deadline(sub, 0.5 if sub.level else 0.25)
        first = min(steps, _FIRST_STEPS)
        bounded = bundle.run(start, lower, deadline=deadline, max_steps=first)
        if self.is_over() or (self._is_heavy() and not sub.level):
            return bounded  # the rest goes along with the search for placements
        return bundle.run(bounded, lower, deadline=deadline, max_steps=steps - first)

    def _later_steps(self) -> int:
        """Return how many steps of the bundle a later level gets, by what a pricing pass takes."""
        pricer = self.relaxation.pricer
        if not isinstance(pricer, ScanPricer) or self.is_over():
            return 1
        return 1 + _LATER_WORK // max(1, pricer.num_prisms)

    def _start_of_first(self, sub: Subproblem) -> Bounded:
        point = usable_prices(self.rows)
        value = self.relaxation.evaluate(sub, point, 4)
        self._remember(value)
        return Bounded(value, point)

    def _start_of_later(self, sub: Subproblem) -> Bounded:
        """Return the best of some multiples of the last level's prices, that level's row added."""
        nothing = DualPoint(np.zeros(self.rows.num_rows), (0.0,) * sub.level)
        best = Bounded(self.relaxation.without_pricing(sub), nothing)
        last = self._last_point
        for factor in (0.3, 1.0, 3.0):
            if self.is_over():
                break
            multipliers = tuple(factor * m for m in (*last.multipliers, 1.0))
            point = DualPoint(last.row_prices * factor, multipliers)
            value = self.relaxation.evaluate(sub, point, 2)
            self._remember(value)
            if value.bound < best.value.bound:
                best = Bounded(value, point)
        return best

    def _remember(self, value: DualValue) -> None:
        """Keep the columns of a pricing pass."""
        every = itertools.chain.from_iterable(value.priced.columns)
        self.master.add(candidate for gain, candidate in every if gain >= 0)

    def _integer_phase(self, root: Node) -> None:
        """Look for better placements, and lower the bound, until they meet or time is up."""
        sub = root.sub
        deadline = self._level_deadline(sub, 0.95)
        work = _FIRST_WORK if self.thorough else _FIRST_WORK / (1, 2, 8)[sub.level]
        if sub.level or not self._is_heavy():
            if not self.closed(root) and not self.is_over():
                seconds = 20.0 if root.bounded.converged else 0.05 * (self.deadline - self.start)
                self._among_columns(root, seconds, deadline, work)
            if self.closed(root) or sub.level or root.bounded.converged:
                return
        primal_dual_loop(self, root, deadline)

    def _among_columns(self, root: Node, seconds: float, deadline: float, work: float) -> None:
        """Look for a better placement among the columns known."""
        sub, bounded = root.sub, root.bounded
        self.tell("integer program", sub, root.bound)
        self.master.add(self.incumbent)
        gap = bounded.value.bound - self.objective(sub.level)
        reduced_costs = reduced_costs_at(self.relaxation, sub, self.master.columns, bounded)
        most = _LATER_COLUMNS if sub.level and not self.thorough else _MOST_COLUMNS
        kept = (reduced_costs <= gap + 1e-6) & least_reduced_costs(reduced_costs, most)
        tried = [(sub, kept)]
        if sub.level:  # first with the same requests started: that takes out the knapsack
            started = frozenset(c.request_idx for c in self.incumbent)
            every = frozenset(range(len(self.problem.requests)))
            narrow = replace(sub, forced=started, excluded=every - started)
            tried = [(narrow, kept), *tried][: 1 + self.thorough]
        elif root.bound is not None:  # first those that a placement which meets the bound may have
            meeting = reduced_costs <= bounded.value.bound - root.bound + 1e-6
            tried.insert(0, (sub, kept & meeting))
        for narrowed, among in tried:
            if self.closed(root):
                return
            found = best_among_columns(
                self.master,
                narrowed,
                self.incumbent,
                among,
                seconds=min(seconds, max(0.05, deadline - clock.now())),
                work=work,
                seed=self.seed,
            )
            if found is not None:
                self.offer(sub, found)

    def _level_deadline(self, sub: Subproblem, share: float) -> float:
        """Return when a phase of a level ends, given the share of the level's time it may use."""
        now = clock.now()
        if sub.level == 0:
            return self.start + share * (self.deadline - self.start)
        return now + share * max(0.0, self.deadline - now) / (3 - sub.level)
