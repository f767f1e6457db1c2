"""Random nodes: every request in turn takes usable nodes anywhere, as a baseline."""

from __future__ import annotations

import numpy as np

from topoplace.placement.torus.heuristics.node_order import place_in_order
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.solving import Options, Outcome, register


@register(
    "placement", "random-nodes", "nodes in queue order, anywhere (by seed)", uses_prisms=False
)
def _random_nodes(problem: PlacementProblem, options: Options) -> Outcome:
    order = np.random.default_rng(options.seed).permutation(problem.torus.num_nodes)
    return Outcome(place_in_order(problem, order))
