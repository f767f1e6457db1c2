"""The claims of a placement on a fat tree, and its value (docs/proofs/fattree.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.certify.candidates import candidates, told
from topoplace.certify.fattree.oracle import FatTreeOracle, Request, oracle_of
from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, RefusedError
from topoplace.certify.value import require_value, value_of
from topoplace.errors import number_of
from topoplace.machine.fattree import FatTree
from topoplace.machine.hostlist import NodeLists
from topoplace.result.fattree import FatTreeModel, FatTreePlacement, FatTreeResult
from topoplace.snapshot.schema import Snapshot

MOST_ROWS = 1 << 17
_OF_REQUESTS = {"id", "nodes", "priority", "communication", "application", "walltime", "submitted"}
_OF_JOBS = {"id", "nodes", "communication", "application", "ends"}


@dataclass(frozen=True)
class Instance:
    """A snapshot: which nodes and links are free, and who waits."""

    tree: FatTree
    nodes: frozenset[int]
    links: frozenset[int]
    queue: tuple[Request, ...]

    @cached_property
    def hosts(self) -> list[int]:
        """The free nodes of every leaf, as a number."""
        return [
            sum(first + k in self.nodes for k in range(size))
            for first, size in zip(self.tree.first.tolist(), self.tree.sizes, strict=False)
        ]


def read_instance(snapshot: Snapshot) -> Instance:
    """Read a snapshot of a fat tree."""
    model = snapshot.machine
    if not isinstance(model, FatTreeModel):
        raise RefusedError("the machine is no fat tree")
    require_value(snapshot)
    tree, lists = model.tree, NodeLists(model.num_nodes)
    if tree.num_rows > MOST_ROWS:
        raise RefusedError("too many leaves and links")
    if snapshot.regions:
        raise RefusedError("a fat tree has no regions")
    names = Counter(job.id for job in (*snapshot.running, *snapshot.queue))
    if max(names.values(), default=0) > 1:
        raise RefusedError("a job is there twice")
    held: list[int] = []
    for job in snapshot.running:
        _require_plain(job, _OF_JOBS)
        own = lists.numbers(job.nodes, tree.num_nodes).tolist()
        held += own
        leaves = {leaf_of(tree, node) for node in own}
        if not own or (len(leaves) > 1 and job.id not in model.owned):
            raise RefusedError(f"{job.id} has no nodes, or several leaves and no links")
    if len({*held}) < len(held):
        raise RefusedError("two running jobs hold a node")
    taken: list[int] = []
    for name, text in model.owned.items():
        if names[name] != 1 or name not in {job.id for job in snapshot.running}:
            raise RefusedError(f"{name} owns links and does not run")
        taken += tree.rows(text, f"links of {name}")
    if len({*taken}) < len(taken):
        raise RefusedError("two running jobs own a link")
    down = lists.numbers(snapshot.down, tree.num_nodes).tolist()
    every = range(len(tree.sizes), tree.num_rows)
    queue = []
    for one in candidates(snapshot):
        _require_plain(one, _OF_REQUESTS)
        if one.nodes > tree.num_nodes:
            raise RefusedError(f"{one.id} wants more nodes than there are")
        queue.append(Request(one.id, value_of(one, snapshot.value)[0], one.nodes))
    return Instance(
        tree,
        frozenset(range(tree.num_nodes)) - {*held} - {*down},
        frozenset(every) - {*taken} - {*tree.rows(model.missing, "missing")},
        tuple(queue),
    )


def _require_plain(job: Iterable[tuple[str, object]], plain: Set[str]) -> None:
    foreign = {name for name, value in job if value is not None} - plain
    if foreign:
        raise RefusedError(f"a job has {', '.join(sorted(foreign))}, which fat trees have not")


def leaf_of(tree: FatTree, node: int) -> int:
    """Return the leaf of a node."""
    return int(np.searchsorted(tree.first, node, side="right")) - 1


def fault_of(tree: FatTree, nodes: Iterable[int], links: Iterable[int]) -> str | None:
    """Return why a job may not be on some nodes with some links; None if it may.

    It may if at no switch it has more links up than its nodes, or leaves, have links into it, and
    any permutation of its nodes can be routed on its own links (docs/proofs/fattree.md).
    """
    hosts = Counter(leaf_of(tree, node) for node in nodes)
    up: dict[int, set[int]] = {leaf: set() for leaf in hosts}
    spines: dict[tuple[int, int], set[int]] = {}
    for row in links:
        ends = tree.ends(row)
        if len(ends) == 2:
            if ends[0] not in up:
                return f"a link of leaf {ends[0]}, on which it has no node"
            up[ends[0]].add(ends[1])
        else:
            spines.setdefault((ends[0], ends[1]), set()).add(ends[2])
    for leaf, own in up.items():
        if len(own) > hosts[leaf]:
            return f"more links than nodes on leaf {leaf}"
    pods = {tree.pod_of[leaf] for leaf in hosts}
    below = Counter((tree.pod_of[leaf], i) for leaf, own in up.items() for i in own)
    for switch, those in spines.items():
        if len(those) > below[switch]:
            return f"more links up than down at switch {switch[1]} of pod {switch[0]}"
    if not joined([(num, up[leaf]) for leaf, num in hosts.items()]):
        return "leaves that do not share the links that they need"
    for i in range(tree.switches) if len(pods) > 1 else ():
        parts = [(below[pod, i], spines.get((pod, i), set())) for pod in pods if below[pod, i]]
        if not joined(parts):
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
    free = {*((row, side) for row in links for side in ("up", "down"))}
    for sender, receiver, rows in routes:
        a, b, half = leaf_of(tree, sender), leaf_of(tree, receiver), len(rows) // 2
        ends = [tree.ends(row) for row in rows]
        p, q = tree.pod_of[a], tree.pod_of[b]
        right = not rows if a == b else half == (1 if p == q else 2) and len(rows) == 2 * half
        if right and a != b:
            i = ends[0][-1]
            right = ends[0] == (a, i) and ends[-1] == (b, i)
            if p != q:
                j = ends[1][-1]
                right = right and ends[1] == (p, i, j) and ends[2] == (q, i, j)
        if not right:
            raise RefusedError(f"the links of {sender} do not lead to {receiver}")
        for k, row in enumerate(rows):
            way = row, "up" if k < half else "down"
            if way not in free:
                raise RefusedError(f"two messages on a link, or one of others: {tree.text([row])}")
            free.remove(way)


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
        lists, wanted = NodeLists(tree.num_nodes), {r.id: r.nodes for r in self._instance.queue}
        for one in placements:
            if one.request not in wanted or one.request in found:
                raise RefusedError(f"{one.request} is no request of the queue, or starts twice")
            nodes = lists.numbers(one.nodes, tree.num_nodes, one.request).tolist()
            if len(nodes) != wanted[one.request]:
                raise RefusedError(f"{one.request} has {number_of(len(nodes), 'node')}")
            found[one.request] = nodes, tree.rows(one.links, f"links of {one.request}")
        return found

    def _exclusive(self, places: Places) -> str:
        nodes = [node for own, _ in places.values() for node in own]
        links = [link for _, own in places.values() for link in own]
        if not ({*nodes} <= self._instance.nodes and {*links} <= self._instance.links):
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
        return oracle_of(own.tree, own.hosts, own.links, own.queue)


class Places(dict[str, tuple[list[int], list[int]]]):
    """Nodes and links of every request that starts."""


def _counts(places: Places) -> str:
    nodes = sum(len(own) for own, _ in places.values())
    return f"{number_of(len(places), 'request')} placed, {number_of(nodes, 'node')}"
