"""The slow truth about small trees, written from docs/proofs-tree.md alone."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from topoplace.machine.tree import SwitchTree
from topoplace.snapshot.schema import Communication, Pattern, PatternUse, Snapshot
from topoplace.snapshot.tree_state import TreeState, prepare_tree

Steps = list[tuple[list[tuple[int, int]], int]]


def steps_of(pattern: Pattern, p: int) -> Steps:
    """Return (pairs, weight) of every step with pairs."""
    if pattern in (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING):
        found = _exchanges(p, doubling=pattern is Pattern.VECTOR_DOUBLING)
    elif pattern is Pattern.BINOMIAL:
        k = (p - 1).bit_length()
        found = []
        for n in range(k):
            span = 2 ** (k - n)
            found.append(([(r, r + span // 2) for r in range(0, p, span) if r + span // 2 < p], 1))
    elif pattern is Pattern.RING:
        pairs = {tuple(sorted((r, (r + 1) % p))) for r in range(p) if p > 1}
        found = [(sorted(pairs), p - 1)]
    else:
        found = _halo(p, 2 if pattern is Pattern.STENCIL_2D else 3)
    return [(pairs, weight) for pairs, weight in found if pairs]


def _exchanges(p: int, doubling: bool) -> Steps:
    k = p.bit_length() - 1
    e = p - 2**k
    ranks = [2 * i + 1 for i in range(e)] + list(range(2 * e, p))
    found: Steps = []
    for b in range(k):
        pairs = [(ranks[r], ranks[r ^ 2**b]) for r in range(2**k) if r < r ^ 2**b]
        found.append((pairs, 2 ** (k - 1 - b) if doubling else 1))
    if e:
        fold = [(2 * i, 2 * i + 1) for i in range(e)]
        found = [(fold, 1), *found, (fold, 2**k if doubling else 1)]
    return found


def _halo(p: int, dims: int) -> Steps:
    shapes = [
        shape
        for shape in itertools.product([n for n in range(1, p + 1) if p % n == 0], repeat=dims)
        if _product(shape) == p and list(shape) == sorted(shape, reverse=True)
    ]
    shape = min(shapes, key=lambda s: (sum(s), s))
    cells = list(itertools.product(*(range(n) for n in shape)))
    number = {cell: r for r, cell in enumerate(cells)}
    found: Steps = []
    for d in range(dims):
        pairs = []
        for cell in cells:
            after = (*cell[:d], cell[d] + 1, *cell[d + 1 :])
            if after in number:
                pairs.append((number[cell], number[after]))
        found.append((pairs, 1))
    return found


def _product(numbers: Sequence[int]) -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


def hops(tree: SwitchTree, comm: Sequence[int], a: int, b: int) -> Fraction:
    """Return Hops of nodes on leaves a and b (eqs. 2, 3 and 5)."""
    nodes = tree.nodes_per_leaf.tolist()
    contention = Fraction(comm[a], nodes[a])
    if a != b:
        contention += Fraction(comm[b], nodes[b])
        contention += Fraction(comm[a] + comm[b], 2 * (nodes[a] + nodes[b]))
    return 2 * int(tree.common_level[a, b]) * (1 + contention)


def cost_of(
    tree: SwitchTree, comm: Sequence[int], patterns: Sequence[PatternUse], leaves: Sequence[int]
) -> Fraction:
    """Return eq. (6); `comm` counts the job itself."""
    table = {(a, b): hops(tree, comm, a, b) for a in set(leaves) for b in set(leaves)}
    total = Fraction(0)
    for use in patterns:
        for pairs, weight in steps_of(use.pattern, len(leaves)):
            worst = max(table[leaves[i], leaves[j]] for i, j in pairs)
            total += Fraction(use.share, 100) * use.message_bytes * weight * worst
    return total


def least_cost(state: TreeState) -> tuple[int, Fraction]:
    """Return the best of both levels over every choice of requests and leaf of every rank."""
    tree = state.tree
    free = [int(state.free[tree.leaf_of_node == leaf].sum()) for leaf in range(tree.num_leaves)]
    best: tuple[int, Fraction] | None = None
    for starts in itertools.product((False, True), repeat=len(state.requests)):
        started = [request for request, start in zip(state.requests, starts, strict=True) if start]
        value = sum(request.priority * request.nodes for request in started)
        if best is not None and value < best[0]:
            continue
        for placed in _placements(tree, started, free):
            comm = Counter(dict(enumerate(state.comm.tolist())))
            for request, leaves in zip(started, placed, strict=True):
                comm.update(leaves if request.intensive else ())
            counted = [comm[leaf] for leaf in range(tree.num_leaves)]
            cost = sum(
                (
                    cost_of(tree, counted, request.patterns, leaves)
                    for request, leaves in zip(started, placed, strict=True)
                    if request.intensive
                ),
                Fraction(0),
            )
            if best is None or (-value, cost) < (-best[0], best[1]):
                best = value, cost
    assert best is not None
    return best


def _placements(
    tree: SwitchTree, started: Sequence[object], free: list[int]
) -> Iterator[list[tuple[int, ...]]]:
    """Yield the leaf of every rank of every started request, in every way there is."""
    if not started:
        yield []
        return
    request = started[0]
    for leaves in itertools.product(range(tree.num_leaves), repeat=request.nodes):
        if not request.intensive and list(leaves) != sorted(leaves):
            continue  # ranks that do not talk are all alike
        taken = Counter(leaves)
        if any(taken[leaf] > free[leaf] for leaf in taken):
            continue
        if request.intensive and any(tree.common_level[a, b] == 0 for a in taken for b in taken):
            continue
        left = [free[leaf] - taken[leaf] for leaf in range(tree.num_leaves)]
        for rest in _placements(tree, started[1:], left):
            yield [leaves, *rest]


def state_of(snapshot: Snapshot) -> TreeState:
    return prepare_tree(snapshot)


__all__ = ["Communication", "cost_of", "hops", "least_cost", "state_of", "steps_of"]
