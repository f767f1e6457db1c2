"""What tables and pictures show of placements on dragonflies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from topoplace.errors import number_of
from topoplace.machine import parse_node_set
from topoplace.machine.hostlist import format_host_list
from topoplace.placement.dragonfly.problem import DragonflyProblem
from topoplace.report.domains import Boxes
from topoplace.report.tiles import DOWN, FREE
from topoplace.report.view import View
from topoplace.result.base import Start
from topoplace.result.dragonfly import node_names
from topoplace.types import IntArray


class DragonflyView(View):
    """Groups and routers; a picture has a cell for every node."""

    @property
    def rule(self) -> str:
        """The interference rule."""
        return f"{self.result.limits.interference} interference, "

    def _starts(self) -> list[Start]:
        num, names = self.state.machine.num_nodes, node_names(self.state.snapshot.machine)
        starts = []
        for own in self.result.solution.placements:
            nodes = parse_node_set(own.nodes, num, "nodes").tolist()
            hosts = format_host_list(names[node] for node in nodes) if names else own.nodes
            starts.append(Start(own.request, tuple(nodes), hosts))
        return starts

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table of what starts."""
        return ("request", "nodes", "groups", "routers", "hosts")

    numbers = (1, 2, 3)

    def row(self, start: Start) -> list[str]:
        """Return the row of a request that starts."""
        machine = self.state.machine
        routers = np.unique(np.array(start.nodes) // machine.nodes_per_router)
        groups = np.unique(routers // machine.per_group)
        counts = [len(start.nodes), len(groups), len(routers)]
        return [start.request, *(f"{n:,}" for n in counts), start.hosts]

    def reasons(self) -> Mapping[str, str]:
        """Return why requests wait, from the result alone."""
        free = int(self.state.free.sum())
        problem = DragonflyProblem(self.state, self.result.limits.interference)
        found = {}
        for request in problem.requests:
            if request.id in self.started:
                continue
            text = self.outbid
            if request.nodes > free:
                text = f"{number_of(request.nodes, 'node')} wanted, {free:,} free"
            found[request.id] = text
        return found

    def ground(self) -> tuple[IntArray, Sequence[IntArray]]:
        """Return what stands on every node without what starts, and the nodes of running jobs."""
        return np.where(self.state.free, FREE, DOWN), self.state.held

    @property
    def tiles(self) -> Boxes:
        """A box for every group and router."""
        machine = self.state.machine
        router = np.arange(machine.num_nodes) // machine.nodes_per_router
        names = [[f"group {g}" for g in range(machine.num_groups)], [""] * machine.num_routers]
        return Boxes(
            ("group", "router", "node"), names, np.stack([router // machine.per_group, router])
        )
