"""Round robin: tasks dealt out one by one."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


@register("mapping", "round-robin", "tasks dealt out one by one to as many nodes as are needed")
def map_round_robin(problem: MappingProblem, options: Options) -> Outcome:
    """Put task i on node ``i % m`` of the first m nodes, as few as hold all tasks.

    The round robin of Bhatele 2008, section 3, on a node list.
    """
    del options
    needed = -(-problem.num_tasks // problem.tasks_per_node)
    tasks = np.arange(problem.num_tasks, dtype=np.int64)
    return outcome_of(problem.nodes[tasks % needed])
