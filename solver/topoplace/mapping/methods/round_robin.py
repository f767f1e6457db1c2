"""Round robin: tasks dealt out one by one."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.outcome import MapOptions, MapOutcome
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.solve import register


@register("round-robin", "tasks dealt out one by one to as many nodes as are needed")
def map_round_robin(problem: MappingProblem, options: MapOptions) -> MapOutcome:
    """Put task i on node ``i % m`` of the first m nodes, as few as hold all tasks.

    The round robin of Bhatele 2008, section 3, on a node list.
    """
    del options
    needed = -(-problem.num_tasks // problem.tasks_per_node)
    tasks = np.arange(problem.num_tasks, dtype=np.int64)
    return MapOutcome(problem.nodes[tasks % needed])
