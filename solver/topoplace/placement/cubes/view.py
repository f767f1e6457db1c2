"""What tables and pictures show of placements on pods of cubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from topoplace.errors import number_of
from topoplace.machine import format_node_set, parse_node_set
from topoplace.placement.cubes.problem import CubesProblem, Room
from topoplace.report.domains import Boxes, numbered_boxes
from topoplace.report.view import View
from topoplace.result.base import Start
from topoplace.snapshot.cubes_state import CubesRequest
from topoplace.types import BoolArray


class CubesView(View):
    """Cubes and parts of cubes; a picture has a cell for every chip."""

    columns: ClassVar[Sequence[str]] = ("cubes", "origin", "extents")

    def _starts(self) -> list[Start]:
        starts = []
        for own in self.result.solution.placements:
            nodes = parse_node_set(own.nodes, self.state.machine.num_chips, "nodes")
            origin, extents = None, None
            if own.prism is not None:
                origin, extents = tuple(own.prism.origin), tuple(own.prism.extents)
            place = origin, extents
            cubes = tuple(own.cubes)
            starts.append(Start(own.request, tuple(nodes.tolist()), own.nodes, *place, cubes=cubes))
        return starts

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table of what starts."""
        return ("request", "nodes", "part", "cubes")

    def row(self, start: Start) -> list[str]:
        """Return the row of a request that starts."""
        cubes = format_node_set(start.cubes or ())
        return [start.request, f"{len(start.nodes):,}", start.prism or "whole", cubes]

    def reasons(self) -> Mapping[str, str]:
        """Return why requests wait, from the result alone."""
        state, problem = self.state, CubesProblem(self.state)
        left = state.free.copy()
        for start in self.starts:
            left.ravel()[list(start.nodes)] = False

        def fits(idx: int, free: BoolArray) -> bool:
            room = Room(problem)
            room.free = free.copy()
            return room.place(idx) is not None

        def text(idx: int, request: CubesRequest) -> str:
            if request.num_cubes:
                wanted = f"{number_of(request.num_cubes, 'free cube')} wanted"
                there = max(int(own.all(axis=1).sum()) for own in request.among(state.free))
                none = f"{wanted}, {there:,} there"
            else:
                wanted = f"{number_of(request.nodes, 'chip')} of one cube wanted"
                none = f"{wanted}, no part of such a shape is free"
            sets = [number_of(int(own.mask.sum()), "chip") for own in request.allowed if own]
            if len(sets) == len(request.allowed):
                none += f" among the {' or '.join(sorted(sets))} it may have"
            if not fits(idx, state.free):
                return none
            if fits(idx, left):
                return f"{wanted}, still there, but {self.result.method} left it out"
            return self.outbid

        every = enumerate(state.requests)
        return {
            request.id: text(idx, request)
            for idx, request in every
            if request.id not in self.started
        } | self.reserved()

    @property
    def tiles(self) -> Boxes:
        """A box for every cube."""
        machine = self.state.machine
        cube_of = np.repeat(np.arange(machine.num_cubes), machine.volume)
        return numbered_boxes(("cube", "chip"), cube_of)
