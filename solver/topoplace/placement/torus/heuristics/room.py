"""What is left of a machine while a heuristic places one prism after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from topoplace.machine import prism_links
from topoplace.placement.torus.heuristics import _kernels
from topoplace.placement.torus.heuristics.footprints import Footprints, ReachArray, footprints_of
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot import QueuedState
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True)
class Reach:
    """How deep free prisms go.

    Attributes
    ----------
    table
        Largest depth per footprint and origin on the turned machine, shape
        ``(num_footprints, num_routers)``; undefined where the footprint is dead.
    deepest
        Largest entry per footprint, 0 for a dead one.
    """

    table: ReachArray
    deepest: IntArray


def reach_of(footprints: Footprints, blocked: BoolArray, closed: BoolArray) -> Reach:
    """Return the reach of prisms without a blocked router and without a closed link.

    Parameters
    ----------
    blocked
        Per router.
    closed
        Per link number.
    """
    torus = footprints.torus
    num_footprints = len(footprints.area)
    table: ReachArray = np.empty((num_footprints, torus.num_routers), dtype=footprints.reach_type)
    return refill(
        Reach(table, np.zeros(num_footprints, dtype=np.int64)), footprints, blocked, closed
    )


def refill(reach: Reach, footprints: Footprints, blocked: BoolArray, closed: BoolArray) -> Reach:
    """Write a new reach over an old one, whose memory it keeps."""
    torus = footprints.turned
    lines = (-1, footprints.depth)
    blocked, links = footprints.per_router(blocked), footprints.per_link(closed)
    wraps = torus.wrap[-1]
    kind = footprints.reach_type
    _kernels.runs(
        blocked.reshape(lines), links[-1].reshape(lines), wraps, reach.table[0].reshape(lines)
    )
    head = torus.num_dims - 1
    along = np.zeros((max(head, 1), torus.num_routers), dtype=kind)
    around = np.zeros((max(head, 1), torus.num_routers), dtype=kind)
    nothing = np.zeros((torus.num_routers // footprints.depth, footprints.depth), dtype=bool)
    for d in range(head):
        _kernels.runs(links[d].reshape(lines), nothing, wraps, along[d].reshape(lines))
        rings = along[d].reshape(-1, torus.shape[d], torus.strides[d])
        around[d] = np.broadcast_to(rings.min(axis=1, keepdims=True), rings.shape).ravel()
    _kernels.fold(
        np.array(torus.shape),
        np.array(torus.wrap),
        footprints.extents,
        *footprints.plan,
        along,
        around,
        reach.table,
        reach.deepest,
    )
    return reach


class Room:
    """The routers and links that running jobs and the jobs placed so far leave to others."""

    def __init__(self, problem: PlacementProblem, started: Iterable[Candidate] = ()) -> None:
        self.problem = problem
        self._taken = np.zeros(problem.torus.num_routers, dtype=bool)
        self._links = {kind: np.zeros(problem.torus.num_links, dtype=bool) for kind in (0, 1)}
        self._reaches: dict[object, tuple[int, Reach]] = {}
        self._version = 0
        for candidate in started:
            self.add(candidate)

    def add(self, candidate: Candidate) -> None:
        """Take the routers and links of a job."""
        problem = self.problem
        communication = problem.requests[candidate.request_idx].communication
        self._taken[candidate.prism.routers(problem.torus)] = True
        if problem.uses_links(communication):
            links = prism_links(problem.torus, candidate.prism)
            self._links[problem.is_tolerant(communication)][links] = True
        self._version += 1

    def closed_links(self, request: QueuedState) -> BoolArray:
        """Return the links closed to a request, shape ``(num_links,)``."""
        problem = self.problem
        closed = problem.closed_links(request.communication)
        if problem.uses_links(request.communication):
            closed = closed | self._links[False]
            if not problem.is_tolerant(request.communication):
                closed = closed | self._links[True]
        return closed

    def reach(self, request: QueuedState) -> Reach:
        """Return the reach of the request's prisms; valid until the next call."""
        problem = self.problem
        uses_links = problem.uses_links(request.communication)
        key = (request.region, uses_links, problem.is_tolerant(request.communication))
        version, reach = self._reaches.get(key, (-1, None))
        if version == self._version and reach is not None:
            return reach
        footprints = footprints_of(problem.torus)
        blocked = ~problem.allowed_routers(request) | self._taken
        closed = self.closed_links(request)
        if reach is None:
            reach = reach_of(footprints, blocked, closed)
        else:
            refill(reach, footprints, blocked, closed)
        self._reaches[key] = (self._version, reach)
        return reach
