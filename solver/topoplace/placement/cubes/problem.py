"""Which requests start, and in which cubes: the problem that methods solve, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from topoplace.machine import format_node_set
from topoplace.machine.cubes import Cubes, Extents
from topoplace.result.placement import CubesLevel, CubesPlacement, CubesResult, CubesSolution
from topoplace.snapshot.cubes_state import CubesRequest, CubesState
from topoplace.snapshot.schema import PrismModel
from topoplace.solving.registry import Options
from topoplace.solving.solve import Frame
from topoplace.types import BoolArray, IntArray, Levels


@dataclass(frozen=True)
class Placed:
    """A request that starts: on whole cubes, or on a part of one with its origin and extents."""

    request_idx: int
    cubes: tuple[int, ...]
    origin: Extents | None = None
    extents: Extents | None = None


Started = Sequence[Placed]


@dataclass(frozen=True)
class CubesProblem:
    """Which requests of a snapshot start, and where (docs/proofs/cubes.md)."""

    state: CubesState
    kind: ClassVar[str] = "cubes"
    levels: ClassVar[Levels] = (("nodes", "max"), ("free_cubes", "max"))

    @property
    def machine(self) -> Cubes:
        """The machine."""
        return self.state.machine

    @property
    def requests(self) -> tuple[CubesRequest, ...]:
        """The queue, in its order."""
        return self.state.requests

    @cached_property
    def free_cubes(self) -> IntArray:
        """The cubes all of whose chips are free."""
        return np.flatnonzero(self.state.free.all(axis=1))

    def chips_of(self, placed: Placed) -> IntArray:
        """Return the chips of a request that starts, ascending."""
        machine = self.machine
        if placed.origin is None or placed.extents is None:
            return np.concatenate([machine.chips_of(cube) for cube in sorted(placed.cubes)])
        inside = machine.inside(placed.origin, placed.extents)
        return inside + placed.cubes[0] * machine.volume

    def worth(self, started: Started) -> list[int]:
        """Return the weighted chips that start, and how many cubes stay free as a whole."""
        left = self.state.free.copy()
        for placed in started:
            left.ravel()[self.chips_of(placed)] = False
        value = sum(self.requests[placed.request_idx].value for placed in started)
        return [value, int(left.all(axis=1).sum())]


class Room:
    """What is free while requests are placed one after the other; `free` may be changed."""

    def __init__(self, problem: CubesProblem) -> None:
        self._problem, self.free = problem, problem.state.free.copy()
        self._inside: dict[Extents, tuple[list[Extents], IntArray]] = {}

    def place(self, idx: int, *, fullest: bool = False) -> Placed | None:
        """Place a request on the first cubes, or on a part of the first or the fullest cube."""
        request = self._problem.requests[idx]
        if request.num_cubes:
            return self.whole(idx)
        return self.part(idx, request.parts, np.ones(len(self.free), dtype=bool), fullest=fullest)

    def whole(self, idx: int) -> Placed | None:
        """Place a request on the first free cubes; None if there are too few."""
        request = self._problem.requests[idx]
        each = [np.flatnonzero(own.all(axis=1)).tolist() for own in request.among(self.free)]
        found = [cubes[: request.num_cubes] for cubes in each if len(cubes) >= request.num_cubes]
        return self._taken(Placed(idx, tuple(min(found)))) if found else None

    def part(
        self, idx: int, shapes: Sequence[Extents], among: BoolArray, *, fullest: bool
    ) -> Placed | None:
        """Place a request on a part of some shape: the first free one, in one of some cubes.

        That is the first cube that has one, or the `fullest`; of its parts the first by shape, then
        by origin.
        """
        found: dict[int, tuple[Extents, Extents]] = {}
        free = self._problem.requests[idx].among(self.free)
        for extents in shapes:
            origins, chips = self._parts(extents)
            fits = np.any([own[:, chips].all(axis=2) for own in free], axis=0) & among[:, None]
            for cube in np.flatnonzero(fits.any(axis=1)).tolist():
                found.setdefault(cube, (origins[int(fits[cube].argmax())], extents))
        if not found:
            return None
        left = self.free.sum(axis=1) if fullest else np.zeros(len(self.free))
        cube = min(found, key=lambda cube: (left[cube], cube))
        return self._taken(Placed(idx, (cube,), *found[cube]))

    def _parts(self, extents: Extents) -> tuple[list[Extents], IntArray]:
        if extents not in self._inside:
            machine = self._problem.machine
            origins = machine.origins(extents)
            chips = np.array([machine.inside(origin, extents) for origin in origins])
            self._inside[extents] = origins, chips
        return self._inside[extents]

    def _taken(self, placed: Placed) -> Placed:
        self.free.ravel()[self._problem.chips_of(placed)] = False
        return placed


def problem_of(state: CubesState, options: Options) -> CubesProblem:
    """Return the problem of placing the queue; it does not depend on the options."""
    return CubesProblem(state)


def placement_of(problem: CubesProblem, placed: Placed) -> CubesPlacement:
    """Return a request that starts as it is written in documents."""
    prism = None
    if placed.origin is not None and placed.extents is not None:
        prism = PrismModel(origin=list(placed.origin), extents=list(placed.extents))
    return CubesPlacement(
        request=problem.requests[placed.request_idx].id,
        cubes=sorted(placed.cubes),
        prism=prism,
        nodes=format_node_set(problem.chips_of(placed).tolist()),
    )


def _solution(problem: CubesProblem, started: Started) -> CubesSolution:
    order = sorted(started, key=lambda placed: placed.request_idx)
    return CubesSolution(placements=[placement_of(problem, placed) for placed in order])


FRAME = Frame(CubesProblem.worth, CubesResult, CubesLevel, _solution)
