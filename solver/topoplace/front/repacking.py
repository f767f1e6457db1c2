"""Find the moves of running jobs after which requests start, or most room is left."""

from __future__ import annotations

from topoplace import options
from topoplace.front.documents import options_of, watched
from topoplace.front.placing import prepared
from topoplace.kernels import compile_for
from topoplace.options import takes
from topoplace.placement.repack.defragment import defragmented
from topoplace.placement.repack.problem import instance_of, repack_problem
from topoplace.result.placement import RepackResult
from topoplace.result.several import Frontier
from topoplace.solving import Options, solve


@takes(options.Repack)
def repack(asked: options.Repack) -> RepackResult | Frontier:
    """Find the fewest running jobs to move so that requests start, or that make most room.

    Either way it is proven that no other moves do better.

    Returns
    -------
    RepackResult, Frontier
        The plan; or, to defragment, a plan for every cost with more room, in `points`. Printed, it
        is the curve and the steps of the last plan; it plots itself, and can be checked.
    """
    settings = options_of(asked)
    snapshot = prepared(asked, Options()).snapshot
    problem = repack_problem(instance_of(snapshot, asked), settings.interference)
    compile_for("repack", ["exact"])
    with watched(settings, asked) as settings:
        if asked.defragment is None:
            plan: RepackResult = solve(problem, "exact", settings)
            return plan
        return defragmented(problem, settings)
