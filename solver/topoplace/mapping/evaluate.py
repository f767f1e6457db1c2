"""The costs of a mapping: hops, hop-bytes and link loads (Bhatele 2009, section 1)."""

from __future__ import annotations

from fractions import Fraction as Ratio
from typing import Any

import numpy as np

from topoplace.machine import LevelMachine, Torus
from topoplace.mapping.problem import MappingProblem, num_moved
from topoplace.result import Fraction
from topoplace.result.mapping import MappingFigures
from topoplace.types import IntArray


def hop_bytes(problem: MappingProblem, nodes: IntArray) -> int:
    """Return the hop-bytes of a mapping, given the node of every task."""
    routers, graph = problem.routers_of(nodes), problem.graph
    total = int(problem.machine.hops(routers[graph.sources], routers[graph.targets]) @ graph.bytes)
    if problem.listed_trees:
        sizes = problem.trees.bytes
        total += sum(int((up + down) @ sizes[tree]) for tree, _, up, down in problem.arms(nodes))
        tree, roots, ends = problem.copies(nodes)
        total += int(problem.machine.hops(roots, ends) @ sizes[tree])
    return total


def worth_of(problem: MappingProblem, nodes: IntArray) -> list[int]:
    """Return the value of a mapping on every level, given the node of every task."""
    found = [max(problem.spans(nodes))] if problem.spread else []
    found.append(hop_bytes(problem, nodes))
    if problem.instance.cap is not None:
        found.append(problem.largest_load(problem.cells_of(nodes)))
    return found


def evaluate(problem: MappingProblem, nodes: IntArray) -> MappingFigures:
    """Return all figures of a mapping, given the node of every task.

    The largest bytes over one link in one direction, divided by its bandwidth, are an estimate of
    the time of the exchange; a machine without links has None.
    """
    sources, targets, sizes = problem.sent(nodes)
    hops = problem.machine.hops(sources, targets)
    apart = hops > 0
    heaviest = None
    if isinstance(problem.machine, Torus):
        torus = problem.machine
        over = link_loads(torus, sources, targets, sizes)
        most = max(
            Ratio(int(over[:, d].max(initial=0)), bandwidth)
            for d, bandwidth in enumerate(torus.bandwidth)
        )
        heaviest = Fraction.of(most)
    levels, loads = None, dict[str, Any]()
    if problem.spread:
        loads = {"spans": problem.spans(nodes)}
    if isinstance(problem.machine, LevelMachine):
        levels = _level_bytes(problem.machine, sources, targets, sizes)
    if problem.instance.cap is not None:
        largest = problem.largest_load(problem.cells_of(nodes))
        loads = {"largest_load": largest, "used_nodes": len(np.unique(nodes))}
    if problem.before is not None:
        loads |= {"moved": num_moved(problem, nodes)}
    return MappingFigures(
        hop_bytes=int(hops @ sizes),
        hops=int(hops.sum()),
        off_router_messages=int(apart.sum()),
        off_router_bytes=int(sizes[apart].sum()),
        max_hops=int(hops.max(initial=0)),
        histogram=np.bincount(hops, minlength=1).tolist(),
        max_link_load=heaviest,
        level_bytes=levels,
        **loads,
    )


def _level_bytes(
    machine: LevelMachine, sources: IntArray, targets: IntArray, sizes: IntArray
) -> list[int]:
    """Return the bytes of all messages by the level at which their ends meet."""
    sums = np.zeros(machine.num_levels + 1, dtype=np.int64)
    np.add.at(sums, machine.meeting(sources, targets), sizes)
    found: list[int] = sums.tolist()
    return found


def link_loads(torus: Torus, sources: IntArray, targets: IntArray, sizes: IntArray) -> IntArray:
    """Return the bytes of messages between routers over every link, in dimension-ordered routing.

    Shape ``(2, num_dims, num_routers)``: bytes in the positive (0) and the negative (1) direction
    over the d-link of every router. Ties at half a ring go the positive way
    (`topoplace.machine`).
    """
    loads = np.zeros((2, torus.num_dims, torus.num_routers), dtype=np.int64)
    at = sources.copy()
    for d, (n, stride, wraps) in enumerate(
        zip(torus.shape, torus.strides, torus.wrap, strict=True)
    ):
        place = np.ascontiguousarray(torus.coordinates[:, d])
        here, goal = place[sources], place[targets]
        moving = np.flatnonzero(here != goal)
        here, goal, sent = here[moving], goal[moving], sizes[moving]
        base = at[moving] - here * stride
        ahead = goal - here
        if wraps:
            ahead += n * (ahead < 0)
            ahead -= n * (2 * ahead > n)
        # the lowest link of an arc is the first one going up the ring
        for way, (taken, start) in enumerate(((ahead > 0, here), (ahead < 0, goal))):
            arcs = (part[taken] for part in (base, start, np.abs(ahead), sent))
            loads[way, d] = _arc_sums(torus, d, *arcs)
        at[moving] = base + goal * stride
    return loads


def _arc_sums(
    torus: Torus, dim: int, base: IntArray, start: IntArray, length: IntArray, sizes: IntArray
) -> IntArray:
    """Add sizes over arcs of rows: links start .. start + length - 1 (round the ring)."""
    n, stride = torus.shape[dim], torus.strides[dim]
    marks = np.zeros(torus.num_routers, dtype=np.int64)
    end = start + length
    np.add.at(marks, base + start * stride, sizes)
    inside = end < n
    np.subtract.at(marks, (base + end * stride)[inside], sizes[inside])
    around = end > n
    np.add.at(marks, base[around], sizes[around])
    np.subtract.at(marks, (base + (end - n) * stride)[around], sizes[around])
    rows = marks.reshape(-1, n, stride)
    return rows.cumsum(axis=1).ravel()
