"""The outcome of a mapping method, and the best mapping of a search."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from topoplace import clock
from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes, worth_of
from topoplace.mapping.objects.bounds import load_bound
from topoplace.mapping.problem import MappingProblem, require_mapping, spread_over_nodes
from topoplace.mapping.spread.bounds import spread_bound
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
        if not problem.takes(method):
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

    The options have the time limit and who listens; a start must be a mapping of the instance.
    `worth` is what the best mapping is worth level by level, None before the first one, `source`
    where it comes from; no mapping is below the `floors` of the first levels.
    """

    def __init__(
        self, problem: MappingProblem, options: Options, start: IntArray | None = None
    ) -> None:
        self.problem, self.options = problem, options
        self.deadline = clock.deadline(options.time_limit)
        self.worth: list[int] | None = None
        self.source = ""
        self.floors = [problem.floor]
        if problem.spread:
            self.floors.insert(0, int(spread_bound(problem).value))
        self.bounds = () if problem.instance.cap is None else (None, load_bound(problem))
        self._nodes: IntArray | None = None
        self._next_report = 0.0
        if start is not None:
            require_mapping(problem, start)
            self.offer_nodes(start, "start")

    @property
    def least(self) -> int | None:
        """Hop-bytes of the best mapping, None before the first one."""
        return None if self.worth is None else self.worth[0]

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
        return self.worth is not None and self.worth[: len(self.floors)] <= self.floors

    @property
    def done(self) -> bool:
        """Whether the time is over, or the mapping is proven optimal."""
        return self.left <= SLACK or self.perfect

    @property
    def outcome(self) -> Outcome:
        """The best mapping, as the outcome of a method."""
        return outcome_of(self._nodes, hit=self.left <= SLACK and not self.perfect)

    def offer(self, routers: IntArray, source: str) -> None:
        """Take a mapping (router of every task) if it is better than all before."""
        self.offer_nodes(spread_over_nodes(self.problem, routers), source)

    def offer_cells(self, cells: IntArray | None, source: str) -> None:
        """Take a mapping (cell of every task) if there is one, and it is better than all before."""
        if cells is not None:
            self.offer_nodes(self.problem.nodes_of(cells), source)

    def offer_sometimes(self, cells: IntArray, source: str) -> None:
        """Do as `offer_cells`, unless something was reported a moment ago."""
        if time.perf_counter() >= self._next_report:
            self.offer_cells(cells, source)

    def offer_nodes(self, nodes: IntArray, source: str) -> None:
        """Take a mapping (node of every task) if it is better than all before."""
        began = time.perf_counter()
        worth = worth_of(self.problem, nodes)
        if self.worth is not None and worth >= self.worth:
            return
        self.worth, self._nodes, self.source = worth, nodes, source
        self.options.report(Mapped(nodes), worth, self.bounds)
        self.options.say(source)
        now = time.perf_counter()
        self._next_report = now + min(REPORT_SECONDS, (now - began) / REPORT_SHARE)
