"""The method `exact`: the engine on prisms, and why the rest of the queue waits."""

from __future__ import annotations

from dataclasses import replace

from topoplace import clock
from topoplace.memory import return_large_arrays
from topoplace.packing.budget import Budget
from topoplace.placement.engine import Packed, solved
from topoplace.placement.torus.anchored_packing import AnchoredPacking
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.footprints import quickest_footprints
from topoplace.placement.torus.later import LaterOnAnchored, LaterOnTorus
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.solving import Options, Outcome, register

_EXPLAINING = 0.3
"""Seconds that explanations have if the time is over; those of a 24^3 machine take some 0.2."""

_QUICK_TABLE = 1 << 24
"""Pairs of footprint and router above which they take longer; a 24^3 machine has half as many."""


def packed(problem: PlacementProblem) -> Packed:
    """Return the problem for the engine."""
    return_large_arrays()
    if problem.is_anchored:
        anchored = AnchoredPacking(problem)
        return Packed(anchored, anchored.jobs, later=lambda: LaterOnAnchored(problem))

    def nodes(candidate: Candidate) -> tuple[int, ...]:
        return tuple(problem.routers_of_use(candidate).tolist())

    places = {"prisms": lambda candidate: candidate.prism, "nodes": nodes}
    return Packed(TorusPacking(problem), list, places, lambda: LaterOnTorus(problem))


@register("placement", "exact")
def exact(problem: PlacementProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    if problem.maps:
        from topoplace.placement.torus.joint.method import JointSearch  # noqa: PLC0415 - heavy

        return JointSearch(problem, options).run()
    budget = Budget(options.time_limit)
    # the packing is freed first: explanations have large tables, too
    outcome = solved(problem, packed(problem), options, budget)
    if outcome.solution is None or not options.explains:
        return outcome
    left = budget.limit - clock.now()
    size = len(quickest_footprints(problem.torus).extents) * problem.torus.num_routers
    if left < _EXPLAINING and size > _QUICK_TABLE and not problem.is_anchored:
        return outcome
    until = clock.now() + max(left, _EXPLAINING)
    return replace(outcome, explanations=explain(problem, outcome.solution, until))
