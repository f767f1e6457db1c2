"""A validated snapshot of a tree machine as arrays: the one form in which solvers see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topoplace.errors import InputError, blamed_on
from topoplace.kinds import State
from topoplace.machine.hostlist import NodeLists
from topoplace.machine.tree import SwitchTree, build_tree
from topoplace.snapshot.schema import (
    ON_HIERARCHIES,
    ON_TORI,
    Communication,
    PatternUse,
    Request,
    RunningJob,
    Snapshot,
    TreeModel,
)
from topoplace.snapshot.state import (
    Queued,
    checked_snapshot,
    machine_of,
    numbers_of,
    require_free,
    require_none,
)
from topoplace.types import BoolArray, IntArray

MAX_LEAVES = 4096
"""Trees keep a number for every pair of leaves."""


@dataclass(frozen=True)
class TreeRunning:
    """A running job: its nodes, in the order of its list, and its kind.

    `intensive` jobs are communication-intensive, others compute-intensive (docs/proofs/tree.md).
    """

    id: str
    nodes: IntArray
    intensive: bool


@dataclass(frozen=True)
class TreeRequest(Queued):
    """A queued request; `patterns` is empty if it is compute-intensive (not `intensive`)."""

    patterns: tuple[PatternUse, ...]
    intensive: bool


@dataclass(frozen=True)
class TreeState(State):
    """What a snapshot of a tree machine says, checked and turned into arrays.

    Attributes
    ----------
    snapshot
        The document.
    tree
        The machine.
    free
        Nodes that are up and held by nobody, shape ``(num_nodes,)``.
    busy, comm
        L_busy and L_comm of Mishra 2020, section 4: nodes held by running jobs, and by
        communication-intensive ones, per leaf, shape ``(num_leaves,)``.
    """

    kind: ClassVar[str] = "allocation"

    snapshot: Snapshot
    tree: SwitchTree
    free: BoolArray
    busy: IntArray
    comm: IntArray
    running: tuple[TreeRunning, ...]
    requests: tuple[TreeRequest, ...]


def tree_of(model: TreeModel) -> SwitchTree:
    """Return the machine a model describes.

    Raises
    ------
    InputError
        With the field ``switch NAME``, for what does not make a tree.
    """
    leaves: list[tuple[str, list[str]]] = []
    uppers: list[tuple[str, list[str]]] = []
    lists = NodeLists()
    for switch in model.switches:
        field = f"switch {switch.name}"
        if (switch.nodes is None) == (switch.switches is None):
            found = "neither" if switch.nodes is None else "both"
            raise InputError("either nodes or switches", field=field, value=found)
        names = lists.hosts(switch.nodes or switch.switches or "", field)
        of_kind = uppers if switch.nodes is None else leaves
        of_kind.append((switch.name, names))
        if len(leaves) > MAX_LEAVES:
            raise InputError(f"at most {MAX_LEAVES} leaves", field=field)
    return build_tree(leaves, uppers)


def prepare_tree(snapshot: Snapshot, *, rules: bool = False) -> TreeState:
    """Check a snapshot of a tree machine and return its arrays.

    A node may be down (draining) and held by a running job. `rules` says whether requests may ask
    for what they can on hierarchies, of which the state says nothing.

    Raises
    ------
    InputError
        With the field at fault, for anything the schema alone could not see.
    """
    model = machine_of(snapshot, TreeModel, "a tree machine")
    with blamed_on(inside="machine"):
        tree = tree_of(model)
    numbers = {name: node for node, name in enumerate(tree.node_names)}
    holder = np.full(tree.num_nodes, -1, dtype=np.int64)
    lists = NodeLists()

    def nodes_of(text: str, field: str) -> IntArray:
        return numbers_of(lists.hosts(text, field), numbers, "node", field)

    def running_job(idx: int, job: RunningJob, field: str) -> TreeRunning:
        nodes = nodes_of(job.nodes, f"{field}.nodes")
        _require_running(job, nodes, snapshot.running, tree, holder, field)
        holder[nodes] = idx
        return TreeRunning(job.id, nodes, job.communication is not Communication.NONE)

    running, down, requests = checked_snapshot(
        snapshot,
        "a tree",
        running_job,
        lambda text: nodes_of(text, "down"),
        lambda _, job, field: _request(job, tree.num_nodes, field, rules=rules),
    )
    free = holder < 0
    free[down] = False
    intensive = np.asarray([job.intensive for job in running] + [False])[holder]  # -1: nobody
    busy, comm = (
        np.bincount(tree.leaf_of_node[held], minlength=tree.num_leaves)
        for held in (holder >= 0, intensive)
    )
    return TreeState(snapshot, tree, free, busy, comm, running, requests)


def require_shares(patterns: Sequence[PatternUse], field: str) -> None:
    """Raise `InputError` if the shares of a job's patterns add up to more than 100."""
    total = sum(use.share for use in patterns)
    if total > 100:
        raise InputError("shares that add up to 100 at most", field=field, value=total)


def _require_running(
    job: RunningJob,
    nodes: IntArray,
    jobs: Sequence[RunningJob],
    tree: SwitchTree,
    holder: IntArray,
    field: str,
) -> None:
    if job.prism is not None:
        raise InputError("no prism on a tree", field=f"{field}.prism", value=job.prism.origin)
    require_shares(job.patterns or (), f"{field}.patterns")
    field = f"{field}.nodes"
    if not len(nodes):
        raise InputError("at least one node", field=field, value=job.nodes)
    require_free(nodes, holder, jobs, field, tree.node_names.__getitem__)


def _request(request: Request, num_nodes: int, field: str, *, rules: bool) -> TreeRequest:
    require_none(request, ("node_class", "shapes", "region"), "a tree", field, shown=True)
    require_none(request, ON_TORI, "a tree", field)
    if not rules:
        require_none(request, ON_HIERARCHIES, "a tree by objective contention", field)
    if request.nodes > num_nodes:
        expected = f"no more nodes than the machine's {num_nodes}"
        raise InputError(expected, field=f"{field}.nodes", value=request.nodes)
    patterns = tuple(request.patterns or ())
    require_shares(patterns, f"{field}.patterns")
    if request.communication is Communication.NONE:
        patterns = ()
    return TreeRequest(request.id, request.nodes, request.priority, patterns, bool(patterns))
