"""A snapshot of a fat tree, checked, and how a solution is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine import format_node_set
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
from topoplace.snapshot.machines import made
from topoplace.snapshot.schema import Request, Snapshot
from topoplace.snapshot.state import NumberedState, Queued, checked_nodes, require_none
from topoplace.snapshot.value import require_value, value_of
from topoplace.solving.solve import Frame
from topoplace.types import IntArray

WHERE = "a fat tree"
_OWN = {"id", "nodes", "priority", "communication", "application", "walltime", "submitted"}
MAX_ROWS = 1 << 17
"""Of a tree: certificates may have a price for each."""


@dataclass(frozen=True)
class FatTreeState(NumberedState):
    """What a snapshot of a fat tree says.

    Attributes
    ----------
    left
        What is free of every row: nodes of leaves, and links.
    """

    kind = "fattree"

    tree: FatTree
    left: IntArray
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
    fields = {"pods": pods, "switches": after[0], "spines": after[1] if above else 0}
    return made(FatTreeModel, "fattree:16", spec, fields, kind="fattree")


def about(model: FatTreeModel) -> str:
    """Return a line on a machine."""
    pods, leaves = number_of(len(model.pods), "pod"), number_of(len(model.tree.sizes), "leaf")
    above = f", {number_of(model.spines, 'spine')} above each" if model.spines else ""
    nodes, switches = number_of(model.num_nodes, "node"), number_of(model.switches, "switch")
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

    def request(_: int, one: Request, field: str) -> Queued:
        require_none(one, [name for name, _ in one if name not in _OWN], WHERE, field, shown=True)
        if one.nodes > tree.num_nodes:
            expected = f"no more nodes than the machine's {tree.num_nodes:,}"
            raise InputError(expected, field=f"{field}.nodes", value=one.nodes)
        return Queued(one.id, one.nodes, value_of(one, snapshot.value))

    nowhere = np.zeros(tree.num_nodes, dtype=bool)
    foreign, lists = ("apart", "exclusive", "patterns", "prism", "takes"), NodeLists(tree.num_nodes)
    held, free, queue = checked_nodes(
        snapshot, WHERE, lists, nowhere, foreign, request, called="node {}".format
    )
    left = np.bincount(np.array(tree.leaf_of)[free], minlength=tree.num_rows)
    left[len(tree.sizes) :] = 1
    left[tree.rows(model.missing, "machine.missing")] = 0
    jobs = {job.id: nodes for job, nodes in zip(snapshot.running, held, strict=True)}
    owner: dict[int, str] = {}
    for name, text in model.owned.items():
        field = f"machine.owned.{name}"
        if name not in jobs:
            raise InputError("running jobs", field="machine.owned", value=name, known=jobs)
        for row in tree.rows(text, field):
            if owner.setdefault(row, name) != name:
                found = f"{tree.name(row)}, owned by {owner[row]}"
                raise InputError("links of no other job", field=field, found=found)
    left[[*owner]] = 0
    for name, nodes in jobs.items():
        if name not in model.owned and len({tree.leaf_of[node] for node in nodes}) > 1:
            expected = f"the links of {name}, which has nodes on several leaves"
            raise InputError(expected, field="machine.owned", found="none")
    return FatTreeState(snapshot, free, held, tree, left, queue)


def worth(state: FatTreeState, started: Iterable[Listed]) -> list[int]:
    """Return the values of a solution by level: what starts, and its links."""
    own = [c.values for c in started]
    return [sum(value for value, _ in own), -sum(links for _, links in own)]


def solution(state: FatTreeState, started: Iterable[Listed]) -> FatTreeSolution:
    """Return the document of a solution: jobs get the first free nodes of their leaves."""
    leaves = len(state.tree.sizes)
    numbers = np.split(np.flatnonzero(state.free), np.cumsum(state.left[: leaves - 1]))
    free = [iter(own.tolist()) for own in numbers]
    return FatTreeSolution(
        placements=[
            FatTreePlacement(
                request=state.requests[one.request_idx].id,
                nodes=format_node_set([next(free[row]) for row in one.rows if row < leaves]),
                links=state.tree.text(row for row in one.rows if row >= leaves),
            )
            for one in sorted(started, key=lambda c: c.request_idx)
        ]
    )


FRAME = Frame(
    worth, FatTreeResult, FatTreeLevel, solution, lambda state: (("nodes", "max"), ("links", "min"))
)
