"""The default method: what proves most for the application at hand."""

from __future__ import annotations

from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.outcome import MapOptions, MapOutcome
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.solve import map_methods, register

STRUCTURED = ("pencils", "blocks", "fold-2d")
"""Constructions that use the shape of a grid; each refuses what it cannot map."""


@register("auto", "the best of the constructions; local search for what has no structure")
def auto(problem: MappingProblem, options: MapOptions) -> MapOutcome:
    """Return the best mapping of the structured methods, else the local search's.

    Ties go to the earlier method, so that a pencil placement keeps its statement of optimality.
    """
    known = map_methods()
    best: MapOutcome | None = None
    for name in STRUCTURED:
        if known[name].needs_grid and problem.grid is None:
            continue
        try:
            found = known[name].mapper(problem, options)
        except InputError:
            continue  # no such structure here: that is what it is asked for
        if found.nodes is None:
            continue
        if best is None or best.nodes is None:
            best = found
        elif hop_bytes(problem, found.nodes) < hop_bytes(problem, best.nodes):
            best = found
    return best or known["local-search"].mapper(problem, options)
