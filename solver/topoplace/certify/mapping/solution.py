"""Whether a solution is a mapping: every task on a node of the set, none too full."""

from __future__ import annotations

import numpy as np

from topoplace.certify.integers import IntArray
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.report import RefusedError
from topoplace.result.mapping import MappingSolution


def read_nodes(instance: Instance, solution: MappingSolution) -> IntArray:
    """Return the node of every task.

    Raises
    ------
    RefusedError
        If a task has no node, a node that tasks may not go to, or one that takes too many.
    """
    if len(solution.nodes) != instance.num_tasks:
        raise RefusedError(f"{len(solution.nodes)} nodes for {instance.num_tasks} tasks")
    highest = max(solution.nodes)
    if highest >= instance.machine.num_nodes:
        raise RefusedError(f"the machine has no node {highest}")
    nodes = np.asarray(solution.nodes, dtype=np.int64)
    outside = np.flatnonzero(~instance.usable[nodes])
    if len(outside):
        task = int(outside[0])
        raise RefusedError(f"task {task} is on node {nodes[task]}, which is not in the set")
    taken = np.bincount(nodes)
    fullest = int(taken.argmax())
    if taken[fullest] > instance.tasks_per_node:
        raise RefusedError(
            f"node {fullest} has {taken[fullest]} tasks, at most {instance.tasks_per_node} fit"
        )
    return nodes
