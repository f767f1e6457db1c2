"""Equation (6) of Mishra 2020 from the nodes of the ranks alone, in rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from topoplace.certify.tree_machine.instance import Instance, Wish
from topoplace.certify.tree_machine.steps import steps_of


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
