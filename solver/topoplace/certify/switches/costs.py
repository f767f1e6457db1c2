"""What a pattern's steps are and what they cost: equation (6) of Mishra 2020, rank by rank.

See docs/proofs-tree.md, "The problem" and "Steps". All numbers are rational.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache

from topoplace.certify.switches.instance import Instance, Wish
from topoplace.snapshot.schema import Pattern

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
    """Return the grid of the least sum of extents, descending; of several the first least.

    Parameters
    ----------
    pattern
        One of `GRIDS`.
    """
    dims = GRIDS[pattern]
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    found: list[tuple[int, ...]] = [()]
    for _ in range(dims - 1):
        found = [(*grid, n) for grid in found for n in divisors]
    grids = []
    for grid in found:
        product = 1
        for n in grid:
            product *= n
        if ranks % product == 0:
            grids.append(tuple(sorted((*grid, ranks // product), reverse=True)))
    return min(grids, key=lambda grid: (sum(grid), grid))


def _halo(grid: tuple[int, ...]) -> list[Step]:
    ranks = 1
    for n in grid:
        ranks *= n
    steps: list[Step] = []
    stride = ranks
    for n in grid:
        stride //= n
        inside = [r for r in range(ranks) if r // stride % n < n - 1]
        steps.append((tuple((r, r + stride) for r in inside), 1))
    return steps


def hops(level: int, a: tuple[int, int], b: tuple[int, int] | None) -> Fraction:
    """Return Hops (eqs. 2, 3 and 5) below a common switch of some level.

    Parameters
    ----------
    a, b
        Of each leaf its L_comm and L_nodes; `b` is None if both nodes are on one leaf.
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
