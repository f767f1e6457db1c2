"""The default method: what proves most for the application at hand."""

from __future__ import annotations

from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, method_of, register

STRUCTURED = ("pencils", "blocks", "fold-2d")
"""Constructions that use the shape of a grid; each refuses what it cannot map."""

BRANCH_SECONDS = 20.0
"""Most time for branch and bound if the options set none."""


@register("mapping", "auto", "the best of the constructions; for graphs as exact, within a time")
def auto(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best mapping of the structured methods, else as `exact` does.

    Ties go to the earlier method, so that a pencil placement keeps its statement of optimality.
    """
    best: Outcome | None = None
    least = 0
    for name in STRUCTURED:
        method = method_of("mapping", name)
        if method.needs_grid and problem.grid is None:
            continue
        try:
            found = method.solver(problem, options)
        except InputError:
            continue  # no such structure here: that is what it is asked for
        if found.solution is None:
            continue
        cost = hop_bytes(problem, found.solution.nodes)
        if best is None or cost < least:
            best, least = found, cost
    if best is not None:
        return best
    from topoplace.mapping.methods.exact import exact_or_search  # noqa: PLC0415 - heavy

    return exact_or_search(problem, options, BRANCH_SECONDS)
