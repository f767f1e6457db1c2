"""The outcome of a mapping method, and the best mapping of a search."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from topoplace import clock
from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.problem import MappingProblem, require_mapping, spread_over_nodes
from topoplace.result.mapping import ClassOptimum, LayoutModel
from topoplace.solving import Bound, Options, Outcome, Solver, method_of
from topoplace.types import IntArray


@dataclass(frozen=True)
class Mapped:
    """The node of every task, shape ``(num_tasks,)``, and how the mapping came about.

    It may be a layout, and then an optimum among layouts of its kind may be known.
    """

    nodes: IntArray
    layout: LayoutModel | None = None
    optimum: ClassOptimum | None = None


def outcome_of(
    nodes: IntArray | None,
    layout: LayoutModel | None = None,
    optimum: ClassOptimum | None = None,
    *,
    hit: bool = False,
    bound: Bound | None = None,
) -> Outcome:
    """Return the outcome of a method: the node of every task, None if it found no mapping.

    `hit` says whether the time limit ended the method; `bound` is what it proved itself.
    """
    mapped = None if nodes is None else Mapped(nodes, layout, optimum)
    return Outcome(mapped, (bound,), time_limit_hit=hit)


def mapped_by(solver: Solver, problem: MappingProblem, options: Options) -> IntArray:
    """Return the node of every task by a method that always finds a mapping."""
    mapped = solver(problem, options).solution
    assert isinstance(mapped, Mapped), "the method always finds a mapping"
    return mapped.nodes


def cheapest(problem: MappingProblem, options: Options, names: Iterable[str]) -> Outcome | None:
    """Return the outcome of fewest hop-bytes of some methods; of equal ones, the first.

    Methods that refuse the problem are left out; None if all do.
    """
    found: list[tuple[int, Outcome]] = []
    for name in names:
        method = method_of("mapping", name)
        if method.needs_grid and problem.grid is None:
            continue
        try:
            outcome = method.solver(problem, options)
        except InputError:
            continue  # it refuses problems without the structure it needs
        if outcome.solution is not None:
            found.append((hop_bytes(problem, outcome.solution.nodes), outcome))
    return min(found, key=lambda each: each[0])[1] if found else None


# ---- The best mapping of a search that tries many, its clock, and its reports --------------------

REPORT_SECONDS = 0.25
"""Most time between two reports of a search that keeps improving."""

REPORT_SHARE = 0.05
"""Largest share of the time that frequent reports may take."""


SLACK = 1e-6
"""Seconds left that count as none: shares of a time limit are rounded."""


class Keeper:
    """Keeps the best of the mappings offered to it, and reports it.

    The options have the time limit and the listener; a start must be a mapping of the instance.
    `least` are the hop-bytes of the best mapping, None before the first one, and no mapping goes
    below `floor`.
    """

    def __init__(
        self, problem: MappingProblem, options: Options, start: IntArray | None = None
    ) -> None:
        self.problem, self.options = problem, options
        self.deadline = clock.deadline(options.time_limit)
        self.least: int | None = None
        self.floor = problem.floor
        self._nodes: IntArray | None = None
        self._next_report = 0.0
        if start is not None:
            require_mapping(problem, start)
            self.offer_nodes(start, "start")

    @property
    def nodes(self) -> IntArray:
        """Node of every task in the best mapping."""
        assert self._nodes is not None
        return self._nodes

    @property
    def routers(self) -> IntArray:
        """Router of every task in the best mapping."""
        return self.problem.routers_of(self.nodes)

    @property
    def left(self) -> float:
        """Seconds left; a very large number without a time limit."""
        return self.deadline - clock.now()

    @property
    def perfect(self) -> bool:
        """Whether the best mapping is proven optimal."""
        return self.least is not None and self.least <= self.floor

    @property
    def done(self) -> bool:
        """Whether the time is over, or the mapping is proven optimal."""
        return self.left <= 0 or self.perfect

    @property
    def outcome(self) -> Outcome:
        """The best mapping, as the outcome of a method."""
        return outcome_of(self.nodes, hit=self.left <= SLACK and not self.perfect)

    def offer(self, routers: IntArray, source: str) -> None:
        """Take a mapping (router of every task) if it is better than all before."""
        self.offer_nodes(spread_over_nodes(self.problem, routers), source)

    def offer_sometimes(self, routers: IntArray, source: str) -> None:
        """Do as `offer`, unless something was reported a moment ago."""
        if time.perf_counter() >= self._next_report:
            self.offer(routers, source)

    def offer_nodes(self, nodes: IntArray, source: str) -> None:
        """Take a mapping (node of every task) if it is better than all before."""
        began = time.perf_counter()
        value = hop_bytes(self.problem, nodes)
        if self.least is not None and value >= self.least:
            return
        self.least, self._nodes = value, nodes
        self.options.report(Mapped(nodes), [value])
        self.options.say(source)
        now = time.perf_counter()
        self._next_report = now + min(REPORT_SECONDS, (now - began) / REPORT_SHARE)
