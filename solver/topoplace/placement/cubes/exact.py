"""The method `exact` on cubes, and a pod now and at a later time: for reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from topoplace.packing.positions import Positions
from topoplace.packing.problem import PackingProblem
from topoplace.packing.twice import Twice
from topoplace.placement.cubes.packing import CubesPacking, unpooled
from topoplace.placement.cubes.problem import CubesProblem, Placed, placement_of
from topoplace.placement.engine import Packed, exact
from topoplace.placement.order import Ends
from topoplace.result.certificate import PlacedPart, Share
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.solving import register


class LaterOnCubes(Ends):
    """Running and started jobs end by their limits (`topoplace.placement.order.Later`)."""

    def __init__(self, problem: CubesProblem) -> None:
        self._problem = problem
        super().__init__(problem.state.snapshot, [r.id for r in problem.requests])

    def at(self, seconds: int | None, alone: int) -> Twice:
        """Return the packing of now and then, when alone a request is placed.

        What lasts has the same chips at both times, so all cubes are distinguished.
        """
        state = prepare_cubes(self.snapshot_at(seconds))
        then = CubesPacking(CubesProblem(state), merges=False)
        now = then.where(self._problem.state.free.ravel().astype(int), then.forms)
        times = [self.times(q, seconds, alone) for q in range(len(then.names))]
        return Twice(now, now, then, times)

    def solution(
        self, packing: PackingProblem, placement: Sequence[Positions]
    ) -> dict[int, Placed]:
        """Return where requests are, by their number."""
        return {one.request_idx: one for one in unpooled(_cubes(packing), placement)}

    def candidates(
        self, packing: PackingProblem, solution: Mapping[int, Placed]
    ) -> list[Positions]:
        """Return requests in their places as candidates."""
        own = _cubes(packing)
        return sorted(own.candidate(placed) for placed in solution.values())

    def answer(self, solution: dict[int, Placed]) -> list[Placed]:
        """Return requests in their places as a solution of the problem."""
        return [*solution.values()]

    def where(self, packing: PackingProblem, q: int, place: Placed) -> dict[str, Any]:
        """Return where a request of a packing is: fields of `Reserved`."""
        own = placement_of(self._problem, place)
        part = PlacedPart(shares=[Share(hosts=own.nodes, units=1)])
        return {"parts": [part], "prism": own.prism}


def _cubes(packing: PackingProblem) -> CubesPacking:
    own = packing.then if isinstance(packing, Twice) else packing
    assert isinstance(own, CubesPacking)
    return own


def packed(problem: CubesProblem) -> Packed:
    """Return the problem for the engine."""
    packing = CubesPacking(problem)
    return Packed(packing, partial(unpooled, packing), later=lambda: LaterOnCubes(problem))


register("cubes", "exact")(exact)
