"""A torus now and at a later time: for reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from topoplace.machine.hostlist import format_node_set
from topoplace.packing.positions import Positions
from topoplace.packing.problem import PackingProblem
from topoplace.packing.twice import Twice
from topoplace.placement.order import Ends
from topoplace.placement.torus.anchored_packing import AnchoredPacking
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

    def solution(self, packing: PackingProblem, placement: Sequence[Any]) -> dict[int, Candidate]:
        """Return where requests are, by their number."""
        return {candidate.request_idx: candidate for candidate in placement}

    def candidates(self, packing: PackingProblem, solution: Mapping[int, Candidate]) -> list[Any]:
        """Return requests in their places as candidates."""
        return sorted(solution.values())

    def answer(self, solution: dict[int, Candidate]) -> list[Candidate]:
        """Return requests in their places as a solution of the problem."""
        return sorted(solution.values())

    def where(self, packing: PackingProblem, q: int, place: Candidate) -> dict[str, Any]:
        """Return where a request of a packing is: fields of `Reserved`."""
        assert isinstance(packing, Twice)
        assert isinstance(packing.then, TorusPacking | AnchoredPacking)
        nodes = format_node_set(packing.then.placement.choose_nodes(place).tolist())
        part = PlacedPart(shares=[Share(hosts=nodes, units=1)])
        others = [prism_model(other) for other in place.others] or None
        return {"parts": [part], "prism": prism_model(place.prism), "other_prisms": others}


class LaterOnAnchored(LaterOnTorus):
    """The same where prisms are anchored; what stays free takes no part in it."""

    def at(self, seconds: int | None, alone: int) -> Twice:
        """Return the packing of now and then, when alone a request is placed."""
        state = prepare(self.snapshot_at(seconds))
        own = replace(self._problem, state=state, _memo={}, _reaches={})
        then = AnchoredPacking(own, keeps=False)
        now = then.narrowed(self._problem)
        times = [self.times(q, seconds, alone) for q in range(len(then.names))]
        return Twice(now, now, then, times)

    def solution(
        self, packing: PackingProblem, placement: Sequence[Positions]
    ) -> dict[int, Candidate]:
        """Return where requests are, by their number."""
        return super().solution(packing, _anchored(packing).jobs(placement))

    def candidates(
        self, packing: PackingProblem, solution: Mapping[int, Candidate]
    ) -> list[Positions]:
        """Return requests in their places as candidates."""
        own = _anchored(packing)
        return sorted(own.positions_of(q, job) for q, job in solution.items())


def _anchored(packing: PackingProblem) -> AnchoredPacking:
    own = packing.then if isinstance(packing, Twice) else packing
    assert isinstance(own, AnchoredPacking)
    return own
