"""What tables and pictures show of placements on dragonflies."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from topoplace.errors import number_of
from topoplace.placement.dragonfly.orders import by_priority
from topoplace.placement.dragonfly.problem import DragonflyProblem
from topoplace.placement.hierarchy.heuristics.fits import tree_best_fit
from topoplace.placement.hierarchy.heuristics.queue import serve
from topoplace.report.domains import Boxes, numbered_boxes
from topoplace.report.figure import jobs_of
from topoplace.report.tiles import HIGH, RIM, TEXT, add_lines, add_shapes, job_colour
from topoplace.report.view import Picture, View
from topoplace.result.base import Start
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_RIMS = 2_000


class DragonflyView(View):
    """Groups and routers; a picture has a cell for every node."""

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table of what starts."""
        return ("request", "nodes", "groups", "routers", "hosts")

    numbers = (1, 2, 3)

    def row(self, start: Start) -> list[str]:
        """Return the row of a request that starts."""
        machine = self.state.machine
        nodes = np.array(start.nodes)
        routers = np.unique(nodes // machine.nodes_per_router)
        counts = (len(own) for own in (nodes, machine.groups_of(nodes), routers))
        return [start.request, *(f"{n:,}" for n in counts), start.hosts]

    def reasons(self) -> Mapping[str, str]:
        """Return why requests wait, from the result alone."""
        problem = DragonflyProblem(self.state.inside, self.state, self.result.limits.interference)
        waiting = [request for request in problem.requests if request.id not in self.started]
        return {request.id: self._reason(problem, request) for request in waiting}

    def _reason(self, problem: DragonflyProblem, request: HierarchyRequest) -> str:
        free = int(self.state.free.sum())
        alone = replace(problem, state=replace(problem.state, requests=(request,)))
        if request.nodes > free:
            return f"{number_of(request.nodes, 'node')} wanted, {free:,} free"
        placed = serve(tree_best_fit, alone)
        if not placed:
            return "no place was found for it, even alone"
        groups = np.unique(alone.machine.domain_of[0, list(placed[0][0])])
        taken = np.triu(self.state.taken_pairs[np.ix_(groups, groups)], 1).any()
        if problem.uses_links(request) and taken and not by_priority(alone):
            return "no place was found for it whose links are free"
        return self.outbid

    @property
    def tiles(self) -> Boxes:
        """A box for every group and router."""
        machine = self.state.machine
        router = np.arange(machine.num_nodes) // machine.nodes_per_router
        return numbered_boxes(("group", "router", "node"), router // machine.per_group, router)

    def picture(self) -> Picture:
        """Return the groups as a ring; lines join groups whose links a started job uses."""
        return Picture(self._draw_ring, HIGH, jobs_of(self.cells, self.cell, "jobs"))

    def _draw_ring(self, axes: Axes) -> None:
        machine = self.state.machine
        num, routers, nodes = machine.num_groups, machine.per_group, machine.nodes_per_router
        group, router, node = np.indices((num, routers, nodes)).reshape(3, -1)
        edges = [group + 0.95 * (router + side) / routers for side in (0, 0, 1, 1)]
        radius = [0.75 + 0.25 * (node + side) / nodes for side in (0, 1, 1, 0)]
        shapes = _points(np.stack(edges, 1), np.stack(radius, 1), num)
        rim = 0.2 if machine.num_nodes <= _MOST_RIMS else 0.0
        add_shapes(axes, list(shapes), self.cells.colours, RIM, rim)
        for start in self.starts:
            own = machine.groups_of(np.array(start.nodes)) + 0.475
            ends = np.array(list(itertools.combinations(own.tolist(), 2))).reshape(-1, 2)
            colour = job_colour(self.ranks[start.request])
            add_lines(axes, _points(ends, np.full(ends.shape, 0.73), num), colour, 0.8)
        middles = _points(np.arange(num) + 0.475, np.full(num, 1.05), num)
        for name, (x, y) in enumerate(middles.tolist()):
            axes.text(x, y, str(name), fontsize=TEXT, ha="center", va="center")
        axes.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
        axes.set_axis_off()


def _points(turns: FloatArray, radius: FloatArray, num: int) -> FloatArray:
    """Return x and y of points on a ring of `num` groups, clockwise from the top."""
    angle = 2 * np.pi * turns / num
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=-1)
