"""Greedy construction of a mapping of any graph."""

from __future__ import annotations

from topoplace.mapping.growing import grow_mapping
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.methods._boxes import spread_over_nodes
from topoplace.mapping.positions import symmetric
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


@register("mapping", "greedy", "the most connected task next to its placed partners")
def map_greedy(problem: MappingProblem, options: Options) -> Outcome:
    """Place task after task, the one with most bytes to those placed (`grow_mapping`)."""
    del options
    return outcome_of(spread_over_nodes(problem, grow_mapping(symmetric(problem))))
