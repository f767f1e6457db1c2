"""What tables and pictures show of allocations on switch trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from topoplace.errors import number_of
from topoplace.machine.hostlist import format_host_list
from topoplace.report.domains import Boxes, domain_boxes
from topoplace.report.tiles import DOWN, FREE
from topoplace.report.view import View, decimal_text, exact
from topoplace.result.base import Start
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.types import BoolArray, IntArray


class AllocationView(View):
    """Nodes of leaf switches, and what allocations cost."""

    named: ClassVar[bool] = True

    columns: ClassVar[Sequence[str]] = ("cost",)
    numbers: ClassVar[Sequence[int]] = (1, 2)

    @property
    def started(self) -> set[str]:
        """The names of requests that start."""
        solution = self.result.solution
        return set() if solution is None else {one.request for one in solution.allocations}

    def _starts(self) -> list[Start]:
        numbers = {name: number for number, name in enumerate(self.state.machine.host_names)}
        starts = []
        for own in self.result.solution.allocations:
            nodes = tuple(numbers[name] for name in own.nodes)
            hosts = format_host_list(own.nodes)
            starts.append(Start(own.request, nodes, hosts, cost=exact(own.cost)))
        return starts

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table of what starts."""
        return ("request", "nodes", "cost", "hosts")

    def row(self, start: Start) -> list[str]:
        """Return the row of a request that starts."""
        cost = decimal_text(start.cost or Fraction(0))
        return [start.request, f"{len(start.nodes):,}", cost, start.hosts]

    def total(self) -> str:
        """Return the cost of all started requests."""
        cost = exact(self.result.solution.cost)
        same = "" if cost.denominator == 1 else f" = {cost}"
        return f"; total cost {decimal_text(cost)}{same}"

    def reasons(self) -> Mapping[str, str]:
        """Return why requests wait, from the result alone."""
        state = self.state
        machine, free = state.machine, state.free[:, 0] > 0
        taken = {name for own in self.result.solution.allocations for name in own.nodes}
        left = free & np.array([name not in taken for name in machine.host_names], dtype=bool)

        def most(nodes: BoolArray) -> int:
            """Return how many of some nodes one request can have: those below one root."""
            per_leaf = np.bincount(machine.leaf_of[nodes], minlength=machine.num_leaves)
            return max(int(per_leaf[root].sum()) for root in machine.roots)

        num_free, most_free, most_left = int(free.sum()), most(free), most(left)

        def text(request: HierarchyRequest) -> str:
            wanted = f"{number_of(request.nodes, 'node')} wanted"
            if request.nodes > num_free:
                return f"{wanted}, {num_free:,} free"
            if request.nodes > most_free:
                most = f"the most below one root are {most_free:,}"
                return f"no fabric has {number_of(request.nodes, 'free node')}: {most}"
            if request.nodes <= most_left:
                return f"{wanted}, still free, but {self.result.method} left it out"
            return self.outbid

        return {one.id: text(one) for one in state.requests if one.id not in self.started}

    def ground(self) -> tuple[IntArray, Sequence[IntArray]]:
        """Return what is on every node before anything starts, and the nodes of running jobs."""
        free = self.state.free[:, 0] > 0
        return np.where(free, FREE, DOWN), [job.hosts for job in self.state.running]

    @property
    def tiles(self) -> Boxes:
        """Boxes of switches."""
        return domain_boxes(self.state.machine)
