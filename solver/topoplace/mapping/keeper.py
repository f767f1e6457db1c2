"""The best mapping of a search that tries many, its clock, and its reports."""

from __future__ import annotations

import time

import numpy as np

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray
from topoplace.mapping.mapped import Mapped
from topoplace.mapping.methods.orders import spread_over_nodes
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options

REPORT_SECONDS = 0.25
"""Most time between two reports of a search that improves all the time."""

REPORT_SHARE = 0.05
"""Most of the time that reports may take where they could come more often."""


class Keeper:
    """Keeps the best of the mappings offered to it, and reports it.

    Parameters
    ----------
    problem
        The instance.
    options
        Time limit, and who listens.

    Attributes
    ----------
    least
        Hop-bytes of the best mapping; None before the first one.
    floor
        Hop-bytes that no mapping goes below.
    """

    def __init__(self, problem: MappingProblem, options: Options) -> None:
        self.problem, self.options = problem, options
        self._deadline = clock.deadline(options.time_limit)
        self.least: int | None = None
        self.floor = least_possible(problem)
        self._nodes: IntArray | None = None
        self._next_report = 0.0

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
        """Seconds left; a great many without a time limit."""
        return self._deadline - clock.now()

    @property
    def done(self) -> bool:
        """Whether the time is over, or nothing is left to gain."""
        return self.left <= 0 or self.perfect

    @property
    def perfect(self) -> bool:
        """Whether the best mapping is the best there can be."""
        return self.least is not None and self.least <= self.floor

    def offer(self, routers: IntArray, source: str) -> None:
        """Take a mapping (router of every task) if it is better than all before."""
        self.offer_nodes(spread_over_nodes(self.problem, routers), source)

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

    def offer_sometimes(self, routers: IntArray, source: str) -> None:
        """Do as `offer`, unless something was reported a moment ago."""
        if time.perf_counter() >= self._next_report:
            self.offer(routers, source)


def least_possible(problem: MappingProblem) -> int:
    """Return hop-bytes that no mapping goes below: where routers hold one task, all bytes travel.

    The `total` bound of docs/proofs-mapping.md, times the least distance of two routers.
    """
    if problem.num_tasks < 2 or problem.capacity.max() > 1:
        return 0
    if isinstance(problem.machine, Torus):
        return problem.graph.total_bytes
    usable = np.flatnonzero(problem.capacity)
    between = problem.machine.hops(usable[:, None], usable[None, :])
    np.fill_diagonal(between, problem.machine.diameter)
    return int(between.min()) * problem.graph.total_bytes
