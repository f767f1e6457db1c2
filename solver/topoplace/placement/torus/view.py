"""What tables and pictures show of placements on tori and meshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from topoplace.errors import number_of
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.machine.hostlist import format_host_list
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.report.tiles import DOWN, FREE, RUNNING, UNUSABLE, Cells, Tiles, machine_tiles
from topoplace.report.view import View
from topoplace.result.base import Start
from topoplace.result.certificate import Reserved
from topoplace.snapshot.schema import TasksModel
from topoplace.types import IntArray

_SPACE_DIMS = 3


class TorusView(View):
    """Prisms; a picture has a cell for every router."""

    columns: ClassVar[Sequence[str]] = ("origin", "extents", "node_class", "score")
    cell: ClassVar[str] = "router"
    height: ClassVar[float] = 4.6
    greys: ClassVar[Sequence[int]] = (FREE, RUNNING, UNUSABLE, DOWN)

    def mapped(self) -> Iterator[tuple[str, TasksModel, IntArray]]:
        """Yield the requests whose tasks are mapped, with these, and the node of each."""
        tasks = {request.id: request.tasks for request in self.result.instance.queue}
        for own in () if self.result.solution is None else self.result.solution.placements:
            wanted = tasks[own.request]
            if own.mapping is not None and wanted is not None:
                yield own.request, wanted, np.array(own.mapping.nodes, dtype=np.int64)

    def _starts(self) -> list[Start]:
        state, result = self.state, self.result
        problem = PlacementProblem(state, result.limits.interference)
        numbers = {request.id: number for number, request in enumerate(problem.requests)}
        starts, names = [], state.snapshot.machine.node_names
        for own in result.solution.placements:
            number, score, origin, extents = numbers[own.request], None, None, None
            if own.prism is not None:
                origin, extents = tuple(own.prism.origin), tuple(own.prism.extents)
                score = problem.shape_score(Candidate(number, Prism(origin, extents)))
            nodes = parse_node_set(own.nodes, problem.torus.num_nodes, "nodes")
            starts.append(
                Start(
                    own.request,
                    tuple(map(int, nodes)),
                    format_host_list(names[n] for n in nodes) if names else format_node_set(nodes),
                    origin,
                    extents,
                    node_class=state.class_of(problem.requests[number]),
                    score=score,
                    others=tuple(
                        Prism(tuple(p.origin), tuple(p.extents)) for p in own.other_prisms or ()
                    ),
                )
            )
        return starts

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table of what starts."""
        return ("request", "nodes", "class", "prism")

    def row(self, start: Start) -> list[str]:
        """Return the row of a request that starts."""
        place = start.prism or f"nodes {start.hosts}"
        return [start.request, f"{len(start.nodes):,}", start.node_class or "-", place]

    def reasons(self) -> Mapping[str, str]:
        """Return the explanations of the result, and when a request with a reservation starts."""
        texts = {one.request: one.text for one in self.result.explanations}
        return texts | self.reserved()

    def room(self, reserved: Reserved) -> str:
        """Return the prisms of a reservation."""
        prisms = [p for p in (reserved.prism, *(reserved.other_prisms or ())) if p is not None]
        return " ".join(Prism(tuple(p.origin), tuple(p.extents)).text for p in prisms)

    def total(self) -> str:
        """Return what does not conform to the rule."""
        solution = self.result.solution
        if solution.conforming:
            return ""
        shared = f"{number_of(solution.num_shared_links, 'link')} shared against the rule"
        return f"\ndoes not conform: {shared}, or jobs without a prism"

    @cached_property
    def cells(self) -> Cells:
        """What is on every router.

        A service or down router inside a job's prism stays what it is; all other routers of a prism
        carry the job's code, the idle ones too. If there are several jobs on one router, the
        smallest is shown.
        """
        state, result = self.state, self.result
        torus = state.torus
        node_class = state.node_class.reshape(torus.num_routers, -1)
        up = np.ones(torus.num_nodes, dtype=bool)
        up[parse_node_set(state.snapshot.down, torus.num_nodes)] = False
        codes = np.where(up.reshape(torus.num_routers, -1).any(axis=1), FREE, DOWN)
        codes[(node_class < 0).all(axis=1)] = UNUSABLE
        fixed = codes != FREE
        owner = np.full(torus.num_routers, -1, dtype=np.int64)
        for idx, running in enumerate(state.running, start=len(state.queue)):
            codes[running.routers[~fixed[running.routers]]] = RUNNING
            owner[running.routers] = idx
        ranks, jobs = self.ranks, {}
        sizes = {request.id: request.nodes for request in state.queue}
        started = result.solution.placements if result.solution else []
        for start in sorted(started, key=lambda start: ranks[start.request]):
            code = ranks[start.request]
            jobs[code] = f"{start.request}: {sizes[start.request]:,}"
            held = parse_node_set(start.nodes, torus.num_nodes) // torus.nodes_per_router
            if start.prism is not None:
                prisms = [start.prism, *(start.other_prisms or ())]
                boxes = [Prism(tuple(p.origin), tuple(p.extents)) for p in prisms]
                held = np.concatenate([box.routers(torus) for box in boxes])
                shapes = dict.fromkeys("x".join(map(str, box.extents)) for box in boxes)
                jobs[code] += f", {' and '.join(shapes)}"
            codes[held[~fixed[held]]] = code
            owner[held] = code
        special = np.asarray((node_class > 0).any(axis=1)).reshape(torus.shape)
        codes = codes.reshape(torus.shape)
        block = np.ix_(*map(np.unique, np.nonzero(special)))
        if (special | (codes == UNUSABLE))[block].all():
            special[block] = True
        names = ", ".join(state.classes[1:]).upper()
        return Cells(codes, owner.reshape(torus.shape), special, names, jobs)

    @property
    def tiles(self) -> Tiles:
        """Slices of the machine."""
        return machine_tiles(self.state.torus.shape)

    @property
    def has_space(self) -> bool:
        """Whether the machine has three dimensions."""
        return self.cells.codes.ndim == _SPACE_DIMS
