"""A torus now and at a later time: for reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from topoplace.machine.hostlist import format_node_set
from topoplace.packing.problem import PackingProblem
from topoplace.packing.twice import Twice
from topoplace.placement.order import Ends
from topoplace.placement.torus.outcome import prism_model
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result.certificate import PlacedPart, Share
from topoplace.snapshot.state import prepare


class LaterOnTorus(Ends):
    """Running and started jobs end by their limits (`topoplace.placement.order.Later`)."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._problem = problem
        super().__init__(problem.state.snapshot, [r.id for r in problem.requests])

    def at(self, seconds: int | None, alone: int) -> Twice:
        """Return the packing of now and then, when alone a request is placed."""
        problem = self._problem
        state = prepare(self.snapshot_at(seconds))
        then = replace(problem, state=state, _memo={}, _reaches={})
        now = TorusPacking(problem, threads=1)
        times = [self.times(q, seconds, alone) for q in range(len(problem.requests))]
        return Twice(now, now, TorusPacking(then, threads=1), times)

    def solution(
        self, packing: PackingProblem, placement: Sequence[Candidate]
    ) -> dict[int, Candidate]:
        """Return where requests are, by their number."""
        return {candidate.request_idx: candidate for candidate in placement}

    def candidates(
        self, packing: PackingProblem, solution: Mapping[int, Candidate]
    ) -> list[Candidate]:
        """Return requests in their places as candidates."""
        return sorted(solution.values())

    def answer(self, solution: dict[int, Candidate]) -> list[Candidate]:
        """Return requests in their places as a solution of the problem."""
        return sorted(solution.values())

    def where(self, packing: PackingProblem, q: int, place: Candidate) -> dict[str, Any]:
        """Return where a request of a packing is: fields of `Reserved`."""
        assert isinstance(packing, Twice)
        assert isinstance(packing.then, TorusPacking)
        nodes = format_node_set(packing.then.placement.choose_nodes(place).tolist())
        part = PlacedPart(shares=[Share(hosts=nodes, units=1)])
        return {"parts": [part], "prism": prism_model(place.prism)}
