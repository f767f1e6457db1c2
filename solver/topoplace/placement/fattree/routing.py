"""The routes of a job on its own links: for all messages of a permutation of its nodes at once.

Messages between leaves form a bipartite graph, in which every leaf sends and receives as many as it
has nodes. By König's theorem its edges have as many colours as the largest leaf has nodes; a colour
is a switch. The messages of a colour form such a graph between pods, whose colours are spines
(docs/proofs/fattree.md, "Why any permutation can be routed").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set

import numpy as np
from scipy.optimize import linear_sum_assignment

from topoplace.errors import InputError
from topoplace.machine import parse_node_set
from topoplace.machine.fattree import FatTree
from topoplace.result.fattree import FatTreeModel, FatTreeResult

Pair = tuple[int, int]
Part = tuple[int, ...]
"""A leaf, or a pod at one of its switches."""


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
    own = defaultdict[Part, set[int]](set)
    for *part, top in map(tree.ends, links):
        own[tuple(part)].add(top)
    leaves = [(tree.leaf_of[a], tree.leaf_of[b]) for a, b in messages]
    through = shared([((a,), (b,)) for a, b in leaves], own)
    found: list[list[int]] = [[] for _ in messages]
    for i in {switch for switch in through if switch is not None}:
        some = [k for k, switch in enumerate(through) if switch == i]
        pods = [[(tree.pod_of[leaf], i) for leaf in leaves[k]] for k in some]
        for k, j in zip(some, shared(pods, own), strict=True):
            a, b = leaves[k]
            found[k] = tree.way(a, b, i, j)
    return found


def shared(messages: Sequence[Sequence[Part]], own: Mapping[Part, Set[int]]) -> list[int | None]:
    """Return what every message between parts of a job goes through: something that both have.

    Every part sends as many messages as it receives, some perhaps to itself. Those that send most
    have the same things; one other part has some of these, and gets as many messages.
    """
    count = Counter(a for a, _ in messages)
    size = max(count.values())
    small = [part for part, num in count.items() if num < size]
    idle = [(part, part) for part in small for _ in range(size - count[part])]
    colours = coloured([*messages, *idle])
    core = set.intersection(*({*own.get(part, ())} for part in count if part not in small))
    spare = {*colours[len(messages) :]}  # colours in which the smaller part sends nothing
    first = sorted(core & own.get(small[0], set()) if small else core)[: size - len(spare)]
    names = dict(zip([c for c in range(size) if c not in spare], first, strict=False))
    names |= zip(sorted(spare), sorted(core - {*first}), strict=False)
    return [names.get(colour) for colour in colours[: len(messages)]]


def coloured(edges: Sequence[Sequence[Part]]) -> list[int]:
    """Return colours of the edges of a bipartite graph: no two at an end have the same.

    As many edges begin and end at each vertex, so a perfect matching can be taken out for every
    colour.
    """
    number = {part: k for k, part in enumerate({part for edge in edges for part in edge})}
    left = np.zeros((len(number),) * 2, dtype=np.int64)
    between = defaultdict[Pair, list[int]](list)
    for k, (a, b) in enumerate(edges):
        left[number[a], number[b]] += 1
        between[number[a], number[b]].append(k)
    colours = [-1] * len(edges)
    for colour in range(len(edges) // len(number)):
        ends = linear_sum_assignment(left == 0)
        left[ends] -= 1
        for a, b in zip(*map(np.ndarray.tolist, ends), strict=True):
            colours[between[a, b].pop()] = colour
    return colours
