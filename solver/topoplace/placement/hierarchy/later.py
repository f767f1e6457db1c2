"""A hierarchy now and at a later time, as one with every resource twice: for reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from topoplace.packing.problem import PackingProblem
from topoplace.placement.hierarchy.outcome import parts_of
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed
from topoplace.placement.order import Ends
from topoplace.snapshot.hierarchy_state import PartState, prepare_hierarchy


class LaterOnHierarchy(Ends):
    """Running and started jobs end by their limits (`topoplace.placement.order.Later`).

    Parameters
    ----------
    slack
        Seconds by which requests last longer than their limits, if they have one.
    """

    def __init__(self, problem: HierarchyProblem, slack: int = 0) -> None:
        self._problem = problem
        super().__init__(problem.state.snapshot, [r.id for r in problem.requests], slack)

    def at(self, seconds: int | None, alone: int) -> HierarchyPacking:
        """Return the packing of now and then, when alone a request takes what it wants."""
        state = self._problem.state
        then = prepare_hierarchy(self.snapshot_at(seconds))
        requests = []
        for q, request in enumerate(state.requests):
            ways = (request if q != alone else then.requests[q]).ways
            at = self.times(q, seconds, alone)
            first, *others = (tuple(_twice(p, *at) for p in way) for way in ways)
            requests.append(replace(request, parts=first, others=tuple(others)))
        machine = replace(
            state.machine,
            resources=(*state.machine.resources, *(f"{r} then" for r in state.machine.resources)),
            capacity=np.hstack([state.machine.capacity] * 2),
        )
        free = np.hstack([state.free, then.free])
        own = replace(
            state,
            machine=machine,
            free=free,
            requests=tuple(requests),
            occupied_then=then.occupied,
        )
        return HierarchyPacking(HierarchyProblem(own))

    def solution(
        self, packing: PackingProblem, placement: Sequence[Candidate]
    ) -> dict[int, Placed]:
        """Return where requests are, by their number, of a placement of one of these packings."""
        assert isinstance(packing, HierarchyPacking)
        return packing.started(placement)

    def candidates(
        self, packing: PackingProblem, solution: Mapping[int, Placed]
    ) -> list[Candidate]:
        """Return requests in their places as candidates of one of these packings."""
        assert isinstance(packing, HierarchyPacking)
        return packing.candidates(solution)

    def answer(self, solution: dict[int, Placed]) -> dict[int, Placed]:
        """Return requests in their places as a solution of the problem."""
        return solution

    def where(self, packing: PackingProblem, q: int, place: Placed) -> dict[str, Any]:
        """Return where a request of a packing is: fields of `Reserved`."""
        names = self._problem.machine.host_names
        return {"parts": parts_of(self._problem.requests[q], place, names)}


def _twice(part: PartState, now: bool, then: bool) -> PartState:
    takes = tuple(n * now for n in part.takes) + tuple(n * then for n in part.takes)
    apart = part.apart if now else ()
    apart += tuple((level, f"{name} then") for level, name in part.apart if then)
    return replace(part, takes=takes, apart=tuple(sorted(apart)))
