"""The default (SMP) order: consecutive ranks fill node after node."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


@register("mapping", "default", "consecutive tasks fill node after node (SMP order)")
def map_default(problem: MappingProblem, options: Options) -> Outcome:
    """Put task i on the usable node number ``i // tasks_per_node`` (Enos 2014 IV.B, "default")."""
    del options
    tasks = np.arange(problem.num_tasks, dtype=np.int64)
    return outcome_of(problem.nodes[tasks // problem.tasks_per_node])
