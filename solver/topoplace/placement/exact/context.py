"""What the parts of a search share: time, incumbent, relaxation, and the residual problem."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from topoplace import clock
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import (
    Pricer,
    Relaxation,
    Subproblem,
)
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.torus.heuristics.fits import best_fit, first_fit
from topoplace.placement.torus.oracle.listing import ListPricer, are_few
from topoplace.placement.torus.oracle.pricing import ScanPricer
from topoplace.placement.torus.outcome import LEVELS, worth
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot import RunningState
from topoplace.solving import Bound, Options

SIGNS = [1 if sense == "max" else -1 for _, sense in LEVELS]
"""What turns the larger-is-better values of levels into the figures reported."""

DEFAULT_TIME_LIMIT = 300.0
"""Seconds when the user sets none."""

_LONGEST_RESERVE, _RESERVE_SHARE = 0.5, 0.05  # seconds, and of the limit: to write the result
_LEAST_START, _START_SHARE = 0.3, 0.5  # seconds, and of the time limit: for the heuristics


def heuristic_start(
    problem: PlacementProblem, options: Options, deadline: float = math.inf
) -> list[Candidate]:
    """Return the best of the prism heuristics, in queue order and largest value first.

    Each is reported. At the deadline it has started what it has started; after the first, none is
    begun then.
    """
    largest = sorted(range(len(problem.requests)), key=lambda i: -problem.requests[i].value)
    starts: list[list[Candidate]] = []
    for order, method in itertools.product((None, largest), (first_fit, best_fit)):
        if starts and clock.now() >= deadline:
            break
        starts.append(method(problem, order, deadline))
        options.report(starts[-1], [v for v in worth(problem, starts[-1]) if v is not None])

    def totals(started: Iterable[Candidate]) -> list[int]:
        return [sum(level) for level in problem.values_of(list(started)).T.tolist()]

    return sorted(max(starts, key=totals))


@dataclass(frozen=True)
class Residual:
    """A problem in which some jobs run already, and those requests of its queue that are left.

    Attributes
    ----------
    whole, problem
        The problem, and the smaller one.
    fixed
        The jobs that have their places, candidates of the whole problem.
    kept
        Positions in the whole queue of the requests that the smaller one has.
    """

    whole: PlacementProblem
    problem: PlacementProblem
    fixed: tuple[Candidate, ...]
    kept: tuple[int, ...]

    @classmethod
    def of(
        cls,
        whole: PlacementProblem,
        fixed: Iterable[Candidate],
        excluded: frozenset[int] = frozenset(),
    ) -> Residual:
        """Fix some jobs, and leave out the requests excluded."""
        fixed = tuple(fixed)
        state, torus = whole.state, whole.torus
        occupied, running = state.occupied.copy(), list(state.running)
        for candidate in fixed:
            request = whole.requests[candidate.request_idx]
            routers = np.sort(candidate.prism.routers(torus))
            occupied[routers] = True
            nodes = whole.choose_nodes(candidate)
            running.append(
                RunningState(request.id, nodes, routers, candidate.prism, request.communication)
            )
        gone = excluded | {c.request_idx for c in fixed}
        kept = tuple(i for i in range(len(whole.requests)) if i not in gone)
        smaller = replace(
            state,
            usable=state.usable & ~np.repeat(occupied, torus.nodes_per_router),
            occupied=occupied,
            running=tuple(running),
            queue=tuple(state.queue[i] for i in kept),
        )
        return cls(whole, PlacementProblem(smaller, whole.interference), fixed, kept)

    @property
    def fixed_value(self) -> int:
        """What the fixed jobs are worth on the first level."""
        return sum(self.whole.requests[c.request_idx].value for c in self.fixed)

    @cached_property
    def _position(self) -> dict[int, int]:
        return {whole: here for here, whole in enumerate(self.kept)}

    def here(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return candidates of the whole problem as those of the smaller one."""
        return [replace(c, request_idx=self._position[c.request_idx]) for c in candidates]

    def together(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Return the fixed jobs with a placement of the smaller problem."""
        mine = (replace(c, request_idx=self.kept[c.request_idx]) for c in found)
        return sorted([*self.fixed, *mine])


class SearchContext(ABC):
    """What the parts of a search of one problem share.

    Parameters
    ----------
    start
        A placement to begin with; None for that of the heuristics.
    to_beat
        A first-level objective that is known: the search looks for nothing that does not exceed it.

    Attributes
    ----------
    start, deadline, limit
        When the search began, when it has to end, and when its result has to be written.
    incumbent, first_start
        The best placement found, and that at the start.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        options: Options,
        start: Sequence[Candidate] | None = None,
        to_beat: int = 0,
    ) -> None:
        self.problem = problem
        limit = DEFAULT_TIME_LIMIT if options.time_limit is None else options.time_limit
        self.start = clock.now()
        self.limit = self.start + limit
        self.deadline = self.limit - min(_LONGEST_RESERVE, _RESERVE_SHARE * limit)
        self.options, self.seed, self._to_beat = options, options.seed, to_beat
        self.thorough = options.thorough
        if start is None:
            until = self.start + max(_LEAST_START, _START_SHARE * limit)
            start = heuristic_start(problem, options, until)
        self.incumbent = list(start)
        self.first_start = self.incumbent
        self.rows = PackingRows(problem)
        pricer: Pricer
        if are_few(problem):
            pricer = ListPricer(problem, self.rows, self.deadline)
            self.thorough = True
        else:
            pricer = ScanPricer(problem, deadline=self.deadline)
        self.relaxation = Relaxation(problem, self.rows, pricer)
        self.master = Master(self.rows, self.deadline)
        self._known_values: dict[Candidate, list[int]] = {}
        self._bundle: Bundle | None = None
        self._bounds: list[Bound | None] = []

    def objective(self, level: int) -> int:
        """Return the incumbent's value on a level, or what it has to exceed."""
        reached = self._totals(self.incumbent)[level]
        return reached if level else max(reached, self._to_beat)

    def _totals(self, started: Sequence[Candidate]) -> list[int]:
        new = [c for c in started if c not in self._known_values]
        values = self.problem.values_of(new).tolist()
        self._known_values.update(zip(new, values, strict=True))
        known = [self._known_values[c] for c in started]
        return [sum(v[level] for v in known) for level in range(3)]

    def offer(self, sub: Subproblem, started: Sequence[Candidate]) -> int:
        """Take a placement if it is the best of its level; return the level's best objective."""
        totals = self._totals(started)
        if all(totals[k] >= v for k, v in enumerate(sub.reached)) and totals[
            sub.level
        ] > self.objective(sub.level):
            rows = np.concatenate([self.rows.of(c) for c in started])
            assert len(np.unique(rows)) == len(rows), "no two jobs share a router or a link"
            self.incumbent = sorted(started)
            self._report()
        return self.objective(sub.level)

    def _report(self) -> None:
        values = zip(SIGNS, self._totals(self.incumbent), strict=True)
        self.options.report(self.incumbent, [sign * v for sign, v in values], self._bounds)

    def tell(self, phase: str, sub: Subproblem, bound: int | None = None) -> None:
        """Tell who watches what is done on the level of a subproblem, and its bound."""
        known = None if bound is None else SIGNS[sub.level] * bound
        self.options.say(phase, sub.level, known)

    def is_over(self) -> bool:
        """Tell whether the time limit is reached."""
        return clock.now() >= self.deadline

    def bundle(self, sub: Subproblem) -> Bundle:
        """Return the bundle of a level."""
        if self._bundle is None or self._bundle.sub != sub:
            watch = partial(self.tell, "prices", sub)
            self._bundle = Bundle(self.relaxation, self.master, sub, watch=watch)
        return self._bundle

    def closed(self, root: Node) -> bool:
        """Tell whether the incumbent meets the bound."""
        return root.bound is None or root.bound <= self.objective(root.sub.level)

    @abstractmethod
    def around(
        self, rest: Residual, seconds: float, start: Sequence[Candidate] | None = None
    ) -> list[Candidate]:
        """Return the best first-level placement found around fixed jobs, and take it if it is best.

        Parameters
        ----------
        start
            Where the other jobs are to begin with, None for the heuristics' placement.
        """
