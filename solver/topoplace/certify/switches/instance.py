"""A snapshot of a tree machine, read again for the checker, and the costs of requests.

Costs are those of equation (6) of Mishra 2020, rank by rank, in rational numbers; see
docs/proofs/tree.md, "The problem" and "Steps".
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from topoplace.certify.candidates import candidates
from topoplace.certify.report import RefusedError, require_none
from topoplace.machine.hostlist import NodeLists
from topoplace.machine.tree import SwitchTree, build_tree
from topoplace.snapshot.schema import (
    ON_HIERARCHIES,
    ON_TORI,
    Communication,
    Pattern,
    PatternUse,
    Request,
    Snapshot,
    TreeModel,
)


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

    `free` are the nodes that are up and not held by a job, `comm` how many nodes of every leaf
    communication-intensive running jobs hold.
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
        counts = Counter(self.leaf_of[name] for name in self.free)
        return [counts[leaf] for leaf in range(self.tree.num_leaves)]

    def have_common_switch(self, leaves: Iterable[int]) -> bool:
        """Tell whether a switch is above all of some leaves."""
        used = set(leaves)
        return any(used.issubset(switch.leaves) for switch in self.tree.switches)


def read_instance(snapshot: Snapshot) -> Instance:
    """Return the instance of a result."""
    model = snapshot.machine
    if not isinstance(model, TreeModel):
        raise RefusedError("the instance has no tree machine")
    tree = tree_of(model)
    leaf_of = dict(zip(tree.node_names, tree.leaf_of_node.tolist(), strict=True))
    comm = [0] * tree.num_leaves
    held: set[str] = set()
    lists = NodeLists()
    for job in snapshot.running:
        if job.prism is not None:
            raise RefusedError(f"running job {job.id} has a prism on a tree")
        nodes = _names(lists.hosts(job.nodes, job.id), leaf_of, job.id)
        if not nodes or held & nodes:
            raise RefusedError(f"running job {job.id} holds no node, or one of another job")
        held |= nodes
        for name in nodes if job.communication is not Communication.NONE else ():
            comm[leaf_of[name]] += 1
    down = _names(lists.hosts(snapshot.down, "down"), leaf_of, "down")
    wishes = {request.id: _wish(request, tree.num_nodes) for request in candidates(snapshot)}
    named = Counter([job.id for job in snapshot.running] + [job.id for job in snapshot.queue])
    if twice := [name for name, times in named.items() if times > 1]:
        raise RefusedError(f"job {twice[0]} is there twice")
    free = frozenset(leaf_of) - held - down
    return Instance(tree, leaf_of, free, tuple(comm), wishes)


def tree_of(model: TreeModel) -> SwitchTree:
    """Return the tree that a document describes."""
    leaves: list[tuple[str, list[str]]] = []
    uppers: list[tuple[str, list[str]]] = []
    lists = NodeLists()
    for switch in model.switches:
        if (switch.nodes is None) == (switch.switches is None):
            raise RefusedError(f"switch {switch.name} needs either nodes or switches")
        text = switch.switches if switch.nodes is None else switch.nodes
        below = lists.hosts(text or "", switch.name)
        (uppers if switch.nodes is None else leaves).append((switch.name, below))
    return build_tree(leaves, uppers)


def _names(names: list[str], leaf_of: dict[str, int], field: str) -> set[str]:
    if len(set(names)) < len(names) or not leaf_of.keys() >= set(names):
        raise RefusedError(f"{field} names a node twice, or one that is not there")
    return set(names)


def _wish(request: Request, num_nodes: int) -> Wish:
    patterns = tuple(request.patterns or ())
    if request.nodes > num_nodes or sum(use.share for use in patterns) > 100:
        raise RefusedError(f"request {request.id} wants too many nodes or too large shares")
    require_none(request, "shapes", "region", "node_class", *ON_TORI, *ON_HIERARCHIES)
    if request.communication is Communication.NONE:
        patterns = ()
    return Wish(request.id, request.nodes, request.priority * request.nodes, patterns)


# ---- What a pattern's steps are, and what they cost ----------------------------------------------

Pair = tuple[int, int]
Step = tuple[tuple[Pair, ...], int]

GRIDS = {Pattern.STENCIL_2D: 2, Pattern.STENCIL_3D: 3}
"""Dimensions of the patterns on a grid."""


@lru_cache(maxsize=512)
def steps_of(pattern: Pattern, ranks: int) -> tuple[Step, ...]:
    """Return the pairs and the weight of every step of a pattern that has pairs."""
    if pattern is Pattern.RECURSIVE_DOUBLING:
        steps = _exchange(ranks, vectors=False)
    elif pattern is Pattern.VECTOR_DOUBLING:
        steps = _exchange(ranks, vectors=True)
    elif pattern is Pattern.BINOMIAL:
        steps = _binomial(ranks)
    elif pattern is Pattern.RING:
        around = {(min(r, (r + 1) % ranks), max(r, (r + 1) % ranks)) for r in range(ranks)}
        steps = [(tuple(sorted(around)), ranks - 1)] if ranks > 1 else []
    else:
        steps = _halo(grid_of(pattern, ranks))
    return tuple(step for step in steps if step[0])


def _exchange(ranks: int, vectors: bool) -> list[Step]:
    bits = ranks.bit_length() - 1
    surplus = ranks - (1 << bits)
    members = [2 * i + 1 for i in range(surplus)] + list(range(2 * surplus, ranks))
    steps: list[Step] = []
    for bit in range(bits):
        pairs = []
        for place, rank in enumerate(members):
            other = place ^ (1 << bit)
            if place < other:
                pairs.append((rank, members[other]))
        steps.append((tuple(pairs), 1 << (bits - 1 - bit) if vectors else 1))
    fold = tuple((2 * i, 2 * i + 1) for i in range(surplus))
    return [(fold, 1), *steps, (fold, 1 << bits if vectors else 1)]


def _binomial(ranks: int) -> list[Step]:
    bits = (ranks - 1).bit_length()
    steps: list[Step] = []
    for n in range(bits):
        stride = 1 << (bits - n)
        pairs = [(r, r + stride // 2) for r in range(0, ranks, stride)]
        steps.append((tuple(pair for pair in pairs if pair[1] < ranks), 1))
    return steps


def grid_of(pattern: Pattern, ranks: int) -> tuple[int, ...]:
    """Return the grid of the least sum of extents, descending; of several the first least."""
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    grids = [
        tuple(sorted((*some, ranks // math.prod(some)), reverse=True))
        for some in itertools.product(divisors, repeat=GRIDS[pattern] - 1)
        if ranks % math.prod(some) == 0
    ]
    return min(grids, key=lambda grid: (sum(grid), grid))


def _halo(grid: tuple[int, ...]) -> list[Step]:
    ranks = stride = math.prod(grid)
    steps: list[Step] = []
    for n in grid:
        stride //= n
        inside = [r for r in range(ranks) if r // stride % n < n - 1]
        steps.append((tuple((r, r + stride) for r in inside), 1))
    return steps


def hops(level: int, a: tuple[int, int], b: tuple[int, int] | None) -> Fraction:
    """Return Hops (eqs. 2, 3 and 5) below a common switch of some level.

    Leaves are L_comm and L_nodes; `b` is None if both nodes are on one leaf.
    """
    contention = Fraction(*a)
    if b is not None:
        contention += Fraction(*b) + Fraction(a[0] + b[0], 2 * (a[1] + b[1]))
    return 2 * level * (1 + contention)


def cost_of(instance: Instance, comm: Sequence[int], wish: Wish, nodes: Sequence[str]) -> Fraction:
    """Return the cost of a started request; `comm` is L_comm of every leaf with all that run."""
    leaves = [instance.leaf_of[name] for name in nodes]
    sizes = instance.sizes

    @cache
    def between(a: int, b: int) -> Fraction:
        level = int(instance.tree.common_level[a, b])
        one = comm[a], sizes[a]
        return hops(level, one, None if a == b else (comm[b], sizes[b]))

    total = Fraction(0)
    for use in wish.patterns:
        for pairs, weight in steps_of(use.pattern, len(leaves)):
            ends = {(min(leaves[i], leaves[j]), max(leaves[i], leaves[j])) for i, j in pairs}
            worst = max(between(a, b) for a, b in ends)
            total += Fraction(use.share, 100) * use.message_bytes * weight * worst
    return total
