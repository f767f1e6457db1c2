"""What a placement on cubes is worth, and its form in a result document."""

from __future__ import annotations

from topoplace.machine import format_node_set
from topoplace.placement.cubes.problem import LEVELS, CubesProblem, Started
from topoplace.result.placement import CubesLevel, CubesPlacement, CubesResult, CubesSolution
from topoplace.snapshot.held import queue_facts
from topoplace.snapshot.schema import PrismModel
from topoplace.solving.solve import Frame, called


def _solution(problem: CubesProblem, started: Started) -> CubesSolution:
    placements = []
    for placed in sorted(started, key=lambda placed: placed.request_idx):
        prism = None
        if placed.origin is not None and placed.extents is not None:
            prism = PrismModel(origin=list(placed.origin), extents=list(placed.extents))
        placements.append(
            CubesPlacement(
                request=problem.requests[placed.request_idx].id,
                cubes=sorted(placed.cubes),
                prism=prism,
                nodes=format_node_set(problem.chips_of(placed).tolist()),
            )
        )
    return CubesSolution(placements=placements)


def _facts(result: CubesResult) -> dict[str, int | None]:
    found = result.solution
    return {
        "started": None if found is None else len(found.placements),
        **queue_facts(result.instance),
    }


FRAME = Frame(
    lambda problem: LEVELS,
    called,
    CubesProblem.worth,
    CubesResult,
    CubesLevel,
    _solution,
    lambda problem: problem.state.snapshot,
    facts=_facts,
)
