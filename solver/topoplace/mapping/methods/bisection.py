"""Recursive bisection of any graph and any machine."""

from __future__ import annotations

from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.halving import halve_mapping
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.methods._boxes import spread_over_nodes
from topoplace.mapping.positions import symmetric
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register

TRIALS = 4
"""Bisections tried, each from other random matchings."""


@register("mapping", "bisection", "machine and graph halved together, again and again")
def map_bisection(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best of some recursive bisections (`halve_mapping`)."""
    halved = symmetric(problem)
    found = (
        spread_over_nodes(problem, halve_mapping(halved, seed=options.seed * TRIALS + trial))
        for trial in range(TRIALS)
    )
    return outcome_of(min(found, key=lambda nodes: hop_bytes(problem, nodes)))
