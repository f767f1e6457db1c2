"""The default (SMP) order: consecutive ranks fill node after node."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.outcome import MapOptions, MapOutcome
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.solve import register


@register("default", "consecutive tasks fill node after node (SMP order)")
def map_default(problem: MappingProblem, options: MapOptions) -> MapOutcome:
    """Put task i on the usable node number ``i // tasks_per_node`` (Enos 2014 IV.B, "default")."""
    del options
    tasks = np.arange(problem.num_tasks, dtype=np.int64)
    return MapOutcome(problem.nodes[tasks // problem.tasks_per_node])
