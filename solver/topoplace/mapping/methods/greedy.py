"""Greedy construction of a mapping of any graph."""

from __future__ import annotations

from topoplace.mapping.growing import grow_mapping
from topoplace.mapping.methods._boxes import spread_over_nodes
from topoplace.mapping.outcome import MapOptions, MapOutcome
from topoplace.mapping.positions import symmetric
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.solve import register


@register("greedy", "the most connected task next to its placed partners")
def map_greedy(problem: MappingProblem, options: MapOptions) -> MapOutcome:
    """Place task after task, the one with most bytes to those placed (`grow_mapping`)."""
    del options
    return MapOutcome(spread_over_nodes(problem, grow_mapping(symmetric(problem))))
