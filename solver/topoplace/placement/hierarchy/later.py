"""A hierarchy now and at a later time, as one with every resource twice: for reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from topoplace.errors import InputError
from topoplace.packing.problem import PackingProblem
from topoplace.placement.hierarchy.outcome import parts_of
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed
from topoplace.result.certificate import PlacedPart
from topoplace.snapshot.hierarchy_state import HierarchyState, PartState, prepare_hierarchy


class LaterOnHierarchy:
    """Running and started jobs end by their limits (`topoplace.placement.order.Later`).

    Raises
    ------
    InputError
        If a request wants domains alone: who is alone there later is not modelled.
    """

    def __init__(self, problem: HierarchyProblem) -> None:
        self._problem = problem
        alone = next(
            (r.id for r in problem.requests if r.exclusive is not None or r.parts[0].apart), None
        )
        if alone is not None:
            expected = "no request that is exclusive, or apart from others, in the order backfill"
            raise InputError(expected, field="order", found=f"{alone} is")
        snapshot = problem.state.snapshot
        walltime = {request.id: request.walltime for request in snapshot.queue}
        own = [walltime[request.id] for request in problem.requests]
        self._lasts = [None if seconds is None else max(1, seconds) for seconds in own]

    def ends(self, started: Sequence[int]) -> list[int]:
        """Return in how many seconds running jobs and some requests end, ascending, each once."""
        running = [job.ends for job in self._problem.state.snapshot.running]
        every = [*running, *(self._lasts[q] for q in started)]
        return sorted({end for end in every if end is not None})

    def at(self, seconds: int | None, alone: int) -> HierarchyPacking:
        """Return the packing of now and then, when alone a request takes what it wants."""
        state = self._problem.state

        def lasts(end: int | None) -> bool:
            return end is None or (seconds is not None and end > seconds)

        lasting = [job for job in state.snapshot.running if lasts(job.ends)]
        update = {"running": lasting, "queue": [], "left_out": []}
        then: HierarchyState = prepare_hierarchy(state.snapshot.model_copy(update=update))
        requests = []
        for q, request in enumerate(state.requests):
            now = int(q != alone), int(q == alone or lasts(self._lasts[q]))
            first, *others = (tuple(_twice(p, *now) for p in way) for way in request.ways)
            requests.append(replace(request, parts=first, others=tuple(others)))
        machine = replace(
            state.machine,
            resources=(*state.machine.resources, *(f"{r} then" for r in state.machine.resources)),
            capacity=np.hstack([state.machine.capacity] * 2),
        )
        free = np.hstack([state.free, then.free])
        own = replace(state, machine=machine, free=free, requests=tuple(requests))
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

    def parts(self, q: int, place: Placed) -> list[PlacedPart]:
        """Return where a request is, as in documents."""
        names = self._problem.machine.host_names
        return parts_of(self._problem.requests[q], place, names)


def _twice(part: PartState, now: int, then: int) -> PartState:
    takes = tuple(n * now for n in part.takes) + tuple(n * then for n in part.takes)
    return replace(part, takes=takes)
