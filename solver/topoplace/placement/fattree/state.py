"""A snapshot of a fat tree, checked, and how a solution is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.kinds import State
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.fattree import FatTree
from topoplace.machine.hostlist import NodeLists
from topoplace.packing.listed import Listed
from topoplace.result.fattree import (
    FatTreeLevel,
    FatTreeModel,
    FatTreePlacement,
    FatTreeResult,
    FatTreeSolution,
)
from topoplace.snapshot.held import queue_facts
from topoplace.snapshot.schema import Request, RunningJob, Snapshot
from topoplace.snapshot.state import Queued, checked_snapshot, require_free, require_none
from topoplace.snapshot.value import require_value, value_of
from topoplace.solving.solve import Frame, called
from topoplace.types import IntArray

LEVELS = (("nodes", "max"), ("links", "min"))
WHERE = "a fat tree"
_OWN = {"id", "nodes", "priority", "communication", "application", "walltime", "submitted"}
MAX_ROWS = 1 << 17
"""Of a tree: certificates may have a price for each."""


@dataclass(frozen=True)
class FatTreeState(State):
    """What a snapshot of a fat tree says.

    Attributes
    ----------
    left
        What is free of every row: nodes of leaves, and links.
    free
        The free nodes of every leaf.
    held
        The nodes of every running job.
    """

    kind = "fattree"

    snapshot: Snapshot
    tree: FatTree
    left: IntArray
    free: tuple[tuple[int, ...], ...]
    held: tuple[IntArray, ...]
    requests: tuple[Queued, ...]


def fat_tree_of(
    prefix: str, before: Sequence[int], after: Sequence[int] | None, spec: str
) -> FatTreeModel | None:
    """Return the tree of ``fattree:16``, ``fattree:4x3:3`` or ``fattree:4x2x2:2x2``.

    The first has 16 ports on every switch, the second 4 leaves of 3 nodes below 3 switches, the
    third 4 pods of 2 leaves of 2 nodes with 2 switches, each of which has 2 spines.
    """
    if after is None and len(before) == 1 and before[0] % 2 == 0:
        half = before[0] // 2
        before, after = [before[0], half, half], [half, half]
    if after is None or len(before) != len(after) + 1 or len(after) > 2:
        return None
    *above, leaves, nodes = before
    pods = [[nodes] * leaves] * (above[0] if above else 1)
    name, spines = spec.replace(":", "-"), after[1] if above else 0
    try:
        return FatTreeModel(kind="fattree", name=name, pods=pods, switches=after[0], spines=spines)
    except ValueError:
        return None


def about(model: FatTreeModel) -> str:
    """Return a line on a machine."""
    pods, leaves = number_of(len(model.pods), "pod"), number_of(len(model.tree.sizes), "leaf")
    above = f", {number_of(model.spines, 'spine')} above each" if model.spines else ""
    switches = number_of(model.switches, "switch")
    nodes = number_of(model.num_nodes, "node")
    return f"{nodes} on {leaves} in {pods} of {switches}{above}"


def prepare(snapshot: Snapshot) -> FatTreeState:
    """Check a snapshot of a fat tree and return its arrays.

    Raises
    ------
    InputError
        With the field at fault, for anything the schema alone could not see.
    """
    model = snapshot.on(FatTreeModel, WHERE)
    require_value(snapshot)
    tree = model.tree
    if tree.num_rows > MAX_ROWS:
        expected = f"at most {MAX_ROWS:,} leaves and links"
        raise InputError(expected, field="machine.pods", found=f"{tree.num_rows:,}")
    lists, holder = NodeLists(tree.num_nodes), np.full(tree.num_nodes, -1, dtype=np.int64)

    def running(idx: int, job: RunningJob, field: str) -> IntArray:
        require_none(job, ("apart", "patterns", "prism", "takes"), WHERE, field)
        nodes = lists.numbers(job.nodes, tree.num_nodes, f"{field}.nodes")
        if not len(nodes):
            raise InputError("at least one node", field=f"{field}.nodes", value=job.nodes)
        require_free(nodes, holder, snapshot.running, f"{field}.nodes", "node {}".format)
        holder[nodes] = idx
        if job.id not in model.owned and len({*tree.leaf_of(nodes).tolist()}) > 1:
            expected = f"the links of {job.id}, which has nodes on several leaves"
            raise InputError(expected, field="machine.owned", found="none")
        return nodes

    def request(_: int, one: Request, field: str) -> Queued:
        require_none(one, [name for name, _ in one if name not in _OWN], WHERE, field, shown=True)
        if one.nodes > tree.num_nodes:
            expected = f"no more nodes than the machine's {tree.num_nodes:,}"
            raise InputError(expected, field=f"{field}.nodes", value=one.nodes)
        return Queued(one.id, one.nodes, value_of(one, snapshot.value))

    held, down, queue = checked_snapshot(
        snapshot, WHERE, running, lambda text: parse_node_set(text, tree.num_nodes, "down"), request
    )
    up = holder < 0
    up[down] = False
    free = tuple(
        tuple((first + np.flatnonzero(up[first : first + size])).tolist())
        for first, size in zip(tree.first.tolist(), tree.sizes, strict=False)
    )
    left = np.ones(tree.num_rows, dtype=np.int64)
    left[tree.families["hosts"]] = [len(nodes) for nodes in free]
    left[_closed(model, snapshot)] = 0
    return FatTreeState(snapshot, tree, left, free, held, queue)


def _closed(model: FatTreeModel, snapshot: Snapshot) -> list[int]:
    """Return the links that are missing or that running jobs own."""
    jobs, tree = {job.id for job in snapshot.running}, model.tree
    closed = dict.fromkeys(tree.rows(model.missing, "machine.missing"), "missing")
    for name, text in model.owned.items():
        field = f"machine.owned.{name}"
        if name not in jobs:
            raise InputError("running jobs", field="machine.owned", value=name, known=jobs)
        for row in tree.rows(text, field):
            if closed.get(row, "missing") != "missing":
                found = f"{tree.text([row])}, owned by {closed[row]}"
                raise InputError("links of no other job", field=field, found=found)
            closed[row] = name
    return sorted(closed)


def worth(state: FatTreeState, started: Iterable[Listed]) -> list[int]:
    """Return the values of a solution by level: what starts, and its links."""
    leaves = len(state.tree.sizes)
    rows = [(state.requests[c.request_idx].value, c.rows) for c in started]
    return [sum(v for v, _ in rows), sum(row >= leaves for _, own in rows for row in own)]


def solution(state: FatTreeState, started: Iterable[Listed]) -> FatTreeSolution:
    """Return the document of a solution: jobs get the first free nodes of their leaves."""
    free, leaves = [iter(nodes) for nodes in state.free], len(state.tree.sizes)
    placements = []
    for one in sorted(started, key=lambda c: c.request_idx):
        nodes = [next(free[row]) for row in one.rows if row < leaves]
        links = [row for row in one.rows if row >= leaves]
        placements.append(
            FatTreePlacement(
                request=state.requests[one.request_idx].id,
                nodes=format_node_set(nodes),
                links=state.tree.text(links),
            )
        )
    return FatTreeSolution(placements=placements)


def _facts(result: FatTreeResult) -> dict[str, Any]:
    found = result.solution
    started = None if found is None else len(found.placements)
    return {"started": started, **queue_facts(result.instance)}


FRAME = Frame(
    lambda state: LEVELS,
    called,
    worth,
    FatTreeResult,
    FatTreeLevel,
    solution,
    lambda state: state.snapshot,
    facts=_facts,
)
