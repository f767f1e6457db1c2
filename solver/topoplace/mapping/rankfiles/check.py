"""Tests whether a list of nodes is a mapping of an instance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem


def require_mapping(
    problem: MappingProblem,
    nodes: IntArray,
    *,
    file: str | None = None,
    where: Callable[[int], str] = "task {}".format,
) -> None:
    """Raise `InputError` unless every task has a usable node and no node too many tasks.

    Parameters
    ----------
    problem
        The instance.
    nodes
        Node of every task.
    file, where
        For messages: the file the mapping was read from, and the place in it of a task.
    """
    if len(nodes) != problem.num_tasks:
        raise InputError(f"nodes for {problem.num_tasks} tasks", file=file, value=len(nodes))
    strange = np.flatnonzero(~np.isin(nodes, problem.nodes))
    if len(strange):
        task = int(strange[0])
        raise InputError(
            "a node that tasks may go to", file=file, field=where(task), value=int(nodes[task])
        )
    count = np.bincount(nodes)
    if count.max() > problem.tasks_per_node:
        node = int(count.argmax())
        task = int(np.flatnonzero(nodes == node)[problem.tasks_per_node])
        raise InputError(
            f"at most {problem.tasks_per_node} tasks on a node",
            file=file,
            field=where(task),
            value=f"{count[node]} on node {node}",
        )
