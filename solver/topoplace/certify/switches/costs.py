"""What requests cost by equation (6) of Mishra 2020, rank by rank, in rational numbers.

See docs/proofs/tree.md, "The problem" and "Steps".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache

from topoplace.certify.hierarchy.instance import Asked, Instance
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


def free_per_leaf(instance: Instance) -> list[int]:
    """Return how many hosts of every leaf are free, on a switch tree."""
    found = [0] * instance.machine.num_leaves
    for leaf, (free,) in zip(instance.machine.leaf_of.tolist(), instance.free, strict=True):
        found[leaf] += free
    return found


def cost_of(
    instance: Instance, comm: Sequence[int], asked: Asked, hosts: Sequence[int]
) -> Fraction:
    """Return the cost of a started request; `comm` is L_comm of every leaf with all that run."""
    machine = instance.machine
    leaves = machine.leaf_of[list(hosts)].tolist()
    sizes: list[int] = machine.leaf_sizes.tolist()

    @cache
    def between(a: int, b: int) -> Fraction:
        one = comm[a], sizes[a]
        return hops(int(machine.common_level[a, b]), one, None if a == b else (comm[b], sizes[b]))

    total = Fraction(0)
    for use in asked.patterns:
        for pairs, weight in steps_of(use.pattern, len(leaves)):
            ends = {(min(leaves[i], leaves[j]), max(leaves[i], leaves[j])) for i, j in pairs}
            worst = max(between(a, b) for a, b in ends)
            total += Fraction(use.share, 100) * use.message_bytes * weight * worst
    return total
