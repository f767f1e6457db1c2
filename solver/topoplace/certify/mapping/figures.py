"""What a mapping is, and what it costs by walking every message one link at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from topoplace.certify.integers import IntArray
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.report import RefusedError
from topoplace.machine import Torus
from topoplace.result import Fraction as FractionModel
from topoplace.result import mapping as schema
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


def check_figures(instance: Instance, nodes: IntArray, claimed: schema.MappingFigures) -> int:
    """Check all figures of a mapping.

    Returns
    -------
    int
        Its hop-bytes.

    Raises
    ------
    RefusedError
        Naming the first figure that is not the checker's.
    """
    found = figures_of(instance, nodes)
    for name in schema.MappingFigures.model_fields:
        if getattr(claimed, name) != getattr(found, name):
            raise RefusedError(
                f"{name} is {getattr(claimed, name)}, the mapping has {getattr(found, name)}"
            )
    return found.hop_bytes


def figures_of(instance: Instance, nodes: IntArray) -> schema.MappingFigures:
    """Return the figures of a mapping under dimension-ordered routing."""
    machine = instance.machine
    routers = nodes // machine.nodes_per_router
    ends = routers[instance.sources], routers[instance.targets]
    load: FractionModel | None = None
    if isinstance(machine, Torus):
        hops, largest = _walk(machine, *ends, instance.sizes)
        load = FractionModel(numerator=largest.numerator, denominator=largest.denominator)
    else:
        hops = machine.distances[ends]
    lengths, times = np.unique(hops, return_counts=True)
    histogram = [0] * (int(lengths.max(initial=0)) + 1)
    for length, count in zip(lengths.tolist(), times.tolist(), strict=True):
        histogram[length] = count
    leaving = hops > 0
    return schema.MappingFigures(
        hop_bytes=sum((hops * instance.sizes).tolist()),
        hops=sum(hops.tolist()),
        off_router_messages=int(np.count_nonzero(leaving)),
        off_router_bytes=sum(instance.sizes[leaving].tolist()),
        max_hops=len(histogram) - 1,
        histogram=histogram,
        max_link_load=load,
    )


def _walk(
    torus: Torus, sources: IntArray, targets: IntArray, sizes: IntArray
) -> tuple[IntArray, Fraction]:
    """Return the links every message takes, and the largest load of a link in one direction.

    No load is above the bytes of all messages, which fit (`Instance`).
    """
    hops = np.zeros(len(sizes), dtype=np.int64)
    at = torus.coordinates[sources]
    goal = torus.coordinates[targets]
    strides = np.asarray(torus.strides)
    heaviest = Fraction(0)
    for d, n in enumerate(torus.shape):
        ahead = goal[:, d] - at[:, d]
        if torus.wrap[d]:
            ahead %= n
            ahead[2 * ahead > n] -= n
        for way in (1, -1):
            loads = np.zeros(torus.num_routers, dtype=np.int64)
            moving = np.flatnonzero(ahead * way > 0)
            while len(moving):
                np.add.at(loads, at[moving] @ strides, sizes[moving])
                at[moving, d] = (at[moving, d] + way) % n
                hops[moving] += 1
                ahead[moving] -= way
                moving = moving[ahead[moving] != 0]
            heaviest = max(heaviest, Fraction(int(loads.max()), torus.bandwidth[d]))
    return hops, heaviest
