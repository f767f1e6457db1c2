"""The routes of a job on its own links: for all messages of a permutation of its nodes at once.

Messages between leaves form a bipartite graph, in which every leaf sends and receives as many as it
has nodes. By König's theorem its edges have as many colours as the largest leaf has nodes; a colour
is a switch. The messages of a colour form such a graph between pods, whose colours are spines
(docs/proofs/fattree.md, "Why any permutation can be routed").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import parse_node_set
from topoplace.machine.fattree import FatTree
from topoplace.result.fattree import FatTreeModel, FatTreeResult

Pair = tuple[int, int]
Sets = Mapping[int, set[int]]


def routes_of(
    result: FatTreeResult, request: str, permutation: Mapping[int, int]
) -> dict[int, list[str]]:
    """Return the links of all messages of a permutation of the nodes of a request that starts.

    Parameters
    ----------
    permutation
        By node the node that it sends to.

    Returns
    -------
    dict
        By sending node the names of the links that its message takes, from its leaf on; none within
        a leaf. No two messages take a link in the same direction.

    Raises
    ------
    InputError
        If the request does not start, or these are not its nodes.
    """
    tree = result.instance.on(FatTreeModel, "a fat tree").tree
    placed = {one.request: one for one in result.solution.placements} if result.solution else {}
    if request not in placed:
        raise InputError("a request that starts", field="request", value=request, known=placed)
    own = placed[request]
    nodes = parse_node_set(own.nodes, tree.num_nodes, "nodes").tolist()
    if sorted(permutation) != nodes or sorted(permutation.values()) != nodes:
        raise InputError(f"a permutation of the nodes {own.nodes}", field="permutation")
    rows = routed(tree, tree.rows(own.links, "links"), [*permutation.items()])
    return {
        node: [tree.text([row]) for row in taken]
        for node, taken in zip(permutation, rows, strict=True)
    }


def routed(tree: FatTree, links: Sequence[int], messages: Sequence[Pair]) -> list[list[int]]:
    """Return the links of every message of a permutation of a job's nodes, on its own links."""
    switches, spines = defaultdict[int, set[int]](set), defaultdict[Pair, set[int]](set)
    for ends in map(tree.ends, links):
        if len(ends) == 2:
            switches[ends[0]].add(ends[1])
        else:
            spines[ends[0], ends[1]].add(ends[2])
    leaves = [tuple[int, int](tree.leaf_of(np.array(pair)).tolist()) for pair in messages]
    through = shared(leaves, switches)
    found: list[list[int]] = [[] for _ in messages]
    for i in {i for i in through if i is not None}:
        own = [k for k, switch in enumerate(through) if switch == i]
        pods = [(tree.pod_of[a], tree.pod_of[b]) for a, b in (leaves[k] for k in own)]
        above = shared(pods, {pod: spines[pod, i] for pair in pods for pod in pair})
        for k, (p, q), j in zip(own, pods, above, strict=True):
            a, b = leaves[k]
            if a != b:
                middle = [] if p == q or j is None else [tree.up(p, i, j), tree.up(q, i, j)]
                found[k] = [tree.link(a, i), *middle, tree.link(b, i)]
    return found


def shared(messages: Sequence[Pair], own: Sets) -> list[int | None]:
    """Return what every message between parts of a job goes through: something that both have.

    Every part sends as many messages as it receives, some perhaps to itself. Those that send most
    have the same things; one other part has some of these, and gets as many messages.
    """
    count = Counter(a for a, _ in messages)
    size = max(count.values())
    small = [part for part, num in count.items() if num < size]
    idle = [(part, part) for part in small for _ in range(size - count[part])]
    colours = coloured([*messages, *idle], size)
    core = set.intersection(*(own.get(part, set()) for part in count if part not in small))
    spare = {*colours[len(messages) :]}  # colours in which the smaller part sends nothing
    first = sorted(core & own.get(small[0], set()) if small else core)[: size - len(spare)]
    names = dict(zip([c for c in range(size) if c not in spare], first, strict=False))
    names |= zip(sorted(spare), sorted(core - {*first}), strict=False)
    return [names.get(colour) for colour in colours[: len(messages)]]


def coloured(edges: Sequence[Pair], num: int) -> list[int]:
    """Return colours of the edges of a bipartite graph: no two at an end have the same.

    At most `num` edges begin or end at a vertex. Edge by edge gets a colour that is free at its
    beginning, after it was exchanged with one that is free at its end, along a path from there.
    """
    colours = [-1] * len(edges)
    at: tuple[dict[int, dict[int, int]], ...] = defaultdict(dict), defaultdict(dict)
    for k, (a, b) in enumerate(edges):
        free = next(c for c in range(num) if c not in at[0][a])
        other = next(c for c in range(num) if c not in at[1][b])
        path, side, vertex, colour = [], 1, b, free
        while colour in at[side][vertex]:
            path.append(at[side][vertex][colour])
            side, colour = 1 - side, free + other - colour
            vertex = edges[path[-1]][side]
        for edge in path:
            for end in (0, 1):
                del at[end][edges[edge][end]][colours[edge]]
        for edge in path:
            colours[edge] = free + other - colours[edge]
        colours[k] = free
        for edge in (*path, k):
            for end in (0, 1):
                at[end][edges[edge][end]][colours[edge]] = edge
    return colours
