"""What a snapshot of a tree machine says, read again for the checker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from topoplace.certify.report import RefusedError
from topoplace.machine.hostlist import expand_host_list
from topoplace.machine.tree import SwitchTree, build_tree
from topoplace.snapshot.schema import Communication, PatternUse, Request, Snapshot, TreeModel


@dataclass(frozen=True)
class Wish:
    """A request: `patterns` is empty if it is compute-intensive."""

    id: str
    nodes: int
    value: int
    patterns: tuple[PatternUse, ...]


@dataclass(frozen=True)
class Instance:
    """A tree machine with what runs on it and what waits.

    Attributes
    ----------
    leaf_of
        Leaf of every node, by name.
    free
        Nodes that are up and held by nobody.
    comm
        Nodes of every leaf that communication-intensive running jobs hold.
    """

    tree: SwitchTree
    leaf_of: dict[str, int]
    free: frozenset[str]
    comm: tuple[int, ...]
    wishes: dict[str, Wish]

    @property
    def sizes(self) -> list[int]:
        """Nodes of every leaf."""
        sizes: list[int] = self.tree.nodes_per_leaf.tolist()
        return sizes

    @property
    def free_per_leaf(self) -> list[int]:
        """Free nodes of every leaf."""
        found = [0] * self.tree.num_leaves
        for name in self.free:
            found[self.leaf_of[name]] += 1
        return found

    def have_common_switch(self, leaves: Iterable[int]) -> bool:
        """Tell whether any two leaves have a common switch."""
        used = sorted(set(leaves))
        return all(self.tree.common_level[a, b] > 0 for a in used for b in used)


def read_instance(snapshot: Snapshot) -> Instance:
    """Return the instance of a result.

    Raises
    ------
    RefusedError, InputError
        If it is none.
    """
    model = snapshot.machine
    if not isinstance(model, TreeModel):
        raise RefusedError("the instance has no tree machine")
    tree = _tree(model)
    leaf_of = dict(zip(tree.node_names, tree.leaf_of_node.tolist(), strict=True))
    comm = [0] * tree.num_leaves
    held: set[str] = set()
    seen: set[str] = set()
    for job in snapshot.running:
        _once(job.id, seen)
        if job.prism is not None:
            raise RefusedError(f"running job {job.id} has a prism on a tree")
        nodes = _names(job.nodes, leaf_of, job.id)
        if not nodes or held & nodes:
            raise RefusedError(f"running job {job.id} holds no node, or one of another job")
        held |= nodes
        for name in nodes if job.communication is not Communication.NONE else ():
            comm[leaf_of[name]] += 1
    down = _names(snapshot.down, leaf_of, "down")
    wishes = {}
    for request in snapshot.queue:
        _once(request.id, seen)
        wishes[request.id] = _wish(request, tree.num_nodes)
    free = frozenset(leaf_of) - held - down
    return Instance(tree, leaf_of, free, tuple(comm), wishes)


def _tree(model: TreeModel) -> SwitchTree:
    leaves: list[tuple[str, list[str]]] = []
    uppers: list[tuple[str, list[str]]] = []
    for switch in model.switches:
        if (switch.nodes is None) == (switch.switches is None):
            raise RefusedError(f"switch {switch.name} needs either nodes or switches")
        text = switch.switches if switch.nodes is None else switch.nodes
        below = expand_host_list(text or "", switch.name)
        (uppers if switch.nodes is None else leaves).append((switch.name, below))
    return build_tree(leaves, uppers)


def _once(name: str, seen: set[str]) -> None:
    if name in seen:
        raise RefusedError(f"job {name} is there twice")
    seen.add(name)


def _names(text: str, leaf_of: dict[str, int], field: str) -> set[str]:
    names = expand_host_list(text, field)
    if len(set(names)) < len(names) or not leaf_of.keys() >= set(names):
        raise RefusedError(f"{field} names a node twice, or one that is not there")
    return set(names)


def _wish(request: Request, num_nodes: int) -> Wish:
    patterns = tuple(request.patterns or ())
    if request.nodes > num_nodes or sum(use.share for use in patterns) > 100:
        raise RefusedError(f"request {request.id} wants too many nodes or too large shares")
    if request.shapes is not None or request.region is not None or request.node_class is not None:
        raise RefusedError(f"request {request.id} asks for what a tree does not have")
    if request.communication is Communication.NONE:
        patterns = ()
    return Wish(request.id, request.nodes, request.priority * request.nodes, patterns)
