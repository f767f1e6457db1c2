"""The claims of a placement on a fat tree, and its value (docs/proofs/fattree.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from topoplace.certify.candidates import candidates, placed, require_plain, told
from topoplace.certify.fattree.oracle import FatTreeOracle, Request, oracle_of
from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, RefusedError, require_only
from topoplace.certify.sets import NodeSets
from topoplace.certify.value import require_value, value_of
from topoplace.errors import number_of
from topoplace.machine.fattree import FatTree
from topoplace.machine.hostlist import NodeLists
from topoplace.result.fattree import FatTreeModel, FatTreePlacement, FatTreeResult
from topoplace.snapshot.schema import Snapshot
from topoplace.types import IntArray

MOST_ROWS = 1 << 17
_OF_BOTH = {"id", "nodes", "communication", "application"}
_OF_JOBS, _OF_REQUESTS = _OF_BOTH | {"ends"}, _OF_BOTH | {"priority", "walltime", "submitted"}


@dataclass(frozen=True)
class Instance:
    """A snapshot: which nodes are free, what is free of every row, and who waits."""

    tree: FatTree
    nodes: frozenset[int]
    left: IntArray
    queue: tuple[Request, ...]


def read_instance(snapshot: Snapshot) -> Instance:
    """Read a snapshot of a fat tree."""
    model = snapshot.on(FatTreeModel, "a fat tree")
    require_value(snapshot)
    tree = model.tree
    if tree.num_rows > MOST_ROWS:
        raise RefusedError("too many leaves and links")
    require_plain(snapshot, "a fat tree")
    plain = snapshot.model_copy(update={"sets": {}})  # no request names one
    held, free = NodeSets(plain, tree.num_nodes).held_and_free(plain)
    for job, own in zip(snapshot.running, held, strict=True):
        require_only(job, _OF_JOBS)
        if len({tree.leaf_of[node] for node in own}) > 1 and job.id not in model.owned:
            raise RefusedError(f"{job.id} has several leaves and no links")
    if not {*model.owned} <= {job.id for job in snapshot.running}:
        raise RefusedError("a job owns links and does not run")
    taken = [row for name, text in model.owned.items() for row in tree.rows(text, name)]
    if len({*taken}) < len(taken):
        raise RefusedError("two running jobs own a link")
    queue = []
    for one in candidates(snapshot):
        require_only(one, _OF_REQUESTS)
        if one.nodes > tree.num_nodes:
            raise RefusedError(f"{one.id} wants more nodes than there are")
        queue.append(Request(one.id, value_of(one, snapshot.value)[0], one.nodes))
    taken += tree.rows(model.missing, "missing")
    leaves = np.array([tree.leaf_of[node] for node in free], dtype=np.int64)
    left = np.bincount(leaves, minlength=tree.num_rows)
    left[len(tree.sizes) :] = 1
    left[taken] = 0
    return Instance(tree, free, left, tuple(queue))


def fault_of(tree: FatTree, nodes: Iterable[int], links: Iterable[int]) -> str | None:
    """Return why a job may not be on some nodes with some links; None if it may.

    It may if at no switch it has more links up than its nodes, or leaves, have links into it, and
    any permutation of its nodes can be routed on its own links (docs/proofs/fattree.md).
    """
    up: dict[tuple[int, ...], set[int]] = {}
    for *part, top in map(tree.ends, links):
        up.setdefault(tuple(part), set()).add(top)
    hosts = Counter(tree.leaf_of[node] for node in nodes)
    size = Counter[tuple[int, ...]]({(leaf,): num for leaf, num in hosts.items()})
    size.update((tree.pod_of[at[0]], i) for at, own in up.items() if len(at) == 1 for i in own)
    for at, own in up.items():
        if len(own) > size[at]:
            where = f"leaf {at[0]}" if len(at) == 1 else f"switch {at[1]} of pod {at[0]}"
            return f"more links up than nodes, or links, into {where}"
    if not joined([(num, up.get((leaf,), set())) for leaf, num in hosts.items()]):
        return "leaves that do not share the links that they need"
    for i in range(tree.switches):
        if not joined([(num, up.get(at, set())) for at, num in size.items() if at[1:] == (i,)]):
            return f"pods that do not share the links that they need at switch {i}"
    return None


def joined(parts: Sequence[tuple[int, Set[int]]]) -> bool:
    """Return whether parts of a job are joined as they have to be: leaves, or pods at a switch.

    Each has a size, and a set of no more than that. All of the largest size have the same set, at
    most one part is smaller, and what it shares with that set is its size.
    """
    most = max((size for size, _ in parts), default=0)
    full = [own for size, own in parts if size == most]
    small = [(size, own) for size, own in parts if size < most]
    core = frozenset.intersection(*map(frozenset, full)) if full else frozenset()
    if len(small) > 1 or (len(full) > 1 and len(core) < most):
        return False
    return all(len(core & own) >= size for size, own in small)


def require_routed(
    tree: FatTree, links: Iterable[int], routes: Sequence[tuple[int, int, Sequence[int]]]
) -> None:
    """Refuse messages that do not go at once on some links.

    A message has its sender, its receiver, and its links: up from the leaf of the sender and down
    to that of the receiver, at the same switch, and between pods over the same spine. No two have a
    link in the same direction.
    """
    free = {*product(links, ("up", "down"))}
    for sender, receiver, rows in routes:
        a, b = tree.leaf_of[sender], tree.leaf_of[receiver]
        spines = [None] if tree.pod_of[a] == tree.pod_of[b] else range(tree.spines)
        if [*rows] not in (tree.way(a, b, *at) for at in product(range(tree.switches), spines)):
            raise RefusedError(f"the links of {sender} do not lead to {receiver}")
        for k, row in enumerate(rows):
            own = row, "up" if 2 * k < len(rows) else "down"
            if own not in free:
                raise RefusedError(f"two messages on a link, or one of others: {tree.text([row])}")
            free.remove(own)


Places = dict[str, tuple[list[int], list[int]]]
"""Nodes and links of every request that starts."""


class FatTreePlacements(Packings[FatTreeResult]):
    """A placement on a fat tree, as the frame asks for it."""

    searches = "alone"
    levels = (("nodes", "max"), ("links", "min"))
    _instance: Instance

    def read(self) -> str:
        """Read the instance and return what it is."""
        self._instance = read_instance(self.result.instance)
        tree = self._instance.tree
        what = f"{number_of(tree.num_nodes, 'node')} on {number_of(len(tree.sizes), 'leaf')}"
        return f"{what} in {number_of(len(tree.pods), 'pod')}, {told(self.result.instance)}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        solution = self.result.solution
        if solution is None:
            return True
        places = claims.add("placements", lambda: self._places(solution.placements), _counts)
        if places is None:
            return False
        claims.add("exclusive", lambda: self._exclusive(places))
        claims.add("isolated", lambda: self._isolated(places))
        if claims.hold:
            values = {request.id: request.value for request in self._instance.queue}
            started = sum(values[name] for name in places)
            self.values = [started, sum(len(links) for _, links in places.values())]
        return True

    def _places(self, placements: Sequence[FatTreePlacement]) -> Places:
        tree, found = self._instance.tree, Places()
        lists, waiting = NodeLists(tree.num_nodes), {r.id: r for r in self._instance.queue}
        for request, one in placed(placements, waiting):
            nodes = lists.numbers(one.nodes, tree.num_nodes, request.id).tolist()
            if len(nodes) != request.nodes:
                raise RefusedError(f"{request.id} has {number_of(len(nodes), 'node')}")
            found[request.id] = nodes, tree.rows(one.links, f"links of {request.id}")
        return found

    def _exclusive(self, places: Places) -> str:
        nodes = [node for own, _ in places.values() for node in own]
        links = [link for _, own in places.values() for link in own]
        if not ({*nodes} <= self._instance.nodes and self._instance.left[links].all()):
            raise RefusedError("a node or a link is not free")
        if len({*nodes}) < len(nodes) or len({*links}) < len(links):
            raise RefusedError("two jobs have a node or a link")
        return "all nodes and links are free, and none has two jobs"

    def _isolated(self, places: Places) -> str:
        for name, (nodes, links) in places.items():
            fault = fault_of(self._instance.tree, nodes, links)
            if fault is not None:
                raise RefusedError(f"{name} has {fault}")
        return "any permutation of the nodes of a job can be routed on its own links"

    @cached_property
    def oracle(self) -> FatTreeOracle:
        """The oracle of places."""
        own = self._instance
        return oracle_of(own.tree, own.left, own.queue)


def _counts(places: Places) -> str:
    nodes = sum(len(own) for own, _ in places.values())
    return f"{number_of(len(places), 'request')} placed, {number_of(nodes, 'node')}"
